/* needs: tool
 *
 * A file system that lies: one bit of every write of more than 100 bytes comes out wrong. The fuzzer has to
 * find it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FLIP_LONGER = 100, FLIP_AT = 50 };

static ssize_t flip_write(int fd, const void *bytes, size_t count, off_t offset) {
    static ssize_t (*next)(int, const void *, size_t, off_t);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "pwrite");
    if (count <= FLIP_LONGER) return next(fd, bytes, count, offset);
    char *copy = malloc(count);
    memcpy(copy, bytes, count);
    copy[FLIP_AT] ^= 1;
    ssize_t written = next(fd, copy, count, offset);
    free(copy);
    return written;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) { return flip_write(fd, bytes, count, offset); }

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    return flip_write(fd, bytes, count, offset);
}

/* One buffer of all pieces. */
static ssize_t flip_vector(int fd, const struct iovec *pieces, int many, off_t offset) {
    size_t total = 0, at = 0;
    for (int i = 0; i < many; i++) total += pieces[i].iov_len;
    char *all = malloc(total + 1);
    for (int i = 0; i < many; at += pieces[i++].iov_len) memcpy(all + at, pieces[i].iov_base, pieces[i].iov_len);
    ssize_t written = flip_write(fd, all, total, offset);
    free(all);
    return written;
}

ssize_t pwritev(int fd, const struct iovec *pieces, int many, off_t offset) {
    return flip_vector(fd, pieces, many, offset);
}

ssize_t pwritev64(int fd, const struct iovec *pieces, int many, off64_t offset) {
    return flip_vector(fd, pieces, many, offset);
}

ssize_t pwritev2(int fd, const struct iovec *pieces, int many, off_t offset, int flags) {
    (void)flags;
    return flip_vector(fd, pieces, many, offset);
}
