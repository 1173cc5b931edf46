/* ranks: 1 2 3 4 7
 * Nonblocking access: every form, many at once, pointers that move at the call.
 */
#include "check.h"

enum { BLOCK = 1000, BLOCKS = 32 };

static MPI_Offset position(MPI_File file) {
    MPI_Offset at = -1;
    CHECK_OK(MPI_File_get_position(file, &at));
    return at;
}

/* Many in flight, waited for in any order. */
static void explicit_offsets(void) {
    const char *path = check_path("explicit");
    MPI_File file;
    MPI_Request requests[BLOCKS];
    MPI_Status statuses[BLOCKS];
    unsigned char *data = malloc(BLOCK * BLOCKS), *back = calloc(BLOCKS, BLOCK);
    long long base = (long long)check.rank * BLOCK * BLOCKS;
    check_fill(data, base, BLOCK * BLOCKS, 1);
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    for (int i = 0; i < BLOCKS; i++) {
        int block = i * 7 % BLOCKS;
        CHECK_OK(MPI_File_iwrite_at(file, base + block * BLOCK, data + block * BLOCK, BLOCK, MPI_BYTE, &requests[i]));
        CHECK(requests[i] != MPI_REQUEST_NULL, "a request comes back");
    }
    CHECK_OK(MPI_Waitall(BLOCKS, requests, statuses));
    for (int i = 0; i < BLOCKS; i++) {
        CHECK_COUNT(statuses[i], MPI_BYTE, BLOCK);
        CHECK(requests[i] == MPI_REQUEST_NULL, "waiting frees request %d", i);
    }
    CHECK_FILE(path, base, data, BLOCK * BLOCKS);
    for (int i = 0; i < BLOCKS; i++)
        CHECK_OK(MPI_File_iread_at(file, base + i * BLOCK, back + i * BLOCK, BLOCK, MPI_BYTE, &requests[i]));
    for (int i = BLOCKS - 1; i >= 0; i--) {
        CHECK_OK(MPI_Wait(&requests[i], &statuses[i]));
        CHECK_COUNT(statuses[i], MPI_BYTE, BLOCK);
    }
    CHECK_FILLED(back, base, BLOCK * BLOCKS, 1);
    CHECK_EQ(position(file), 0);
    CHECK_OK(MPI_File_close(&file));
    free(data);
    free(back);
    check_remove(path);
}

/* The pointer is ahead as soon as the call returns. */
static void own_pointer(void) {
    const char *path = check_own_path("own");
    MPI_File file;
    MPI_Request requests[BLOCKS];
    unsigned char *data = malloc(BLOCK * BLOCKS), *back = calloc(BLOCKS, BLOCK);
    check_fill(data, 0, BLOCK * BLOCKS, 2);
    unlink(path);
    CHECK_OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    for (int i = 0; i < BLOCKS; i++) {
        CHECK_OK(MPI_File_iwrite(file, data + i * BLOCK, BLOCK, MPI_BYTE, &requests[i]));
        CHECK_EQ(position(file), (i + 1) * BLOCK);
    }
    CHECK_OK(MPI_Waitall(BLOCKS, requests, MPI_STATUSES_IGNORE));
    CHECK_FILE(path, 0, data, BLOCK * BLOCKS);
    CHECK_OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    for (int i = 0; i < BLOCKS; i++) {
        CHECK_OK(MPI_File_iread(file, back + i * BLOCK, BLOCK, MPI_BYTE, &requests[i]));
        CHECK_EQ(position(file), (i + 1) * BLOCK);
    }
    CHECK_OK(MPI_Waitall(BLOCKS, requests, MPI_STATUSES_IGNORE));
    CHECK_FILLED(back, 0, BLOCK * BLOCKS, 2);
    CHECK_OK(MPI_File_close(&file));
    free(data);
    free(back);
    unlink(path);
}

/* Pieces in file and memory, several requests with different types at once. */
static void with_holes(void) {
    const char *path = check_path("holes");
    enum { COUNT = 50 };
    check_make_shared(path, (size_t)COUNT * 16 * (size_t)check.size, 3);
    MPI_File file;
    MPI_Datatype memory, tile, inner;
    MPI_Type_vector(COUNT, 2, 3, MPI_INT, &memory);
    MPI_Type_commit(&memory);
    MPI_Type_contiguous(2, MPI_INT, &inner);
    MPI_Type_create_resized(inner, 0, 16 * (MPI_Aint)check.size, &tile);
    MPI_Type_commit(&tile);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_set_view(file, 16 * check.rank, MPI_INT, tile, "native", MPI_INFO_NULL));
    int data[COUNT * 3], back[COUNT * 3];
    for (int i = 0; i < COUNT * 3; i++) data[i] = check.rank << 16 | i;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    CHECK_OK(MPI_File_iwrite_at(file, 0, data, 1, memory, &request));
    CHECK_OK(MPI_Wait(&request, &status));
    CHECK_COUNT(status, memory, 1);
    memset(back, -1, sizeof back);
    CHECK_OK(MPI_File_iread_at(file, 0, back, 1, memory, &request));
    MPI_Type_free(&memory); /* a request keeps what it needs */
    CHECK_OK(MPI_Wait(&request, &status));
    CHECK_COUNT(status, MPI_INT, COUNT * 2);
    for (int i = 0; i < COUNT * 3 - 1; i++) CHECK_EQ(back[i], i % 3 == 2 ? -1 : data[i]);
    CHECK_OK(MPI_File_close(&file));
    for (int i = 0; i < COUNT; i++) {
        unsigned char expected[16];
        long long at = 16LL * (i * check.size + check.rank);
        check_fill(expected, at, 16, 3);
        memcpy(expected, &data[i * 3], 8);
        CHECK_FILE(path, at, expected, 16);
    }
    MPI_Type_free(&tile);
    MPI_Type_free(&inner);
    check_remove(path);
}

