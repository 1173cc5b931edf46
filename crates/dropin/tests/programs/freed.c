/* ranks: 1 2 3
 * Requests that are freed while their operations go on: closing the file waits for them.
 */
#include "check.h"

enum { LONG = 1 << 19, MANY = 12 };

static unsigned char data[MANY][LONG / MANY], whole[LONG];

static MPI_File open_file(const char *path, int mode) {
    MPI_File file = MPI_FILE_NULL;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file));
    return file;
}

static MPI_Offset start_of(int rank) { return (MPI_Offset)rank * LONG; }

typedef int (*Start)(MPI_File, MPI_Offset, const void *, int, MPI_Datatype, MPI_Request *);
typedef int (*StartRead)(MPI_File, MPI_Offset, void *, int, MPI_Datatype, MPI_Request *);

/* One write, individual or collective. */
static void one_write(Start start) {
    const char *path = check_path("one");
    MPI_File file = open_file(path, MPI_MODE_RDWR | MPI_MODE_CREATE);
    MPI_Request request;
    check_fill(whole, start_of(check.rank), LONG, 3);
    CHECK_OK(start(file, start_of(check.rank), whole, LONG, MPI_BYTE, &request));
    CHECK_OK(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL, "the request is gone");
    CHECK_OK(MPI_File_close(&file));
    CHECK_FILE(path, start_of(check.rank), whole, LONG);
    check_remove(path);
}

/* Many writes, some of whose requests are waited for. */
static void many_writes(Start start) {
    const char *path = check_path("many");
    MPI_File file = open_file(path, MPI_MODE_RDWR | MPI_MODE_CREATE);
    MPI_Request requests[MANY];
    int each = LONG / MANY;
    for (int i = 0; i < MANY; i++) {
        check_fill(data[i], start_of(check.rank) + i * each, (size_t)each, 4);
        CHECK_OK(start(file, start_of(check.rank) + i * each, data[i], each, MPI_BYTE, &requests[i]));
    }
    for (int i = 0; i < MANY; i++) {
        if (i % 3 == 0) CHECK_OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
        else CHECK_OK(MPI_Request_free(&requests[i]));
    }
    /* What needs the end of all of them waits too. */
    CHECK_OK(MPI_File_sync(file));
    CHECK_FILE(path, start_of(check.rank), data, (size_t)(MANY * each));
    CHECK_OK(MPI_File_set_size(file, start_of(check.size)));
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

/* Reads: the buffer is full once the file is closed. */
static void reads(StartRead start) {
    const char *path = check_path("reads");
    check_make_shared(path, (size_t)start_of(check.size), 5);
    MPI_File file = open_file(path, MPI_MODE_RDONLY);
    MPI_Request requests[MANY];
    int each = LONG / MANY;
    memset(data, 0, sizeof data);
    for (int i = 0; i < MANY; i++)
        CHECK_OK(start(file, start_of(check.rank) + i * each, data[i], each, MPI_BYTE, &requests[i]));
    for (int i = 0; i < MANY; i++) CHECK_OK(MPI_Request_free(&requests[i]));
    CHECK_OK(MPI_File_close(&file));
    CHECK_FILLED(data, start_of(check.rank), (size_t)(MANY * each), 5);
    check_remove(path);
}

/* A request that is neither freed nor waited for keeps the file open, on all ranks. */
static void held(void) {
    const char *path = check_path("held");
    MPI_File file = open_file(path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE);
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    CHECK_OK(MPI_File_iwrite_at(file, start_of(check.rank), whole, LONG, MPI_BYTE, &requests[0]));
    if (check.rank == check.size - 1)
        CHECK_OK(MPI_File_iwrite_at(file, start_of(check.rank), whole, LONG, MPI_BYTE, &requests[1]));
    CHECK_OK(MPI_Request_free(&requests[0]));
    int code = MPI_File_close(&file);
    CHECK_FAILS(code);
    CHECK_AGREED(code);
    CHECK_OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_close(&file));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    one_write(MPI_File_iwrite_at);
    one_write(MPI_File_iwrite_at_all);
    many_writes(MPI_File_iwrite_at);
    many_writes(MPI_File_iwrite_at_all);
    reads(MPI_File_iread_at);
    reads(MPI_File_iread_at_all);
    held();
    return check_end();
}
