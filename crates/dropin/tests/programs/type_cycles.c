/* ranks: 1 2
 * Types that are made for one call and freed, so that their handles soon stand for other types: contiguous
 * ones, others of the same size, and others of the same size and extent.  They describe data in memory and
 * parts of the file.  Types are also committed twice, duplicated after and before their originals are
 * freed, and taken apart.
 */
#include "check.h"

enum { INTS = 6, CALLS = 2000, KEPT = 5 };

/* What a type stands for: the places of its integers, in the order of the type map. */
typedef struct {
    MPI_Datatype type;
    int place[INTS];
} shape;

static unsigned state;
static unsigned draw(unsigned below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

static shape contiguous(void) {
    shape made;
    MPI_Type_contiguous(INTS, MPI_INT, &made.type);
    for (int i = 0; i < INTS; i++) made.place[i] = i;
    return made;
}

static shape nested(void) {
    shape made = contiguous();
    MPI_Datatype pair;
    MPI_Type_free(&made.type);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_contiguous(INTS / 2, pair, &made.type);
    MPI_Type_free(&pair);
    return made;
}

static shape with_gaps(void) {
    shape made;
    MPI_Type_vector(INTS, 1, 2, MPI_INT, &made.type);
    for (int i = 0; i < INTS; i++) made.place[i] = 2 * i;
    return made;
}

/* As large as its extent, but backward. */
static shape backward(void) {
    shape made;
    for (int i = 0; i < INTS; i++) made.place[i] = INTS - 1 - i;
    MPI_Type_create_indexed_block(INTS, 1, made.place, MPI_INT, &made.type);
    return made;
}

static shape repeated_backward(void) {
    shape made;
    MPI_Datatype swapped;
    MPI_Type_create_indexed_block(2, 1, (int[]){1, 0}, MPI_INT, &swapped);
    MPI_Type_contiguous(INTS / 2, swapped, &made.type);
    MPI_Type_free(&swapped);
    for (int i = 0; i < INTS; i++) made.place[i] = i ^ 1;
    return made;
}

/* The only inner type of a contiguous type or duplicate, which may be a handle of its own. */
static void take_apart(MPI_Datatype type) {
    int integers, addresses, types, combiner, count;
    MPI_Aint none;
    MPI_Datatype inner;
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    if (combiner != MPI_COMBINER_DUP && combiner != MPI_COMBINER_CONTIGUOUS) return;
    MPI_Type_get_contents(type, integers, 0, 1, &count, &none, &inner);
    MPI_Type_get_envelope(inner, &integers, &addresses, &types, &combiner);
    if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(&inner);
}

static shape make(void) {
    shape (*const makers[])(void) = {contiguous, nested, with_gaps, backward, repeated_backward};
    shape made = makers[draw(5)]();
    int committed = draw(2);
    if (committed) MPI_Type_commit(&made.type);
    if (draw(2)) {
        MPI_Datatype same;
        MPI_Type_dup(made.type, &same);
        MPI_Type_free(&made.type);
        made.type = same;
    }
    if (!committed || !draw(4)) MPI_Type_commit(&made.type);
    if (!draw(4)) take_apart(made.type);
    return made;
}

static void write_item(MPI_File file, const shape *of, int call) {
    int memory[2 * INTS], found[INTS];
    MPI_Status status;
    MPI_Offset at = (MPI_Offset)check.rank * INTS * 4;
    for (int i = 0; i < 2 * INTS; i++) memory[i] = -1;
    for (int i = 0; i < INTS; i++) memory[of->place[i]] = call * 100 + i;
    CHECK_OK(MPI_File_write_at(file, at, memory, 1, of->type, &status));
    CHECK_COUNT(status, MPI_INT, INTS);
    CHECK_OK(MPI_File_read_at(file, at, found, INTS, MPI_INT, MPI_STATUS_IGNORE));
    for (int i = 0; i < INTS; i++) CHECK(found[i] == call * 100 + i, "call %d: integer %d is %d", call, i, found[i]);
}

/* The type describes the file, which is read as it is. */
static void read_through(MPI_File file, const shape *of, int call) {
    int found[INTS], view[2 * INTS];
    MPI_Offset at = (MPI_Offset)check.rank * sizeof view;
    for (int i = 1; i < INTS; i++)
        if (of->place[i] < of->place[i - 1]) return; /* not a filetype */
    for (int i = 0; i < 2 * INTS; i++) view[i] = call * 100 + i;
    CHECK_OK(MPI_File_write_at(file, at, view, 2 * INTS, MPI_INT, MPI_STATUS_IGNORE));
    CHECK_OK(MPI_File_set_view(file, at, MPI_INT, of->type, "native", MPI_INFO_NULL));
    CHECK_OK(MPI_File_read_at(file, 0, found, INTS, MPI_INT, MPI_STATUS_IGNORE));
    for (int i = 0; i < INTS; i++)
        CHECK(found[i] == call * 100 + of->place[i], "call %d: integer %d of the view is %d", call, i, found[i]);
    CHECK_OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
}

int main(int argc, char **argv) {
    MPI_File file;
    shape kept[KEPT];
    check_begin(argc, argv);
    CHECK_OK(MPI_File_open(MPI_COMM_SELF, check_own_path("types"), MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
                           MPI_INFO_NULL, &file));
    for (int i = 0; i < KEPT; i++) kept[i] = make();
    for (int call = 0; call < CALLS; call++) {
        shape *const one = &kept[draw(KEPT)];
        write_item(file, one, call);
        if (draw(2)) write_item(file, one, call);
        if (!draw(4)) read_through(file, one, call);
        if (draw(2)) {
            MPI_Type_free(&one->type);
            *one = make();
        }
    }
    for (int i = 0; i < KEPT; i++) MPI_Type_free(&kept[i].type);
    CHECK_OK(MPI_File_close(&file));
    return check_end();
}
