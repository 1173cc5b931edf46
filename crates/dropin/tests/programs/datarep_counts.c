/* ranks: 1 2 3 4 7
 * Data representations with functions for large counts, registered by MPI_Register_datarep_c: the
 * counts and positions that the functions are given, through views and buffers with holes, what
 * they return, and names. Headers may lack the function, so it is looked up at run time.
 */
#include "check.h"

typedef int conversion_form(void *, MPI_Datatype, MPI_Count, void *, MPI_Offset, void *);
typedef int register_form(const char *, conversion_form *, conversion_form *, MPI_Datarep_extent_function *, void *);
typedef int access_form(MPI_File, MPI_Offset, void *, MPI_Count, MPI_Datatype, MPI_Status *);

/* A rank's view has BLOCK integers of every BLOCK times the number of ranks; its buffer with holes
 * has every second one, in tiles without a gap between them. */
enum { BLOCK = 5, BLOCKS = 400, ITEMS = BLOCK * BLOCKS, PER_TILE = 4, SPAN = 2 * PER_TILE - 1, TILES = ITEMS / PER_TILE };

/* What every function is given as its state. */
typedef struct {
    int extents, reads, writes, unexpected, answer;
    /* How often each item was converted. */
    int seen[ITEMS];
} record;

static record doubled_record;
static register_form *register_c;
static MPI_File file;

/* Checked from a function that may be called by any thread, so nothing is printed there. */
static void expect(record *state, int condition) {
    if (!condition) __atomic_add_fetch(&state->unexpected, 1, __ATOMIC_RELAXED);
}

static int has_holes(MPI_Datatype type) { return type != MPI_INT; }

static MPI_Offset place_of(MPI_Datatype type, MPI_Offset item) {
    return has_holes(type) ? item / PER_TILE * SPAN + item % PER_TILE * 2 : item;
}

static void note(record *state, MPI_Datatype type, MPI_Count count, MPI_Offset position) {
    MPI_Aint lower = -1, extent = -1;
    MPI_Type_get_extent(type, &lower, &extent);
    expect(state, lower == 0 && extent == (MPI_Aint)sizeof(int) * (has_holes(type) ? SPAN : 1));
    expect(state, state == &doubled_record);
    expect(state, count > 0 && position >= 0 && position + count <= ITEMS);
    for (MPI_Offset i = position; i < position + count && i < ITEMS; i++)
        __atomic_add_fetch(&state->seen[i], 1, __ATOMIC_RELAXED);
}

/* In the file an integer is followed by its complement. */
static int doubled_write(void *user, MPI_Datatype type, MPI_Count count, void *filed, MPI_Offset position, void *state) {
    int *from = user, *to = filed;
    note(state, type, count, position);
    __atomic_add_fetch(&((record *)state)->writes, 1, __ATOMIC_RELAXED);
    if (((record *)state)->answer != MPI_SUCCESS) return ((record *)state)->answer;
    for (MPI_Count i = 0; i < count; i++) {
        to[2 * i] = from[place_of(type, position + i)];
        to[2 * i + 1] = ~to[2 * i];
    }
    return MPI_SUCCESS;
}

static int doubled_read(void *user, MPI_Datatype type, MPI_Count count, void *filed, MPI_Offset position, void *state) {
    int *to = user, *from = filed;
    note(state, type, count, position);
    __atomic_add_fetch(&((record *)state)->reads, 1, __ATOMIC_RELAXED);
    if (((record *)state)->answer != MPI_SUCCESS) return ((record *)state)->answer;
    for (MPI_Count i = 0; i < count; i++) {
        expect(state, from[2 * i + 1] == ~from[2 * i]);
        to[place_of(type, position + i)] = from[2 * i];
    }
    return MPI_SUCCESS;
}

static int doubled_extent(MPI_Datatype type, MPI_Aint *extent, void *state) {
    int size = 0;
    __atomic_add_fetch(&((record *)state)->extents, 1, __ATOMIC_RELAXED);
    MPI_Type_size(type, &size);
    *extent = 2 * size;
    return MPI_SUCCESS;
}

