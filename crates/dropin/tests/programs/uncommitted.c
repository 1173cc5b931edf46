/* ranks: 1 2
 * Datatypes that were not committed are refused wherever ROMIO and OMPIO refuse them, on all ranks where the call is
 * collective, and good as soon as they are committed.
 */
#include "check.h"

static MPI_File file = MPI_FILE_NULL;
static int data[64];

/* The class that every rank gets where one rank's datatype is wrong. */
#define REFUSED(call) \
    do { \
        int code = (call); \
        CHECK_CLASS(code, MPI_ERR_TYPE); \
        CHECK_AGREED(code); \
    } while (0)

static void refuse(MPI_Datatype type) {
    MPI_Status status;
    MPI_Request request;
    MPI_Aint extent;
    CHECK_CLASS(MPI_File_write_at(file, 0, data, 1, type, &status), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_File_read(file, data, 1, type, &status), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_File_iread_at(file, 0, data, 1, type, &request), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_File_write_shared(file, data, 1, type, &status), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_File_get_type_extent(file, type, &extent), MPI_ERR_TYPE);
    REFUSED(MPI_File_write_at_all(file, 0, data, 1, type, &status));
    REFUSED(MPI_File_read_all(file, data, 1, check.rank == 0 ? type : MPI_INT, &status));
    REFUSED(MPI_File_write_ordered(file, data, 1, type, &status));
    REFUSED(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL));
    REFUSED(MPI_File_set_view(file, 0, type, MPI_INT, "native", MPI_INFO_NULL));
    REFUSED(MPI_File_set_view(file, 0, MPI_INT, check.rank == 0 ? type : MPI_INT, "native", MPI_INFO_NULL));
}

static void accept(MPI_Datatype type) {
    MPI_Aint extent;
    CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL));
    CHECK_OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    CHECK_OK(MPI_File_write_at(file, 0, data, 1, type, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_write_at_all(file, 0, data, 1, type, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_get_type_extent(file, type, &extent));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, check_path("file"),
                           MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    for (int round = 0; round < 3; round++) {
        MPI_Datatype inner, type, twin;
        MPI_Type_contiguous(2, MPI_INT, &inner);
        MPI_Type_vector(3, 1, 2, inner, &type);
        refuse(type);
        MPI_Type_commit(&type);
        /* What it is made of need not be. */
        accept(type);
        refuse(inner);
        MPI_Type_dup(type, &twin);
        accept(twin);
        MPI_Type_free(&twin);
        MPI_Type_free(&type);
        MPI_Type_free(&inner);
    }
    /* Predefined types are. */
    accept(MPI_INT);
    CHECK_OK(MPI_File_write_at(file, 0, data, 1, MPI_DOUBLE_INT, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_close(&file));
    return check_end();
}