/* The shared pointer moves at the call, too: requests of one rank are in its order. */
static void shared_pointer(void) {
    const char *path = check_path("shared");
    MPI_File file;
    MPI_Request requests[8];
    int data[8], *found = calloc(8 * (size_t)check.size, sizeof(int)), *next = calloc((size_t)check.size, sizeof(int));
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    for (int i = 0; i < 8; i++) {
        data[i] = check.rank * 8 + i;
        CHECK_OK(MPI_File_iwrite_shared(file, &data[i], 1, MPI_INT, &requests[i]));
    }
    CHECK_OK(MPI_Waitall(8, requests, MPI_STATUSES_IGNORE));
    check_barrier();
    MPI_Offset at = -1;
    CHECK_OK(MPI_File_get_position_shared(file, &at));
    CHECK_EQ(at, 32 * check.size);
    CHECK_OK(MPI_File_read_at(file, 0, found, 8 * check.size, MPI_INT, MPI_STATUS_IGNORE));
    for (int i = 0; i < 8 * check.size; i++)
        if (CHECK(found[i] >= 0 && found[i] < 8 * check.size, "place %d has %d", i, found[i]))
            CHECK_EQ(found[i] % 8, next[found[i] / 8]++);
    check_barrier();
    CHECK_OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    int back[8];
    for (int i = 0; i < 8; i++) CHECK_OK(MPI_File_iread_shared(file, &back[i], 1, MPI_INT, &requests[i]));
    CHECK_OK(MPI_Waitall(8, requests, MPI_STATUSES_IGNORE));
    long sum = 0, all = 0, wanted = 8L * check.size * (8L * check.size - 1) / 2;
    for (int i = 0; i < 8; i++) sum += back[i];
    MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(all, wanted);
    CHECK_OK(MPI_File_close(&file));
    free(found);
    free(next);
    check_remove(path);
}

static void nothing_and_refusals(void) {
    const char *path = check_own_path("refusals");
    MPI_File file;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    int word = 5;
    unlink(path);
    CHECK_OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_iwrite(file, NULL, 0, MPI_INT, &request));
    CHECK_OK(MPI_Wait(&request, &status));
    CHECK_COUNT(status, MPI_INT, 0);
    CHECK_CLASS(MPI_File_iwrite_at(file, -1, &word, 1, MPI_INT, &request), MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_iread(file, &word, -1, MPI_INT, &request), MPI_ERR_COUNT, MPI_ERR_ARG);
    CHECK_CLASS(MPI_File_iread(file, &word, 1, MPI_DATATYPE_NULL, &request), MPI_ERR_TYPE);
    CHECK_OK(MPI_File_close(&file));
    CHECK_OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    CHECK_CLASS(MPI_File_iwrite(file, &word, 1, MPI_INT, &request), MPI_ERR_READ_ONLY, MPI_ERR_ACCESS);
    CHECK_OK(MPI_File_close(&file));
    unlink(path);
}

/* A request that is given up: the data still gets there. */
static void freed(void) {
    const char *path = check_own_path("freed");
    MPI_File file;
    MPI_Request request = MPI_REQUEST_NULL;
    unsigned char *data = malloc(1 << 20);
    check_fill(data, 0, 1 << 20, 5);
    unlink(path);
    CHECK_OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_iwrite_at(file, 0, data, 1 << 20, MPI_BYTE, &request));
    CHECK_OK(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL, "freeing leaves the null request");
    for (int i = 0; i < 500 && check_size(path) < 1 << 20; i++) check_sleep_ms(10);
    check_sleep_ms(100);
    CHECK_FILE(path, 0, data, 1 << 20);
    CHECK_OK(MPI_File_close(&file));
    free(data);
    unlink(path);
}

/* Past the end: the pointer goes on, the status tells. */
static void past_the_end(void) {
    const char *path = check_own_path("end");
    MPI_File file;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    unsigned char back[300];
    check_make(path, 1000, 6);
    CHECK_OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_seek(file, -100, MPI_SEEK_END));
    CHECK_OK(MPI_File_iread(file, back, 300, MPI_BYTE, &request));
    CHECK_EQ(position(file), 1200);
    CHECK_OK(MPI_Wait(&request, &status));
    CHECK_COUNT(status, MPI_BYTE, 100);
    CHECK_FILLED(back, 900, 100, 6);
    CHECK_OK(MPI_File_iread_at(file, 5000, back, 10, MPI_BYTE, &request));
    CHECK_OK(MPI_Wait(&request, &status));
    CHECK_COUNT(status, MPI_BYTE, 0);
    CHECK_OK(MPI_File_close(&file));
    unlink(path);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    explicit_offsets();
    own_pointer();
    with_holes();
    shared_pointer();
    nothing_and_refusals();
    freed();
    past_the_end();
    return check_end();
}
