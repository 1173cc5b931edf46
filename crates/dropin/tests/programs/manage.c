/* ranks: 1 2 3 4 7
 * Opening, closing and deleting files, their sizes, groups and access modes.
 */
#include "check.h"

static int ways_of(int mode) {
    return !!(mode & MPI_MODE_RDONLY) + !!(mode & MPI_MODE_RDWR) + !!(mode & MPI_MODE_WRONLY);
}

/* What the standard forbids, and nothing else. */
static int forbidden(int mode) {
    return ways_of(mode) != 1 || ((mode & MPI_MODE_RDONLY) && (mode & (MPI_MODE_CREATE | MPI_MODE_EXCL))) ||
           ((mode & MPI_MODE_RDWR) && (mode & MPI_MODE_SEQUENTIAL));
}

/* Every combination of the nine modes, on a file that is there and on one that is not. */
static void every_mode(void) {
    static const int bits[] = {MPI_MODE_RDONLY, MPI_MODE_RDWR,        MPI_MODE_WRONLY, MPI_MODE_CREATE,    MPI_MODE_EXCL,
                               MPI_MODE_APPEND, MPI_MODE_SEQUENTIAL, MPI_MODE_UNIQUE_OPEN, MPI_MODE_DELETE_ON_CLOSE};
    const char *path = check_own_path("mode");
    for (int set = 0; set < 1 << 9; set++) {
        int mode = 0;
        for (int i = 0; i < 9; i++)
            if (set >> i & 1) mode |= bits[i];
        for (int exists = 0; exists < 2; exists++) {
            unlink(path);
            if (exists) check_make(path, 10, 0);
            MPI_File file;
            int code = MPI_File_open(MPI_COMM_SELF, path, mode, MPI_INFO_NULL, &file), class = check_class_of(code);
            int wanted = forbidden(mode)                          ? MPI_ERR_AMODE
                         : !exists && !(mode & MPI_MODE_CREATE)   ? MPI_ERR_NO_SUCH_FILE
                         : exists && (mode & MPI_MODE_CREATE) && (mode & MPI_MODE_EXCL) ? MPI_ERR_FILE_EXISTS
                                                                  : MPI_SUCCESS;
            CHECK(class == wanted, "mode set %#x, exists %d: class %d, not %d", set, exists, class, wanted);
            if (code != MPI_SUCCESS) {
                CHECK((check_size(path) >= 0) == exists, "mode set %#x: a refused open changed what exists", set);
                continue;
            }
            int amode = -1;
            CHECK_OK(MPI_File_get_amode(file, &amode));
            CHECK(amode == mode, "get_amode says %d, opened with %d", amode, mode);
            CHECK_OK(MPI_File_close(&file));
            CHECK(file == MPI_FILE_NULL, "close leaves the null handle (mode set %#x)", set);
            int left = check_size(path) >= 0, stays = !(mode & MPI_MODE_DELETE_ON_CLOSE);
            CHECK(left == stays, "mode set %#x: file left %d, wanted %d", set, left, stays);
        }
    }
    unlink(path);
}

/* All ranks at once: one creates, and the ranks agree on what happened. */
static void shared_modes(void) {
    const char *path = check_path("shared");
    MPI_File file = MPI_FILE_NULL;
    check_remove(path);
    int code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    CHECK_CLASS(code, MPI_ERR_NO_SUCH_FILE);
    CHECK_AGREED(code);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_close(&file));
    code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_INFO_NULL, &file);
    CHECK_CLASS(code, MPI_ERR_FILE_EXISTS);
    CHECK_AGREED(code);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    CHECK(check_size(path) == 0, "the file is there while it is open");
    CHECK_OK(MPI_File_close(&file));
    check_barrier();
    CHECK(check_size(path) == -1, "DELETE_ON_CLOSE deletes");
    code = MPI_File_open(MPI_COMM_WORLD, path, 0, MPI_INFO_NULL, &file);
    CHECK_CLASS(code, MPI_ERR_AMODE);
}

