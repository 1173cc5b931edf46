/* ranks: 1 2 3 4 7
 * The access patterns of parallel I/O's literature, each described twice: by MPI datatypes (what the
 * library sees) and as a list of pieces (where every byte belongs), so that a wrong layout is found.
 *
 *   mpirun -n N ./patterns DIR [-w name,...] [-m coll|indep|nonblocking|split|all] [-s SCALE]
 *                              [-k REPETITIONS] [-p write|read|both] [-i key=value]... [-t] [-l]
 *
 * Scale 1 is 64 MB per rank (16 MB for cyclic); the default is small, for checking.  `-p write` leaves
 * the files, `-p read` checks files that are there: so one library's files are read by another.
 * `-t` prints, instead of the sum of checks, a CSV row a measurement: seconds of the best repetition
 * from open to close, and the speed as a fraction of raw POSIX: every rank moving its contiguous
 * share of as many bytes of one file, in the same run.
 */
#include "check.h"
#include <sys/mman.h>

typedef long long i64;

enum { MEGABYTES = 1000000, CALLS_MAX = 200, RAW_CHUNK = 8 << 20 };

typedef enum { COLL, INDEP, NONBLOCKING, SPLIT, MODES } mode;
static const char *const mode_names[MODES] = {"coll", "indep", "nonblocking", "split"};

static double scale = 0.004;
static int repetitions = 1, timing, writing = 1, reading = 1;
static MPI_Info hints = MPI_INFO_NULL;

/* Takes one piece of a call: where in the file, where in the buffer, how long. */
typedef struct sink {
    void (*take)(struct sink *, i64 file, i64 memory, i64 length);
    unsigned char *buffer;
    const unsigned char *mapped;
    i64 mapped_length, bytes, pieces, wrong;
} sink;

/* What a call is to MPI. */
typedef struct {
    MPI_Offset disp;
    MPI_Datatype etype, filetype, memory;
    i64 span; /* bytes of the buffer, gaps included */
} access_types;

typedef struct {
    const char *name, *about;
    int calls;
    void (*types)(int call, access_types *);
    void (*pieces)(int call, sink *);
} pattern;

/* --- helpers --- */

static i64 share(double megabytes, i64 unit) {
    i64 bytes = (i64)(megabytes * MEGABYTES * scale);
    return bytes < unit ? unit : bytes / unit * unit;
}

/* `length` bytes in a row, also past 2 GiB. */
static MPI_Datatype dense(i64 length) {
    MPI_Datatype chunk, type;
    if (length <= INT32_MAX) {
        MPI_Type_contiguous((int)length, MPI_BYTE, &type);
    } else {
        const i64 unit = 1 << 20;
        MPI_Type_contiguous((int)unit, MPI_BYTE, &chunk);
        MPI_Type_create_struct(2, (int[]){(int)(length / unit), (int)(length % unit)},
                               (MPI_Aint[]){0, (MPI_Aint)(length / unit * unit)}, (MPI_Datatype[]){chunk, MPI_BYTE}, &type);
        MPI_Type_free(&chunk);
    }
    MPI_Type_commit(&type);
    return type;
}

/* One block of `length` bytes every `stride` bytes. */
static MPI_Datatype repeated(i64 length, i64 stride) {
    MPI_Datatype block, type;
    MPI_Type_contiguous((int)length, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)stride, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&block);
    return type;
}

static void dense_memory(access_types *to, i64 span) {
    to->span = span;
    to->memory = dense(span);
}

/* --- contig: a contiguous share a rank --- */

static i64 contig_length(void) { return share(64, 4096); }

static void contig_types(int call, access_types *to) {
    (void)call;
    to->disp = check.rank * contig_length();
    to->etype = MPI_BYTE;
    to->filetype = dense(contig_length());
    dense_memory(to, contig_length());
}

static void contig_pieces(int call, sink *to) {
    (void)call;
    to->take(to, check.rank * contig_length(), 0, contig_length());
}

/* --- strided: records dealt to the ranks in turn --- */

static void strided_types(i64 record, access_types *to) {
    to->disp = check.rank * record;
    to->etype = MPI_BYTE;
    to->filetype = repeated(record, record * check.size);
    dense_memory(to, share(64, record));
}

