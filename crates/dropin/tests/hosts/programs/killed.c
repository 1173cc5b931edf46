/* ranks: 3
 * One rank is killed in the middle of its calls; this never ends well.
 */
#include "exercise.h"

enum { KILLED_RANK = 1, KILLED_AT = 8, ROUNDS = 10000 };

int main(int argc, char **argv) {
    MPI_File file;
    static int record[65536];
    MPI_Request request;
    check_begin(argc, argv);
    CHECK_OK(MPI_File_open(check.comm, check_path("data"), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Offset place = ((MPI_Offset)(round % 4) * check.size + check.rank) * (MPI_Offset)sizeof record;
        MPI_File_iwrite_at_all(file, place, record, 65536, MPI_INT, &request);
        if (round == KILLED_AT && check.rank == KILLED_RANK) {
            printf("killed: rank %d goes\n", check.rank);
            fflush(stdout);
            kill(getpid(), SIGKILL);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_File_write_at_all(file, place, record, 65536, MPI_INT, MPI_STATUS_IGNORE);
        MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
        MPI_File_write_ordered(file, record, 1024, MPI_INT, MPI_STATUS_IGNORE);
    }
    printf("killed: all rounds were done\n");
    return check_end();
}
