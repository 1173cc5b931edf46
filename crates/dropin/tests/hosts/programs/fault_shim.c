/* needs: tool
 * A library in front of libpario.so that makes calls of libc fail when a program asks for it: the n-th call
 * of a kind, with a chosen error.  Only calls that come out of libpario.so count, which is known by
 * the return address: those of the program, of the MPI and of libc itself are never touched.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "fault_shim.h"

static struct {
    int armed;
    fault_kind kind;
    long nth, times;
    int error;
    long calls[FAULT_KINDS], fired;
    char last[512];
} state;

/* Where the code of libpario.so lies. */
static uintptr_t code_start, code_end;

static int find_code(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)size;
    (void)unused;
    const char *leaf = object->dlpi_name ? strrchr(object->dlpi_name, '/') : NULL;
    if (!leaf || strcmp(leaf, "/libpario.so")) return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        code_start = object->dlpi_addr + part->p_vaddr;
        code_end = code_start + part->p_memsz;
    }
    return 1;
}

void fault_arm(fault_kind kind, long nth, int error, long times) {
    if (!code_end) dl_iterate_phdr(find_code, NULL);
    __atomic_store_n(&state.armed, 0, __ATOMIC_SEQ_CST);
    state.kind = kind;
    state.nth = nth;
    state.error = error;
    state.times = times;
    state.fired = 0;
    memset(state.calls, 0, sizeof state.calls);
    state.last[0] = 0;
    __atomic_store_n(&state.armed, 1, __ATOMIC_SEQ_CST);
}

long fault_fired(void) { return __atomic_load_n(&state.fired, __ATOMIC_SEQ_CST); }

long fault_calls(fault_kind kind) { return __atomic_load_n(&state.calls[kind], __ATOMIC_SEQ_CST); }

const char *fault_last(void) { return state.last; }

long fault_disarm(void) {
    __atomic_store_n(&state.armed, 0, __ATOMIC_SEQ_CST);
    return fault_fired();
}

/* Counts a call; the error that it is to fail with, or 0. */
static int strike(fault_kind kind, const void *caller, const char *function, int fd, const char *path) {
    uintptr_t from = (uintptr_t)caller;
    if (!__atomic_load_n(&state.armed, __ATOMIC_SEQ_CST) || from < code_start || from >= code_end) return 0;
    long call = __atomic_add_fetch(&state.calls[kind], 1, __ATOMIC_SEQ_CST);
    if (kind != state.kind || call < state.nth || call >= state.nth + state.times) return 0;
    char link[64], target[256] = "";
    if (path) snprintf(target, sizeof target, "%s", path);
    else if (fd >= 0) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, target, sizeof target - 1);
        target[length < 0 ? 0 : length] = 0;
    }
    snprintf(state.last, sizeof state.last, "%s(%s)", function, target);
    __atomic_add_fetch(&state.fired, 1, __ATOMIC_SEQ_CST);
    return state.error;
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

#define STRIKE(kind, fd, path) strike(kind, __builtin_return_address(0), __func__, fd, path)

/* Most calls fail before anything is done. */
#define FAIL(kind, fd, path, failure) \
    do { \
        int error = STRIKE(kind, fd, path); \
        if (error) { \
            errno = error; \
            return failure; \
        } \
    } while (0)

int open64(const char *path, int flags, ...) {
    REAL(open64);
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    FAIL(FAULT_OPEN, -1, path, -1);
    return real(path, flags, mode);
}

int openat64(int directory, const char *path, int flags, ...) {
    REAL(openat64);
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    FAIL(FAULT_OPEN, -1, path, -1);
    return real(directory, path, flags, mode);
}

/* Linux frees the descriptor whatever it says. */
int close(int fd) {
    REAL(close);
    int error = STRIKE(FAULT_CLOSE, fd, NULL), result = real(fd);
    if (!error) return result;
    errno = error;
    return -1;
}