static void strided_pieces(i64 record, sink *to) {
    for (i64 k = 0; k < share(64, record) / record; k++) to->take(to, (k * check.size + check.rank) * record, k * record, record);
}

#define STRIDED(NAME, RECORD) \
    static void NAME##_types(int call, access_types *to) { (void)call; strided_types(RECORD, to); } \
    static void NAME##_pieces(int call, sink *to) { (void)call; strided_pieces(RECORD, to); }
STRIDED(strided1m, 1 << 20)
STRIDED(strided64k, 1 << 16)
STRIDED(strided4k, 1 << 12)
STRIDED(strided64, 64)

/* --- a 3-D array in blocks: coll_perf's ints, s3d's components --- */

typedef struct {
    int whole[3], part[3], start[3];
} block3;

/* A cube of about `bytes` over all ranks, in blocks of equal size. */
static block3 cube(double bytes, int element) {
    block3 block;
    int grid[3] = {0, 0, 0}, rest = check.rank, side = 8;
    MPI_Dims_create(check.size, 3, grid);
    while ((double)(side + 4) * (side + 4) * (side + 4) * element <= bytes) side += 4;
    for (int i = 2; i >= 0; i--) {
        block.part[i] = side / grid[i] > 0 ? side / grid[i] : 1;
        block.whole[i] = block.part[i] * grid[i];
        block.start[i] = rest % grid[i] * block.part[i];
        rest /= grid[i];
    }
    return block;
}

static i64 volume(const int *sizes) { return (i64)sizes[0] * sizes[1] * sizes[2]; }

static void block_rows(const block3 *block, int element, i64 file, i64 memory, sink *to) {
    i64 row = (i64)element * block->part[2];
    for (i64 i = block->start[0]; i < block->start[0] + block->part[0]; i++)
        for (i64 j = block->start[1]; j < block->start[1] + block->part[1]; j++, memory += row)
            to->take(to, file + element * ((i * block->whole[1] + j) * block->whole[2] + block->start[2]), memory, row);
}

static block3 coll_perf_block(void) { return cube(64e6 * scale * check.size, sizeof(int)); }

static void coll_perf_types(int call, access_types *to) {
    block3 block = coll_perf_block();
    (void)call;
    to->disp = 0;
    to->etype = MPI_INT;
    MPI_Type_create_subarray(3, block.whole, block.part, block.start, MPI_ORDER_C, MPI_INT, &to->filetype);
    MPI_Type_commit(&to->filetype);
    dense_memory(to, (i64)sizeof(int) * volume(block.part));
}

static void coll_perf_pieces(int call, sink *to) {
    block3 block = coll_perf_block();
    (void)call;
    block_rows(&block, sizeof(int), 0, 0, to);
}

enum { S3D_CALLS = 4 };
static const int s3d_components[S3D_CALLS] = {11, 3, 1, 1};

static block3 s3d_block(void) { return cube(4e6 * scale * check.size, sizeof(double)); }

static i64 s3d_before(const block3 *block, int call) {
    i64 components = 0;
    for (int i = 0; i < call; i++) components += s3d_components[i];
    return components * volume(block->whole) * (i64)sizeof(double);
}

static void s3d_types(int call, access_types *to) {
    block3 block = s3d_block();
    int n = s3d_components[call];
    int whole[4] = {n, block.whole[0], block.whole[1], block.whole[2]}, part[4] = {n, block.part[0], block.part[1], block.part[2]},
        start[4] = {0, block.start[0], block.start[1], block.start[2]};
    to->disp = s3d_before(&block, call);
    to->etype = MPI_DOUBLE;
    MPI_Type_create_subarray(4, whole, part, start, MPI_ORDER_C, MPI_DOUBLE, &to->filetype);
    MPI_Type_commit(&to->filetype);
    dense_memory(to, n * volume(block.part) * (i64)sizeof(double));
}

static void s3d_pieces(int call, sink *to) {
    block3 block = s3d_block();
    for (i64 k = 0; k < s3d_components[call]; k++)
        block_rows(&block, sizeof(double), s3d_before(&block, call) + k * volume(block.whole) * (i64)sizeof(double),
                   k * volume(block.part) * (i64)sizeof(double), to);
}

/* --- hpio: regions with holes after them, in the file and in memory --- */

enum { HPIO_REGION = 256, HPIO_STEP = 384 };

