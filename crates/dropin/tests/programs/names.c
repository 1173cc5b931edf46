/* ranks: 2 3
 * Names that lead to a file on another mount than their directory, and ranks that use different names.
 */
#include "check.h"

/* A directory on another file system than the one that the program was given. */
static const char *elsewhere(void) {
    static const char *const candidates[] = {"/dev/shm", "/tmp", "/var/tmp"};
    struct stat given, other;
    if (stat(check.dir, &given)) return NULL;
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++)
        if (!stat(candidates[i], &other) && other.st_dev != given.st_dev && !access(candidates[i], W_OK)) return candidates[i];
    return NULL;
}

enum { SHARE = 1000 };

/* Every rank writes its share, then reads that of the next, by a name of its own. */
static void write_and_read(const char *name, int mode, int salt) {
    char mine[SHARE], theirs[SHARE];
    int next = (check.rank + 1) % check.size;
    MPI_File file;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR | mode, MPI_INFO_NULL, &file));
    check_fill(mine, (long long)check.rank * SHARE, SHARE, salt);
    CHECK_OK(MPI_File_write_at_all(file, (MPI_Offset)check.rank * SHARE, mine, SHARE, MPI_CHAR, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_sync(file));
    check_barrier();
    CHECK_OK(MPI_File_sync(file));
    CHECK_OK(MPI_File_read_at_all(file, (MPI_Offset)next * SHARE, theirs, SHARE, MPI_CHAR, MPI_STATUS_IGNORE));
    CHECK_FILLED(theirs, (long long)next * SHARE, SHARE, salt);
    CHECK_OK(MPI_File_close(&file));
}

static void links(const char *other) {
    char target[CHECK_PATH];
    int process = getpid();
    MPI_Bcast(&process, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(target, sizeof target, "%s/pario-names-%d", other, process);
    const char *link = check_path("link");
    check_remove(target);
    check_remove(link);
    if (check.rank == 0) CHECK(!symlink(target, link), "no link %s: %s", link, strerror(errno));
    check_barrier();

    write_and_read(link, MPI_MODE_CREATE, 1); /* the link leads nowhere yet */
    CHECK_EQ(check_size(target), (long long)check.size * SHARE);
    write_and_read(link, 0, 2);
    write_and_read(check.rank ? link : target, 0, 3);
    write_and_read(check.rank ? target : link, 0, 4);
    write_and_read(check.rank ? target : link, MPI_MODE_CREATE, 5);
    CHECK_EQ(check_size(target), (long long)check.size * SHARE);

    check_remove(link);
    check_remove(target);
}

/* Ranks in different working directories: one relative name, a file in one of them and a link in the other. */
static void working_directories(const char *other) {
    char before[CHECK_PATH], link[CHECK_PATH], file[CHECK_PATH];
    int process = getpid();
    MPI_Bcast(&process, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(file, sizeof file, "%s/names-%d", check.dir, process);
    snprintf(link, sizeof link, "%s/names-%d", other, process);
    check_remove(file);
    check_remove(link);
    if (check.rank == 0) CHECK(!symlink(file, link), "no link %s: %s", link, strerror(errno));
    check_barrier();
    const char *directory = check.rank ? other : check.dir;
    CHECK(getcwd(before, sizeof before) && !chdir(directory), "cannot change to %s", directory);
    write_and_read(strrchr(file, '/') + 1, MPI_MODE_CREATE, 8);
    write_and_read(strrchr(file, '/') + 1, 0, 9);
    CHECK(!chdir(before), "cannot change to %s", before);
    CHECK_EQ(check_size(file), (long long)check.size * SHARE);
    check_remove(link);
    check_remove(file);
}

/* The last part of a name may be a link to another directory of the same file system, too. */
static void links_nearby(void) {
    const char *target = check_path("target"), *link = check_path("near");
    check_remove(target);
    check_remove(link);
    if (check.rank == 0) CHECK(!symlink(target, link), "no link %s: %s", link, strerror(errno));
    check_barrier();
    write_and_read(link, MPI_MODE_CREATE, 6);
    write_and_read(check.rank % 2 ? link : target, 0, 7);
    check_remove(link);
    check_remove(target);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    const char *other = elsewhere();
    if (other) {
        links(other);
        working_directories(other);
    } else check_skip("links to another mount", "all directories that can be written are on one");
    links_nearby();
    return check_end();
}