/* Half of the bytes, but some. */
static size_t half(size_t bytes) { return bytes > 1 ? bytes / 2 : bytes; }

#define TRANSFER(name, kind, parameters, whole, shortened) \
    ssize_t name parameters { \
        REAL(name); \
        int error = STRIKE(kind, fd, NULL); \
        if (error == FAULT_SHORT) return shortened; \
        if (error) { \
            errno = error; \
            return -1; \
        } \
        return real whole; \
    }

TRANSFER(pread64, FAULT_READ, (int fd, void *data, size_t bytes, off64_t at), (fd, data, bytes, at),
         real(fd, data, half(bytes), at))
TRANSFER(pwrite64, FAULT_WRITE, (int fd, const void *data, size_t bytes, off64_t at), (fd, data, bytes, at),
         real(fd, data, half(bytes), at))
TRANSFER(read, FAULT_READ, (int fd, void *data, size_t bytes), (fd, data, bytes), real(fd, data, half(bytes)))
/* Half of the first part. */
TRANSFER(preadv64, FAULT_READ, (int fd, const struct iovec *parts, int count, off64_t at), (fd, parts, count, at),
         pread64(fd, parts->iov_base, half(parts->iov_len), at))
TRANSFER(pwritev64, FAULT_WRITE, (int fd, const struct iovec *parts, int count, off64_t at), (fd, parts, count, at),
         pwrite64(fd, parts->iov_base, half(parts->iov_len), at))

ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t at, int flags) {
    REAL(pwritev2);
    struct iovec part = {parts->iov_base, half(parts->iov_len)};
    int error = STRIKE(FAULT_WRITE, fd, NULL);
    if (error == FAULT_SHORT) return real(fd, &part, 1, at, flags);
    if (!error) return real(fd, parts, count, at, flags);
    errno = error;
    return -1;
}

/* Only counters are meant: standard error is written this way, too. */
ssize_t write(int fd, const void *data, size_t bytes) {
    REAL(write);
    if (bytes == sizeof(uint64_t) && fd > STDERR_FILENO) FAIL(FAULT_EVENT_WRITE, fd, NULL, -1);
    return real(fd, data, bytes);
}

off64_t lseek64(int fd, off64_t at, int whence) {
    REAL(lseek64);
    FAIL(FAULT_SEEK, fd, NULL, -1);
    return real(fd, at, whence);
}

int ftruncate64(int fd, off64_t bytes) {
    REAL(ftruncate64);
    FAIL(FAULT_TRUNCATE, fd, NULL, -1);
    return real(fd, bytes);
}

int fallocate64(int fd, int mode, off64_t at, off64_t bytes) {
    REAL(fallocate64);
    FAIL(FAULT_ALLOCATE, fd, NULL, -1);
    return real(fd, mode, at, bytes);
}

int posix_fallocate(int fd, off_t at, off_t bytes) {
    REAL(posix_fallocate);
    int error = STRIKE(FAULT_ALLOCATE, fd, NULL);
    return error ? error : real(fd, at, bytes);
}

/* What a failed fsync has written is unknown: here, everything. */
int fsync(int fd) {
    REAL(fsync);
    int error = STRIKE(FAULT_SYNC, fd, NULL), result = real(fd);
    if (!error) return result;
    errno = error;
    return -1;
}

int fdatasync(int fd) {
    REAL(fdatasync);
    int error = STRIKE(FAULT_SYNC, fd, NULL), result = real(fd);
    if (!error) return result;
    errno = error;
    return -1;
}

int fstat64(int fd, struct stat64 *facts) {
    REAL(fstat64);
    FAIL(FAULT_STAT, fd, NULL, -1);
    return real(fd, facts);
}

int stat64(const char *path, struct stat64 *facts) {
    REAL(stat64);
    FAIL(FAULT_STAT, -1, path, -1);
    return real(path, facts);
}

