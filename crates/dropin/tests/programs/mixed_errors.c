/* ranks: 1 2 3 4 7
 * Requests that fail among others: file operations past a size limit, messages that are too long for
 * their buffer, beside ones that succeed; and handles that the host uses again for other requests.
 */
#include "check.h"
#include <sys/resource.h>

enum { LIMIT = 1 << 20, LENGTH = 4096, ALL = 6, ROUNDS = 200 };

/* The places in the array. */
enum { GOOD_WRITE, BAD_WRITE, GOOD_MESSAGE, BAD_MESSAGE, NOTHING, GOOD_READ };

static MPI_File file;
static char data[LENGTH], back[LENGTH];
static int sent[4] = {1, 2, 3, 4}, whole[4], cut[2];

enum { NO_MESSAGES, MESSAGES };

/* The class that the host gives a message that is cut short: Open MPI lets some of them pass. */
static int cut_class;

static void nothing(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    (void)code;
}

/* Intel's standard ABI takes MPI_ERRORS_RETURN for MPI_ERRORS_ABORT: a handler of our own there. */
static void let_errors_pass(void) {
    MPI_Errhandler handler = MPI_ERRORS_RETURN;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    if (strstr(version, "Intel")) MPI_Comm_create_errhandler(nothing, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
}

static void learn_cut_class(void) {
    MPI_Request requests[2];
    MPI_Status statuses[2] = {{.MPI_ERROR = MPI_SUCCESS}, {.MPI_ERROR = MPI_SUCCESS}};
    MPI_Irecv(cut, 2, MPI_INT, 0, 2, MPI_COMM_SELF, &requests[0]);
    MPI_Isend(sent, 4, MPI_INT, 0, 2, MPI_COMM_SELF, &requests[1]);
    if (MPI_Waitall(2, requests, statuses) != MPI_SUCCESS) cut_class = check_class_of(statuses[0].MPI_ERROR);
}

static void start(MPI_Request *requests, int messages) {
    MPI_Request sends[2];
    for (int i = 0; i < ALL; i++) requests[i] = MPI_REQUEST_NULL;
    CHECK_OK(MPI_File_iwrite_at(file, 0, data, LENGTH, MPI_BYTE, &requests[GOOD_WRITE]));
    CHECK_OK(MPI_File_iwrite_at(file, 2 * LIMIT, data, LENGTH, MPI_BYTE, &requests[BAD_WRITE]));
    CHECK_OK(MPI_File_iread_at(file, LENGTH, back, LENGTH, MPI_BYTE, &requests[GOOD_READ]));
    MPI_Irecv(whole, 4, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[GOOD_MESSAGE]);
    MPI_Isend(sent, 4, MPI_INT, 0, 1, MPI_COMM_SELF, &sends[0]);
    MPI_Wait(&sends[0], MPI_STATUS_IGNORE);
    if (messages == MESSAGES) {
        MPI_Irecv(cut, 2, MPI_INT, 0, 2, MPI_COMM_SELF, &requests[BAD_MESSAGE]);
        MPI_Isend(sent, 4, MPI_INT, 0, 2, MPI_COMM_SELF, &sends[1]);
        MPI_Wait(&sends[1], MPI_STATUS_IGNORE);
    }
}

static int is_full(int code) {
    int class = check_class_of(code);
    return class == MPI_ERR_NO_SPACE || class == MPI_ERR_QUOTA || class == MPI_ERR_IO;
}

/* The field MPI_ERROR of the request of a place. */
static void expect_error(const char *what, int place, int code) {
    if (place == BAD_WRITE) CHECK(is_full(code), "%s: class %d: %s", what, check_class_of(code), check_error_text(code));
    else if (place == BAD_MESSAGE) CHECK(check_class_of(code) == cut_class, "%s: class %d", what, check_class_of(code));
    else CHECK(code == MPI_SUCCESS, "%s: place %d has class %d", what, place, check_class_of(code));
}

static void expect_gone(const char *what, MPI_Request *requests) {
    for (int i = 0; i < ALL; i++) CHECK(requests[i] == MPI_REQUEST_NULL, "%s: request %d is gone", what, i);
}

static void waitall(int messages) {
    MPI_Request requests[ALL];
    MPI_Status statuses[ALL];
    start(requests, messages);
    for (int i = 0; i < ALL; i++) statuses[i].MPI_ERROR = -77;
    int code = MPI_Waitall(ALL, requests, statuses);
    CHECK_CLASS(code, MPI_ERR_IN_STATUS);
    /* A host that fails by itself may leave requests pending: they are completed then. */
    for (int i = 0; i < ALL; i++)
        if (statuses[i].MPI_ERROR == MPI_ERR_PENDING) {
            CHECK(messages == MESSAGES, "request %d is pending", i);
            statuses[i].MPI_ERROR = MPI_Wait(&requests[i], &statuses[i]);
        }
    for (int i = 0; i < ALL; i++)
        if (messages == MESSAGES || i != BAD_MESSAGE) expect_error("waitall", i, statuses[i].MPI_ERROR);
    CHECK_COUNT(statuses[GOOD_WRITE], MPI_BYTE, LENGTH);
    CHECK_COUNT(statuses[GOOD_READ], MPI_BYTE, LENGTH);
    CHECK_COUNT(statuses[GOOD_MESSAGE], MPI_INT, 4);
    expect_gone("waitall", requests);
}

static void waitall_ignoring(void) {
    MPI_Request requests[ALL];
    start(requests, NO_MESSAGES);
    CHECK_CLASS(MPI_Waitall(ALL, requests, MPI_STATUSES_IGNORE), MPI_ERR_IN_STATUS);
    expect_gone("waitall", requests);
}

static void testall(void) {
    MPI_Request requests[ALL];
    MPI_Status statuses[ALL];
    int flag = 0, code = MPI_SUCCESS;
    start(requests, NO_MESSAGES);
    while (!flag && code == MPI_SUCCESS) code = MPI_Testall(ALL, requests, &flag, statuses);
    CHECK_CLASS(code, MPI_ERR_IN_STATUS);
    for (int i = 0; i < ALL; i++) expect_error("testall", i == BAD_MESSAGE ? NOTHING : i, statuses[i].MPI_ERROR);
    expect_gone("testall", requests);
}

typedef int some_function(int, MPI_Request *, int *, int *, MPI_Status *);

static void some(const char *what, some_function *complete) {
    MPI_Request requests[ALL];
    MPI_Status statuses[ALL];
    int places[ALL], count = 0, seen = 0;
    start(requests, NO_MESSAGES);
    while (count != MPI_UNDEFINED) {
        int code = complete(ALL, requests, &count, places, statuses), bad = 0;
        for (int i = 0; i < count; i++) {
            bad |= places[i] == BAD_WRITE;
            seen |= 1 << places[i];
        }
        CHECK(bad ? check_class_of(code) == MPI_ERR_IN_STATUS : code == MPI_SUCCESS, "%s: class %d", what, check_class_of(code));
        if (bad) for (int i = 0; i < count; i++) expect_error(what, places[i], statuses[i].MPI_ERROR);
    }
    CHECK_EQ(seen, 1 << GOOD_WRITE | 1 << BAD_WRITE | 1 << GOOD_MESSAGE | 1 << GOOD_READ);
    expect_gone(what, requests);
}

static void any(void) {
    MPI_Request requests[ALL];
    MPI_Status status;
    int flag = 0, seen = 0;
    start(requests, NO_MESSAGES);
    for (int place = 0; place != MPI_UNDEFINED;) {
        int code = MPI_Waitany(ALL, requests, &place, &status);
        if (place != MPI_UNDEFINED) {
            expect_error("waitany", place, code);
            seen++;
        }
    }
    CHECK_EQ(seen, 4);
    start(requests, NO_MESSAGES);
    for (int place = 0; place != MPI_UNDEFINED || !flag;) {
        int code = MPI_Testany(ALL, requests, &place, &flag, &status);
        if (place != MPI_UNDEFINED) {
            expect_error("testany", place, code);
            seen++;
        }
    }
    CHECK_EQ(seen, 8);
    expect_gone("testany", requests);
}

/* Looking tells of the error, too, and leaves the request to be completed. */
static void look(void) {
    MPI_Request requests[ALL];
    MPI_Status status;
    start(requests, NO_MESSAGES);
    for (int i = 0; i < ALL; i++) {
        int flag = 0, code = MPI_SUCCESS;
        while (!flag && code == MPI_SUCCESS) code = MPI_Request_get_status(requests[i], &flag, &status);
        expect_error("get_status", i == BAD_MESSAGE ? NOTHING : i, code);
        expect_error("wait", i == BAD_MESSAGE ? NOTHING : i, MPI_Wait(&requests[i], &status));
    }
    expect_gone("get_status", requests);
}

/* Hosts give the handles of requests that are gone to others. */
static void used_again(void) {
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request requests[4];
        MPI_Status statuses[4];
        int word = i, other = -1;
        CHECK_OK(MPI_File_iwrite_at(file, LENGTH * (i % 8), data, LENGTH, MPI_BYTE, &requests[0]));
        if (i % 3 == 0) CHECK_OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        else CHECK_OK(MPI_Request_free(&requests[0]));
        CHECK(requests[0] == MPI_REQUEST_NULL, "round %d", i);
        MPI_Irecv(&other, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &requests[0]);
        MPI_Isend(&word, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &requests[1]);
        CHECK_OK(MPI_File_iread_at(file, 0, back, LENGTH, MPI_BYTE, &requests[2]));
        CHECK_OK(MPI_File_iwrite_at(file, LENGTH * 8, data, 5, MPI_BYTE, &requests[3]));
        CHECK_OK(MPI_Waitall(4, requests, statuses));
        CHECK_EQ(other, i);
        CHECK_COUNT(statuses[0], MPI_INT, 1);
        CHECK_COUNT(statuses[2], MPI_BYTE, LENGTH);
        CHECK_COUNT(statuses[3], MPI_BYTE, 5);
    }
    /* Nothing is pending after the last of those given up has ended. */
    int code = MPI_SUCCESS;
    for (int i = 0; i < 500; i++) {
        code = MPI_File_set_size(file, LIMIT);
        if (code == MPI_SUCCESS) break;
        check_sleep_ms(10);
    }
    CHECK_OK(code);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    const char *path = check_own_path("alone");
    check_fill(data, 0, LENGTH, 1);
    check_make(path, 16 * LENGTH, 1);
    let_errors_pass();
    CHECK_OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {LIMIT, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    learn_cut_class();
    waitall(NO_MESSAGES);
    waitall(MESSAGES);
    waitall_ignoring();
    testall();
    some("waitsome", MPI_Waitsome);
    some("testsome", MPI_Testsome);
    any();
    look();
    used_again();
    setrlimit(RLIMIT_FSIZE, &none);
    CHECK_OK(MPI_File_close(&file));
    unlink(path);
    return check_end();
}