static i64 hpio_regions(void) { return share(32, HPIO_REGION) / HPIO_REGION; }

static void hpio_types(int call, access_types *to) {
    MPI_Datatype region;
    (void)call;
    to->disp = check.rank * HPIO_STEP;
    to->etype = MPI_BYTE;
    to->filetype = repeated(HPIO_REGION, (i64)HPIO_STEP * check.size);
    MPI_Type_contiguous(HPIO_REGION, MPI_BYTE, &region);
    MPI_Type_create_hvector((int)hpio_regions(), 1, HPIO_STEP, region, &to->memory);
    MPI_Type_commit(&to->memory);
    MPI_Type_free(&region);
    to->span = hpio_regions() * HPIO_STEP;
}

static void hpio_pieces(int call, sink *to) {
    (void)call;
    for (i64 k = 0; k < hpio_regions(); k++)
        to->take(to, (k * check.size + check.rank) * HPIO_STEP, k * HPIO_STEP, HPIO_REGION);
}

/* --- tile: 2-D tiles of 64-byte elements --- */

enum { TILE_ELEMENT = 64 };

typedef struct {
    int whole[2], part[2], start[2];
} block2;

static block2 tile_block(void) {
    block2 block;
    int grid[2] = {0, 0}, side = 16;
    MPI_Dims_create(check.size, 2, grid);
    while ((double)(side + 16) * (side + 16) * TILE_ELEMENT <= 64e6 * scale) side += 16;
    for (int i = 0; i < 2; i++) {
        block.part[i] = side;
        block.whole[i] = side * grid[i];
    }
    block.start[0] = check.rank / grid[1] * side;
    block.start[1] = check.rank % grid[1] * side;
    return block;
}

static void tile_types(int call, access_types *to) {
    block2 block = tile_block();
    (void)call;
    to->disp = 0;
    to->etype = dense(TILE_ELEMENT);
    MPI_Type_create_subarray(2, block.whole, block.part, block.start, MPI_ORDER_C, to->etype, &to->filetype);
    MPI_Type_commit(&to->filetype);
    dense_memory(to, (i64)TILE_ELEMENT * block.part[0] * block.part[1]);
}

static void tile_pieces(int call, sink *to) {
    block2 block = tile_block();
    i64 row = (i64)TILE_ELEMENT * block.part[1];
    (void)call;
    for (i64 i = 0; i < block.part[0]; i++)
        to->take(to, TILE_ELEMENT * ((block.start[0] + i) * block.whole[1] + block.start[1]), i * row, row);
}

/* --- btio: diagonal cells of a cube of five doubles a point, steps appended --- */

enum { BTIO_CALLS = 4, BTIO_POINT = 40 };

typedef struct {
    int cells, side, part; /* cells a dimension, points a dimension, points a cell's edge */
} btio_grid;

static btio_grid btio(void) {
    btio_grid grid = {1, 0, 0};
    while ((grid.cells + 1) * (grid.cells + 1) <= check.size) grid.cells++;
    double points = 64e6 * scale * check.size / BTIO_CALLS / BTIO_POINT;
    grid.part = 2;
    while ((double)(grid.part + 1) * grid.cells * (grid.part + 1) * grid.cells * (grid.part + 1) * grid.cells <= points) grid.part++;
    grid.side = grid.part * grid.cells;
    return grid;
}

/* The n-th cell of this rank: one in each layer, shifted along both other dimensions. */
static void btio_cell(const btio_grid *grid, int n, int *start) {
    start[0] = n * grid->part;
    start[1] = (check.rank / grid->cells + n) % grid->cells * grid->part;
    start[2] = (check.rank % grid->cells + n) % grid->cells * grid->part;
}

static i64 btio_step(const btio_grid *grid) { return (i64)grid->side * grid->side * grid->side * BTIO_POINT; }

