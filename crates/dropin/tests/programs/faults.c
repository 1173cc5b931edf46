/* ranks: 1 2 3 4
 * needs: full-fs readonly-fs
 * Faults in real processes: every rank is told, in seconds, and of the same class.
 */
#include "check.h"
#include <sys/resource.h>

enum { LIMIT = 1 << 20, BLOCK = 64 << 10, SECONDS_MAX = 10, NOBODY = 65534 };

static MPI_File file = MPI_FILE_NULL;
static MPI_Status status;

static int is_no_space(int code) {
    int class = check_class_of(code);
    return class == MPI_ERR_NO_SPACE || class == MPI_ERR_QUOTA || class == MPI_ERR_IO;
}

static double begun;

static void expect_soon(const char *what) {
    double seconds = check_now() - begun;
    CHECK(seconds < SECONDS_MAX, "%s took %.1f s", what, seconds);
    begun = check_now();
}

static void limit_size(rlim_t bytes) {
    struct rlimit limit = {bytes, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
}

/* Interleaved blocks, of which most lie past a file-size limit that `limited` ranks have. */
static int write_past_limit(const char *path, int limited) {
    enum { BLOCKS = 64 };
    MPI_Datatype block, tile;
    unsigned char *data = malloc(BLOCK * BLOCKS);
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)BLOCK * check.size, &tile);
    MPI_Type_commit(&tile);
    CHECK_OK(MPI_File_set_view(file, (MPI_Offset)BLOCK * check.rank, MPI_BYTE, tile, "native", MPI_INFO_NULL));
    for (int k = 0; k < BLOCKS; k++) check_fill(data + k * BLOCK, ((long long)k * check.size + check.rank) * BLOCK, BLOCK, 1);
    if (limited) limit_size(LIMIT);
    int code = MPI_File_write_all(file, data, BLOCK * BLOCKS, MPI_BYTE, &status), count = -1;
    limit_size(RLIM_INFINITY);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK_AGREED(code);
    if (code == MPI_SUCCESS) CHECK_EQ(count, BLOCK * BLOCKS);
    else CHECK(count >= 0 && count <= BLOCK * BLOCKS, "a failed write counts %d bytes", count);
    /* A rank whose data all lies before the fault counts all of it; what a count says is there. */
    CHECK_OK(MPI_File_sync(file));
    check_barrier();
    for (int k = 0; k < count / BLOCK; k++) CHECK_FILE(path, ((long long)k * check.size + check.rank) * BLOCK, data + k * BLOCK, BLOCK);
    CHECK_OK(MPI_File_close(&file));
    MPI_Type_free(&tile);
    MPI_Type_free(&block);
    free(data);
    return code;
}

