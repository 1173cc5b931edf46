/* ranks: 1 2 3 4 7
 * Every datatype constructor as a filetype and as a memory type.  Each is described twice: by its
 * constructor, and as a list of the bytes it stands for, made with plain loops.
 */
#include "check.h"

enum { PIECES = 512, SPAN = 4096, TILES = 2 };

/* The bytes of one item: offsets in the order of the type map, and the extent. */
typedef struct {
    const char *name;
    MPI_Datatype type, element;
    int pieces, bytes;
    int offset[PIECES], length[PIECES];
    long extent;
    int file; /* may be a filetype: nothing negative, nothing going down */
} shape;

static void piece(shape *to, int offset, int length) {
    to->offset[to->pieces] = offset;
    to->length[to->pieces++] = length;
    to->bytes += length;
}

static shape start(const char *name, MPI_Datatype element) {
    shape made;
    memset(&made, 0, sizeof made);
    made.name = name;
    made.element = element;
    made.file = 1;
    return made;
}

static shape finish(shape *made) {
    MPI_Aint low, extent;
    MPI_Type_commit(&made->type);
    MPI_Type_get_extent(made->type, &low, &extent);
    made->extent = extent;
    int size;
    MPI_Type_size(made->type, &size);
    CHECK(size == made->bytes, "%s: %d bytes by the constructor, %d by the list", made->name, size, made->bytes);
    return *made;
}

static shape vector(void) {
    shape to = start("vector", MPI_INT);
    MPI_Type_vector(4, 2, 5, MPI_INT, &to.type);
    for (int i = 0; i < 4; i++) piece(&to, i * 20, 8);
    return finish(&to);
}

static shape hvector(void) {
    shape to = start("hvector", MPI_SHORT);
    MPI_Type_create_hvector(5, 3, 10, MPI_SHORT, &to.type);
    for (int i = 0; i < 5; i++) piece(&to, i * 10, 6);
    return finish(&to);
}

static shape nested_vector(void) {
    shape to = start("vector of vectors", MPI_INT);
    MPI_Datatype inner;
    MPI_Type_vector(3, 1, 2, MPI_INT, &inner);
    MPI_Type_create_hvector(4, 1, 40, inner, &to.type);
    MPI_Type_free(&inner);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 3; j++) piece(&to, i * 40 + j * 8, 4);
    return finish(&to);
}

static shape indexed(void) {
    shape to = start("indexed", MPI_INT);
    int lengths[] = {1, 0, 3, 2}, places[] = {1, 2, 4, 9};
    MPI_Type_indexed(4, lengths, places, MPI_INT, &to.type);
    for (int i = 0; i < 4; i++)
        if (lengths[i]) piece(&to, places[i] * 4, lengths[i] * 4);
    return finish(&to);
}

static shape hindexed(void) {
    shape to = start("hindexed", MPI_BYTE);
    int lengths[] = {3, 1, 7};
    MPI_Aint places[] = {2, 8, 11};
    MPI_Type_create_hindexed(3, lengths, places, MPI_BYTE, &to.type);
    for (int i = 0; i < 3; i++) piece(&to, (int)places[i], lengths[i]);
    return finish(&to);
}

static shape blocks(void) {
    shape to = start("indexed_block", MPI_DOUBLE);
    int places[] = {0, 3, 8, 10};
    MPI_Type_create_indexed_block(4, 2, places, MPI_DOUBLE, &to.type);
    for (int i = 0; i < 4; i++) piece(&to, places[i] * 8, 16);
    return finish(&to);
}

static shape hblocks(void) {
    shape to = start("hindexed_block", MPI_BYTE);
    MPI_Aint places[] = {1, 6, 20};
    MPI_Type_create_hindexed_block(3, 4, places, MPI_BYTE, &to.type);
    for (int i = 0; i < 3; i++) piece(&to, (int)places[i], 4);
    return finish(&to);
}

