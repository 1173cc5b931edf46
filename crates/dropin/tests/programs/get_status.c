/* ranks: 1 2 3 4 7
 * Looking at several requests at once, which MPI-4.1 brought: mixtures with messages, and errors.
 */
#include "check.h"
#include <sys/resource.h>

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
enum { LIMIT = 1 << 20, LENGTH = 4096, ALL = 4 };

/* The places in the array; the last one is the null request. */
enum { WRITE, READ, MESSAGE, NOTHING };

static MPI_File file;
static char data[LENGTH], back[LENGTH];

static void start(MPI_Request *requests, MPI_Offset at) {
    static int sent = 5, received;
    MPI_Request send;
    CHECK_OK(MPI_File_iwrite_at(file, at, data, LENGTH, MPI_BYTE, &requests[WRITE]));
    CHECK_OK(MPI_File_iread_at(file, 0, back, LENGTH, MPI_BYTE, &requests[READ]));
    MPI_Irecv(&received, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[MESSAGE]);
    MPI_Isend(&sent, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &send);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    requests[NOTHING] = MPI_REQUEST_NULL;
}

static void expect_there(const char *what, MPI_Request *requests) {
    for (int i = 0; i < NOTHING; i++) CHECK(requests[i] != MPI_REQUEST_NULL, "%s: request %d is still there", what, i);
}

static void successes(void) {
    MPI_Request requests[ALL];
    MPI_Status statuses[ALL], status;
    int flag = 0, place = -1, count = 0, places[ALL];
    start(requests, 2 * LENGTH);
    while (!flag)
        if (!CHECK_OK(MPI_Request_get_status_all(ALL, requests, &flag, statuses))) return;
    CHECK_COUNT(statuses[WRITE], MPI_BYTE, LENGTH);
    CHECK_COUNT(statuses[READ], MPI_BYTE, LENGTH);
    CHECK_COUNT(statuses[MESSAGE], MPI_INT, 1);
    expect_there("all", requests);
    CHECK_OK(MPI_Request_get_status_any(ALL, requests, &place, &flag, &status));
    CHECK(flag && place >= 0 && place < NOTHING, "flag %d, place %d", flag, place);
    CHECK_OK(MPI_Request_get_status_some(ALL, requests, &count, places, statuses));
    CHECK_EQ(count, NOTHING);
    expect_there("some", requests);
    CHECK_OK(MPI_Waitall(ALL, requests, MPI_STATUSES_IGNORE));
    CHECK_OK(MPI_Request_get_status_any(ALL, requests, &place, &flag, &status));
    CHECK(flag && place == MPI_UNDEFINED, "flag %d, place %d", flag, place);
    CHECK_OK(MPI_Request_get_status_some(ALL, requests, &count, places, statuses));
    CHECK_EQ(count, MPI_UNDEFINED);
}

static void failures(void) {
    MPI_Request requests[ALL];
    MPI_Status statuses[ALL], status;
    int flag = 0, place = -1, code = MPI_SUCCESS;
    start(requests, 2 * LIMIT);
    while (!flag && code == MPI_SUCCESS) code = MPI_Request_get_status_all(ALL, requests, &flag, statuses);
    CHECK_CLASS(code, MPI_ERR_IN_STATUS);
    CHECK(statuses[WRITE].MPI_ERROR != MPI_SUCCESS, "the write has failed");
    CHECK_EQ(statuses[READ].MPI_ERROR, MPI_SUCCESS);
    expect_there("all", requests);
    code = MPI_Request_get_status_any(1, requests, &place, &flag, &status);
    CHECK(flag && place == WRITE && code != MPI_SUCCESS, "flag %d, place %d, class %d", flag, place, check_class_of(code));
    CHECK_CLASS(MPI_Waitall(ALL, requests, statuses), MPI_ERR_IN_STATUS);
}

static void run(void) {
    const char *path = check_own_path("alone");
    check_make(path, LENGTH, 1);
    CHECK_OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {LIMIT, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    successes();
    failures();
    setrlimit(RLIMIT_FSIZE, &none);
    CHECK_OK(MPI_File_close(&file));
    unlink(path);
}
#else
enum { LENGTH = 4096 };

/* What older hosts have: a look at one request. */
static void run(void) {
    const char *path = check_own_path("alone");
    static char data[LENGTH];
    MPI_File file;
    MPI_Request request;
    MPI_Status status;
    int flag = 0, code = MPI_SUCCESS;
    check_make(path, LENGTH, 1);
    CHECK_OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_iwrite_at(file, LENGTH, data, LENGTH, MPI_BYTE, &request));
    while (!flag && code == MPI_SUCCESS) code = MPI_Request_get_status(request, &flag, &status);
    CHECK_OK(code);
    CHECK_COUNT(status, MPI_BYTE, LENGTH);
    CHECK(request != MPI_REQUEST_NULL, "the request is still there");
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_close(&file));
    unlink(path);
}
#endif

int main(int argc, char **argv) {
    check_begin(argc, argv);
    run();
    return check_end();
}
