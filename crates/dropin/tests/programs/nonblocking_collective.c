/* ranks: 1 2 3 4 7
 * Nonblocking collective access: all forms, several at once, in different orders, beside messages.
 */
#include "check.h"

enum { BLOCK = 512, BLOCKS = 16, LENGTH = BLOCK * BLOCKS };

static MPI_Datatype tile;

/* Blocks dealt to the ranks in turn. */
static MPI_File open_interleaved(const char *path) {
    MPI_File file = MPI_FILE_NULL;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_set_view(file, (MPI_Offset)BLOCK * check.rank, MPI_BYTE, tile, "native", MPI_INFO_NULL));
    return file;
}

static void fill(unsigned char *data, int first, int salt) {
    for (int i = 0; i < BLOCKS; i++) check_fill(data + i * BLOCK, ((long long)(first + i) * check.size + check.rank) * BLOCK, BLOCK, salt);
}

static int filled(const unsigned char *data, int first, int salt) {
    for (int i = 0; i < BLOCKS; i++)
        if (check_filled(data + i * BLOCK, ((long long)(first + i) * check.size + check.rank) * BLOCK, BLOCK, salt) != BLOCK) return 0;
    return 1;
}

static void expect_file(const char *path, int blocks, int salt) {
    size_t length = (size_t)blocks * BLOCK * (size_t)check.size;
    unsigned char *expected = malloc(length);
    check_fill(expected, 0, length, salt);
    CHECK_FILE(path, 0, expected, length);
    free(expected);
}

static void forms(void) {
    const char *path = check_path("forms");
    unsigned char data[LENGTH], back[LENGTH];
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    check_remove(path);
    MPI_File file = open_interleaved(path);
    fill(data, 0, 1);
    CHECK_OK(MPI_File_iwrite_all(file, data, LENGTH, MPI_BYTE, &request));
    MPI_Offset at = -1;
    CHECK_OK(MPI_File_get_position(file, &at));
    CHECK_EQ(at, LENGTH);
    CHECK_OK(MPI_Wait(&request, &status));
    CHECK_COUNT(status, MPI_BYTE, LENGTH);
    fill(data, BLOCKS, 1);
    CHECK_OK(MPI_File_iwrite_at_all(file, LENGTH, data, LENGTH, MPI_BYTE, &request));
    CHECK_OK(MPI_Wait(&request, &status));
    CHECK_COUNT(status, MPI_BYTE, LENGTH);
    CHECK_OK(MPI_File_get_position(file, &at));
    CHECK_EQ(at, LENGTH);
    CHECK_OK(MPI_File_sync(file));
    check_barrier();
    expect_file(path, 2 * BLOCKS, 1);
    memset(back, 0, sizeof back);
    CHECK_OK(MPI_File_iread_all(file, back, LENGTH, MPI_BYTE, &request));
    CHECK_OK(MPI_Wait(&request, &status));
    CHECK_COUNT(status, MPI_BYTE, LENGTH);
    CHECK(filled(back, BLOCKS, 1), "iread_all reads on from the pointer");
    memset(back, 0, sizeof back);
    CHECK_OK(MPI_File_iread_at_all(file, 0, back, LENGTH, MPI_BYTE, &request));
    int flag = 0, code = MPI_SUCCESS;
    while (!flag && code == MPI_SUCCESS) code = MPI_Test(&request, &flag, &status);
    CHECK_OK(code);
    CHECK_COUNT(status, MPI_BYTE, LENGTH);
    CHECK(filled(back, 0, 1), "iread_at_all");
    /* Some ranks have nothing. */
    int count = check.rank % 2 ? LENGTH : 0;
    CHECK_OK(MPI_File_iread_at_all(file, 0, back, count, MPI_BYTE, &request));
    CHECK_OK(MPI_Wait(&request, &status));
    CHECK_COUNT(status, MPI_BYTE, count);
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

/* Several operations of one file in flight; completed in another order. */
static void several(void) {
    enum { COUNT = 5 };
    const char *path = check_path("several");
    static unsigned char data[COUNT][LENGTH], back[COUNT][LENGTH];
    MPI_Request requests[COUNT];
    MPI_Status statuses[COUNT];
    check_remove(path);
    MPI_File file = open_interleaved(path);
    for (int i = 0; i < COUNT; i++) {
        fill(data[i], i * BLOCKS, 2);
        CHECK_OK(MPI_File_iwrite_all(file, data[i], LENGTH, MPI_BYTE, &requests[i]));
    }
    for (int i = 0; i < COUNT; i++) {
        int place = (i + check.rank) % COUNT; /* each rank waits in its own order */
        CHECK_OK(MPI_Wait(&requests[place], &statuses[place]));
        CHECK_COUNT(statuses[place], MPI_BYTE, LENGTH);
    }
    CHECK_OK(MPI_File_sync(file));
    check_barrier();
    expect_file(path, COUNT * BLOCKS, 2);
    for (int i = 0; i < COUNT; i++) CHECK_OK(MPI_File_iread_at_all(file, i * LENGTH, back[i], LENGTH, MPI_BYTE, &requests[i]));
    CHECK_OK(MPI_Waitall(COUNT, requests, statuses));
    for (int i = 0; i < COUNT; i++) CHECK(filled(back[i], i * BLOCKS, 2), "operation %d", i);
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

/* Started on A then B here, on B then A there: legal, since the files are different. */
static void opposite_orders(void) {
    const char *paths[2] = {check_path("a"), check_path("b")};
    static unsigned char data[2][LENGTH];
    MPI_File files[2];
    MPI_Request requests[2];
    for (int f = 0; f < 2; f++) {
        check_remove(paths[f]);
        files[f] = open_interleaved(paths[f]);
        fill(data[f], 0, 3 + f);
    }
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 2; i++) {
            int f = (i + check.rank) % 2;
            CHECK_OK(MPI_File_iwrite_at_all(files[f], 0, data[f], LENGTH, MPI_BYTE, &requests[f]));
        }
        for (int i = 0; i < 2; i++) CHECK_OK(MPI_Wait(&requests[(i + check.rank / 2) % 2], MPI_STATUS_IGNORE));
    }
    for (int f = 0; f < 2; f++) CHECK_OK(MPI_File_close(&files[f]));
    for (int f = 0; f < 2; f++) {
        expect_file(paths[f], BLOCKS, 3 + f);
        check_remove(paths[f]);
    }
}