static void btio_types(int call, access_types *to) {
    btio_grid grid = btio();
    to->disp = call * btio_step(&grid);
    to->etype = MPI_DOUBLE;
    if (check.rank >= grid.cells * grid.cells) { /* ranks past the square have nothing */
        MPI_Type_contiguous(0, MPI_DOUBLE, &to->filetype);
        MPI_Type_commit(&to->filetype);
        dense_memory(to, 0);
        return;
    }
    MPI_Datatype *cells = calloc((size_t)grid.cells, sizeof *cells);
    int *ones = calloc((size_t)grid.cells, sizeof *ones);
    MPI_Aint *zeros = calloc((size_t)grid.cells, sizeof *zeros);
    for (int n = 0; n < grid.cells; n++) {
        int whole[4] = {grid.side, grid.side, grid.side, 5}, part[4] = {grid.part, grid.part, grid.part, 5}, start[4] = {0};
        btio_cell(&grid, n, start);
        MPI_Type_create_subarray(4, whole, part, start, MPI_ORDER_C, MPI_DOUBLE, &cells[n]);
        ones[n] = 1;
    }
    MPI_Type_create_struct(grid.cells, ones, zeros, cells, &to->filetype);
    MPI_Type_commit(&to->filetype);
    for (int n = 0; n < grid.cells; n++) MPI_Type_free(&cells[n]);
    free(cells);
    free(ones);
    free(zeros);
    dense_memory(to, (i64)grid.cells * grid.part * grid.part * grid.part * BTIO_POINT);
}

static void btio_pieces(int call, sink *to) {
    btio_grid grid = btio();
    i64 memory = 0, row = (i64)grid.part * BTIO_POINT;
    if (check.rank >= grid.cells * grid.cells) return;
    for (int n = 0; n < grid.cells; n++) {
        int start[3];
        btio_cell(&grid, n, start);
        for (i64 i = start[0]; i < start[0] + grid.part; i++)
            for (i64 j = start[1]; j < start[1] + grid.part; j++, memory += row)
                to->take(to, call * btio_step(&grid) + ((i * grid.side + j) * grid.side + start[2]) * BTIO_POINT, memory, row);
    }
}

/* --- flash: many variables, blocks with guard cells around them in memory --- */

enum { FLASH_CALLS = 24, FLASH_EDGE = 16, FLASH_GUARD = 4, FLASH_FULL = FLASH_EDGE + 2 * FLASH_GUARD };
static const i64 flash_block = (i64)FLASH_EDGE * FLASH_EDGE * FLASH_EDGE * (i64)sizeof(double);
static const i64 flash_memory = (i64)FLASH_FULL * FLASH_FULL * FLASH_FULL * (i64)sizeof(double);

/* Ranks differ in how many blocks they have. */
static i64 flash_blocks(int rank) { return share(64.0 / FLASH_CALLS, flash_block) / flash_block + rank % 3; }

static i64 flash_before(int rank) {
    i64 blocks = 0;
    for (int i = 0; i < rank; i++) blocks += flash_blocks(i);
    return blocks;
}

static i64 flash_start(int call) { return (call * flash_before(check.size) + flash_before(check.rank)) * flash_block; }

static void flash_types(int call, access_types *to) {
    i64 blocks = flash_blocks(check.rank);
    int whole[3] = {FLASH_FULL, FLASH_FULL, FLASH_FULL}, part[3] = {FLASH_EDGE, FLASH_EDGE, FLASH_EDGE},
        start[3] = {FLASH_GUARD, FLASH_GUARD, FLASH_GUARD};
    MPI_Datatype inner;
    to->disp = flash_start(call);
    to->etype = MPI_BYTE;
    to->filetype = dense(blocks * flash_block);
    MPI_Type_create_subarray(3, whole, part, start, MPI_ORDER_C, MPI_DOUBLE, &inner);
    MPI_Type_contiguous((int)blocks, inner, &to->memory);
    MPI_Type_commit(&to->memory);
    MPI_Type_free(&inner);
    to->span = blocks * flash_memory;
}

static void flash_pieces(int call, sink *to) {
    i64 row = FLASH_EDGE * (i64)sizeof(double), file = flash_start(call);
    for (i64 block = 0; block < flash_blocks(check.rank); block++)
        for (i64 i = FLASH_GUARD; i < FLASH_GUARD + FLASH_EDGE; i++)
            for (i64 j = FLASH_GUARD; j < FLASH_GUARD + FLASH_EDGE; j++, file += row)
                to->take(to, file, block * flash_memory + ((i * FLASH_FULL + j) * FLASH_FULL + FLASH_GUARD) * (i64)sizeof(double), row);
}

