/* ranks: 1 2 3
 * needs: sessions
 * Sessions that come and go, each with files of its own: nothing of one is left for the next to trip over.
 */
#include "check.h"

/* Open MPI 5 says that it is MPI 3.1, but has them. */
#if MPI_VERSION >= 4 || defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5
enum { SESSIONS = 40, LENGTH = 3000 };

static void use(MPI_Comm comm, int number) {
    unsigned char data[LENGTH], back[LENGTH];
    MPI_File file, left;
    MPI_Status status;
    MPI_Request request;
    long long at = (long long)check.rank * LENGTH;
    check_fill(data, at, LENGTH, number);
    CHECK_OK(MPI_File_open(comm, check_path("data"), MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_write_at_all(file, at, data, LENGTH, MPI_BYTE, &status));
    CHECK_OK(MPI_File_iread_at_all(file, at, back, LENGTH, MPI_BYTE, &request));
    CHECK_OK(MPI_Wait(&request, &status));
    CHECK_COUNT(status, MPI_BYTE, LENGTH);
    CHECK_FILLED(back, at, LENGTH, number);
    CHECK_OK(MPI_File_close(&file));
    /* Every third session leaves a file open. */
    if (number % 3 == 0) CHECK_OK(MPI_File_open(comm, check_path("left"), MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &left));
}

/* After the last session has gone, MPICH 4.0 and Open MPI 5.0 crash in MPI_Session_init, Intel MPI 2021 fails, and
 * MPICH 5.0 mixes up the messages of several ranks at times.
 */
static int can_begin_again(int size) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    MPI_Get_library_version(version, &length);
    return size == 1 && strstr(version, "MPICH Version:") && !strstr(version, "MPICH Version:\t4.0");
}

int main(int argc, char **argv) {
    int failed = 0;
    int size = 0;
    MPI_Session lasting;
    MPI_Group world;
    check_prepare(argc, argv);
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &lasting) != MPI_SUCCESS) return 2;
    MPI_Group_from_session_pset(lasting, "mpi://WORLD", &world);
    MPI_Group_size(world, &size);
    MPI_Group_free(&world);
    if (can_begin_again(size)) MPI_Session_finalize(&lasting);
    for (int number = 0; number < SESSIONS; number++) {
        MPI_Session session;
        MPI_Group group;
        MPI_Comm comm;
        char tag[64];
        snprintf(tag, sizeof tag, "pario.test.session_cycles.%d", number);
        if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS) return 2;
        MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
        MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
        MPI_Group_free(&group);
        check_attach(comm);
        use(comm, number);
        if (number == SESSIONS - 1) {
            failed = check_sum();
            check_print();
        }
        MPI_Comm_free(&comm);
        MPI_Session_finalize(&session);
    }
    if (lasting != MPI_SESSION_NULL) MPI_Session_finalize(&lasting);
    return failed;
}
#else
int main(int argc, char **argv) {
    check_begin(argc, argv);
    check_skip("everything", "this MPI has no sessions");
    return check_end();
}
#endif