static int native_extent(MPI_Datatype type, MPI_Aint *extent, void *state) {
    int size = 0;
    (void)state;
    MPI_Type_size(type, &size);
    *extent = size;
    return MPI_SUCCESS;
}

static int no_extent(MPI_Datatype type, MPI_Aint *extent, void *state) {
    (void)type, (void)state;
    *extent = 1;
    return MPI_ERR_OTHER;
}

static void fresh(void) { memset(&doubled_record, 0, sizeof doubled_record); }

/* Each of the first `items` was converted once, no other was, and nothing was odd. */
static void expect_items(const char *what, int items) {
    int wrong = 0;
    for (int i = 0; i < ITEMS; i++) wrong += doubled_record.seen[i] != (i < items);
    CHECK(wrong == 0, "%s: %d items were not converted once", what, wrong);
    CHECK(doubled_record.unexpected == 0, "%s: %d odd arguments", what, doubled_record.unexpected);
}

static int register_doubled(const char *name) { return register_c(name, doubled_read, doubled_write, doubled_extent, &doubled_record); }

static void names(void) {
    static char longest[MPI_MAX_DATAREP_STRING], too_long[MPI_MAX_DATAREP_STRING + 1];
    register_form *profiled = NULL;
    *(void **)&profiled = check_symbol("PMPI_Register_datarep_c");
    CHECK_OK(register_doubled("doubled"));
    CHECK_CLASS(register_doubled("doubled"), MPI_ERR_DUP_DATAREP);
    CHECK_CLASS(register_doubled("native"), MPI_ERR_DUP_DATAREP);
    CHECK_CLASS(register_doubled("internal"), MPI_ERR_DUP_DATAREP);
    CHECK_CLASS(register_doubled("external32"), MPI_ERR_DUP_DATAREP);
    /* Names are those of both forms. */
    CHECK_CLASS(MPI_Register_datarep("doubled", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, doubled_extent, NULL), MPI_ERR_DUP_DATAREP);
    CHECK_OK(MPI_Register_datarep("small", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, native_extent, NULL));
    CHECK_CLASS(register_doubled("small"), MPI_ERR_DUP_DATAREP);
    if (profiled) {
        CHECK_OK(profiled("profiled", NULL, NULL, native_extent, NULL));
        CHECK_CLASS(register_doubled("profiled"), MPI_ERR_DUP_DATAREP);
    }
    /* The length of names includes the zero at the end. */
    memset(longest, 'l', sizeof longest - 1);
    memset(too_long, 't', sizeof too_long - 1);
    CHECK_OK(register_doubled(longest));
    CHECK_FAILS(register_doubled(too_long));
    CHECK_FAILS(register_doubled(""));
    CHECK_FAILS(register_c("no extents", doubled_read, doubled_write, NULL, &doubled_record));
    CHECK_EQ(doubled_record.reads + doubled_record.writes, 0);
    char name[MPI_MAX_DATAREP_STRING] = "";
    MPI_Offset displacement;
    MPI_Datatype etype, filetype;
    CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, longest, MPI_INFO_NULL));
    CHECK_OK(MPI_File_get_view(file, &displacement, &etype, &filetype, name));
    CHECK(strcmp(name, longest) == 0, "%s", name);
    CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, too_long, MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP, MPI_ERR_ARG);
}

static void view(const char *representation) {
    MPI_Datatype blocks;
    int all[1] = {BLOCK * check.size}, mine[1] = {BLOCK}, start[1] = {BLOCK * check.rank};
    MPI_Type_create_subarray(1, all, mine, start, MPI_ORDER_C, MPI_INT, &blocks);
    MPI_Type_commit(&blocks);
    CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, blocks, representation, MPI_INFO_NULL));
    MPI_Type_free(&blocks);
}

static long long file_item(int item) { return ((long long)(item / BLOCK) * check.size + check.rank) * BLOCK + item % BLOCK; }

