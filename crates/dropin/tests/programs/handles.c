/* ranks: 1 2 3 4 7
 * File handles as Fortran integers and as C integers, and back.
 */
#include "check.h"

enum { FILES = 20 };

/* The integer forms: MPI_File_c2f and _f2c on most hosts, _toint and _fromint since MPI-5. */
typedef int to_integer(MPI_File);
typedef MPI_File from_integer(int);

static void round_trips(const char *to_name, const char *from_name) {
    to_integer *to;
    from_integer *from;
    *(void **)&to = dlsym(RTLD_DEFAULT, to_name);
    *(void **)&from = dlsym(RTLD_DEFAULT, from_name);
    if (!CHECK(to && from, "%s and %s exist", to_name, from_name)) return;
    MPI_File files[FILES];
    int numbers[FILES], null = to(MPI_FILE_NULL);
    CHECK(from(null) == MPI_FILE_NULL, "%s: the null handle comes back from %d", to_name, null);
    for (int i = 0; i < FILES; i++) {
        char leaf[16];
        snprintf(leaf, sizeof leaf, "file%d", i);
        CHECK_OK(MPI_File_open(MPI_COMM_WORLD, check_path(leaf), MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
                               MPI_INFO_NULL, &files[i]));
        numbers[i] = to(files[i]);
        CHECK(numbers[i] != null, "file %d is not null", i);
        CHECK(to(files[i]) == numbers[i], "the same integer again");
    }
    for (int i = 0; i < FILES; i++) {
        CHECK(from(numbers[i]) == files[i], "%s: file %d comes back from %d", from_name, i, numbers[i]);
        for (int j = 0; j < i; j++) CHECK(numbers[i] != numbers[j], "files %d and %d are different", i, j);
    }
    /* What comes back is good for calls. */
    int amode = 0;
    CHECK_OK(MPI_File_get_amode(from(numbers[3]), &amode));
    CHECK_EQ(amode, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE);
    for (int i = 0; i < FILES; i++) CHECK_OK(MPI_File_close(&files[i]));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    round_trips("MPI_File_c2f", "MPI_File_f2c");
    round_trips("MPI_File_toint", "MPI_File_fromint");
    /* A program may keep handles in an array and compare them. */
    MPI_File kept[2] = {MPI_FILE_NULL, MPI_FILE_NULL};
    CHECK(kept[0] == kept[1] && sizeof kept[0] == 8, "handles compare");
    return check_end();
}
