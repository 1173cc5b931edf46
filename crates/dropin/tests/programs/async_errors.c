/* ranks: 1 2 3 4 7
 * Errors that come after a nonblocking call has returned: a file-size limit stops the write, and the
 * completion call says so, through the handler of the file.
 */
#include "check.h"
#include <sys/resource.h>

enum { LIMIT = 1 << 20, LENGTH = 1 << 16, STARTS = 6 };

static int heard, heard_class;
static MPI_File heard_file;

static void handler_function(MPI_File *file, int *code, ...) {
    heard++;
    heard_class = check_class_of(*code);
    heard_file = *file;
}

static int is_no_space(int class) { return class == MPI_ERR_NO_SPACE || class == MPI_ERR_QUOTA || class == MPI_ERR_IO; }

/* Two requests, the first of which fails and the second does not. */
static void start(MPI_File file, const char *data, MPI_Request *requests) {
    heard = 0;
    CHECK_OK(MPI_File_iwrite_at(file, 2 * LIMIT, data, LENGTH, MPI_BYTE, &requests[0]));
    CHECK_OK(MPI_File_iwrite_at(file, 0, data, LENGTH, MPI_BYTE, &requests[1]));
}

static void expect_heard(const char *what, MPI_File file) {
    CHECK(heard == 1 && is_no_space(heard_class) && heard_file == file, "%s: %d calls of the handler, class %d", what, heard, heard_class);
}

static void expect_code(const char *what, int code) {
    CHECK(is_no_space(check_class_of(code)), "%s: class %d: %s", what, check_class_of(code), check_error_text(code));
}

static void wait_and_test(MPI_File file, const char *data) {
    MPI_Request requests[2];
    MPI_Status status;
    start(file, data, requests);
    expect_code("wait", MPI_Wait(&requests[0], &status));
    CHECK(requests[0] == MPI_REQUEST_NULL, "a failed request is gone");
    CHECK_OK(MPI_Wait(&requests[1], &status));
    CHECK_COUNT(status, MPI_BYTE, LENGTH);
    expect_heard("wait", file);
    start(file, data, requests);
    int flag = 0, code = MPI_SUCCESS;
    while (!flag && code == MPI_SUCCESS) code = MPI_Test(&requests[0], &flag, &status);
    expect_code("test", code);
    CHECK_OK(MPI_Wait(&requests[1], &status));
    expect_heard("test", file);
}

/* Arrays: the call says IN_STATUS, the statuses say which. */
static void arrays(MPI_File file, const char *data) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int flag = 0, code = MPI_SUCCESS, place = -1, count = 0, places[2];
    start(file, data, requests);
    CHECK_CLASS(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
    expect_code("waitall", statuses[0].MPI_ERROR);
    CHECK(statuses[1].MPI_ERROR == MPI_SUCCESS, "the other one is fine: %d", statuses[1].MPI_ERROR);
    expect_heard("waitall", file);
    start(file, data, requests);
    while (!flag && code == MPI_SUCCESS) code = MPI_Testall(2, requests, &flag, statuses);
    CHECK_CLASS(code, MPI_ERR_IN_STATUS);
    expect_code("testall", statuses[0].MPI_ERROR);
    expect_heard("testall", file);
    start(file, data, requests);
    for (int done = 0; done < 2; done++) {
        code = MPI_Waitany(2, requests, &place, &statuses[0]);
        if (place == 0) expect_code("waitany", code);
        else CHECK(place == 1 && code == MPI_SUCCESS, "place %d, class %d", place, check_class_of(code));
    }
    expect_heard("waitany", file);
    start(file, data, requests);
    int failed = MPI_SUCCESS, returned = MPI_SUCCESS;
    for (int done = 0; done < 2 && count != MPI_UNDEFINED; done += count) {
        code = MPI_Waitsome(2, requests, &count, places, statuses);
        for (int i = 0; i < count; i++)
            if (places[i] == 0) {
                returned = code;
                failed = statuses[i].MPI_ERROR;
            }
    }
    CHECK_CLASS(returned, MPI_ERR_IN_STATUS);
    expect_code("waitsome", failed);
    expect_heard("waitsome", file);
}

