/* ranks: 2
 * Each rank has a file system of its own under the same name: files that ranks write there together would be two.
 */
#include "exercise.h"

int main(int argc, char **argv) {
    MPI_File file;
    int class = 0;
    char letter = 0;
    check_begin(argc, argv);
    /* Rank 0 makes the file; on the other rank it is not there. */
    int code = MPI_File_open(check.comm, check_path("new"), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    CHECK(code != MPI_SUCCESS, "a new file on two file systems is refused");
    code = MPI_File_open(check.comm, check_path("input"), MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_NOT_SAME, "opening for writing: class %d, not %d", class, MPI_ERR_NOT_SAME);
    /* Copies of an input file on each node can be read. */
    CHECK_OK(MPI_File_open(check.comm, check_path("input"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_read_at_all(file, 0, &letter, 1, MPI_CHAR, MPI_STATUS_IGNORE));
    CHECK(letter == 'i', "read %c", letter);
    CHECK_OK(MPI_File_close(&file));
    return check_end();
}