/* Append sets the pointers to the end and nothing else. */
static void append(void) {
    const char *path = check_path("append");
    check_make_shared(path, 100, 1);
    MPI_File file;
    MPI_Offset at = -1;
    char byte = 'x', back = 0;
    MPI_Status status;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_APPEND, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_get_position(file, &at));
    CHECK_EQ(at, 100);
    CHECK_OK(MPI_File_get_position_shared(file, &at));
    CHECK_EQ(at, 100);
    CHECK_OK(MPI_File_write_at(file, check.rank, &byte, 1, MPI_BYTE, &status));
    CHECK_OK(MPI_File_read_at(file, check.rank, &back, 1, MPI_BYTE, &status));
    CHECK(back == 'x', "explicit offsets stay offsets in an appending file");
    check_barrier();
    MPI_Offset size = -1;
    CHECK_OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, 100);
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

static void sizes(void) {
    const char *path = check_path("sizes");
    check_make_shared(path, 1000, 2);
    char expected[3000] = {0};
    check_fill(expected, 0, 1000, 2);
    MPI_File file;
    MPI_Offset size = -1;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, 1000);
    check_barrier(); /* set_size may be done for all by the rank that comes first */
    CHECK_OK(MPI_File_set_size(file, 3000));
    CHECK_OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, 3000);
    CHECK_FILE(path, 0, expected, 3000); /* MPI leaves the new bytes open, POSIX file systems give zeros */
    check_barrier();
    CHECK_OK(MPI_File_set_size(file, 600));
    CHECK_OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, 600);
    check_barrier();
    CHECK_OK(MPI_File_set_size(file, 900));
    memset(expected + 600, 0, 300);
    CHECK_FILE(path, 0, expected, 900);
    MPI_Offset at = -1;
    CHECK_OK(MPI_File_get_position(file, &at));
    CHECK_EQ(at, 0);
    CHECK_CLASS(MPI_File_set_size(file, -1), MPI_ERR_ARG);
    check_barrier();
    CHECK_OK(MPI_File_set_size(file, 0));
    CHECK_OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, 0);
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

/* Space is reserved, data that is there stays, and a longer file stays as long as it is. */
static void preallocate(void) {
    enum { OLD = 3 << 20 };
    const char *path = check_path("preallocate");
    check_make_shared(path, OLD, 3);
    char *expected = malloc(OLD);
    check_fill(expected, 0, OLD, 3);
    static const MPI_Offset wanted[] = {1, 1 << 20, OLD, OLD + 1, 5 << 20};
    MPI_File file;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        MPI_Offset size = -1, longer = wanted[i] > OLD ? wanted[i] : OLD;
        CHECK_OK(MPI_File_preallocate(file, wanted[i]));
        CHECK_OK(MPI_File_get_size(file, &size));
        CHECK_EQ(size, longer);
        check_barrier();
        CHECK_FILE(path, 0, expected, OLD);
        check_barrier();
    }
    struct stat facts;
    /* NFS 3 has no request for it: there the file is only as long as requested. */
    int descriptor = open(path, O_WRONLY), reserves = descriptor < 0 || fallocate(descriptor, 0, 0, 1) == 0 || errno != EOPNOTSUPP;
    if (descriptor >= 0) close(descriptor);
    CHECK(stat(path, &facts) == 0 && (!reserves || facts.st_blocks * 512 >= 5 << 20), "space is reserved: %lld blocks",
          (long long)facts.st_blocks);
    CHECK_CLASS(MPI_File_preallocate(file, -1), MPI_ERR_ARG);
    CHECK_OK(MPI_File_close(&file));
    free(expected);
    check_remove(path);
}

