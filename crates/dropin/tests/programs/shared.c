/* ranks: 1 2 3 4 7
 * Access at the shared pointer, in whatever order the ranks come.
 */
#include "check.h"

enum { RECORDS = 25 };

typedef struct {
    int rank, number;
    int payload[14];
} record;

static record make(int rank, int number) {
    record made = {rank, number, {0}};
    for (int i = 0; i < 14; i++) made.payload[i] = rank * 1000 + number * 17 + i;
    return made;
}

static int sound(const record *found) {
    if (found->rank < 0 || found->rank >= check.size || found->number < 0 || found->number >= RECORDS) return 0;
    record wanted = make(found->rank, found->number);
    return memcmp(found, &wanted, sizeof wanted) == 0;
}

/* Every record of every rank is in the file exactly once, whole, and those of a rank in its order. */
static void expect_all(const char *path) {
    int total = RECORDS * check.size, *next = calloc((size_t)check.size, sizeof *next);
    CHECK_EQ(check_size(path), (long long)sizeof(record) * total);
    FILE *stream = fopen(path, "r");
    for (int i = 0; stream && i < total; i++) {
        record found;
        if (!CHECK(fread(&found, sizeof found, 1, stream) == 1 && sound(&found), "record %d is whole", i)) break;
        CHECK(found.number == next[found.rank], "record %d of rank %d comes %d", found.number, found.rank, next[found.rank]);
        next[found.rank]++;
    }
    if (stream) fclose(stream);
    free(next);
}

static void writes_and_reads(void) {
    const char *path = check_path("data");
    MPI_File file;
    MPI_Datatype type;
    MPI_Status status;
    MPI_Type_contiguous(sizeof(record) / sizeof(int), MPI_INT, &type);
    MPI_Type_commit(&type);
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_set_view(file, 0, type, type, "native", MPI_INFO_NULL));
    for (int i = 0; i < RECORDS; i++) {
        record mine = make(check.rank, i);
        if (i % 2) {
            CHECK_OK(MPI_File_write_shared(file, &mine, 1, type, &status));
        } else {
            MPI_Request request = MPI_REQUEST_NULL;
            CHECK_OK(MPI_File_iwrite_shared(file, &mine, 1, type, &request));
            CHECK_OK(MPI_Wait(&request, &status));
        }
        CHECK_COUNT(status, type, 1);
    }
    check_barrier();
    MPI_Offset at = -1;
    CHECK_OK(MPI_File_get_position_shared(file, &at));
    CHECK_EQ(at, RECORDS * check.size);
    CHECK_OK(MPI_File_get_position(file, &at));
    CHECK_EQ(at, 0);
    CHECK_OK(MPI_File_sync(file));
    if (check.rank == 0) expect_all(path);
    check_barrier();

    /* Read as they come: every record once, over all ranks. */
    CHECK_OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    int *seen = calloc((size_t)(RECORDS * check.size), sizeof *seen), got = 0;
    for (int tries = 0; CHECK(tries <= RECORDS * check.size, "the end of the file is noticed"); tries++) {
        record found;
        MPI_Request request = MPI_REQUEST_NULL;
        int code = got % 2 ? MPI_File_read_shared(file, &found, 1, type, &status)
                           : MPI_File_iread_shared(file, &found, 1, type, &request);
        if (got % 2 == 0 && code == MPI_SUCCESS) code = MPI_Wait(&request, &status);
        CHECK_OK(code);
        int count = -1;
        MPI_Get_count(&status, type, &count);
        if (count != 1) {
            CHECK_EQ(count, 0);
            break;
        }
        got++;
        if (CHECK(sound(&found), "a record of rank %d, number %d", found.rank, found.number))
            seen[found.rank * RECORDS + found.number]++;
    }
    MPI_Allreduce(MPI_IN_PLACE, seen, RECORDS * check.size, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < RECORDS * check.size; i++) CHECK_EQ(seen[i], 1);
    free(seen);
    CHECK_OK(MPI_File_close(&file));
    MPI_Type_free(&type);
    check_remove(path);
}

/* Two opens of one file have two shared pointers; other pointers stay apart. */
static void apart(void) {
    const char *path = check_path("apart");
    check_make_shared(path, 1000, 6);
    MPI_File one, two;
    MPI_Offset at = -1;
    unsigned char back[10];
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &one));
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &two));
    CHECK_OK(MPI_File_read_shared(one, back, 10, MPI_BYTE, MPI_STATUS_IGNORE));
    check_barrier();
    CHECK_OK(MPI_File_get_position_shared(one, &at));
    CHECK_EQ(at, 10 * check.size);
    CHECK_OK(MPI_File_get_position_shared(two, &at));
    CHECK_EQ(at, 0);
    CHECK_OK(MPI_File_read(one, back, 10, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK_FILLED(back, 0, 10, 6);
    check_barrier();
    CHECK_OK(MPI_File_get_position_shared(one, &at));
    CHECK_EQ(at, 10 * check.size);
    CHECK_OK(MPI_File_close(&two));
    CHECK_OK(MPI_File_close(&one));
    check_remove(path);
}

/* Through a view with holes, the same on all ranks. */
static void with_holes(void) {
    const char *path = check_path("holes");
    check_make_shared(path, 16 * (size_t)check.size + 16, 7);
    MPI_File file;
    MPI_Datatype type;
    MPI_Type_create_resized(MPI_INT, 0, 16, &type);
    MPI_Type_commit(&type);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_set_view(file, 4, MPI_INT, type, "native", MPI_INFO_NULL));
    int word = 0x5a5a5a5a, left = 0;
    CHECK_OK(MPI_File_write_shared(file, &word, 1, MPI_INT, MPI_STATUS_IGNORE));
    check_barrier();
    CHECK_OK(MPI_File_close(&file));
    MPI_Type_free(&type);
    unsigned char expected[16];
    for (int i = 0; i < check.size; i++) {
        check_fill(expected, i * 16, 16, 7);
        memcpy(expected + 4, &word, 4);
        left += !CHECK_FILE(path, i * 16, expected, 16);
    }
    CHECK_EQ(left, 0);
    check_remove(path);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    writes_and_reads();
    apart();
    with_holes();
    return check_end();
}
