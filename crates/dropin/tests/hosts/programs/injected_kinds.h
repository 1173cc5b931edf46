/* The kinds of calls that injected.c makes fail, with the errors that Linux and its file systems have for them. */
#ifndef INJECTED_KINDS_H
#define INJECTED_KINDS_H
#include <errno.h>
#include "fault_shim.h"

enum { KIND_ERRORS = 12 };

static const struct {
    const char *name;
    /* Up to a zero. */
    int errors[KIND_ERRORS];
} kinds[FAULT_KINDS] = {
    [FAULT_OPEN] = {"open", {EINTR, EMFILE, EACCES, ENOMEM, ENOSPC, EIO, ESTALE, EPERM}},
    [FAULT_CLOSE] = {"close", {EINTR, EIO, ENOSPC, EDQUOT}},
    [FAULT_READ] = {"read", {EINTR, FAULT_SHORT, EIO, EAGAIN, ESTALE, EBADF}},
    [FAULT_WRITE] = {"write", {EINTR, FAULT_SHORT, EIO, ENOSPC, EDQUOT, EFBIG, EAGAIN, ESTALE, EPERM}},
    [FAULT_SEEK] = {"seek", {EIO, ESPIPE}},
    [FAULT_TRUNCATE] = {"truncate", {EINTR, EIO, EFBIG, EPERM, ENOSPC}},
    [FAULT_ALLOCATE] = {"allocate", {EINTR, ENOSPC, EDQUOT, EOPNOTSUPP, ENOSYS, EFBIG, EIO}},
    [FAULT_SYNC] = {"sync", {EINTR, EIO, ENOSPC, EDQUOT}},
    [FAULT_STAT] = {"stat", {EINTR, EIO, ENOMEM, EACCES, ESTALE}},
    [FAULT_STATX] = {"statx", {EINTR, ENOSYS, EINVAL, EPERM, EIO, EACCES, ENOMEM}},
    [FAULT_STATFS] = {"statfs", {EINTR, EIO, ENOSYS, ENOMEM}},
    [FAULT_LOCK] = {"lock", {EINTR, ENOLCK, EAGAIN, EDEADLK, EIO, EOPNOTSUPP, ENOSYS}},
    [FAULT_UNLOCK] = {"unlock", {EINTR, ENOLCK, EIO, ENOMEM}},
    [FAULT_UNLINK] = {"unlink", {EINTR, EACCES, EPERM, EBUSY, EIO}},
    [FAULT_MAP] = {"mmap", {ENOMEM, EACCES, ENODEV, EAGAIN}},
    [FAULT_UNMAP] = {"munmap", {ENOMEM, EINVAL}},
    [FAULT_MADVISE] = {"madvise", {EINVAL, ENOMEM, EAGAIN, EIO}},
    [FAULT_MEMFD] = {"memfd_create", {ENOMEM, EMFILE, ENOSYS}},
    [FAULT_RING_SETUP] = {"io_uring_setup", {ENOMEM, EPERM, ENOSYS, EMFILE}},
    [FAULT_RING_ENTER] = {"io_uring_enter", {EINTR, EAGAIN, EBUSY, EBADF, ENXIO}},
    [FAULT_RING_REGISTER] = {"io_uring_register", {ENOMEM, EINVAL}},
    [FAULT_EVENTFD] = {"eventfd", {EMFILE, ENOMEM}},
    [FAULT_EVENT_WRITE] = {"write to a counter", {EINTR, EAGAIN, EBADF}},
    [FAULT_THREAD] = {"pthread_create", {EAGAIN, EPERM}},
    [FAULT_ATTRIBUTE] = {"fgetxattr", {EOPNOTSUPP, EIO}},
    [FAULT_ADVISE] = {"posix_fadvise", {EINVAL, EBADF}},
    [FAULT_PATH] = {"realpath", {EACCES, EIO, ENOMEM}},
};

/* What a caller must not notice: the call is to be made again, or continued. */
static inline int is_repeated(int error) { return error == EINTR || error == FAULT_SHORT; }

/* Errors that a file system may return again and again; interrupted calls are repeated without end. */
static inline int can_last(int error) { return !is_repeated(error) && error != EAGAIN && error != EBUSY; }

#endif
