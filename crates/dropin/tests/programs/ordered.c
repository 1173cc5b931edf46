/* ranks: 1 2 3 4 7
 * Ordered access: in the order of the ranks, with parts of any length.
 */
#include "check.h"

/* How many ints a rank has in a step: some have none. */
static int share(int rank, int step) { return (rank * 5 + step * 3) % 7 * (rank % 3 != step % 3); }

static void fill_step(int *data, int rank, int step) {
    for (int i = 0; i < share(rank, step); i++) data[i] = rank << 16 | step << 8 | i;
}

static void steps(void) {
    enum { STEPS = 12 };
    const char *path = check_path("steps");
    MPI_File file;
    MPI_Status status;
    int data[8], back[8];
    long long total = 0;
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_set_view(file, 12, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int step = 0; step < STEPS; step++) {
        fill_step(data, check.rank, step);
        CHECK_OK(MPI_File_write_ordered(file, data, share(check.rank, step), MPI_INT, &status));
        CHECK_COUNT(status, MPI_INT, share(check.rank, step));
        for (int rank = 0; rank < check.size; rank++) total += share(rank, step);
    }
    check_barrier();
    MPI_Offset at = -1;
    CHECK_OK(MPI_File_get_position_shared(file, &at));
    CHECK_EQ(at, total);
    CHECK_OK(MPI_File_sync(file));
    check_barrier();
    long long place = 12;
    for (int step = 0; step < STEPS; step++)
        for (int rank = 0; rank < check.size; rank++) {
            fill_step(data, rank, step);
            if (share(rank, step)) CHECK_FILE(path, place, data, 4 * (size_t)share(rank, step));
            place += 4 * share(rank, step);
        }
    CHECK_EQ(check_size(path), place);
    check_barrier();
    CHECK_OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    for (int step = 0; step < STEPS; step++) {
        memset(back, -1, sizeof back);
        fill_step(data, check.rank, step);
        CHECK_OK(MPI_File_read_ordered(file, back, share(check.rank, step), MPI_INT, &status));
        CHECK_COUNT(status, MPI_INT, share(check.rank, step));
        CHECK(memcmp(back, data, 4 * (size_t)share(check.rank, step)) == 0, "step %d", step);
    }
    /* At the end of the file. */
    CHECK_OK(MPI_File_read_ordered(file, back, 2, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, 0);
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

/* Mixed with calls that are not ordered: each takes its place. */
static void mixed(void) {
    const char *path = check_path("mixed");
    MPI_File file;
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    char mark = (char)('a' + check.rank), other = '-', *expected = malloc(2 * (size_t)check.size + 1);
    CHECK_OK(MPI_File_write_ordered(file, &mark, 1, MPI_CHAR, MPI_STATUS_IGNORE));
    check_barrier();
    if (check.rank == check.size - 1) CHECK_OK(MPI_File_write_shared(file, &other, 1, MPI_CHAR, MPI_STATUS_IGNORE));
    check_barrier();
    mark = (char)('A' + check.rank);
    CHECK_OK(MPI_File_write_ordered(file, &mark, 1, MPI_CHAR, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_close(&file));
    for (int i = 0; i < check.size; i++) {
        expected[i] = (char)('a' + i);
        expected[check.size + 1 + i] = (char)('A' + i);
    }
    expected[check.size] = '-';
    CHECK_FILE(path, 0, expected, 2 * (size_t)check.size + 1);
    CHECK_EQ(check_size(path), 2 * check.size + 1);
    free(expected);
    check_remove(path);
}

/* A log: appended by several runs of a sequential, write-only file. */
static void sequential(void) {
    const char *path = check_path("log");
    MPI_File file;
    check_remove(path);
    for (int run = 0; run < 3; run++) {
        char line[16];
        snprintf(line, sizeof line, "%d:%03d\n", run, check.rank);
        CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_APPEND | MPI_MODE_SEQUENTIAL,
                               MPI_INFO_NULL, &file));
        CHECK_OK(MPI_File_write_ordered(file, line, 6, MPI_CHAR, MPI_STATUS_IGNORE));
        CHECK_OK(MPI_File_close(&file));
    }
    for (int run = 0; run < 3; run++)
        for (int rank = 0; rank < check.size; rank++) {
            char line[16];
            snprintf(line, sizeof line, "%d:%03d\n", run, rank);
            CHECK_FILE(path, (run * check.size + rank) * 6, line, 6);
        }
    check_remove(path);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    steps();
    mixed();
    sequential();
    return check_end();
}