int statx(int fd, const char *path, int flags, unsigned mask, struct statx *facts) {
    REAL(statx);
    /* Rust's library calls it without a name, to see whether the kernel has it. */
    const char *volatile name = path;
    int is_named = name && *name;
    FAIL(FAULT_STATX, is_named ? -1 : fd, is_named ? path : NULL, -1);
    return real(fd, path, flags, mask, facts);
}

int fstatfs64(int fd, struct statfs64 *facts) {
    REAL(fstatfs64);
    FAIL(FAULT_STATFS, fd, NULL, -1);
    return real(fd, facts);
}

int fcntl(int fd, int command, ...) {
    REAL(fcntl);
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    if (command == F_OFD_SETLK || command == F_OFD_SETLKW || command == F_OFD_GETLK) {
        int unlocks = ((struct flock64 *)argument)->l_type == F_UNLCK;
        FAIL(unlocks ? FAULT_UNLOCK : FAULT_LOCK, fd, NULL, -1);
    }
    return real(fd, command, argument);
}

int unlink(const char *path) {
    REAL(unlink);
    FAIL(FAULT_UNLINK, -1, path, -1);
    return real(path);
}

void *mmap64(void *where, size_t bytes, int protection, int flags, int fd, off64_t at) {
    REAL(mmap64);
    FAIL(FAULT_MAP, fd, NULL, MAP_FAILED);
    return real(where, bytes, protection, flags, fd, at);
}

void *mmap(void *where, size_t bytes, int protection, int flags, int fd, off_t at) {
    REAL(mmap);
    FAIL(FAULT_MAP, fd, NULL, MAP_FAILED);
    return real(where, bytes, protection, flags, fd, at);
}

int munmap(void *where, size_t bytes) {
    REAL(munmap);
    FAIL(FAULT_UNMAP, -1, NULL, -1);
    return real(where, bytes);
}

int madvise(void *where, size_t bytes, int advice) {
    REAL(madvise);
    FAIL(FAULT_MADVISE, -1, NULL, -1);
    return real(where, bytes, advice);
}

int memfd_create(const char *name, unsigned flags) {
    REAL(memfd_create);
    FAIL(FAULT_MEMFD, -1, name, -1);
    return real(name, flags);
}

int eventfd(unsigned start, int flags) {
    REAL(eventfd);
    FAIL(FAULT_EVENTFD, -1, NULL, -1);
    return real(start, flags);
}

long syscall(long number, ...) {
    REAL(syscall);
    long arguments[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++) arguments[i] = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_io_uring_setup) FAIL(FAULT_RING_SETUP, -1, "io_uring_setup", -1);
    if (number == SYS_io_uring_enter) FAIL(FAULT_RING_ENTER, -1, "io_uring_enter", -1);
    if (number == SYS_io_uring_register) FAIL(FAULT_RING_REGISTER, -1, "io_uring_register", -1);
    return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
    REAL(pthread_create);
    int error = STRIKE(FAULT_THREAD, -1, NULL);
    return error ? error : real(thread, attributes, start, argument);
}

ssize_t fgetxattr(int fd, const char *name, void *value, size_t bytes) {
    REAL(fgetxattr);
    FAIL(FAULT_ATTRIBUTE, fd, NULL, -1);
    return real(fd, name, value, bytes);
}

int posix_fadvise64(int fd, off64_t at, off64_t bytes, int advice) {
    REAL(posix_fadvise64);
    int error = STRIKE(FAULT_ADVISE, fd, NULL);
    return error ? error : real(fd, at, bytes, advice);
}

char *realpath(const char *path, char *resolved) {
    REAL(realpath);
    FAIL(FAULT_PATH, -1, path, NULL);
    return real(path, resolved);
}

ssize_t readlink(const char *path, char *target, size_t bytes) {
    REAL(readlink);
    FAIL(FAULT_PATH, -1, path, -1);
    return real(path, target, bytes);
}
