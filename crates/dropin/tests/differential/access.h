/* Data accesses: every family of calls, with the memory they use. */
#ifndef ACCESS_H
#define ACCESS_H

#include "record.h"
#include "types.h"

enum access_direction { ACCESS_READ, ACCESS_WRITE };
enum access_family { ACCESS_EXPLICIT, ACCESS_INDIVIDUAL, ACCESS_SHARED };
enum access_how { ACCESS_BLOCKING, ACCESS_NONBLOCKING, ACCESS_SPLIT };

/* One access of one rank. */
struct access {
    int step, active, collective, large, absolute, leaf_bytes;
    enum access_direction direction;
    enum access_family family;
    enum access_how how;
    long long offset, count, bytes, origin;
    unsigned salt;
    MPI_Datatype type;
    unsigned char *memory;
    void *buffer;
    MPI_Request request;
    MPI_Status status;
};

/* Byte `i` of a pattern. */
static unsigned char access_pattern(unsigned salt, long long i) {
    unsigned x = salt * 2654435761u + (unsigned)i * 40503u + 12345u;
    x ^= x >> 13;
    x *= 0x5bd1e995u;
    return (unsigned char)(x >> 15);
}

/* With absolute addresses, all of the access is one item of a type that begins at the address. */
static void access_address(struct access *it) {
    MPI_Datatype several, absolute;
    MPI_Aint address;
    int one = 1;
    MPI_Get_address(it->memory + it->origin, &address);
    MPI_Type_contiguous((int)it->count, it->type, &several);
    MPI_Type_create_struct(1, &one, &address, &several, &absolute);
    MPI_Type_commit(&absolute);
    MPI_Type_free(&several);
    types_free(&it->type);
    it->type = absolute;
    it->buffer = MPI_BOTTOM;
    it->count = 1;
}

static struct access *access_read_script(int step) {
    struct access *it = calloc(1, sizeof *it);
    it->step = step;
    it->direction = script_word()[0] == 'r' ? ACCESS_READ : ACCESS_WRITE;
    it->family = (enum access_family)script_int();
    it->collective = script_int();
    it->how = (enum access_how)script_int();
    it->active = script_int();
    it->offset = script_number();
    it->count = script_number();
    types_has_darray = 0;
    it->type = types_read_committed();
    it->leaf_bytes = types_has_darray ? 0 : types_leaf_bytes;
    it->absolute = script_int();
    it->large = script_int();
    it->bytes = script_number();
    it->origin = script_number();
    it->salt = (unsigned)script_number();
    it->memory = malloc((size_t)it->bytes + 1);
    for (long long i = 0; i < it->bytes; i++) it->memory[i] = access_pattern(it->salt, i);
    it->buffer = it->memory + it->origin;
    it->request = MPI_REQUEST_NULL;
    if (it->absolute) access_address(it);
    return it;
}

/* What is in the memory now, and in the status. */
static void access_record(struct access *it) {
    record_status(it->step, &it->status, it->type, it->leaf_bytes);
    record_bytes(it->step, "memory", it->memory, it->bytes);
}

static void access_free(struct access *it) {
    types_free(&it->type);
    free(it->memory);
    free(it);
}

/* Large counts where the host has them. */
#if MPI_VERSION >= 4
#define ACCESS_FORM(name, ...) (it->large ? name##_c(file, __VA_ARGS__) : name(file, __VA_ARGS__))
#else
#define ACCESS_FORM(name, ...) name(file, __VA_ARGS__)
#endif
#define ACCESS_NAME(prefix, suffix, ...) \
    (it->direction == ACCESS_READ ? ACCESS_FORM(MPI_File_##prefix##read##suffix, __VA_ARGS__) \
                                  : ACCESS_FORM(MPI_File_##prefix##write##suffix, __VA_ARGS__))
#define ACCESS_PLAIN(suffix, ...) \
    (it->direction == ACCESS_READ ? ACCESS_FORM(MPI_File_read##suffix, __VA_ARGS__) \
                                  : ACCESS_FORM(MPI_File_write##suffix, __VA_ARGS__))
#define ACCESS_DATA it->buffer, (int)it->count, it->type

static int access_blocking(MPI_File file, struct access *it) {
    MPI_Status *status = &it->status;
    switch (it->family) {
        case ACCESS_EXPLICIT:
            return it->collective ? ACCESS_PLAIN(_at_all, it->offset, ACCESS_DATA, status)
                                  : ACCESS_PLAIN(_at, it->offset, ACCESS_DATA, status);
        case ACCESS_INDIVIDUAL:
            return it->collective ? ACCESS_PLAIN(_all, ACCESS_DATA, status) : ACCESS_PLAIN(, ACCESS_DATA, status);
        case ACCESS_SHARED:
            return it->collective ? ACCESS_PLAIN(_ordered, ACCESS_DATA, status)
                                  : ACCESS_PLAIN(_shared, ACCESS_DATA, status);
    }
    return MPI_ERR_OTHER;
}

static int access_start(MPI_File file, struct access *it) {
    MPI_Request *request = &it->request;
    switch (it->family) {
        case ACCESS_EXPLICIT:
            return it->collective ? ACCESS_NAME(i, _at_all, it->offset, ACCESS_DATA, request)
                                  : ACCESS_NAME(i, _at, it->offset, ACCESS_DATA, request);
        case ACCESS_INDIVIDUAL:
            return it->collective ? ACCESS_NAME(i, _all, ACCESS_DATA, request)
                                  : ACCESS_NAME(i, , ACCESS_DATA, request);
        case ACCESS_SHARED: return ACCESS_NAME(i, _shared, ACCESS_DATA, request);
    }
    return MPI_ERR_OTHER;
}

static int access_begin(MPI_File file, struct access *it) {
    switch (it->family) {
        case ACCESS_EXPLICIT: return ACCESS_PLAIN(_at_all_begin, it->offset, ACCESS_DATA);
        case ACCESS_INDIVIDUAL: return ACCESS_PLAIN(_all_begin, ACCESS_DATA);
        case ACCESS_SHARED: return ACCESS_PLAIN(_ordered_begin, ACCESS_DATA);
    }
    return MPI_ERR_OTHER;
}

#define ACCESS_END(suffix) \
    (it->direction == ACCESS_READ ? MPI_File_read##suffix(file, it->buffer, &it->status) \
                                  : MPI_File_write##suffix(file, it->buffer, &it->status))

static int access_end(MPI_File file, struct access *it) {
    switch (it->family) {
        case ACCESS_EXPLICIT: return ACCESS_END(_at_all_end);
        case ACCESS_INDIVIDUAL: return ACCESS_END(_all_end);
        case ACCESS_SHARED: return ACCESS_END(_ordered_end);
    }
    return MPI_ERR_OTHER;
}

/* Calls; what is over at once is recorded and freed, else it stays pending. */
static struct access *access_call(MPI_File file, struct access *it) {
    int code;
    switch (it->how) {
        case ACCESS_BLOCKING: code = access_blocking(file, it); break;
        case ACCESS_NONBLOCKING: code = access_start(file, it); break;
        default: code = access_begin(file, it);
    }
    record_class(it->step, "class", code);
    if (it->how != ACCESS_BLOCKING && code == MPI_SUCCESS) return it;
    if (code == MPI_SUCCESS) access_record(it);
    else record_bytes(it->step, "memory", it->memory, it->bytes);
    access_free(it);
    return NULL;
}

#endif