static void size_limit(void) {
    const char *path = check_path("limit");
    int code = write_past_limit(path, 1);
    CHECK(is_no_space(code), "with a limit everywhere: %s", check_error_text(code));
    CHECK(check_size(path) <= LIMIT, "%lld bytes", check_size(path));
    expect_soon("a limit on all ranks");
    /* On one rank only: another may write for it; but all say the same. */
    code = write_past_limit(path, check.rank == check.size - 1);
    CHECK(code == MPI_SUCCESS || is_no_space(code), "with a limit on one rank: %s", check_error_text(code));
    expect_soon("a limit on one rank");
    check_remove(path);
    /* Alone: only the rank that has it. */
    const char *own = check_own_path("own");
    char *data = calloc(1, 2 * LIMIT);
    int limited = check.rank == 0;
    CHECK_OK(MPI_File_open(MPI_COMM_SELF, own, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    if (limited) limit_size(LIMIT);
    code = MPI_File_write(file, data, 2 * LIMIT, MPI_BYTE, &status);
    limit_size(RLIM_INFINITY);
    CHECK(limited ? is_no_space(code) : code == MPI_SUCCESS, "limited %d: %s", limited, check_error_text(code));
    CHECK_COUNT(status, MPI_BYTE, limited ? LIMIT : 2 * LIMIT);
    CHECK_OK(MPI_File_close(&file));
    free(data);
    unlink(own);
    expect_soon("a limit on independent writes");
}

static int try_open(const char *path, int mode) {
    int code = MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file);
    CHECK_AGREED(code);
    if (code == MPI_SUCCESS) MPI_File_close(&file);
    return code;
}

static void wrong_kinds(void) {
    const char *directory = check_path("directory"), *plain = check_path("plain");
    char below[CHECK_PATH + 16], absent[CHECK_PATH + 16];
    check_make_shared(plain, 10, 1);
    if (check.rank == 0) mkdir(directory, 0755);
    check_barrier();
    CHECK_CLASS(try_open(directory, MPI_MODE_RDWR), MPI_ERR_BAD_FILE, MPI_ERR_IO, MPI_ERR_ACCESS, MPI_ERR_FILE);
    CHECK_CLASS(try_open(directory, MPI_MODE_RDONLY), MPI_ERR_BAD_FILE, MPI_ERR_IO, MPI_ERR_ACCESS, MPI_ERR_FILE);
    CHECK_CLASS(try_open(directory, MPI_MODE_RDWR | MPI_MODE_CREATE), MPI_ERR_BAD_FILE, MPI_ERR_IO, MPI_ERR_ACCESS, MPI_ERR_FILE);
    snprintf(below, sizeof below, "%s/below", plain);
    CHECK_CLASS(try_open(below, MPI_MODE_RDONLY), MPI_ERR_BAD_FILE, MPI_ERR_NO_SUCH_FILE);
    snprintf(absent, sizeof absent, "%s/no/such/file", check.dir);
    CHECK_CLASS(try_open(absent, MPI_MODE_RDWR | MPI_MODE_CREATE), MPI_ERR_NO_SUCH_FILE);
    check_barrier();
    if (check.rank == 0) rmdir(directory);
    check_remove(plain);
    expect_soon("wrong kinds of files");
}

/* Root may read everything, so that ranks become somebody else for a moment. */
static void permissions(void) {
    const char *path = check_path("secret");
    check_make_shared(path, 10, 1);
    if (check.rank == 0) chmod(path, 0);
    check_barrier();
    int root = geteuid() == 0;
    if (root && seteuid(NOBODY)) check_skip("permissions", "the user cannot be changed");
    CHECK_CLASS(try_open(path, MPI_MODE_RDONLY), MPI_ERR_ACCESS);
    CHECK_CLASS(try_open(path, MPI_MODE_WRONLY), MPI_ERR_ACCESS);
    if (root) CHECK(seteuid(0) == 0, "root again");
    check_barrier();
    if (root) { /* the file is refused to the last rank only */
        int last = check.rank == check.size - 1;
        if (last) CHECK(seteuid(NOBODY) == 0, "somebody else");
        int code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
        if (last) CHECK(seteuid(0) == 0, "root again");
        CHECK_CLASS(code, MPI_ERR_ACCESS);
        CHECK_AGREED(code);
        if (code == MPI_SUCCESS) MPI_File_close(&file);
    }
    check_remove(path);
    expect_soon("permissions");
}

static void read_only_place(void) {
    const char *dir = getenv("PARIO_TEST_READONLY_DIR");
    char path[CHECK_PATH], fresh[CHECK_PATH];
    unsigned char byte;
    if (!dir) {
        check_skip("a read-only file system", "PARIO_TEST_READONLY_DIR is not set");
        return;
    }
    snprintf(path, sizeof path, "%s/readable", dir);
    snprintf(fresh, sizeof fresh, "%s/fresh", dir);
    CHECK_CLASS(try_open(path, MPI_MODE_RDWR), MPI_ERR_READ_ONLY);
    CHECK_CLASS(try_open(path, MPI_MODE_WRONLY), MPI_ERR_READ_ONLY);
    CHECK_CLASS(try_open(fresh, MPI_MODE_RDWR | MPI_MODE_CREATE), MPI_ERR_READ_ONLY);
    CHECK_CLASS(MPI_File_delete(path, MPI_INFO_NULL), MPI_ERR_READ_ONLY);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_read_at_all(file, 0, &byte, 1, MPI_BYTE, &status));
    CHECK_COUNT(status, MPI_BYTE, 1);
    CHECK_OK(MPI_File_close(&file));
    expect_soon("a read-only file system");
}