static shape structure(void) {
    shape to = start("struct", MPI_BYTE);
    MPI_Datatype pair, types[3] = {MPI_INT, MPI_DATATYPE_NULL, MPI_DOUBLE};
    MPI_Type_vector(2, 1, 2, MPI_SHORT, &pair);
    types[1] = pair;
    MPI_Type_create_struct(3, (int[]){2, 1, 3}, (MPI_Aint[]){4, 16, 32}, types, &to.type);
    MPI_Type_free(&pair);
    piece(&to, 4, 8);
    piece(&to, 16, 2);
    piece(&to, 20, 2);
    piece(&to, 32, 24);
    return finish(&to);
}

static shape subarray(const char *name, int order) {
    shape to = start(name, MPI_INT);
    int sizes[3] = {4, 5, 6}, parts[3] = {2, 3, 4}, starts[3] = {1, 2, 1};
    MPI_Type_create_subarray(3, sizes, parts, starts, order, MPI_INT, &to.type);
    int slow = order == MPI_ORDER_C ? 0 : 2, fast = 2 - slow;
    for (int i = 0; i < parts[slow]; i++)
        for (int j = 0; j < parts[1]; j++)
            for (int k = 0; k < parts[fast]; k++)
                piece(&to, 4 * (((starts[slow] + i) * sizes[1] + starts[1] + j) * sizes[fast] + starts[fast] + k), 4);
    return finish(&to);
}

/* Which process of a dimension has an index: blocks, or blocks dealt in turn. */
static int owner(int index, int size, int processes, int distribution, int block) {
    if (distribution == MPI_DISTRIBUTE_BLOCK) return index / (block < 0 ? (size + processes - 1) / processes : block);
    return index / block % processes;
}

static shape darray(const char *name, int order, const int *distribution, const int *block) {
    shape to = start(name, MPI_SHORT);
    int sizes[2] = {10, 7}, processes[2] = {0, 0}, arguments[2], place[2];
    MPI_Dims_create(check.size, 2, processes);
    place[0] = check.rank / processes[1]; /* ranks are laid out in C order, whatever the order of the array */
    place[1] = check.rank % processes[1];
    for (int i = 0; i < 2; i++) arguments[i] = block[i] < 0 ? MPI_DISTRIBUTE_DFLT_DARG : block[i];
    MPI_Type_create_darray(check.size, check.rank, 2, sizes, distribution, arguments, processes, order, MPI_SHORT, &to.type);
    int slow = order == MPI_ORDER_C ? 0 : 1, fast = 1 - slow;
    for (int i = 0; i < sizes[slow]; i++)
        for (int j = 0; j < sizes[fast]; j++)
            if (owner(i, sizes[slow], processes[slow], distribution[slow], block[slow]) == place[slow] &&
                owner(j, sizes[fast], processes[fast], distribution[fast], block[fast]) == place[fast])
                piece(&to, 2 * (i * sizes[fast] + j), 2);
    return finish(&to);
}

static shape resized(const char *name, MPI_Aint low, MPI_Aint extent) {
    shape to = start(name, MPI_INT);
    MPI_Datatype inner;
    MPI_Type_vector(2, 1, 3, MPI_INT, &inner);
    MPI_Type_create_resized(inner, low, extent, &to.type);
    MPI_Type_free(&inner);
    piece(&to, 0, 4);
    piece(&to, 12, 4);
    return finish(&to);
}

static shape duplicate(void) {
    shape to = start("dup of contiguous of resized", MPI_INT);
    MPI_Datatype wide, three;
    MPI_Type_create_resized(MPI_INT, 0, 12, &wide);
    MPI_Type_contiguous(3, wide, &three);
    MPI_Type_dup(three, &to.type);
    MPI_Type_free(&wide);
    MPI_Type_free(&three);
    for (int i = 0; i < 3; i++) piece(&to, i * 12, 4);
    return finish(&to);
}

static shape nested_contiguous(void) {
    shape to = start("contiguous of dup of contiguous", MPI_INT);
    MPI_Datatype three, same;
    MPI_Type_contiguous(3, MPI_INT, &three);
    MPI_Type_dup(three, &same);
    MPI_Type_contiguous(5, same, &to.type);
    MPI_Type_free(&three);
    MPI_Type_free(&same);
    piece(&to, 0, 60);
    return finish(&to);
}

