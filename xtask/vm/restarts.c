/* Opens, writes, reads and closes a file again and again while the server comes and goes. Every round ends with the right
 * data, or with an error on all ranks.
 *
 * usage: restarts DIRECTORY SECONDS, on NFS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 200, LEN = 700 };

static int rank, size;

/* Whether a call succeeded; ranks that disagree end the program. */
static int agreed(int code, const char *call) {
    int failed = code != MPI_SUCCESS, all = 0;
    MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (all && rank == 0) {
        char text[MPI_MAX_ERROR_STRING] = "on another rank";
        int len;
        if (failed) MPI_Error_string(code, text, &len);
        printf("%s: %s\n", call, text);
    }
    if (all && all < size) {
        printf("%s failed on %d of %d ranks\n", call, all, size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return !all;
}

/* As agreed, for calls of one rank: an error of any rank ends the round on all of them. */
static int any_failed(int code) {
    int failed = code != MPI_SUCCESS, all = 0;
    MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static MPI_File open_file(const char *path, MPI_Datatype view) {
    MPI_File file;
    int code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    if (!agreed(code, "open")) return MPI_FILE_NULL;
    if (!agreed(MPI_File_set_view(file, (MPI_Offset)rank * LEN, MPI_BYTE, view, "native", MPI_INFO_NULL), "set_view")) {
        MPI_File_close(&file);
        return MPI_FILE_NULL;
    }
    return file;
}

/* Whether the round succeeded. */
static int play(const char *path, MPI_Datatype view, int round) {
    static unsigned char data[PIECES * LEN], back[PIECES * LEN];
    int len = sizeof data, failed;
    MPI_File file = open_file(path, view);
    if (file == MPI_FILE_NULL) return 0;
    memset(data, 1 + (round * 7 + rank) % 255, sizeof data);
    if (round % 2) failed = !agreed(MPI_File_write_at_all(file, 0, data, len, MPI_BYTE, MPI_STATUS_IGNORE), "write_at_all");
    else failed = any_failed(MPI_File_write_at(file, 0, data, len, MPI_BYTE, MPI_STATUS_IGNORE));
    if (!agreed(MPI_File_close(&file), "close") || failed) return 0;
    file = open_file(path, view);
    if (file == MPI_FILE_NULL) return 0;
    failed = any_failed(MPI_File_read_at(file, 0, back, len, MPI_BYTE, MPI_STATUS_IGNORE));
    if (!agreed(MPI_File_close(&file), "close") || failed) return 0;
    if (memcmp(data, back, sizeof data)) {
        printf("round %d, rank %d: wrong data\n", round, rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return 1;
}

int main(int argc, char **argv) {
    char path[4096];
    MPI_Datatype piece, view;
    int right = 0, round = 0, is_over = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
    double end = MPI_Wtime() + atof(argv[2]);
    MPI_Type_contiguous(LEN, MPI_BYTE, &piece);
    MPI_Type_create_resized(piece, 0, (MPI_Aint)LEN * size, &view);
    MPI_Type_commit(&view);
    snprintf(path, sizeof path, "%s/restarts", argv[1]);
    while (!is_over) {
        right += play(path, view, round++);
        is_over = MPI_Wtime() > end;
        MPI_Bcast(&is_over, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("restarts: %d rounds, %d with the right data, checks passed\n", round, right);
    MPI_Type_free(&view);
    MPI_Type_free(&piece);
    MPI_Finalize();
    return right == 0;
}
