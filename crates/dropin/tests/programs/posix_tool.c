/* needs: tool
 * A profiler like Darshan: it wraps some MPI file calls and the POSIX calls beneath them by
 * looking up the next definition at run time, so that its place in the preload order decides what it
 * sees.  At the end rank 0 says, summed over the ranks,
 *   posix_tool: A MPI file calls, B POSIX opens, C POSIX writes of D bytes, E POSIX reads of F bytes
 * of the files below the directory that is the program's first argument.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { DESCRIPTORS_MAX = 4096 };

typedef enum { CALLS, OPENS, WRITES, WRITTEN, READS, READ, NUMBERS } number;

static long seen[NUMBERS];
static char followed[DESCRIPTORS_MAX];

#define NEXT(kind, name) \
    static __typeof__(kind) *next; \
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, name)

static int follows(int descriptor) { return descriptor >= 0 && descriptor < DESCRIPTORS_MAX && followed[descriptor]; }

static void add(number what, long amount) { __atomic_add_fetch(&seen[what], amount, __ATOMIC_RELAXED); }

/* The program's first argument, which nobody passes to a library. */
static const char *directory(void) {
    static char line[4096];
    static const char *argument;
    if (!argument) {
        FILE *stream = fopen("/proc/self/cmdline", "r");
        size_t length = stream ? fread(line, 1, sizeof line - 1, stream) : 0, name = strlen(line);
        if (stream) fclose(stream);
        argument = length > name + 1 ? line + name + 1 : "";
    }
    return argument;
}

static int follow(int descriptor, const char *path) {
    static __thread int within; /* finding the directory opens a file, too */
    if (descriptor < 0 || descriptor >= DESCRIPTORS_MAX || within) return descriptor;
    within = 1;
    followed[descriptor] = *directory() && strncmp(path, directory(), strlen(directory())) == 0;
    within = 0;
    if (followed[descriptor]) add(OPENS, 1);
    return descriptor;
}

static ssize_t wrote(int descriptor, ssize_t bytes) {
    if (bytes > 0 && follows(descriptor)) {
        add(WRITES, 1);
        add(WRITTEN, bytes);
    }
    return bytes;
}

static ssize_t got(int descriptor, ssize_t bytes) {
    if (bytes > 0 && follows(descriptor)) {
        add(READS, 1);
        add(READ, bytes);
    }
    return bytes;
}

/* --- POSIX --- */

static mode_t mode_of(int flags, va_list arguments) { return flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(arguments, int) : 0; }

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        NEXT(int(const char *, int, ...), #name); \
        va_list arguments; \
        va_start(arguments, flags); \
        mode_t mode = mode_of(flags, arguments); \
        va_end(arguments); \
        return follow(next(path, flags, mode), path); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
    int name(int directory, const char *path, int flags, ...) { \
        NEXT(int(int, const char *, int, ...), #name); \
        va_list arguments; \
        va_start(arguments, flags); \
        mode_t mode = mode_of(flags, arguments); \
        va_end(arguments); \
        return follow(next(directory, path, flags, mode), path); \
    }
OPENAT(openat)
OPENAT(openat64)

int close(int descriptor) {
    NEXT(int(int), "close");
    if (descriptor >= 0 && descriptor < DESCRIPTORS_MAX) followed[descriptor] = 0;
    return next(descriptor);
}

#define TRANSFER(name, parameters, arguments, sum) \
    ssize_t name parameters { \
        NEXT(ssize_t parameters, #name); \
        return sum(d, next arguments); \
    }
TRANSFER(read, (int d, void *b, size_t n), (d, b, n), got)
TRANSFER(write, (int d, const void *b, size_t n), (d, b, n), wrote)
TRANSFER(pread, (int d, void *b, size_t n, off_t o), (d, b, n, o), got)
TRANSFER(pwrite, (int d, const void *b, size_t n, off_t o), (d, b, n, o), wrote)
TRANSFER(pread64, (int d, void *b, size_t n, off64_t o), (d, b, n, o), got)
TRANSFER(pwrite64, (int d, const void *b, size_t n, off64_t o), (d, b, n, o), wrote)
TRANSFER(preadv, (int d, const struct iovec *v, int n, off_t o), (d, v, n, o), got)
TRANSFER(pwritev, (int d, const struct iovec *v, int n, off_t o), (d, v, n, o), wrote)
TRANSFER(preadv64, (int d, const struct iovec *v, int n, off64_t o), (d, v, n, o), got)
TRANSFER(pwritev64, (int d, const struct iovec *v, int n, off64_t o), (d, v, n, o), wrote)

/* --- MPI --- */

int MPI_File_open(MPI_Comm comm, const char *path, int mode, MPI_Info info, MPI_File *file) {
    NEXT(int(MPI_Comm, const char *, int, MPI_Info, MPI_File *), "PMPI_File_open");
    add(CALLS, 1);
    return next(comm, path, mode, info, file);
}

int MPI_File_write_all(MPI_File file, const void *buffer, int count, MPI_Datatype type, MPI_Status *status) {
    NEXT(int(MPI_File, const void *, int, MPI_Datatype, MPI_Status *), "PMPI_File_write_all");
    add(CALLS, 1);
    return next(file, buffer, count, type, status);
}

int MPI_File_write_at_all(MPI_File file, MPI_Offset at, const void *buffer, int count, MPI_Datatype type, MPI_Status *status) {
    NEXT(int(MPI_File, MPI_Offset, const void *, int, MPI_Datatype, MPI_Status *), "PMPI_File_write_at_all");
    add(CALLS, 1);
    return next(file, at, buffer, count, type, status);
}

int MPI_File_write_at(MPI_File file, MPI_Offset at, const void *buffer, int count, MPI_Datatype type, MPI_Status *status) {
    NEXT(int(MPI_File, MPI_Offset, const void *, int, MPI_Datatype, MPI_Status *), "PMPI_File_write_at");
    add(CALLS, 1);
    return next(file, at, buffer, count, type, status);
}

int MPI_Finalize(void) {
    NEXT(int(void), "PMPI_Finalize");
    long all[NUMBERS];
    int rank = -1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Reduce(seen, all, NUMBERS, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        fprintf(stderr, "posix_tool: %ld MPI file calls, %ld POSIX opens, %ld POSIX writes of %ld bytes, %ld POSIX reads of %ld bytes\n",
                all[CALLS], all[OPENS], all[WRITES], all[WRITTEN], all[READS], all[READ]);
    return next();
}