/* Memory only: as long as its extent, but not in order, or with a gap in each element. */
static shape contiguous_of_swapped(void) {
    shape to = start("contiguous of swapped integers", MPI_INT);
    MPI_Datatype swapped;
    MPI_Type_create_indexed_block(2, 1, (int[]){1, 0}, MPI_INT, &swapped);
    MPI_Type_contiguous(3, swapped, &to.type);
    MPI_Type_free(&swapped);
    for (int i = 0; i < 6; i++) piece(&to, (i ^ 1) * 4, 4);
    to.file = 0;
    return finish(&to);
}

static shape contiguous_of_pairs(void) {
    shape to = start("contiguous of short and int", MPI_SHORT_INT);
    MPI_Type_contiguous(3, MPI_SHORT_INT, &to.type);
    for (int i = 0; i < 3; i++) {
        piece(&to, i * 8, 2);
        piece(&to, i * 8 + 4, 4);
    }
    to.file = 0;
    return finish(&to);
}

/* Memory only: pieces in any order, before the buffer's address, too. */
static shape backwards(void) {
    shape to = start("indexed backwards", MPI_INT);
    int places[] = {9, 2, -3, 5};
    MPI_Type_create_indexed_block(4, 1, places, MPI_INT, &to.type);
    for (int i = 0; i < 4; i++) piece(&to, places[i] * 4, 4);
    to.file = 0;
    return finish(&to);
}

static shape reversed_vector(void) {
    shape to = start("vector with a negative stride", MPI_SHORT);
    MPI_Type_vector(4, 1, -3, MPI_SHORT, &to.type);
    for (int i = 0; i < 4; i++) piece(&to, -6 * i, 2);
    to.file = 0;
    return finish(&to);
}

/* The k-th byte of `tiles` items of a shape. */
static long place_of(const shape *of, int k) {
    long tile = k / of->bytes;
    int rest = k % of->bytes, i = 0;
    while (rest >= of->length[i]) rest -= of->length[i++];
    return tile * of->extent + of->offset[i] + rest;
}

static void write_and_read(MPI_File file, int collective, MPI_Offset at, void *buffer, int count, MPI_Datatype type, int reading) {
    MPI_Status status;
    int code;
    if (reading) code = collective ? MPI_File_read_at_all(file, at, buffer, count, type, &status)
                                   : MPI_File_read_at(file, at, buffer, count, type, &status);
    else code = collective ? MPI_File_write_at_all(file, at, buffer, count, type, &status)
                           : MPI_File_write_at(file, at, buffer, count, type, &status);
    CHECK_OK(code);
    int size;
    MPI_Type_size(type, &size);
    CHECK_COUNT(status, type, size ? count : 0); /* items of no size count as none */
}

/* Each rank has a region of the file, filled with a background that must survive in the holes. */
static void as_filetype(const shape *shape, int collective) {
    const char *path = check_path("file");
    long region = shape->extent * TILES + 64;
    long widest;
    MPI_Allreduce(&region, &widest, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    check_make_shared(path, (size_t)(widest * check.size), 1);
    MPI_File file;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_set_view(file, widest * check.rank + 8, shape->element, shape->type, "native", MPI_INFO_NULL));
    int element, bytes = shape->bytes * TILES;
    MPI_Type_size(shape->element, &element);
    unsigned char *data = malloc((size_t)bytes + 1), *back = malloc((size_t)bytes + 1), *expected = malloc((size_t)widest);
    check_fill(data, 0, (size_t)bytes, 50 + check.rank);
    check_fill(expected, widest * check.rank, (size_t)widest, 1);
    /* The first element is left out, to start within a tile. */
    int first = bytes > element ? 1 : 0, count = bytes / element - first;
    if (bytes == 0) count = 0;
    for (int k = first * element; k < bytes; k++) expected[8 + place_of(shape, k)] = data[k];
    write_and_read(file, collective, first, data + first * element, count, shape->element, 0);
    CHECK_OK(MPI_File_sync(file));
    check_barrier();
    memset(back, 0, (size_t)bytes);
    write_and_read(file, collective, first, back + first * element, count, shape->element, 1);
    CHECK(memcmp(back + first * element, data + first * element, (size_t)count * (size_t)element) == 0,
          "%s, collective %d: reads back what was written", shape->name, collective);
    CHECK_OK(MPI_File_close(&file));
    if (!CHECK_FILE(path, widest * check.rank, expected, (size_t)widest)) printf("     as filetype: %s\n", shape->name);
    free(data);
    free(back);
    free(expected);
    check_remove(path);
}