/* Sizes cannot be changed through a handle for reading. */
static void read_only_sizes(void) {
    const char *path = check_path("readonly");
    check_make_shared(path, 50, 4);
    MPI_File file;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    CHECK_CLASS(MPI_File_set_size(file, 10), MPI_ERR_READ_ONLY, MPI_ERR_ACCESS);
    CHECK_CLASS(MPI_File_preallocate(file, 100), MPI_ERR_READ_ONLY, MPI_ERR_ACCESS);
    CHECK_EQ(check_size(path), 50);
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

/* The group is that of the communicator, also of a rearranged or a part one; the communicator may go. */
static void groups(void) {
    const char *path = check_own_path("group");
    MPI_Comm turned, part;
    MPI_Group of_file, of_comm;
    int same = -1;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -check.rank, &turned);
    MPI_Comm_group(turned, &of_comm);
    MPI_File file;
    CHECK_OK(MPI_File_open(turned, check_path("turned"), MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
                           MPI_INFO_NULL, &file));
    MPI_Comm_free(&turned);
    CHECK_OK(MPI_File_get_group(file, &of_file));
    MPI_Group_compare(of_file, of_comm, &same);
    CHECK(same == MPI_IDENT, "group of the file: %d", same);
    MPI_Group_free(&of_file);
    MPI_Group_free(&of_comm);
    CHECK_OK(MPI_File_close(&file));

    MPI_Comm_split(MPI_COMM_WORLD, check.rank % 2, 0, &part);
    char name[32];
    snprintf(name, sizeof name, "part.%d", check.rank % 2);
    CHECK_OK(MPI_File_open(part, check_path(name), MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
                           MPI_INFO_NULL, &file));
    char mark = (char)('a' + check.rank);
    int place;
    MPI_Comm_rank(part, &place);
    MPI_Status status;
    CHECK_OK(MPI_File_write_at_all(file, place, &mark, 1, MPI_CHAR, &status));
    CHECK_COUNT(status, MPI_CHAR, 1);
    CHECK_OK(MPI_File_close(&file));
    MPI_Comm_free(&part);
    unlink(path);
}

/* Deleting; a file that is open on every rank at once, twice. */
static void deletion(void) {
    const char *path = check_own_path("delete");
    check_make(path, 5, 5);
    CHECK_OK(MPI_File_delete(path, MPI_INFO_NULL));
    CHECK_EQ(check_size(path), -1);
    CHECK_CLASS(MPI_File_delete(path, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    const char *shared = check_path("twice");
    MPI_File first, second;
    check_remove(shared);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, shared, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &first));
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, shared, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &second));
    CHECK(first != second, "two opens give two handles");
    CHECK_OK(MPI_File_close(&second));
    CHECK_OK(MPI_File_close(&first));
    check_remove(shared);
}

/* Nothing but the files that were asked for is made, and many opens leave nothing behind. */
static void many(void) {
    const char *path = check_path("many");
    MPI_File file;
    for (int i = 0; i < 50; i++) {
        CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
        CHECK_OK(MPI_File_close(&file));
    }
    CHECK_OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

/* A relative name keeps its meaning while the file is open, wherever the program goes meanwhile. */
static void changed_directory(void) {
    char before[CHECK_PATH];
    const char *path = check_path("relative"), *leaf = strrchr(path, '/') + 1;
    MPI_File file;
    CHECK(getcwd(before, sizeof before) && !chdir(check.dir), "cannot change to %s", check.dir);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, leaf, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    CHECK(!chdir("/"), "cannot change to the root");
    CHECK_OK(MPI_File_write_ordered(file, "abc", 3, MPI_CHAR, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_close(&file));
    CHECK(check_size(path) == -1, "the file is still there");
    CHECK(!chdir(before), "cannot change to %s", before);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    if (check.rank == 0) every_mode();
    shared_modes();
    append();
    sizes();
    preallocate();
    read_only_sizes();
    groups();
    deletion();
    changed_directory();
    many();
    return check_end();
}
