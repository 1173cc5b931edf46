/* ranks: 1 2 3 4 7
 * Conversion functions see the datatype that the program passed, or one like it, and positions in it:
 * in blocking, collective and nonblocking calls, and when the program has freed its datatype meanwhile.
 */
#include "check.h"

/* A vector of BLOCKS integers, every second one; its tiles follow each other without a gap. */
enum { BLOCKS = 4, STRIDE = 2, SPAN = (BLOCKS - 1) * STRIDE + 1, TILES = 50000, INTEGERS = BLOCKS * TILES };

static long through_vector, unexpected;

static long long place_of(long long item) { return item / BLOCKS * SPAN + item % BLOCKS * STRIDE; }

static int is_vector(MPI_Datatype type) {
    int integers, addresses, types, combiner;
    MPI_Aint lower, extent;
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    if (combiner == MPI_COMBINER_NAMED) {
        if (type != MPI_INT) unexpected++;
        return 0;
    }
    MPI_Type_get_extent(type, &lower, &extent);
    if (lower != 0 || extent != (MPI_Aint)(SPAN * sizeof(int))) unexpected++;
    return 1;
}

static int invert_out(void *user, MPI_Datatype type, int count, void *filed, MPI_Offset position, void *state) {
    int *from = user, *to = filed, vector = is_vector(type);
    if (vector) through_vector += count;
    for (int i = 0; i < count; i++) to[i] = ~from[vector ? place_of(position + i) : position + i];
    return state == &unexpected ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static int invert_in(void *user, MPI_Datatype type, int count, void *filed, MPI_Offset position, void *state) {
    int *to = user, *from = filed, vector = is_vector(type);
    if (vector) through_vector += count;
    for (int i = 0; i < count; i++) to[vector ? place_of(position + i) : position + i] = ~from[i];
    return state == &unexpected ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static int refuse(void *user, MPI_Datatype type, int count, void *filed, MPI_Offset position, void *state) {
    (void)user, (void)type, (void)count, (void)filed, (void)position, (void)state;
    return MPI_ERR_OTHER;
}

static int extent_of(MPI_Datatype type, MPI_Aint *extent, void *state) {
    int size;
    (void)state;
    MPI_Type_size(type, &size);
    *extent = size;
    return MPI_SUCCESS;
}

static MPI_Datatype vector(void) {
    MPI_Datatype type;
    MPI_Type_vector(BLOCKS, 1, STRIDE, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

static void view(MPI_File file, const char *representation) {
    MPI_Offset mine = (MPI_Offset)sizeof(int) * INTEGERS * check.rank;
    CHECK_OK(MPI_File_set_view(file, mine, MPI_INT, MPI_INT, representation, MPI_INFO_NULL));
}

enum call { INDEPENDENT, COLLECTIVE, NONBLOCKING, NONBLOCKING_COLLECTIVE, CALLS };

static void write_tiles(MPI_File file, enum call call, const int *data) {
    MPI_Datatype type = vector();
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    if (call == INDEPENDENT) CHECK_OK(MPI_File_write_at(file, 0, data, TILES, type, &status));
    if (call == COLLECTIVE) CHECK_OK(MPI_File_write_at_all(file, 0, data, TILES, type, &status));
    if (call == NONBLOCKING) CHECK_OK(MPI_File_iwrite_at(file, 0, data, TILES, type, &request));
    if (call == NONBLOCKING_COLLECTIVE) CHECK_OK(MPI_File_iwrite_at_all(file, 0, data, TILES, type, &request));
    MPI_Type_free(&type);
    if (request != MPI_REQUEST_NULL) CHECK_OK(MPI_Wait(&request, &status));
    CHECK_COUNT(status, MPI_INT, INTEGERS);
}

static void read_tiles(MPI_File file, enum call call, int *data) {
    MPI_Datatype type = vector();
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    memset(data, 0, TILES * SPAN * sizeof *data);
    if (call == INDEPENDENT) CHECK_OK(MPI_File_read_at(file, 0, data, TILES, type, &status));
    if (call == COLLECTIVE) CHECK_OK(MPI_File_read_at_all(file, 0, data, TILES, type, &status));
    if (call == NONBLOCKING) CHECK_OK(MPI_File_iread_at(file, 0, data, TILES, type, &request));
    if (call == NONBLOCKING_COLLECTIVE) CHECK_OK(MPI_File_iread_at_all(file, 0, data, TILES, type, &request));
    MPI_Type_free(&type);
    if (request != MPI_REQUEST_NULL) CHECK_OK(MPI_Wait(&request, &status));
    CHECK_COUNT(status, MPI_INT, INTEGERS);
}

static void tiles(MPI_File file) {
    int *data = calloc(TILES * SPAN, sizeof *data), *back = calloc(TILES * SPAN, sizeof *back);
    for (enum call call = 0; call < CALLS; call++) {
        long different = 0, uninverted = 0;
        for (int i = 0; i < TILES * SPAN; i++) data[i] = i * 3 + check.rank + (int)call;
        view(file, "inverted");
        write_tiles(file, call, data);
        through_vector = 0;
        read_tiles(file, call, back);
        CHECK_EQ(through_vector, INTEGERS);
        for (int i = 0; i < INTEGERS; i++) different += back[place_of(i)] != data[place_of(i)];
        CHECK_EQ(different, 0);
        CHECK_EQ(back[1], 0);
        view(file, "native");
        CHECK_OK(MPI_File_read_at_all(file, 0, back, INTEGERS, MPI_INT, MPI_STATUS_IGNORE));
        for (int i = 0; i < INTEGERS; i++) uninverted += back[i] != ~data[place_of(i)];
        CHECK_EQ(uninverted, 0);
    }
    CHECK_EQ(unexpected, 0);
    free(data);
    free(back);
}

/* What a conversion function returns becomes an error of the call, or of its request. */
static void refused(MPI_File file) {
    int data[4] = {0};
    MPI_Request request;
    MPI_Status status;
    view(file, "refused");
    CHECK_CLASS(MPI_File_write_at(file, 0, data, 4, MPI_INT, &status), MPI_ERR_CONVERSION);
    CHECK_CLASS(MPI_File_read_at_all(file, 0, data, 4, MPI_INT, &status), MPI_ERR_CONVERSION);
    CHECK_OK(MPI_File_iwrite_at(file, 0, data, 4, MPI_INT, &request));
    CHECK_CLASS(MPI_Wait(&request, &status), MPI_ERR_CONVERSION);
}

int main(int argc, char **argv) {
    MPI_File file;
    check_begin(argc, argv);
    CHECK_OK(MPI_Register_datarep("inverted", invert_in, invert_out, extent_of, &unexpected));
    CHECK_OK(MPI_Register_datarep("refused", refuse, refuse, extent_of, NULL));
    check_remove(check_path("tiles"));
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, check_path("tiles"), MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    tiles(file);
    refused(file);
    CHECK_OK(MPI_File_close(&file));
    return check_end();
}