enum call { INDEPENDENT, COLLECTIVE, NONBLOCKING, NONBLOCKING_COLLECTIVE, SPLIT, LARGE, CALLS };
static const char *const call_names[CALLS] = {"independent", "collective", "nonblocking", "nonblocking collective", "split", "large"};

static void move(enum call call, int is_write, MPI_Offset at, int *data, int count, MPI_Datatype type, int items) {
    MPI_Status status;
    MPI_Request request = MPI_REQUEST_NULL;
    access_form *large = NULL;
    switch (call) {
    case INDEPENDENT:
        CHECK_OK(is_write ? MPI_File_write_at(file, at, data, count, type, &status) : MPI_File_read_at(file, at, data, count, type, &status));
        break;
    case COLLECTIVE:
        CHECK_OK(is_write ? MPI_File_write_at_all(file, at, data, count, type, &status) : MPI_File_read_at_all(file, at, data, count, type, &status));
        break;
    case NONBLOCKING:
        CHECK_OK(is_write ? MPI_File_iwrite_at(file, at, data, count, type, &request) : MPI_File_iread_at(file, at, data, count, type, &request));
        break;
    case NONBLOCKING_COLLECTIVE:
        CHECK_OK(is_write ? MPI_File_iwrite_at_all(file, at, data, count, type, &request) : MPI_File_iread_at_all(file, at, data, count, type, &request));
        break;
    case SPLIT:
        CHECK_OK(is_write ? MPI_File_write_at_all_begin(file, at, data, count, type) : MPI_File_read_at_all_begin(file, at, data, count, type));
        CHECK_OK(is_write ? MPI_File_write_at_all_end(file, data, &status) : MPI_File_read_at_all_end(file, data, &status));
        break;
    default:
        *(void **)&large = check_symbol(is_write ? "MPI_File_write_at_all_c" : "MPI_File_read_at_all_c");
        if (!large) return;
        CHECK_OK(large(file, at, data, count, type, &status));
    }
    if (request != MPI_REQUEST_NULL) CHECK_OK(MPI_Wait(&request, &status));
    CHECK_COUNT(status, MPI_INT, items);
}

/* Writes and reads through the view; the file holds what the functions made. */
static void trip(enum call call, MPI_Datatype type) {
    static int data[TILES * SPAN], back[TILES * SPAN];
    enum { PART = ITEMS / 2, AT = 7 * BLOCK };
    int count = has_holes(type) ? TILES : ITEMS, different = 0;
    const char *what = call_names[call];
    for (int i = 0; i < TILES * SPAN; i++) data[i] = (int)call << 24 | check.rank << 20 | i;
    fresh();
    move(call, 1, 0, data, count, type, ITEMS);
    expect_items(what, ITEMS);
    CHECK(doubled_record.writes > 0, "%s", what);
    CHECK_OK(MPI_File_sync(file));
    check_barrier();
    for (int item = 0; item < ITEMS; item += ITEMS / 3) {
        int value = data[place_of(type, item)], expected[2] = {value, ~value};
        CHECK_FILE(check_path("data"), file_item(item) * (long long)sizeof expected, expected, sizeof expected);
    }
    memset(back, 0, sizeof back);
    fresh();
    move(call, 0, 0, back, count, type, ITEMS);
    expect_items(what, ITEMS);
    CHECK(doubled_record.reads > 0 && doubled_record.writes == 0, "%s", what);
    for (int i = 0; i < ITEMS; i++) different += back[place_of(type, i)] != data[place_of(type, i)];
    CHECK(different == 0, "%s: %d items differ", what, different);
    if (has_holes(type)) CHECK_EQ(back[1], 0);
    /* Positions are those in the buffer, wherever in the file the data are. */
    fresh();
    move(call, 0, AT, back, PART / (has_holes(type) ? PER_TILE : 1), type, PART);
    expect_items(what, PART);
    different = 0;
    for (int i = 0; i < PART; i++) different += back[place_of(type, i)] != data[place_of(type, i + AT)];
    CHECK(different == 0, "%s: %d items of a part differ", what, different);
    /* What lies beyond the end of the file is not converted. */
    fresh();
    move(call, 0, AT, back, count, type, ITEMS - AT);
    expect_items(what, ITEMS - AT);
    check_barrier();
}

