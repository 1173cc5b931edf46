/* ranks: 1 2 3
 * needs: sessions
 * A program that never calls MPI_Init: files on a communicator that comes from a session.
 */
#include "check.h"

/* Open MPI 5 says that it is MPI 3.1, but has them. */
#if MPI_VERSION >= 4 || defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5
int main(int argc, char **argv) {
    enum { LENGTH = 4000 };
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_File file, left;
    MPI_Status status;
    unsigned char data[LENGTH], back[LENGTH];
    check_prepare(argc, argv);
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS) return 2;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "pario.test.sessions", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    MPI_Group_free(&group);
    check_attach(comm);
    int initialized = -1;
    MPI_Initialized(&initialized);
    const char *path = check_path("data");
    check_remove(path);
    CHECK_OK(MPI_File_open(comm, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    long long at = (long long)check.rank * LENGTH;
    check_fill(data, at, LENGTH, 1);
    CHECK_OK(MPI_File_write_at_all(file, at, data, LENGTH, MPI_BYTE, &status));
    CHECK_COUNT(status, MPI_BYTE, LENGTH);
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK_OK(MPI_File_iread_at_all(file, at, back, LENGTH, MPI_BYTE, &request));
    CHECK_OK(MPI_Wait(&request, &status));
    CHECK_FILLED(back, at, LENGTH, 1);
    CHECK_OK(MPI_File_write_ordered(file, data, 1, MPI_BYTE, &status));
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
    /* One that is left open when the session goes. */
    CHECK_OK(MPI_File_open(comm, check_path("left"), MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &left));
    CHECK_OK(MPI_File_write_at_all(left, at, data, LENGTH, MPI_BYTE, &status));
    check_barrier();
    int failed = check_sum();
    check_print();
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    return failed;
}
#else
int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_skip("everything", "this MPI has no sessions");
    return check_end();
}
#endif
