/* ranks: 2 3 4 7
 * A rank inside a file call keeps messages moving: rank 0 starts a large send and enters the call,
 * another rank receives first and enters then.
 */
#include "check.h"

enum { MESSAGE = 16 << 20, BLOCK = 64 << 10 };

static unsigned char *message, *data;

/* One collective call, entered by rank 0 with a send under way and by the others after they received. */
static void with_call(const char *what, MPI_File file, int (*call)(MPI_File)) {
    MPI_Request request = MPI_REQUEST_NULL;
    int partner = check.rank ^ 1;
    check_barrier();
    if (partner < check.size) {
        if (check.rank % 2 == 0) {
            check_fill(message, 0, MESSAGE, check.rank);
            MPI_Isend(message, MESSAGE, MPI_BYTE, partner, 7, MPI_COMM_WORLD, &request);
        } else {
            check_sleep_ms(50); /* the sender is inside the call by now */
            MPI_Recv(message, MESSAGE, MPI_BYTE, partner, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(check_filled(message, 0, MESSAGE, partner) == MESSAGE, "%s: the message is whole", what);
        }
    }
    int code = call(file);
    CHECK(code == MPI_SUCCESS, "%s: %s", what, check_error_text(code));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static int write_all(MPI_File file) {
    MPI_Status status;
    int code = MPI_File_write_at_all(file, (MPI_Offset)check.rank * BLOCK, data, BLOCK, MPI_BYTE, &status);
    CHECK_COUNT(status, MPI_BYTE, BLOCK);
    return code;
}

static int read_all(MPI_File file) {
    MPI_Status status;
    int code = MPI_File_read_at_all(file, (MPI_Offset)check.rank * BLOCK, data, BLOCK, MPI_BYTE, &status);
    CHECK_COUNT(status, MPI_BYTE, BLOCK);
    return code;
}

static int set_size(MPI_File file) { return MPI_File_set_size(file, (MPI_Offset)check.size * BLOCK); }

static int set_view(MPI_File file) { return MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL); }

static int synchronise(MPI_File file) { return MPI_File_sync(file); }

static int ordered(MPI_File file) { return MPI_File_write_ordered(file, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE); }

static int split(MPI_File file) {
    int code = MPI_File_write_at_all_begin(file, (MPI_Offset)check.rank * BLOCK, data, BLOCK, MPI_BYTE);
    return code == MPI_SUCCESS ? MPI_File_write_at_all_end(file, data, MPI_STATUS_IGNORE) : code;
}

static int open_again(MPI_File file) {
    MPI_File another;
    (void)file;
    int code = MPI_File_open(MPI_COMM_WORLD, check_path("data"), MPI_MODE_RDONLY, MPI_INFO_NULL, &another);
    return code == MPI_SUCCESS ? MPI_File_close(&another) : code;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    const char *path = check_path("data");
    MPI_File file;
    message = malloc(MESSAGE);
    data = malloc(BLOCK);
    check_fill(data, (long long)check.rank * BLOCK, BLOCK, 9);
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    with_call("write_at_all", file, write_all);
    with_call("read_at_all", file, read_all);
    with_call("set_size", file, set_size);
    with_call("set_view", file, set_view);
    with_call("sync", file, synchronise);
    with_call("split", file, split);
    with_call("open", file, open_again);
    CHECK_OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    with_call("ordered", file, ordered);
    CHECK_OK(MPI_File_close(&file));
    CHECK_FILE(path, (long long)check.rank * BLOCK, data, BLOCK);
    check_remove(path);
    free(message);
    free(data);
    return check_end();
}