/* Fills a small file system: collectively, alone, and by reserving space. */
static void full_place(void) {
    const char *dir = getenv("PARIO_TEST_FULL_DIR");
    enum { LENGTH = 8 << 20, ROUNDS = 4 };
    char path[CHECK_PATH];
    if (!dir) {
        check_skip("a full file system", "PARIO_TEST_FULL_DIR is not set");
        return;
    }
    snprintf(path, sizeof path, "%s/full", dir);
    unsigned char *data = calloc(1, LENGTH);
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    int code = MPI_SUCCESS, count = -1;
    for (int round = 0; round < ROUNDS && code == MPI_SUCCESS; round++)
        code = MPI_File_write_at_all(file, ((MPI_Offset)round * check.size + check.rank) * LENGTH, data, LENGTH, MPI_BYTE, &status);
    CHECK_CLASS(code, MPI_ERR_NO_SPACE);
    CHECK_AGREED(code);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(count >= 0 && count <= LENGTH, "count %d", count);
    /* Reserving more than there is. */
    code = MPI_File_preallocate(file, (MPI_Offset)1 << 30);
    CHECK_CLASS(code, MPI_ERR_NO_SPACE);
    CHECK_AGREED(code);
    if (check.rank == 0) {
        CHECK_CLASS(MPI_File_write_at(file, (MPI_Offset)LENGTH * 100, data, LENGTH, MPI_BYTE, &status), MPI_ERR_NO_SPACE);
        MPI_Request request = MPI_REQUEST_NULL;
        CHECK_OK(MPI_File_iwrite_at(file, (MPI_Offset)LENGTH * 200, data, LENGTH, MPI_BYTE, &request));
        CHECK_CLASS(MPI_Wait(&request, &status), MPI_ERR_NO_SPACE);
    }
    check_barrier();
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
    free(data);
    expect_soon("a full file system");
}

/* Arguments that must be the same and are not; arguments that are wrong on one rank. */
static void disagreements(void) {
    const char *path = check_path("same");
    int odd = check.rank == check.size - 1, code;
    unsigned char byte = 0;
    if (check.size < 2) return;
    check_make_shared(path, 100, 2);
    code = MPI_File_open(MPI_COMM_WORLD, path, odd ? MPI_MODE_RDWR : MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    CHECK_CLASS(code, MPI_ERR_NOT_SAME, MPI_ERR_AMODE);
    CHECK_AGREED(code);
    code = MPI_File_open(MPI_COMM_WORLD, path, odd ? MPI_MODE_RDWR | MPI_MODE_RDONLY : MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    CHECK_CLASS(code, MPI_ERR_NOT_SAME, MPI_ERR_AMODE);
    CHECK_AGREED(code);
    expect_soon("different modes");
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK_CLASS(MPI_File_set_size(file, odd ? 10 : 20), MPI_ERR_NOT_SAME, MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_preallocate(file, odd ? 1000 : 2000), MPI_ERR_NOT_SAME, MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_seek_shared(file, odd, MPI_SEEK_SET), MPI_ERR_NOT_SAME, MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_seek_shared(file, 5, odd ? MPI_SEEK_CUR : MPI_SEEK_SET), MPI_ERR_NOT_SAME, MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_set_atomicity(file, odd), MPI_ERR_NOT_SAME, MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, odd ? "external32" : "native", MPI_INFO_NULL), MPI_ERR_NOT_SAME);
    CHECK_CLASS(MPI_File_set_view(file, 0, odd ? MPI_INT : MPI_DOUBLE, odd ? MPI_INT : MPI_DOUBLE, "native", MPI_INFO_NULL), MPI_ERR_NOT_SAME);
    expect_soon("different arguments");
    CHECK_EQ(check_size(path), 100);
    check_barrier();
    code = MPI_File_set_view(file, 0, odd ? MPI_DATATYPE_NULL : MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    CHECK_FAILS(code);
    CHECK_AGREED(code);
    code = MPI_File_write_at_all(file, odd ? -1 : 50, &byte, 1, MPI_BYTE, &status);
    CHECK_CLASS(code, MPI_ERR_ARG);
    CHECK_AGREED(code);
    code = MPI_File_read_at_all(file, 0, &byte, odd ? -1 : 1, MPI_BYTE, &status);
    CHECK_CLASS(code, MPI_ERR_COUNT, MPI_ERR_ARG);
    CHECK_AGREED(code);
    expect_soon("wrong arguments on one rank");
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    begun = check_now();
    wrong_kinds();
    permissions();
    read_only_place();
    disagreements();
    full_place();
    size_limit();
    return check_end();
}
