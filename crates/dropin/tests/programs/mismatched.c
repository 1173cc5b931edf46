/* ranks: 2 3
 * Ranks that make different collective calls on a file: all get an error, and the file stays open.
 */
#include "check.h"

int main(int argc, char **argv) {
    static char data[64];
    MPI_File file;
    check_begin(argc, argv);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, check_path("file"),
                           MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    if (check.rank == 0)
        CHECK_CLASS(MPI_File_write_all(file, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_NOT_SAME);
    else
        CHECK_CLASS(MPI_File_close(&file), MPI_ERR_NOT_SAME);
    if (check.rank == 0)
        CHECK_CLASS(MPI_File_read_at_all(file, 0, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_NOT_SAME);
    else
        CHECK_CLASS(MPI_File_sync(file), MPI_ERR_NOT_SAME);
    CHECK_OK(MPI_File_write_at_all(file, 0, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_close(&file));
    return check_end();
}
