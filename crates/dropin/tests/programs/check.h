/* What every test program in C or C++ shares: checks that count, a watchdog, names of files, byte patterns.
 *
 * A program is run as `mpirun -n N ./NAME DIR`.  A failed check prints
 * `FAIL file:line rank R: what`; at the end rank 0 prints `NAME: K checks passed`, summed over
 * the ranks, and every rank exits with 0, or with 1 where any check failed on any rank.
 */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef CHECK_SECONDS
#define CHECK_SECONDS 60
#endif

/* MPICH's MPI_STATUSES_IGNORE is the address 1, which GCC takes for an array that is too short. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"

/* Failures past this many of a rank are counted but not shown. */
enum { CHECK_SHOWN = 20, CHECK_PATH = 4096 };

static struct {
    const char *name, *dir;
    MPI_Comm comm;
    int rank, size;
    long passed, failed;
    /* The last place that was reached, for the watchdog. */
    const char *volatile file;
    volatile int line;
} check;

static inline const char *check_leaf(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static inline void check_at(const char *file, int line) {
    check.file = file;
    check.line = line;
}

/* Counts one check; a failed one says where, on which rank, what and with which values. */
__attribute__((format(printf, 5, 6)))
static inline int check_one(int ok, const char *file, int line, const char *what, const char *format, ...) {
    check_at(file, line);
    if (ok) {
        __atomic_add_fetch(&check.passed, 1, __ATOMIC_RELAXED);
        return 1;
    }
    if (__atomic_add_fetch(&check.failed, 1, __ATOMIC_RELAXED) <= CHECK_SHOWN) {
        char values[512];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(values, sizeof values, format, arguments);
        va_end(arguments);
        printf("FAIL %s:%d rank %d: %s (%s)\n", check_leaf(file), line, check.rank, what, values);
        fflush(stdout);
    }
    return 0;
}

#define CHECK(condition, ...) check_one((condition) != 0, __FILE__, __LINE__, #condition, __VA_ARGS__)

#define CHECK_EQ(left, right) \
    check_equal((long long)(left), (long long)(right), __FILE__, __LINE__, #left " == " #right)

static inline int check_equal(long long left, long long right, const char *file, int line, const char *what) {
    return check_one(left == right, file, line, what, "%lld, %lld", left, right);
}

static inline int check_class_of(int code) {
    int found = code;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &found);
    return found;
}

static inline const char *check_error_text(int code) {
    static char text[MPI_MAX_ERROR_STRING + 1];
    int length = 0;
    if (code == MPI_SUCCESS) return "success";
    memset(text, 0, sizeof text);
    MPI_Error_string(code, text, &length);
    return text;
}

/* The call succeeds. */
#define CHECK_OK(call) (check_at(__FILE__, __LINE__), check_ok((call), __FILE__, __LINE__, #call))

static inline int check_ok(int code, const char *file, int line, const char *what) {
    if (code == MPI_SUCCESS) return check_one(1, file, line, what, " ");
    return check_one(0, file, line, what, "class %d: %s", check_class_of(code), check_error_text(code));
}

/* The call fails with one of the classes given. */
#define CHECK_CLASS(call, ...) \
    (check_at(__FILE__, __LINE__), \
     check_class((call), __FILE__, __LINE__, #call " fails with " #__VA_ARGS__, (const int[]){__VA_ARGS__, -1}))

static inline int check_class(int code, const char *file, int line, const char *what, const int *wanted) {
    int found = check_class_of(code);
    for (int i = 0; wanted[i] != -1; i++)
        if (found == wanted[i]) return check_one(1, file, line, what, " ");
    return check_one(0, file, line, what, "class %d: %s", found, check_error_text(code));
}

/* The call fails, whatever the class: where the standard calls it erroneous and names no class. */
#define CHECK_FAILS(call) (check_at(__FILE__, __LINE__), check_fails((call), __FILE__, __LINE__, #call))

static inline int check_fails(int code, const char *file, int line, const char *what) {
    return check_one(code != MPI_SUCCESS, file, line, what, "it succeeded, an error was expected");
}

/* All ranks were told the same class (a collective call's error is everybody's). */
#define CHECK_AGREED(code) check_agreed((code), __FILE__, __LINE__)

static inline int check_agreed(int code, const char *file, int line) {
    int own = check_class_of(code), low, high;
    check_at(file, line);
    MPI_Allreduce(&own, &low, 1, MPI_INT, MPI_MIN, check.comm);
    MPI_Allreduce(&own, &high, 1, MPI_INT, MPI_MAX, check.comm);
    return check_one(low == high, file, line, "every rank has the same class", "class %d here, %d to %d", own, low,
                     high);
}

/* The status counts `count` of `type`. */
#define CHECK_COUNT(status, type, count) check_count(&(status), (type), (count), __FILE__, __LINE__)

static inline int check_count(MPI_Status *status, MPI_Datatype type, int count, const char *file, int line) {
    int got = -1;
    MPI_Get_count(status, type, &got);
    return check_one(got == count, file, line, "the status counts what was moved", "%d, not %d", got, count);
}

/* --- names and bytes --- */

/* A file of this program in the scratch directory; good for the next eight calls. */
static inline const char *check_path(const char *leaf) {
    static char paths[8][CHECK_PATH];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, CHECK_PATH, "%s/%s.%s", check.dir, check.name, leaf);
    return path;
}

/* The same, with the rank in the name: a file of this rank alone. */
static inline const char *check_own_path(const char *leaf) {
    char own[256];
    snprintf(own, sizeof own, "%s.%d", leaf, check.rank);
    return check_path(own);
}

static inline void check_barrier(void) { MPI_Barrier(check.comm); }

/* Collective: no file of this name is left. */
static inline void check_remove(const char *path) {
    check_barrier();
    if (check.rank == 0) unlink(path);
    check_barrier();
}

/* The byte that belongs at `offset` in a file of the kind `salt`. */
static inline unsigned char check_byte(long long offset, int salt) {
    uint64_t x = (uint64_t)offset * 0x9e3779b97f4a7c15u + (uint64_t)salt * 0xd1342543de82ef95u;
    return (unsigned char)(x >> 56);
}

static inline void check_fill(void *buffer, long long offset, size_t length, int salt) {
    unsigned char *bytes = (unsigned char *)buffer;
    for (size_t i = 0; i < length; i++) bytes[i] = check_byte(offset + (long long)i, salt);
}

/* Where `bytes` first differ from the pattern, or `length`. */
static inline size_t check_filled(const void *buffer, long long offset, size_t length, int salt) {
    const unsigned char *bytes = (const unsigned char *)buffer;
    size_t i = 0;
    while (i < length && bytes[i] == check_byte(offset + (long long)i, salt)) i++;
    return i;
}

#define CHECK_FILLED(buffer, offset, length, salt) \
    check_one(check_filled(buffer, offset, length, salt) == (size_t)(length), __FILE__, __LINE__, \
              "the buffer holds the bytes of the file", "first difference at byte %zu of %zu", \
              check_filled(buffer, offset, length, salt), (size_t)(length))

static inline long long check_size(const char *path) {
    struct stat facts;
    /* On NFS, only opening a file shows what others have written before they closed it. */
    int descriptor = open(path, O_RDONLY), found = descriptor >= 0 ? fstat(descriptor, &facts) : stat(path, &facts);
    if (descriptor >= 0) close(descriptor);
    return found == 0 ? (long long)facts.st_size : -1;
}

/* The file holds exactly these bytes at `offset`, as seen through POSIX. */
#define CHECK_FILE(path, offset, expected, length) \
    check_file((path), (offset), (expected), (length), __FILE__, __LINE__)

static inline int check_file(const char *path, long long offset, const void *expected, size_t length, const char *file,
                             int line) {
    int descriptor = open(path, O_RDONLY);
    /* An NFS client keeps old pages while the file is open for writing; what counts is what the server has. */
    if (descriptor >= 0) posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    char *found = (char *)malloc(length + 1);
    ssize_t got = descriptor < 0 ? -1 : pread(descriptor, found, length, offset);
    size_t same = 0;
    while (got > 0 && same < (size_t)got && same < length && found[same] == ((const char *)expected)[same]) same++;
    if (descriptor >= 0) close(descriptor);
    int ok = check_one(got == (ssize_t)length && same == length, file, line, "the file holds the bytes written",
                       "%s at %lld: %zd of %zu bytes read, first difference at %zu", path, offset, got, length, same);
    free(found);
    return ok;
}

/* Makes a file of `length` pattern bytes by POSIX, on one rank. */
static inline void check_make(const char *path, size_t length, int salt) {
    char *bytes = (char *)malloc(length + 1);
    check_fill(bytes, 0, length, salt);
    int descriptor = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
    check_one(descriptor >= 0 && write(descriptor, bytes, length) == (ssize_t)length, __FILE__, __LINE__,
              "a file can be made", "%s: %s", path, strerror(errno));
    if (descriptor >= 0) close(descriptor);
    free(bytes);
}

/* Collective: rank 0 makes it, all see it. */
static inline void check_make_shared(const char *path, size_t length, int salt) {
    check_barrier();
    if (check.rank == 0) check_make(path, length, salt);
    check_barrier();
}

static inline double check_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline void check_sleep_ms(int ms) {
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&pause, NULL);
}

/* A function that the headers of a host may lack (MPI_File_read_c, ...); its absence is a failure. */
static inline void *check_symbol(const char *name) {
    void *symbol = dlsym(RTLD_DEFAULT, name);
    check_one(symbol != NULL, __FILE__, __LINE__, "the function exists", "%s", name);
    return symbol;
}

/* --- beginning and end --- */

static inline void check_hung(int signal) {
    char text[256];
    (void)signal;
    int length = snprintf(text, sizeof text, "FAIL %s:%d rank %d: not finished within %d s, last seen here\n",
                          check.file ? check_leaf(check.file) : "start", check.line, check.rank, CHECK_SECONDS);
    if (write(STDOUT_FILENO, text, (size_t)length) < 0) _exit(1);
    sleep(1); /* the other ranks say where they are, too */
    _exit(1);
}

/* Before MPI_Init: the name, the directory, and the watchdog. */
static inline void check_prepare(int argc, char **argv) {
    check.name = check_leaf(strdup(argv[0]));
    check.dir = argc > 1 ? argv[1] : ".";
    signal(SIGALRM, check_hung);
    alarm(CHECK_SECONDS);
}

static inline void check_attach(MPI_Comm comm) {
    check.comm = comm;
    MPI_Comm_rank(comm, &check.rank);
    MPI_Comm_size(comm, &check.size);
}

static inline void check_begin(int argc, char **argv) {
    check_prepare(argc, argv);
    MPI_Init(&argc, &argv);
    check_attach(MPI_COMM_WORLD);
}

/* Collective: rank 0 prints the sum, all get the exit status. */
static inline int check_sum(void) {
    long local[2] = {check.passed, check.failed}, total[2];
    check_at("end", 0);
    MPI_Allreduce(local, total, 2, MPI_LONG, MPI_SUM, check.comm);
    check.passed = total[0];
    check.failed = total[1];
    return total[1] != 0;
}

static inline void check_print(void) {
    if (check.rank != 0) return;
    if (check.failed) printf("%s: %ld checks failed, %ld passed\n", check.name, check.failed, check.passed);
    else printf("%s: %ld checks passed\n", check.name, check.passed);
    fflush(stdout);
}

static inline int check_end(void) {
    int failed = check_sum();
    check_print();
    MPI_Finalize();
    return failed;
}

/* Collective: for what this host or place cannot do; rank 0 says why. */
static inline void check_skip(const char *what, const char *why) {
    if (check.rank == 0) printf("%s: skipped %s: %s\n", check.name, what, why);
}

#endif
