/* ranks: 1 2 3 4 7
 * Seeking, positions and byte offsets, with and without holes in the view.
 */
#include "check.h"

static MPI_Offset position(MPI_File file) {
    MPI_Offset at = -1;
    CHECK_OK(MPI_File_get_position(file, &at));
    return at;
}

static MPI_Offset shared_position(MPI_File file) {
    MPI_Offset at = -1;
    CHECK_OK(MPI_File_get_position_shared(file, &at));
    return at;
}

static void plain(void) {
    const char *path = check_path("plain");
    check_make_shared(path, 1000, 1);
    MPI_File file;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK_EQ(position(file), 0);
    CHECK_OK(MPI_File_seek(file, 300, MPI_SEEK_SET));
    CHECK_EQ(position(file), 300);
    CHECK_OK(MPI_File_seek(file, -100, MPI_SEEK_CUR));
    CHECK_EQ(position(file), 200);
    CHECK_OK(MPI_File_seek(file, -10, MPI_SEEK_END));
    CHECK_EQ(position(file), 990);
    CHECK_OK(MPI_File_seek(file, 5000, MPI_SEEK_END));
    CHECK_EQ(position(file), 6000);
    CHECK_CLASS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_seek(file, -6001, MPI_SEEK_CUR), MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_seek(file, -1001, MPI_SEEK_END), MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_seek(file, 0, 12345), MPI_ERR_ARG);
    CHECK_EQ(position(file), 6000);
    CHECK_EQ(check_size(path), 1000);
    MPI_Offset byte = -1;
    CHECK_OK(MPI_File_get_byte_offset(file, 77, &byte));
    CHECK_EQ(byte, 77);
    CHECK_CLASS(MPI_File_get_byte_offset(file, -1, &byte), MPI_ERR_ARG);
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

/* Ranks take records of three ints in turn: positions count ints, the end is that of the view. */
static void through_a_view(void) {
    enum { RECORD = 3 };
    const char *path = check_path("view");
    MPI_File file;
    MPI_Datatype record, tile;
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    MPI_Type_contiguous(RECORD, MPI_INT, &record);
    MPI_Type_create_resized(record, 0, RECORD * 4 * (MPI_Aint)check.size, &tile);
    MPI_Type_commit(&tile);
    MPI_Offset disp = 20 + RECORD * 4 * check.rank;
    CHECK_OK(MPI_File_set_view(file, disp, MPI_INT, tile, "native", MPI_INFO_NULL));
    for (MPI_Offset at = 0; at < 20; at++) {
        MPI_Offset byte = -1, wanted = disp + (at / RECORD) * RECORD * 4 * check.size + at % RECORD * 4;
        CHECK_OK(MPI_File_get_byte_offset(file, at, &byte));
        CHECK_EQ(byte, wanted);
    }
    /* 2^40 records on: nothing is walked. */
    MPI_Offset byte = -1, far = (1LL << 40) * RECORD + 1;
    CHECK_OK(MPI_File_get_byte_offset(file, far, &byte));
    CHECK_EQ(byte, disp + (1LL << 40) * RECORD * 4 * check.size + 4);
    CHECK_OK(MPI_File_seek(file, far, MPI_SEEK_SET));
    CHECK_EQ(position(file), far);
    CHECK_OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    /* Sizes around the edges of elements and records: the end is the first int of the view that starts past it. */
    for (MPI_Offset size = 0; size < 100; size += 7) {
        check_barrier();
        CHECK_OK(MPI_File_set_size(file, size));
        MPI_Offset end = 0;
        while (disp + (end / RECORD) * RECORD * 4 * check.size + end % RECORD * 4 < size) end++;
        CHECK_OK(MPI_File_seek(file, 0, MPI_SEEK_END));
        CHECK(position(file) == end, "size %lld: the end is %lld, not %lld", (long long)size, (long long)position(file),
              (long long)end);
        CHECK_OK(MPI_File_seek(file, 2, MPI_SEEK_END));
        CHECK_EQ(position(file), end + 2);
    }
    CHECK_OK(MPI_File_close(&file));
    MPI_Type_free(&tile);
    MPI_Type_free(&record);
    check_remove(path);
}

static void shared(void) {
    const char *path = check_path("shared");
    check_make_shared(path, 400, 2);
    MPI_File file;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    CHECK_OK(MPI_File_seek_shared(file, 10, MPI_SEEK_SET));
    CHECK_EQ(shared_position(file), 10);
    check_barrier();
    CHECK_OK(MPI_File_seek_shared(file, 5, MPI_SEEK_CUR));
    CHECK_EQ(shared_position(file), 15);
    check_barrier();
    CHECK_OK(MPI_File_seek_shared(file, -1, MPI_SEEK_END));
    CHECK_EQ(shared_position(file), 99);
    check_barrier();
    CHECK_CLASS(MPI_File_seek_shared(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_seek_shared(file, -101, MPI_SEEK_END), MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_seek_shared(file, 0, 4711), MPI_ERR_ARG);
    CHECK_EQ(shared_position(file), 99);
    CHECK_EQ(position(file), 0);
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

/* A sequential file has no positions. */
static void sequential(void) {
    MPI_File file;
    char byte = 0;
    MPI_Offset at;
    MPI_Status status;
    const char *path = check_path("sequential");
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL, &file));
    CHECK_CLASS(MPI_File_seek(file, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK_CLASS(MPI_File_get_position(file, &at), MPI_ERR_UNSUPPORTED_OPERATION);
    /* The one call of its section that the standard exempts. */
    CHECK_OK(MPI_File_get_byte_offset(file, 9, &at));
    CHECK_EQ(at, 9);
    CHECK_CLASS(MPI_File_seek_shared(file, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK_CLASS(MPI_File_get_position_shared(file, &at), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK_CLASS(MPI_File_write(file, &byte, 1, MPI_BYTE, &status), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK_CLASS(MPI_File_write_at(file, 0, &byte, 1, MPI_BYTE, &status), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK_CLASS(MPI_File_write_all(file, &byte, 1, MPI_BYTE, &status), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK_CLASS(MPI_File_write_at_all(file, 0, &byte, 1, MPI_BYTE, &status), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK_EQ(check_size(path), 0);
    check_barrier();
    CHECK_OK(MPI_File_write_shared(file, &byte, 1, MPI_BYTE, &status));
    CHECK_OK(MPI_File_write_ordered(file, &byte, 1, MPI_BYTE, &status));
    CHECK_OK(MPI_File_close(&file));
    CHECK_EQ(check_size(path), 2 * check.size);
    check_remove(path);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    plain();
    through_a_view();
    shared();
    sequential();
    return check_end();
}
