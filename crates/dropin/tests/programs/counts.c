/* ranks: 1 2 3 4 7
 * What statuses count: whole items, elements of parts, nothing, and what the end of the file leaves.
 */
#include "check.h"

enum { ITEMS = 10 };

typedef struct {
    double value;
    int mark;
} item;

/* An item as written to a file: 12 bytes, in memory 16. */
static MPI_Datatype item_type(void) {
    MPI_Datatype packed, type;
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){offsetof(item, value), offsetof(item, mark)},
                           (MPI_Datatype[]){MPI_DOUBLE, MPI_INT}, &packed);
    MPI_Type_create_resized(packed, 0, sizeof(item), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&packed);
    return type;
}

typedef enum { AT, AT_ALL, OWN, OWN_ALL, SHARED, ORDERED, NONBLOCKING, NONBLOCKING_ALL, SPLIT, CALLS } call;
static const char *const names[CALLS] = {"read_at", "read_at_all", "read", "read_all", "read_shared", "read_ordered",
                                        "iread_at", "iread_at_all", "read_at_all_begin"};

/* Reads at `at` (in etypes) by one of the calls; ordered and shared ones only from one rank's place. */
static int read_by(call how, MPI_File file, MPI_Offset at, void *buffer, int count, MPI_Datatype type, MPI_Status *status) {
    MPI_Request request = MPI_REQUEST_NULL;
    int code;
    switch (how) {
    case AT: return MPI_File_read_at(file, at, buffer, count, type, status);
    case AT_ALL: return MPI_File_read_at_all(file, at, buffer, count, type, status);
    case OWN:
        MPI_File_seek(file, at, MPI_SEEK_SET);
        return MPI_File_read(file, buffer, count, type, status);
    case OWN_ALL:
        MPI_File_seek(file, at, MPI_SEEK_SET);
        return MPI_File_read_all(file, buffer, count, type, status);
    case SHARED:
        MPI_File_seek(file, at, MPI_SEEK_SET);
        MPI_File_seek_shared(file, at, MPI_SEEK_SET);
        return MPI_File_read_shared(file, buffer, count, type, status);
    case ORDERED:
        MPI_File_seek_shared(file, at, MPI_SEEK_SET);
        return MPI_File_read_ordered(file, buffer, count, type, status);
    case NONBLOCKING:
        code = MPI_File_iread_at(file, at, buffer, count, type, &request);
        return code == MPI_SUCCESS ? MPI_Wait(&request, status) : code;
    case NONBLOCKING_ALL:
        code = MPI_File_iread_at_all(file, at, buffer, count, type, &request);
        return code == MPI_SUCCESS ? MPI_Wait(&request, status) : code;
    default:
        code = MPI_File_read_at_all_begin(file, at, buffer, count, type);
        return code == MPI_SUCCESS ? MPI_File_read_at_all_end(file, buffer, status) : code;
    }
}

static void expect(const char *what, MPI_Status *status, MPI_Datatype type, int items, int elements, int bytes) {
    int count = -7;
    MPI_Count long_count = -7;
    MPI_Get_count(status, type, &count);
    CHECK(count == items, "%s: get_count %d, not %d", what, count, items);
    MPI_Get_elements(status, type, &count);
    CHECK(count == elements, "%s: get_elements %d, not %d", what, count, elements);
    MPI_Get_elements_x(status, type, &long_count);
    CHECK(long_count == elements, "%s: get_elements_x %lld, not %d", what, (long long)long_count, elements);
    MPI_Get_count(status, MPI_BYTE, &count);
    CHECK(count == bytes, "%s: %d bytes, not %d", what, count, bytes);
    int cancelled = -1;
    MPI_Test_cancelled(status, &cancelled);
    CHECK(cancelled == 0, "%s: cancelled %d", what, cancelled);
}

/* Files of every length around the edges of an element: a rank's own file, read whole. */
static void every_length(call how) {
    MPI_Datatype type = item_type();
    for (int length = 0; length <= 3 * 12; length += length < 14 ? 1 : 5) {
        const char *path = check_own_path("length");
        check_make(path, (size_t)length, 1);
        MPI_File file;
        MPI_Status status;
        unsigned char buffer[ITEMS * sizeof(item)], wanted[sizeof buffer];
        memset(buffer, 0xee, sizeof buffer);
        memset(wanted, 0xee, sizeof wanted);
        for (int k = 0; k < length; k++) wanted[k / 12 * (int)sizeof(item) + k % 12] = check_byte(k, 1);
        CHECK_OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
        if (!CHECK_OK(read_by(how, file, 0, buffer, ITEMS, type, &status))) printf("     %s\n", names[how]);
        /* Whole items, or a number that only elements can say: 8 bytes make one, 12 two. */
        int rest = length % 12, elements = length / 12 * 2 + (rest >= 8), items = rest ? MPI_UNDEFINED : length / 12;
        if (rest == 0 || rest == 8) expect(names[how], &status, type, items, elements, length);
        else { /* parts of elements: no more than bytes is defined */
            int bytes = -1;
            MPI_Get_count(&status, MPI_BYTE, &bytes);
            CHECK(bytes == length, "%s: %d bytes, not %d", names[how], bytes, length);
        }
        CHECK(memcmp(buffer, wanted, sizeof buffer) == 0, "%s of %d bytes: nothing else is touched", names[how], length);
        CHECK_OK(MPI_File_close(&file));
        unlink(path);
    }
    MPI_Type_free(&type);
}