/* All ranks of a nonblocking collective and of a split call hear of it. */
static void collective(MPI_File file, const char *data) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    heard = 0;
    CHECK_OK(MPI_File_iwrite_at_all(file, 2 * LIMIT + check.rank * LENGTH, data, LENGTH, MPI_BYTE, &request));
    int code = MPI_Wait(&request, &status);
    expect_code("iwrite_at_all", code);
    CHECK_AGREED(code);
    expect_heard("iwrite_at_all", file);
    heard = 0;
    CHECK_OK(MPI_File_write_at_all_begin(file, 2 * LIMIT + check.rank * LENGTH, data, LENGTH, MPI_BYTE));
    code = MPI_File_write_at_all_end(file, data, &status);
    expect_code("write_at_all_end", code);
    CHECK_AGREED(code);
    expect_heard("write_at_all_end", file);
    /* The file is as good as before. */
    CHECK_OK(MPI_File_write_at_all(file, check.rank * LENGTH, data, LENGTH, MPI_BYTE, &status));
    CHECK_COUNT(status, MPI_BYTE, LENGTH);
}

typedef int (*start_of)(MPI_File, MPI_Offset, const void *, int, MPI_Datatype, MPI_Request *);

/* The last rank's write fails, and nobody waits for it; `pause` lets it end before its request is freed. */
static void free_failing(MPI_File file, start_of begin, const char *data, int length, int pause) {
    MPI_Request request;
    int fails = check.rank == check.size - 1;
    MPI_Offset at = fails ? 2 * LIMIT : check.rank * LENGTH;
    CHECK_OK(begin(file, at, data, length, MPI_BYTE, &request));
    if (pause) check_sleep_ms(20);
    CHECK_OK(MPI_Request_free(&request));
}

/* The error of a write whose request was freed was lost: now sync and close return it, once, on all ranks. */
static void freed(MPI_File file, const char *path, const char *data) {
    start_of starts[] = {MPI_File_iwrite_at, MPI_File_iwrite_at_all};
    int lengths[] = {100, LENGTH, 4 * LENGTH}, code;
    for (int which = 0; which < 2; which++)
        for (int i = 0; i < 3; i++)
            for (int pause = 0; pause <= 1; pause++) {
                free_failing(file, starts[which], data, lengths[i], pause);
                heard = 0;
                code = MPI_File_sync(file);
                expect_code("sync", code);
                CHECK_AGREED(code);
                expect_heard("sync", file);
                CHECK_OK(MPI_File_sync(file));
                MPI_File other;
                CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &other));
                free_failing(other, starts[which], data, lengths[i], pause);
                code = MPI_File_close(&other);
                expect_code("close", code);
                CHECK_AGREED(code);
                CHECK(other == MPI_FILE_NULL, "the file is closed all the same");
            }
    /* An error that was delivered is not reported again. */
    MPI_Request request;
    CHECK_OK(MPI_File_iwrite_at(file, 2 * LIMIT, data, LENGTH, MPI_BYTE, &request));
    expect_code("wait", MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_sync(file));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    const char *path = check_own_path("alone"), *together = check_path("together");
    char *data = malloc(4 * LENGTH);
    MPI_File alone, shared;
    MPI_Errhandler handler;
    check_fill(data, 0, 4 * LENGTH, 1);
    check_remove(together);
    CHECK_OK(MPI_File_create_errhandler(handler_function, &handler));
    CHECK_OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &alone));
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, together, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &shared));
    CHECK_OK(MPI_File_set_errhandler(alone, handler));
    CHECK_OK(MPI_File_set_errhandler(shared, handler));
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {LIMIT, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    wait_and_test(alone, data);
    arrays(alone, data);
    collective(shared, data);
    freed(shared, together, data);
    CHECK_OK(MPI_File_write_at_all(shared, check.rank * LENGTH, data, LENGTH, MPI_BYTE, MPI_STATUS_IGNORE));
    setrlimit(RLIMIT_FSIZE, &none);
    CHECK_OK(MPI_File_close(&alone));
    CHECK_OK(MPI_File_close(&shared));
    CHECK_FILE(path, 0, data, LENGTH);
    CHECK_FILE(together, check.rank * LENGTH, data, LENGTH);
    unlink(path);
    check_remove(together);
    MPI_Errhandler_free(&handler);
    free(data);
    return check_end();
}