/* --- steps: all time steps of a point side by side, so that each call is sparse --- */

enum { STEPS_CALLS = 16, STEPS_POINT = 3200 };

static i64 steps_points(void) { return share(64.0 / STEPS_CALLS, STEPS_POINT) / STEPS_POINT; }

static void steps_types(int call, access_types *to) {
    to->disp = ((i64)check.rank * STEPS_CALLS + call) * STEPS_POINT;
    to->etype = MPI_BYTE;
    to->filetype = repeated(STEPS_POINT, (i64)STEPS_POINT * STEPS_CALLS * check.size);
    dense_memory(to, steps_points() * STEPS_POINT);
}

static void steps_pieces(int call, sink *to) {
    for (i64 k = 0; k < steps_points(); k++)
        to->take(to, ((k * check.size + check.rank) * STEPS_CALLS + call) * STEPS_POINT, k * STEPS_POINT, STEPS_POINT);
}

/* --- cyclic: doubles dealt one by one --- */

static i64 cyclic_elements(void) { return share(16, sizeof(double)) / (i64)sizeof(double); }

static void cyclic_types(int call, access_types *to) {
    int whole = (int)cyclic_elements() * check.size, distribution = MPI_DISTRIBUTE_CYCLIC, argument = MPI_DISTRIBUTE_DFLT_DARG;
    (void)call;
    to->disp = 0;
    to->etype = MPI_DOUBLE;
    MPI_Type_create_darray(check.size, check.rank, 1, &whole, &distribution, &argument, &check.size, MPI_ORDER_C, MPI_DOUBLE,
                           &to->filetype);
    MPI_Type_commit(&to->filetype);
    dense_memory(to, cyclic_elements() * (i64)sizeof(double));
}

static void cyclic_pieces(int call, sink *to) {
    const i64 element = sizeof(double);
    (void)call;
    for (i64 k = 0; k < cyclic_elements(); k++) to->take(to, (k * check.size + check.rank) * element, k * element, element);
}

/* --- indexed: blocks of irregular length, each owned by some rank --- */

