/* ranks: 1 2 4
 * Two thousand files open at once on one communicator: each is its own, and closing them gives everything back.
 */
#include "check.h"
#include <dirent.h>
#include <sys/resource.h>

enum { FILES = 2000, LENGTH = 100 };

static long descriptors(void) {
    long count = 0;
    DIR *list = opendir("/proc/self/fd");
    while (list && readdir(list)) count++;
    if (list) closedir(list);
    return count;
}

static const char *path_of(int i) {
    char leaf[32];
    snprintf(leaf, sizeof leaf, "many%d", i);
    return check_path(leaf);
}

/* Where the limit on descriptors is lower, as many files as it allows. */
static int possible_files(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
    int files = limit.rlim_cur < FILES + 200 ? (int)limit.rlim_cur - 200 : FILES, fewest;
    MPI_Allreduce(&files, &fewest, 1, MPI_INT, MPI_MIN, check.comm);
    return fewest;
}

int main(int argc, char **argv) {
    static MPI_File files[FILES];
    unsigned char data[LENGTH], back[LENGTH];
    MPI_Status status;
    check_begin(argc, argv);
    int count = possible_files();
    long long at = (long long)check.rank * LENGTH;
    /* What the first file of a process leaves for the later ones. */
    CHECK_OK(MPI_File_open(check.comm, path_of(0), MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &files[0]));
    CHECK_OK(MPI_File_close(&files[0]));
    long before = descriptors();
    for (int i = 0; i < count; i++)
        CHECK_OK(MPI_File_open(check.comm, path_of(i), MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &files[i]));
    for (int i = 0; i < count; i++) {
        check_fill(data, at, LENGTH, i);
        CHECK_OK(MPI_File_write_at_all(files[i], at, data, LENGTH, MPI_BYTE, &status));
        CHECK_COUNT(status, MPI_BYTE, LENGTH);
    }
    for (int i = count - 1; i >= 0; i--) {
        CHECK_OK(MPI_File_read_at_all(files[i], at, back, LENGTH, MPI_BYTE, &status));
        CHECK_FILLED(back, at, LENGTH, i);
        CHECK_OK(MPI_File_write_shared(files[i], data, 1, MPI_BYTE, &status));
    }
    for (int i = 0; i < count; i++) CHECK_OK(MPI_File_close(&files[i]));
    CHECK_EQ(descriptors(), before);
    return check_end();
}
