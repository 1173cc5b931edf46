/* Datatypes, written in the script as constructors in prefix notation. */
#ifndef TYPES_H
#define TYPES_H

#include <mpi.h>

#include "script.h"

/* Enough for every list of a drawn type. */
enum { TYPES_LIST = 64 };

/* The size of the basic type that was read last: all basic types of one type are the same. */
static int types_leaf_bytes = 1;

/* Whether a distributed array was read since this was reset. */
static int types_has_darray;

static MPI_Datatype types_named(char letter) {
    switch (letter) {
        case 'b': return MPI_BYTE;
        case 'c': return MPI_CHAR;
        case 's': return MPI_SHORT;
        case 'i': return MPI_INT;
        case 'f': return MPI_FLOAT;
        case 'd': return MPI_DOUBLE;
        case 'l': return MPI_LONG_LONG;
    }
    fprintf(stderr, "no basic type is called `%c`\n", letter);
    exit(2);
}

static MPI_Datatype types_basic(char letter) {
    MPI_Datatype type = types_named(letter);
    MPI_Type_size(type, &types_leaf_bytes);
    return type;
}

static int types_is_named(MPI_Datatype type) {
    int integers, addresses, types, combiner;
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    return combiner == MPI_COMBINER_NAMED;
}

static void types_free(MPI_Datatype *type) {
    if (*type != MPI_DATATYPE_NULL && !types_is_named(*type)) MPI_Type_free(type);
    *type = MPI_DATATYPE_NULL;
}

static MPI_Datatype types_read(void);

/* Lists of numbers, as ints and as addresses. */
static int types_list(int count, int *integers, MPI_Aint *addresses) {
    for (int i = 0; i < count; i++) {
        addresses[i] = (MPI_Aint)script_number();
        integers[i] = (int)addresses[i];
    }
    return count;
}

static MPI_Datatype types_read_struct(void) {
    int count = script_int(), lengths[TYPES_LIST];
    MPI_Aint places[TYPES_LIST];
    MPI_Datatype fields[TYPES_LIST], type;
    for (int i = 0; i < count; i++) {
        lengths[i] = script_int();
        places[i] = (MPI_Aint)script_number();
        fields[i] = types_read();
    }
    MPI_Type_create_struct(count, lengths, places, fields, &type);
    for (int i = 0; i < count; i++) types_free(&fields[i]);
    return type;
}

static int types_order(void) { return script_word()[0] == 'C' ? MPI_ORDER_C : MPI_ORDER_FORTRAN; }

static int types_distribution(void) {
    switch (script_word()[0]) {
        case 'b': return MPI_DISTRIBUTE_BLOCK;
        case 'c': return MPI_DISTRIBUTE_CYCLIC;
        default: return MPI_DISTRIBUTE_NONE;
    }
}

static MPI_Datatype types_read_darray(void) {
    int size = script_int(), rank = script_int(), dims = script_int(), order = types_order();
    int sizes[TYPES_LIST], distributions[TYPES_LIST], arguments[TYPES_LIST], grid[TYPES_LIST];
    types_has_darray = 1;
    MPI_Datatype old, type;
    for (int i = 0; i < dims; i++) {
        sizes[i] = script_int();
        distributions[i] = types_distribution();
        arguments[i] = script_int();
        if (arguments[i] == 0) arguments[i] = MPI_DISTRIBUTE_DFLT_DARG;
        grid[i] = script_int();
    }
    old = types_read();
    MPI_Type_create_darray(size, rank, dims, sizes, distributions, arguments, grid, order, old, &type);
    types_free(&old);
    return type;
}

static MPI_Datatype types_read_subarray(void) {
    int dims = script_int(), order = types_order();
    int sizes[TYPES_LIST], parts[TYPES_LIST], starts[TYPES_LIST];
    MPI_Aint unused[TYPES_LIST];
    MPI_Datatype old, type;
    types_list(dims, sizes, unused);
    types_list(dims, parts, unused);
    types_list(dims, starts, unused);
    old = types_read();
    MPI_Type_create_subarray(dims, sizes, parts, starts, order, old, &type);
    types_free(&old);
    return type;
}

/* Constructors of blocks at displacements: lengths, then displacements, then the old type. */
static MPI_Datatype types_read_blocks(const char *name) {
    int lengths[TYPES_LIST], places[TYPES_LIST];
    MPI_Aint unused[TYPES_LIST], addresses[TYPES_LIST];
    MPI_Datatype old, type;
    char kind[32];
    snprintf(kind, sizeof kind, "%s", name);
    int single = script_is(kind, "indexed_block") || script_is(kind, "hindexed_block");
    int count = script_int();
    types_list(single ? 1 : count, lengths, unused);
    types_list(count, places, addresses);
    old = types_read();
    if (script_is(kind, "indexed")) MPI_Type_indexed(count, lengths, places, old, &type);
    else if (script_is(kind, "hindexed")) MPI_Type_create_hindexed(count, lengths, addresses, old, &type);
    else if (script_is(kind, "indexed_block")) MPI_Type_create_indexed_block(count, lengths[0], places, old, &type);
    else MPI_Type_create_hindexed_block(count, lengths[0], addresses, old, &type);
    types_free(&old);
    return type;
}

static MPI_Datatype types_read_vector(int in_bytes) {
    int count = script_int(), length = script_int();
    long long stride = script_number();
    MPI_Datatype old = types_read(), type;
    if (in_bytes) MPI_Type_create_hvector(count, length, (MPI_Aint)stride, old, &type);
    else MPI_Type_vector(count, length, (int)stride, old, &type);
    types_free(&old);
    return type;
}

static MPI_Datatype types_read(void) {
    const char *name = script_word();
    MPI_Datatype old, type;
    if (name[1] == '\0') return types_basic(name[0]);
    if (script_is(name, "vector")) return types_read_vector(0);
    if (script_is(name, "hvector")) return types_read_vector(1);
    if (script_is(name, "struct")) return types_read_struct();
    if (script_is(name, "subarray")) return types_read_subarray();
    if (script_is(name, "darray")) return types_read_darray();
    if (strstr(name, "indexed")) return types_read_blocks(name);
    if (script_is(name, "contiguous")) {
        int count = script_int();
        old = types_read();
        MPI_Type_contiguous(count, old, &type);
    } else if (script_is(name, "resized")) {
        MPI_Aint low = (MPI_Aint)script_number(), extent = (MPI_Aint)script_number();
        old = types_read();
        MPI_Type_create_resized(old, low, extent, &type);
    } else if (script_is(name, "dup")) {
        old = types_read();
        MPI_Type_dup(old, &type);
    } else {
        fprintf(stderr, "no constructor is called `%s`\n", name);
        exit(2);
    }
    types_free(&old);
    return type;
}

/* A type that can be used in a call. */
static MPI_Datatype types_read_committed(void) {
    MPI_Datatype type = types_read();
    MPI_Type_commit(&type);
    return type;
}

#endif