static void as_memory(const shape *shape, int collective) {
    const char *path = check_path("memory");
    int bytes = shape->bytes * TILES;
    unsigned char memory[SPAN], *origin = memory + SPAN / 2, packed[SPAN], back[SPAN], *landing = back + SPAN / 2;
    check_fill(memory, 0, SPAN, 60 + check.rank);
    for (int k = 0; k < bytes; k++) packed[k] = origin[place_of(shape, k)];
    check_remove(path);
    MPI_File file;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    MPI_Offset at = (MPI_Offset)SPAN * check.rank;
    write_and_read(file, collective, at, origin, TILES, shape->type, 0);
    CHECK_OK(MPI_File_sync(file));
    check_barrier();
    if (bytes && !CHECK_FILE(path, at, packed, (size_t)bytes)) printf("     from memory: %s\n", shape->name);
    memset(back, 0x5a, SPAN);
    write_and_read(file, collective, at, landing, TILES, shape->type, 1);
    unsigned char wanted[SPAN];
    memset(wanted, 0x5a, SPAN);
    for (int k = 0; k < bytes; k++) wanted[SPAN / 2 + place_of(shape, k)] = packed[k];
    CHECK(memcmp(wanted, back, SPAN) == 0, "%s, collective %d: the pieces land, the gaps stay", shape->name, collective);
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

/* Addresses in the type, none in the call. */
static void from_bottom(void) {
    const char *path = check_own_path("bottom");
    int here[3] = {1, 2, 3}, there[2] = {4, 5}, wanted[5] = {1, 2, 3, 4, 5};
    MPI_Aint places[2];
    MPI_Get_address(here, &places[0]);
    MPI_Get_address(there, &places[1]);
    MPI_Datatype type;
    MPI_Type_create_hindexed(2, (int[]){3, 2}, places, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_File file;
    MPI_Status status;
    CHECK_OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_write(file, MPI_BOTTOM, 1, type, &status));
    CHECK_COUNT(status, type, 1);
    CHECK_FILE(path, 0, wanted, sizeof wanted);
    memset(here, 0, sizeof here);
    memset(there, 0, sizeof there);
    CHECK_OK(MPI_File_read_at(file, 0, MPI_BOTTOM, 1, type, &status));
    CHECK(here[2] == 3 && there[1] == 5, "%d %d", here[2], there[1]);
    CHECK_OK(MPI_File_close(&file));
    MPI_Type_free(&type);
    unlink(path);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    const int block[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK}, cyclic[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC},
              mixed[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, by_default[2] = {-1, -1}, by_two[2] = {2, 2},
              by_three[2] = {-1, 3};
    shape shapes[] = {
        vector(), hvector(), nested_vector(), indexed(), hindexed(), blocks(), hblocks(), structure(),
        subarray("subarray, C order", MPI_ORDER_C), subarray("subarray, Fortran order", MPI_ORDER_FORTRAN),
        darray("darray of blocks", MPI_ORDER_C, block, by_default), darray("darray, cyclic by 2", MPI_ORDER_C, cyclic, by_two),
        darray("darray, Fortran order", MPI_ORDER_FORTRAN, cyclic, by_two), darray("darray, mixed", MPI_ORDER_C, mixed, by_three),
        resized("resized", 0, 20), duplicate(), nested_contiguous(), contiguous_of_swapped(), contiguous_of_pairs(), backwards(), reversed_vector(),
        resized("resized with a negative lower bound", -8, 32),
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int collective = 0; collective < 2; collective++) {
            if (shapes[i].file) as_filetype(&shapes[i], collective);
            as_memory(&shapes[i], collective);
        }
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) MPI_Type_free(&shapes[i].type);
    from_bottom();
    return check_end();
}
