/* ranks: 1 2 3 4 7
 * Data representations: native, internal, external32, and those that a program registers.
 */
#include "check.h"

static MPI_File open_file(const char *path) {
    MPI_File file = MPI_FILE_NULL;
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    return file;
}

static void expect_name(MPI_File file, const char *wanted) {
    MPI_Offset disp;
    MPI_Datatype etype, filetype;
    char name[MPI_MAX_DATAREP_STRING + 1] = "";
    CHECK_OK(MPI_File_get_view(file, &disp, &etype, &filetype, name));
    CHECK(strcmp(name, wanted) == 0, "get_view says %s, not %s", name, wanted);
}

/* What is written in a representation is read in it. */
static void round_trip(const char *name) {
    enum { COUNT = 100 };
    const char *path = check_path("trip");
    MPI_File file = open_file(path);
    MPI_Status status;
    double data[COUNT], back[COUNT];
    for (int i = 0; i < COUNT; i++) data[i] = check.rank + i * 0.125;
    CHECK_OK(MPI_File_set_view(file, 0, MPI_DOUBLE, MPI_DOUBLE, name, MPI_INFO_NULL));
    expect_name(file, name);
    CHECK_OK(MPI_File_write_at_all(file, check.rank * COUNT, data, COUNT, MPI_DOUBLE, &status));
    CHECK_COUNT(status, MPI_DOUBLE, COUNT);
    CHECK_OK(MPI_File_sync(file));
    check_barrier();
    memset(back, 0, sizeof back);
    CHECK_OK(MPI_File_read_at(file, check.rank * COUNT, back, COUNT, MPI_DOUBLE, &status));
    CHECK_COUNT(status, MPI_DOUBLE, COUNT);
    CHECK(memcmp(data, back, sizeof data) == 0, "%s: reads what it wrote", name);
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

static void swap(unsigned char *bytes, int length) {
    for (int i = 0; i < length / 2; i++) {
        unsigned char kept = bytes[i];
        bytes[i] = bytes[length - 1 - i];
        bytes[length - 1 - i] = kept;
    }
}

/* Numbers in external32 are big-endian, whatever the machine. */
static void external_bytes(void) {
    const char *path = check_path("external");
    MPI_File file = open_file(path);
    int words[3] = {0x01020304, -2, check.rank << 8}, back[3] = {0};
    double number = 1.5 + check.rank;
    short small = 0x0a0b;
    MPI_Offset base = 100 * check.rank;
    CHECK_OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "external32", MPI_INFO_NULL));
    CHECK_OK(MPI_File_write_at(file, base, words, 3, MPI_INT, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_write_at(file, base + 16, &number, 1, MPI_DOUBLE, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_write_at(file, base + 24, &small, 1, MPI_SHORT, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_write_at(file, base + 30, "text", 4, MPI_CHAR, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_sync(file));
    check_barrier();
    unsigned char expected[34] = {0};
    for (int i = 0; i < 3; i++) {
        memcpy(expected + 4 * i, &words[i], 4);
        swap(expected + 4 * i, 4);
    }
    memcpy(expected + 16, &number, 8);
    swap(expected + 16, 8);
    memcpy(expected + 24, &small, 2);
    swap(expected + 24, 2);
    memcpy(expected + 30, "text", 4);
    CHECK_FILE(path, base, expected, 12);
    CHECK_FILE(path, base + 16, expected + 16, 10);
    CHECK_FILE(path, base + 30, expected + 30, 4);
    CHECK_OK(MPI_File_read_at(file, base, back, 3, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(memcmp(words, back, sizeof words) == 0, "%x %x %x", back[0], back[1], back[2]);
    /* Nonblocking, too. */
    MPI_Request request = MPI_REQUEST_NULL;
    memset(back, 0, sizeof back);
    CHECK_OK(MPI_File_iread_at(file, base, back, 3, MPI_INT, &request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(memcmp(words, back, sizeof words) == 0, "%x %x %x", back[0], back[1], back[2]);
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

/* A long has 4 bytes in external32 and 8 here: offsets and extents follow the file's. */
static void external_long(void) {
    enum { COUNT = 10 };
    const char *path = check_path("long");
    MPI_File file = open_file(path);
    MPI_Aint extent = -1;
    MPI_Status status;
    long data[COUNT], back[COUNT] = {0};
    for (int i = 0; i < COUNT; i++) data[i] = -(check.rank * 100 + i);
    CHECK_OK(MPI_File_get_type_extent(file, MPI_LONG, &extent));
    CHECK_EQ(extent, sizeof(long));
    CHECK_OK(MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL));
    CHECK_OK(MPI_File_get_type_extent(file, MPI_LONG, &extent));
    CHECK_EQ(extent, 4);
    CHECK_OK(MPI_File_get_type_extent(file, MPI_DOUBLE, &extent));
    CHECK_EQ(extent, 8);
    CHECK_OK(MPI_File_write_at_all(file, check.rank * COUNT, data, COUNT, MPI_LONG, &status));
    CHECK_COUNT(status, MPI_LONG, COUNT);
    CHECK_OK(MPI_File_sync(file));
    check_barrier();
    MPI_Offset size = -1, byte = -1;
    CHECK_OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, 4 * COUNT * check.size);
    CHECK_OK(MPI_File_get_byte_offset(file, 3, &byte));
    CHECK_EQ(byte, 12);
    unsigned char expected[4];
    int narrow = (int)data[2];
    memcpy(expected, &narrow, 4);
    swap(expected, 4);
    CHECK_FILE(path, 4 * (check.rank * COUNT + 2), expected, 4);
    CHECK_OK(MPI_File_read_at_all(file, check.rank * COUNT, back, COUNT, MPI_LONG, &status));
    CHECK(memcmp(data, back, sizeof data) == 0, "%ld %ld", back[0], back[COUNT - 1]);
    /* With holes: the stride of a vector counts elements of the file. */
    MPI_Datatype every_second;
    MPI_Type_vector(5, 1, 2, MPI_LONG, &every_second);
    MPI_Type_commit(&every_second);
    CHECK_OK(MPI_File_get_type_extent(file, every_second, &extent));
    CHECK_EQ(extent, 4 * 9);
    CHECK_OK(MPI_File_set_view(file, 4 * COUNT * check.rank, MPI_LONG, every_second, "external32", MPI_INFO_NULL));
    CHECK_OK(MPI_File_read_at_all(file, 0, back, 5, MPI_LONG, &status));
    for (int i = 0; i < 5; i++) CHECK_EQ(back[i], data[2 * i]);
    CHECK_OK(MPI_File_close(&file));
    MPI_Type_free(&every_second);
    check_remove(path);
}

/* --- a representation of our own: ints of 8 bytes in the file, each with a tag before its value --- */

typedef struct {
    int reads, writes, extents, fail;
} calls;

static int ints_in(MPI_Datatype type) {
    int size = 0;
    MPI_Type_size(type, &size);
    return size / (int)sizeof(int);
}

static int tagged_extent(MPI_Datatype type, MPI_Aint *extent, void *state) {
    ((calls *)state)->extents++;
    *extent = 8 * ints_in(type);
    return MPI_SUCCESS;
}

static int tagged_write(void *user, MPI_Datatype type, int count, void *filed, MPI_Offset position, void *state) {
    int per = ints_in(type), *from = (int *)user + position * per, *to = filed;
    ((calls *)state)->writes++;
    if (((calls *)state)->fail) return MPI_ERR_CONVERSION;
    for (int i = 0; i < count * per; i++) {
        to[2 * i] = 0x7a67;
        to[2 * i + 1] = from[i];
    }
    return MPI_SUCCESS;
}

static int tagged_read(void *user, MPI_Datatype type, int count, void *filed, MPI_Offset position, void *state) {
    int per = ints_in(type), *to = (int *)user + position * per, *from = filed;
    ((calls *)state)->reads++;
    if (((calls *)state)->fail) return MPI_ERR_CONVERSION;
    for (int i = 0; i < count * per; i++) {
        if (from[2 * i] != 0x7a67) return MPI_ERR_CONVERSION;
        to[i] = from[2 * i + 1];
    }
    return MPI_SUCCESS;
}

static void registered(void) {
    enum { COUNT = 1000 };
    static calls state;
    static char long_name[MPI_MAX_DATAREP_STRING + 10];
    const char *path = check_path("tagged");
    CHECK_OK(MPI_Register_datarep("tagged", tagged_read, tagged_write, tagged_extent, &state));
    CHECK_CLASS(MPI_Register_datarep("tagged", tagged_read, tagged_write, tagged_extent, &state), MPI_ERR_DUP_DATAREP);
    CHECK_CLASS(MPI_Register_datarep("native", tagged_read, tagged_write, tagged_extent, &state), MPI_ERR_DUP_DATAREP);
    CHECK_CLASS(MPI_Register_datarep("external32", tagged_read, tagged_write, tagged_extent, &state), MPI_ERR_DUP_DATAREP);
    memset(long_name, 'x', sizeof long_name - 1);
    CHECK_FAILS(MPI_Register_datarep(long_name, tagged_read, tagged_write, tagged_extent, &state));
    MPI_File file = open_file(path);
    if (!CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "tagged", MPI_INFO_NULL))) {
        MPI_File_close(&file);
        check_remove(path);
        return;
    }
    expect_name(file, "tagged");
    MPI_Aint extent = -1;
    CHECK_OK(MPI_File_get_type_extent(file, MPI_INT, &extent));
    CHECK_EQ(extent, 8);
    int data[COUNT], back[COUNT];
    MPI_Status status;
    for (int collective = 0; collective < 2; collective++) {
        for (int i = 0; i < COUNT; i++) data[i] = check.rank * COUNT + i + collective;
        memset(back, 0, sizeof back);
        if (collective) CHECK_OK(MPI_File_write_at_all(file, check.rank * COUNT, data, COUNT, MPI_INT, &status));
        else CHECK_OK(MPI_File_write_at(file, check.rank * COUNT, data, COUNT, MPI_INT, &status));
        CHECK_COUNT(status, MPI_INT, COUNT);
        CHECK_OK(MPI_File_sync(file));
        check_barrier();
        int expected[2] = {0x7a67, data[7]};
        CHECK_FILE(path, 8LL * (check.rank * COUNT + 7), expected, 8);
        if (collective) CHECK_OK(MPI_File_read_at_all(file, check.rank * COUNT, back, COUNT, MPI_INT, &status));
        else CHECK_OK(MPI_File_read_at(file, check.rank * COUNT, back, COUNT, MPI_INT, &status));
        CHECK_COUNT(status, MPI_INT, COUNT);
        CHECK(memcmp(data, back, sizeof data) == 0, "tagged ints, collective %d", collective);
        check_barrier();
    }
    CHECK(state.reads > 0 && state.writes > 0 && state.extents > 0, "%d %d %d calls", state.reads, state.writes, state.extents);
    CHECK_EQ(check_size(path), 8LL * COUNT * check.size);
    /* A conversion that fails makes the call fail. */
    state.fail = 1;
    CHECK_CLASS(MPI_File_write_at(file, check.rank * COUNT, data, COUNT, MPI_INT, &status), MPI_ERR_CONVERSION);
    CHECK_CLASS(MPI_File_read_at(file, check.rank * COUNT, back, COUNT, MPI_INT, &status), MPI_ERR_CONVERSION);
    CHECK_CLASS(MPI_File_write_at_all(file, check.rank * COUNT, data, COUNT, MPI_INT, &status), MPI_ERR_CONVERSION);
    state.fail = 0;
    CHECK_OK(MPI_File_read_at(file, check.rank * COUNT, back, COUNT, MPI_INT, &status));
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

/* Without functions for reading and writing, only sizes are the program's. */
static void without_functions(void) {
    static calls state;
    const char *path = check_path("plain");
    CHECK_OK(MPI_Register_datarep("plain", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, tagged_extent, &state));
    MPI_File file = open_file(path);
    CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "plain", MPI_INFO_NULL));
    expect_name(file, "plain");
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

/* ROMIO and OMPIO take the standard's names in capitals; ROMIO reports them in small letters. */
static void capitals(void) {
    static const char *const names[][2] = {{"NATIVE", "native"}, {"EXTERNAL32", "external32"}, {"INTERNAL", "internal"}};
    const char *path = check_path("capitals");
    MPI_File file = open_file(path);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, names[i][0], MPI_INFO_NULL));
        expect_name(file, names[i][1]);
    }
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

static void unknown(void) {
    const char *path = check_path("unknown");
    MPI_File file = open_file(path);
    CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "nobody's", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
    expect_name(file, "native");
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

/* A contiguous type whose elements did not matter until now: in another representation they do. */
static void native_first(void) {
    const char *path = check_path("native_first");
    MPI_File file = open_file(path);
    MPI_Datatype pair, copy;
    MPI_Status status;
    int data[4] = {1, 2, 3, check.rank}, back[4] = {0};
    unsigned char expected[sizeof data];
    MPI_Offset mine = (MPI_Offset)sizeof data * check.rank;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_dup(pair, &copy);
    CHECK_OK(MPI_File_write_at(file, mine, data, 2, pair, &status));
    CHECK_COUNT(status, pair, 2);
    CHECK_OK(MPI_File_read_at_all(file, mine, back, 2, copy, &status));
    CHECK_COUNT(status, MPI_INT, 4);
    CHECK(memcmp(data, back, sizeof data) == 0, "%d %d", back[0], back[3]);
    CHECK_FILE(path, mine, data, sizeof data);
    CHECK_OK(MPI_File_set_view(file, mine, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
    CHECK_OK(MPI_File_write_at(file, 0, data, 1, pair, &status));
    CHECK_OK(MPI_File_write_at_all(file, 2, data + 2, 1, copy, &status));
    CHECK_COUNT(status, copy, 1);
    CHECK_OK(MPI_File_sync(file));
    memcpy(expected, data, sizeof data);
    for (int i = 0; i < 4; i++) swap(expected + 4 * i, 4);
    CHECK_FILE(path, mine, expected, sizeof expected);
    memset(back, 0, sizeof back);
    CHECK_OK(MPI_File_read_at(file, 0, back, 2, copy, &status));
    CHECK(memcmp(data, back, sizeof data) == 0, "%d %d", back[0], back[3]);
    MPI_Type_free(&pair);
    MPI_Type_free(&copy);
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    native_first();
    round_trip("native");
    unknown();
    capitals();
    external_bytes();
    external_long();
    round_trip("external32");
    round_trip("internal");
    registered();
    without_functions();
    return check_end();
}