static uint64_t scramble(uint64_t x) {
    x = (x + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 29;
}

static i64 indexed_blocks(void) { return share(32, 1536) / 1536 * check.size; }
static int indexed_owner(i64 block) { return (int)(scramble((uint64_t)block) >> 8 & 0xffff) % check.size; }
static i64 indexed_length(i64 block) { return 512 + (i64)(scramble((uint64_t)block * 3 + 1) >> 16 & 0xff) * 8; }

static void indexed_pieces(int call, sink *to) {
    i64 file = 0, memory = 0;
    (void)call;
    for (i64 block = 0; block < indexed_blocks(); block++) {
        i64 length = indexed_length(block);
        if (indexed_owner(block) == check.rank) {
            to->take(to, file, memory, length);
            memory += length;
        }
        file += length;
    }
}

static void indexed_types(int call, access_types *to) {
    i64 blocks = indexed_blocks(), at = 0, bytes = 0;
    int *lengths = malloc(sizeof *lengths * (size_t)blocks), mine = 0;
    MPI_Aint *places = malloc(sizeof *places * (size_t)blocks);
    (void)call;
    for (i64 block = 0; block < blocks; block++) {
        i64 length = indexed_length(block);
        if (indexed_owner(block) == check.rank) {
            lengths[mine] = (int)length;
            places[mine++] = (MPI_Aint)at;
            bytes += length;
        }
        at += length;
    }
    to->disp = 0;
    to->etype = MPI_BYTE;
    MPI_Type_create_hindexed(mine, lengths, places, MPI_BYTE, &to->filetype);
    MPI_Type_commit(&to->filetype);
    free(lengths);
    free(places);
    dense_memory(to, bytes);
}

/* --- small: the fixed cost of a call --- */

enum { SMALL_CALLS = CALLS_MAX, SMALL_BYTES = 4096 };

static void small_types(int call, access_types *to) {
    to->disp = ((i64)call * check.size + check.rank) * SMALL_BYTES;
    to->etype = MPI_BYTE;
    to->filetype = dense(SMALL_BYTES);
    dense_memory(to, SMALL_BYTES);
}

static void small_pieces(int call, sink *to) { to->take(to, ((i64)call * check.size + check.rank) * SMALL_BYTES, 0, SMALL_BYTES); }

static const pattern patterns[] = {
    {"contig", "a contiguous share a rank", 1, contig_types, contig_pieces},
    {"strided1m", "records of 1 MiB in turn", 1, strided1m_types, strided1m_pieces},
    {"strided64k", "records of 64 KiB in turn", 1, strided64k_types, strided64k_pieces},
    {"strided4k", "records of 4 KiB in turn", 1, strided4k_types, strided4k_pieces},
    {"strided64", "records of 64 bytes in turn", 1, strided64_types, strided64_pieces},
    {"coll_perf", "a 3-D array of ints in blocks", 1, coll_perf_types, coll_perf_pieces},
    {"hpio", "256-byte regions 128 apart, in file and memory", 1, hpio_types, hpio_pieces},
    {"tile", "2-D tiles of 64-byte elements", 1, tile_types, tile_pieces},
    {"btio", "diagonal cells of a cube, 4 steps", BTIO_CALLS, btio_types, btio_pieces},
    {"flash", "24 variables, guard cells in memory", FLASH_CALLS, flash_types, flash_pieces},
    {"s3d", "4 arrays of 11, 3, 1 and 1 components", S3D_CALLS, s3d_types, s3d_pieces},
    {"steps", "time steps of a point side by side, 16 sparse calls", STEPS_CALLS, steps_types, steps_pieces},
    {"cyclic", "doubles dealt one by one", 1, cyclic_types, cyclic_pieces},
    {"indexed", "blocks of irregular length", 1, indexed_types, indexed_pieces},
    {"small", "200 calls of 4 KiB per rank", SMALL_CALLS, small_types, small_pieces},
};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

/* Where only the bytes matter, a part of the many calls does. */
static int calls_of(const pattern *pattern) {
    enum { CHECKED = 8 };
    return timing || pattern->calls < CHECKED ? pattern->calls : CHECKED;
}

/* --- what is done with pieces --- */

static void count_piece(sink *to, i64 file, i64 memory, i64 length) {
    (void)file;
    (void)memory;
    to->bytes += length;
    to->pieces++;
}

static void fill_piece(sink *to, i64 file, i64 memory, i64 length) { check_fill(to->buffer + memory, file, (size_t)length, 1); }

static void compare_memory(sink *to, i64 file, i64 memory, i64 length) {
    to->wrong += check_filled(to->buffer + memory, file, (size_t)length, 1) != (size_t)length;
}

static void compare_file(sink *to, i64 file, i64 memory, i64 length) {
    (void)memory;
    to->wrong += file + length > to->mapped_length || check_filled(to->mapped + file, file, (size_t)length, 1) != (size_t)length;
}

/* --- running --- */

typedef struct {
    access_types types[CALLS_MAX];
    unsigned char *buffers[CALLS_MAX];
    i64 bytes, pieces, all;
} prepared;

static void prepare(const pattern *pattern, prepared *ready) {
    sink count = {.take = count_piece};
    for (int call = 0; call < calls_of(pattern); call++) {
        pattern->types(call, &ready->types[call]);
        pattern->pieces(call, &count);
        size_t span = (size_t)ready->types[call].span + 4096;
        if (posix_memalign((void **)&ready->buffers[call], 4096, span)) MPI_Abort(MPI_COMM_WORLD, 1);
        memset(ready->buffers[call], 0xa5, span);
    }
    ready->bytes = count.bytes;
    ready->pieces = count.pieces;
    MPI_Allreduce(&ready->bytes, &ready->all, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
}

static void release(const pattern *pattern, prepared *ready) {
    for (int call = 0; call < calls_of(pattern); call++) {
        access_types *types = &ready->types[call];
        if (types->etype != MPI_BYTE && types->etype != MPI_INT && types->etype != MPI_DOUBLE) MPI_Type_free(&types->etype);
        MPI_Type_free(&types->filetype);
        MPI_Type_free(&types->memory);
        free(ready->buffers[call]);
    }
}

/* One call by the selected method. */
static int transfer(MPI_File file, mode how, int write, void *buffer, MPI_Datatype type, MPI_Status *status) {
    MPI_Request request = MPI_REQUEST_NULL;
    int code;
    switch (how) {
    case COLL:
        return write ? MPI_File_write_all(file, buffer, 1, type, status) : MPI_File_read_all(file, buffer, 1, type, status);
    case INDEP:
        return write ? MPI_File_write(file, buffer, 1, type, status) : MPI_File_read(file, buffer, 1, type, status);
    case NONBLOCKING:
        code = write ? MPI_File_iwrite_all(file, buffer, 1, type, &request) : MPI_File_iread_all(file, buffer, 1, type, &request);
        return code == MPI_SUCCESS ? MPI_Wait(&request, status) : code;
    default:
        code = write ? MPI_File_write_all_begin(file, buffer, 1, type) : MPI_File_read_all_begin(file, buffer, 1, type);
        if (code != MPI_SUCCESS) return code;
        return write ? MPI_File_write_all_end(file, buffer, status) : MPI_File_read_all_end(file, buffer, status);
    }
}

/* Opens, moves all calls, closes; the time from first to last. */
static double pass(const pattern *pattern, prepared *ready, const char *path, mode how, int write) {
    MPI_File file;
    MPI_Status status;
    i64 moved = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, write ? MPI_MODE_RDWR | MPI_MODE_CREATE : MPI_MODE_RDONLY, hints, &file));
    for (int call = 0; call < calls_of(pattern); call++) {
        access_types *types = &ready->types[call];
        CHECK_OK(MPI_File_set_view(file, types->disp, types->etype, types->filetype, "native", hints));
        CHECK_OK(transfer(file, how, write, ready->buffers[call], types->memory, &status));
        MPI_Count bytes = -1;
        MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
        moved += bytes;
    }
    CHECK_OK(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - start;
    CHECK(moved == ready->bytes, "%s %s %s: statuses count %lld of %lld bytes", pattern->name, mode_names[how],
          write ? "write" : "read", moved, ready->bytes);
    return seconds;
}

static void expect_file(const pattern *pattern, const char *path, mode how) {
    sink compare = {.take = compare_file};
    int descriptor = open(path, O_RDONLY);
    compare.mapped_length = check_size(path);
    void *mapped = compare.mapped_length > 0 ? mmap(NULL, (size_t)compare.mapped_length, PROT_READ, MAP_PRIVATE, descriptor, 0) : NULL;
    compare.mapped = mapped;
    for (int call = 0; call < calls_of(pattern); call++) pattern->pieces(call, &compare);
    CHECK(compare.wrong == 0, "%s %s: %lld pieces of the file are wrong", pattern->name, mode_names[how], compare.wrong);
    if (mapped) munmap(mapped, (size_t)compare.mapped_length);
    close(descriptor);
}

static void expect_buffers(const pattern *pattern, prepared *ready, mode how) {
    sink compare = {.take = compare_memory};
    for (int call = 0; call < calls_of(pattern); call++) {
        compare.buffer = ready->buffers[call];
        pattern->pieces(call, &compare);
    }
    CHECK(compare.wrong == 0, "%s %s: %lld pieces of memory are wrong", pattern->name, mode_names[how], compare.wrong);
    /* What lies between the pieces of a buffer stays as it was. */
    if (pattern->types == hpio_types)
        for (i64 k = 0; k < hpio_regions(); k++)
            if (ready->buffers[0][k * HPIO_STEP + HPIO_REGION] != 0x5a) {
                CHECK(0, "%s: gap %lld of the buffer was written", pattern->name, k);
                break;
            }
}

/* Every rank moves its contiguous share of one file by plain calls. */
static double raw(const char *path, i64 all, int write) {
    static unsigned char *chunk;
    if (!chunk) {
        chunk = malloc(RAW_CHUNK);
        memset(chunk, 1, RAW_CHUNK);
    }
    i64 mine = all / check.size;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    int descriptor = open(path, write ? O_CREAT | O_WRONLY : O_RDONLY, 0644);
    for (i64 at = 0; at < mine;) {
        i64 length = mine - at < RAW_CHUNK ? mine - at : RAW_CHUNK, place = check.rank * mine + at;
        ssize_t moved = write ? pwrite(descriptor, chunk, (size_t)length, place) : pread(descriptor, chunk, (size_t)length, place);
        if (!CHECK(moved > 0, "raw transfer of %lld bytes at %lld: %s", length, place, strerror(errno))) break;
        at += moved;
    }
    close(descriptor);
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime() - start;
}

static void report(const pattern *pattern, prepared *ready, mode how, const char *operation, double seconds, double raw_seconds,
                   long failed_before) {
    long failed = check.failed - failed_before, any;
    i64 pieces;
    MPI_Reduce(&failed, &any, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&ready->pieces, &pieces, 1, MPI_LONG_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (check.rank != 0 || !timing) return;
    printf("%s,%s,%s,%d,%lld,%lld,%.6f,%.1f,%.3f,%s\n", pattern->name, operation, mode_names[how], check.size, ready->all, pieces,
           seconds, (double)ready->all / seconds / MEGABYTES, raw_seconds / seconds, any ? "BAD" : "ok");
    fflush(stdout);
}

static double smaller(double a, double b) { return a < b ? a : b; }

static void run(const pattern *pattern, mode how) {
    static prepared ready;
    const char *path = check_path(pattern->name), *raw_path = check_path("raw");
    double best[2] = {1e30, 1e30}, raw_best[2] = {1e30, 1e30};
    long failed_before = check.failed;
    prepare(pattern, &ready);
    for (int repetition = 0; repetition < repetitions; repetition++) {
        if (timing) {
            check_remove(raw_path);
            raw_best[0] = smaller(raw_best[0], raw(raw_path, ready.all, 1));
            raw_best[1] = smaller(raw_best[1], raw(raw_path, ready.all, 0));
            check_remove(raw_path);
        }
        if (writing) {
            check_remove(path);
            sink fill = {.take = fill_piece};
            for (int call = 0; call < calls_of(pattern); call++) {
                fill.buffer = ready.buffers[call];
                pattern->pieces(call, &fill);
            }
            best[0] = smaller(best[0], pass(pattern, &ready, path, how, 1));
            expect_file(pattern, path, how);
        }
        if (reading) {
            for (int call = 0; call < calls_of(pattern); call++) memset(ready.buffers[call], 0x5a, (size_t)ready.types[call].span);
            best[1] = smaller(best[1], pass(pattern, &ready, path, how, 0));
            expect_buffers(pattern, &ready, how);
        }
    }
    if (writing) report(pattern, &ready, how, "write", best[0], raw_best[0], failed_before);
    if (reading) report(pattern, &ready, how, "read", best[1], raw_best[1], failed_before);
    if (reading) check_remove(path);
    release(pattern, &ready);
}

static int listed(const char *name, const char *list) {
    size_t length = strlen(name);
    if (strcmp(list, "all") == 0) return 1;
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += length)
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) return 1;
    return 0;
}