static void trips(void) {
    MPI_Datatype holes;
    MPI_Type_vector(PER_TILE, 1, 2, MPI_INT, &holes);
    MPI_Type_commit(&holes);
    view("doubled");
    CHECK(doubled_record.extents > 0, "the extents were asked for");
    for (enum call call = 0; call < CALLS; call++) {
        trip(call, MPI_INT);
        trip(call, holes);
    }
    CHECK_EQ(check_size(check_path("data")), 2LL * sizeof(int) * ITEMS * check.size);
    MPI_Type_free(&holes);
}

/* Whatever a function returns but success is an error of conversion, of the call or its request. */
static void failures(void) {
    int data[ITEMS] = {0}, class = 0, code = 0;
    MPI_Status status;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    const int answers[] = {MPI_ERR_OTHER, MPI_ERR_CONVERSION, MPI_ERR_NO_SPACE, code};
    view("doubled");
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        fresh();
        doubled_record.answer = answers[i];
        CHECK_CLASS(MPI_File_write_at(file, 0, data, ITEMS, MPI_INT, &status), MPI_ERR_CONVERSION);
        CHECK_CLASS(MPI_File_read_at(file, 0, data, ITEMS, MPI_INT, &status), MPI_ERR_CONVERSION);
        CHECK_CLASS(MPI_File_write_at_all(file, 0, data, ITEMS, MPI_INT, &status), MPI_ERR_CONVERSION);
        CHECK_CLASS(MPI_File_read_at_all(file, 0, data, ITEMS, MPI_INT, &status), MPI_ERR_CONVERSION);
        CHECK_OK(MPI_File_iread_at(file, 0, data, ITEMS, MPI_INT, &request));
        CHECK_CLASS(MPI_Wait(&request, &status), MPI_ERR_CONVERSION);
        CHECK_OK(MPI_File_iwrite_at_all(file, 0, data, ITEMS, MPI_INT, &request));
        CHECK_CLASS(MPI_Wait(&request, &status), MPI_ERR_CONVERSION);
        check_barrier();
    }
    /* One rank's alone: the others' calls end, too. */
    fresh();
    if (check.rank == 0) doubled_record.answer = MPI_ERR_OTHER;
    int outcome = MPI_File_write_at_all(file, 0, data, ITEMS, MPI_INT, &status);
    if (check.rank == 0) CHECK_CLASS(outcome, MPI_ERR_CONVERSION);
    check_barrier();
    fresh();
    CHECK_OK(MPI_File_write_at_all(file, 0, data, ITEMS, MPI_INT, &status));
    expect_items("after failures", ITEMS);
    CHECK_OK(register_c("no sizes", doubled_read, doubled_write, no_extent, NULL));
    CHECK_FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "no sizes", MPI_INFO_NULL));
}

/* Without functions the bytes in the file are those in memory. */
static void without_functions(void) {
    int data[ITEMS], back[ITEMS] = {0};
    for (int i = 0; i < ITEMS; i++) data[i] = check.rank << 16 | i;
    CHECK_OK(register_c("as it is", NULL, NULL, native_extent, NULL));
    view("as it is");
    CHECK_OK(MPI_File_write_at_all(file, 0, data, ITEMS, MPI_INT, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_sync(file));
    check_barrier();
    CHECK_FILE(check_path("data"), file_item(BLOCK) * (long long)sizeof(int), data + BLOCK, BLOCK * sizeof(int));
    CHECK_OK(MPI_File_read_at_all(file, 0, back, ITEMS, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(memcmp(data, back, sizeof data) == 0, "%d %d", back[0], back[ITEMS - 1]);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    *(void **)&register_c = check_symbol("MPI_Register_datarep_c");
    check_remove(check_path("data"));
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, check_path("data"), MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    if (register_c) {
        names();
        trips();
        failures();
        without_functions();
    }
    CHECK_OK(MPI_File_close(&file));
    check_remove(check_path("data"));
    return check_end();
}