/* All together, each rank somewhere else: before, across and behind the end. */
static void across_the_end(call how) {
    enum { LENGTH = 1000, WANT = 100 };
    const char *path = check_path("end");
    long long size = (long long)LENGTH * check.size - 50;
    check_make_shared(path, (size_t)size, 2);
    MPI_File file;
    MPI_Status status;
    unsigned char buffer[WANT + 1];
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    for (int step = 0; step < 4; step++) {
        long long at = (long long)LENGTH * check.rank + 860 + step * 60; /* the last rank crosses the end */
        long long left = size - at, wanted = left < 0 ? 0 : left < WANT ? left : WANT;
        memset(buffer, 0xee, sizeof buffer);
        CHECK_OK(read_by(how, file, at, buffer, WANT, MPI_BYTE, &status));
        int count = -1;
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK(count == wanted, "%s at %lld of %lld: %d bytes, not %lld", names[how], at, size, count, wanted);
        CHECK_FILLED(buffer, at, (size_t)wanted, 2);
        CHECK(buffer[wanted] == 0xee, "%s: memory behind stays", names[how]);
    }
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

/* Through a view with holes, where each rank's data ends somewhere else. */
static void through_a_view(call how) {
    enum { BLOCK = 10, BLOCKS = 8 };
    const char *path = check_path("view");
    long long size = (long long)BLOCK * BLOCKS * check.size - BLOCK - 3;
    check_make_shared(path, (size_t)size, 3);
    MPI_File file;
    MPI_Status status;
    MPI_Datatype block, tile;
    MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)BLOCK * check.size, &tile);
    MPI_Type_commit(&tile);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_set_view(file, (MPI_Offset)BLOCK * check.rank, MPI_BYTE, tile, "native", MPI_INFO_NULL));
    unsigned char buffer[BLOCK * BLOCKS + 20];
    memset(buffer, 0xee, sizeof buffer);
    CHECK_OK(read_by(how, file, 0, buffer, sizeof buffer, MPI_BYTE, &status));
    int wanted = 0, count = -1;
    while (((long long)(wanted / BLOCK) * check.size + check.rank) * BLOCK + wanted % BLOCK < size) wanted++;
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(count == wanted, "%s: %d bytes, not %d", names[how], count, wanted);
    int same = 1;
    for (int k = 0; k < wanted; k++)
        same &= buffer[k] == check_byte(((long long)(k / BLOCK) * check.size + check.rank) * BLOCK + k % BLOCK, 3);
    CHECK(same && buffer[wanted] == 0xee, "%s: the data before the end, and no more", names[how]);
    CHECK_OK(MPI_File_close(&file));
    MPI_Type_free(&tile);
    MPI_Type_free(&block);
    check_remove(path);
}

/* Types without data, and counts of nothing. */
static void nothing(void) {
    const char *path = check_own_path("nothing");
    MPI_File file;
    MPI_Status status;
    MPI_Datatype empty;
    int word = 1;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    CHECK_OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_write(file, &word, 5, empty, &status));
    expect("a type of no size", &status, empty, 0, 0, 0);
    CHECK_OK(MPI_File_write(file, &word, 0, MPI_INT, &status));
    expect("no items", &status, MPI_INT, 0, 0, 0);
    CHECK_OK(MPI_File_read(file, &word, 1, MPI_INT, &status));
    expect("an empty file", &status, MPI_INT, 0, 0, 0);
    CHECK_EQ(check_size(path), 0);
    CHECK_OK(MPI_File_write(file, &word, 1, MPI_INT, &status));
    expect("one int", &status, MPI_INT, 1, 1, 4);
    CHECK_OK(MPI_File_close(&file));
    MPI_Type_free(&empty);
    unlink(path);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    nothing();
    for (call how = AT; how < CALLS; how++) {
        every_length(how);
        if (how != SHARED && how != ORDERED) {
            across_the_end(how);
            through_a_view(how);
        }
    }
    return check_end();
}