static void add_hint(char *pair) {
    char *equals = strchr(pair, '=');
    if (!equals) return;
    *equals = '\0';
    if (hints == MPI_INFO_NULL) MPI_Info_create(&hints);
    MPI_Info_set(hints, pair, equals + 1);
}

int main(int argc, char **argv) {
    const char *which = "all", *how = "all";
    int option;
    check_begin(argc, argv);
    optind = 2;
    while ((option = getopt(argc, argv, "w:m:s:k:p:i:tl")) != -1) switch (option) {
        case 'w': which = optarg; break;
        case 'm': how = optarg; break;
        case 's': scale = atof(optarg); break;
        case 'k': repetitions = atoi(optarg); break;
        case 'p': writing = strcmp(optarg, "read") != 0; reading = strcmp(optarg, "write") != 0; break;
        case 'i': add_hint(optarg); break;
        case 't': timing = 1; break;
        case 'l':
            for (int i = 0; check.rank == 0 && i < PATTERNS; i++) printf("%-12s %s\n", patterns[i].name, patterns[i].about);
            MPI_Finalize();
            return 0;
        default:
            MPI_Finalize();
            return 2;
        }
    if (timing) {
        alarm(0); /* measurements take as long as they take */
        if (check.rank == 0) printf("workload,op,mode,ranks,bytes,pieces_per_rank,seconds,MBps,of_raw,ok\n");
    }
    for (int i = 0; i < PATTERNS; i++)
        for (int m = 0; m < MODES; m++)
            if (listed(patterns[i].name, which) && listed(mode_names[m], how)) run(&patterns[i], (mode)m);
    if (hints != MPI_INFO_NULL) MPI_Info_free(&hints);
    return check_end();
}