/* Rank 0 waits and then sends; the others post theirs, receive, and wait only then. */
static void wait_before_send(void) {
    const char *path = check_path("waits");
    unsigned char data[LENGTH];
    MPI_Request request = MPI_REQUEST_NULL;
    check_remove(path);
    MPI_File file = open_interleaved(path);
    for (int round = 0; round < 3; round++) {
        int word = -1;
        fill(data, round * BLOCKS, 5);
        CHECK_OK(MPI_File_iwrite_at_all(file, round * LENGTH, data, LENGTH, MPI_BYTE, &request));
        if (check.rank == 0) {
            CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            for (int to = 1; to < check.size; to++) MPI_Send(&round, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
        } else {
            MPI_Recv(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK_EQ(word, round);
            CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
    }
    CHECK_OK(MPI_File_close(&file));
    expect_file(path, 3 * BLOCKS, 5);
    check_remove(path);
}

/* Other traffic meanwhile: messages, a collective call of the communicator, independent access. */
static void overlap(void) {
    const char *path = check_path("overlap");
    unsigned char data[LENGTH], back[BLOCK];
    MPI_Request requests[3];
    check_remove(path);
    MPI_File file = open_interleaved(path);
    fill(data, 0, 6);
    CHECK_OK(MPI_File_iwrite_all(file, data, LENGTH, MPI_BYTE, &requests[0]));
    int next = (check.rank + 1) % check.size, previous = (check.rank + check.size - 1) % check.size, word = -1, sum = 0;
    MPI_Irecv(&word, 1, MPI_INT, previous, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&check.rank, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Allreduce(&check.rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(sum, check.size * (check.size - 1) / 2);
    CHECK_OK(MPI_File_write_at(file, LENGTH + BLOCK, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_read_at(file, LENGTH + BLOCK, back, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(memcmp(data, back, BLOCK) == 0, "independent access beside a collective one");
    CHECK_OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    CHECK_EQ(word, previous);
    CHECK_OK(MPI_File_close(&file));
    expect_file(path, BLOCKS, 6);
    check_remove(path);
}

/* The end of the file cuts it short, and the status says so. */
static void past_the_end(void) {
    const char *path = check_path("end");
    unsigned char back[LENGTH];
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    check_make_shared(path, (size_t)LENGTH * (size_t)check.size, 7);
    MPI_File file = open_interleaved(path);
    CHECK_OK(MPI_File_iread_at_all(file, LENGTH / 2, back, LENGTH, MPI_BYTE, &request));
    CHECK_OK(MPI_Wait(&request, &status));
    CHECK_COUNT(status, MPI_BYTE, LENGTH / 2);
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    MPI_Datatype block;
    MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)BLOCK * check.size, &tile);
    MPI_Type_commit(&tile);
    MPI_Type_free(&block);
    forms();
    several();
    overlap();
    past_the_end();
    opposite_orders();
    wait_before_send();
    MPI_Type_free(&tile);
    return check_end();
}
