/* ranks: 1 2 3 4 7
 * Atomic mode: overlapping accesses do not mix, whatever their shape; and the sequences that make
 * data visible without it.
 */
#include "check.h"

static void mode(void) {
    MPI_File file;
    int flag = -1;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, check_path("mode"), MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
                           MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_get_atomicity(file, &flag));
    CHECK_EQ(flag, 0);
    CHECK_OK(MPI_File_set_atomicity(file, 1));
    CHECK_OK(MPI_File_get_atomicity(file, &flag));
    CHECK(flag, "atomic mode is on");
    CHECK_OK(MPI_File_set_atomicity(file, 0));
    CHECK_OK(MPI_File_get_atomicity(file, &flag));
    CHECK_EQ(flag, 0);
    CHECK_OK(MPI_File_close(&file));
}

enum { WORDS = 6000, GAP = 3, ROUNDS = 10 };

/* In pieces with gaps, all ranks on the same bytes: in the end all words are one rank's. */
static void writers(int collective) {
    const char *path = check_path("writers");
    MPI_File file;
    MPI_Datatype pieces;
    int *data = malloc(sizeof(int) * WORDS), *back = malloc(sizeof(int) * WORDS);
    check_remove(path);
    MPI_Type_create_resized(MPI_INT, 0, GAP * (MPI_Aint)sizeof(int), &pieces);
    MPI_Type_commit(&pieces);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, pieces, "native", MPI_INFO_NULL));
    CHECK_OK(MPI_File_set_atomicity(file, 1));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < WORDS; i++) data[i] = round * 100 + check.rank;
        if (collective) CHECK_OK(MPI_File_write_at_all(file, 0, data, WORDS, MPI_INT, MPI_STATUS_IGNORE));
        else CHECK_OK(MPI_File_write_at(file, 0, data, WORDS, MPI_INT, MPI_STATUS_IGNORE));
        check_barrier();
        /* In atomic mode no sync is needed to see it. */
        CHECK_OK(MPI_File_read_at(file, 0, back, WORDS, MPI_INT, MPI_STATUS_IGNORE));
        int mixed = 0;
        for (int i = 1; i < WORDS; i++) mixed += back[i] != back[0];
        CHECK(mixed == 0 && back[0] / 100 == round, "collective %d: %d words differ from the first, %d", collective, mixed, back[0]);
        check_barrier();
    }
    CHECK_OK(MPI_File_close(&file));
    MPI_Type_free(&pieces);
    free(data);
    free(back);
    check_remove(path);
}

/* Even ranks write, odd ranks read at the same time: a reader sees one write, not parts of two. */
static void readers(void) {
    const char *path = check_path("readers");
    MPI_File file;
    MPI_Datatype pieces;
    int *data = calloc(WORDS, sizeof(int));
    check_remove(path);
    MPI_Type_create_resized(MPI_INT, 0, GAP * (MPI_Aint)sizeof(int), &pieces);
    MPI_Type_commit(&pieces);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, pieces, "native", MPI_INFO_NULL));
    CHECK_OK(MPI_File_set_atomicity(file, 1));
    if (check.rank == 0) CHECK_OK(MPI_File_write_at(file, 0, data, WORDS, MPI_INT, MPI_STATUS_IGNORE));
    check_barrier();
    for (int round = 1; round <= 2 * ROUNDS; round++) {
        if (check.rank % 2 == 0) {
            for (int i = 0; i < WORDS; i++) data[i] = round * 100 + check.rank;
            CHECK_OK(MPI_File_write_at(file, 0, data, WORDS, MPI_INT, MPI_STATUS_IGNORE));
        } else {
            int mixed = 0;
            CHECK_OK(MPI_File_read_at(file, 0, data, WORDS, MPI_INT, MPI_STATUS_IGNORE));
            for (int i = 1; i < WORDS; i++) mixed += data[i] != data[0];
            CHECK(mixed == 0, "%d words differ from the first, %d", mixed, data[0]);
        }
    }
    CHECK_OK(MPI_File_close(&file));
    MPI_Type_free(&pieces);
    free(data);
    check_remove(path);
}

/* Without atomic mode: write, sync, barrier, sync, read. */
static void sync_barrier_sync(void) {
    const char *path = check_path("sync");
    MPI_File file;
    int words[100], back[100], other = (check.rank + 1) % check.size;
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 100; i++) words[i] = round << 16 | check.rank << 8 | i;
        CHECK_OK(MPI_File_write_at(file, check.rank * 400, words, 100, MPI_INT, MPI_STATUS_IGNORE));
        CHECK_OK(MPI_File_sync(file));
        check_barrier();
        CHECK_OK(MPI_File_sync(file));
        CHECK_OK(MPI_File_read_at(file, other * 400, back, 100, MPI_INT, MPI_STATUS_IGNORE));
        CHECK(back[0] == (round << 16 | other << 8) && back[99] == (round << 16 | other << 8 | 99), "%#x", back[0]);
        check_barrier();
    }
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

/* Written and closed by all, opened by others: seen. */
static void close_and_open(void) {
    const char *path = check_path("close");
    MPI_File file;
    int word = check.rank + 1, back = 0, other = (check.rank + 1) % check.size;
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_write_at(file, 4 * check.rank, &word, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_close(&file));
    check_barrier();
    CHECK_OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_read_at(file, 4 * other, &back, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK_EQ(back, other + 1);
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    mode();
    sync_barrier_sync();
    close_and_open();
    writers(0);
    writers(1);
    readers();
    return check_end();
}
