#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int rank, ranks, wrong;
static MPI_File file;

struct access {
    MPI_Datatype type;
    int count;
    unsigned char *memory;
    void *buffer;
    MPI_Request request;
    MPI_Status status;
};

static unsigned char pattern(unsigned salt, long i) {
    unsigned x = salt * 2654435761u + (unsigned)i * 40503u + 12345u;
    x ^= x >> 13;
    x *= 0x5bd1e995u;
    return (unsigned char)(x >> 15);
}

/* Memory of so many bytes with the buffer's address 0 at `origin`. */
static void prepare(struct access *it, MPI_Datatype type, long count, long bytes, long origin, unsigned salt) {
    MPI_Type_commit(&type);
    it->type = type;
    it->count = (int)count;
    it->memory = malloc((size_t)bytes);
    for (long i = 0; i < bytes; i++) it->memory[i] = pattern(salt, i);
    it->buffer = it->memory + origin;
    memset(&it->status, 0, sizeof it->status);
}

/* The same memory by absolute addresses. */
static void use_bottom(struct access *it) {
    MPI_Datatype several, absolute;
    MPI_Aint address;
    int one = 1;
    MPI_Get_address(it->buffer, &address);
    MPI_Type_contiguous(it->count, it->type, &several);
    MPI_Type_create_struct(1, &one, &address, &several, &absolute);
    MPI_Type_commit(&absolute);
    it->type = absolute;
    it->buffer = MPI_BOTTOM;
    it->count = 1;
}

static void is_class(int step, const char *what, int code, int expected) {
    int class = code;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
    if (class == expected) return;
    printf("step %d, rank %d: %s has class %d, not %d\n", step, rank, what, class, expected);
    wrong = 1;
}

static void is_number(int step, const char *what, long long found, long long expected) {
    if (found == expected) return;
    printf("step %d, rank %d: %s is %lld, not %lld\n", step, rank, what, found, expected);
    wrong = 1;
}

/* Bytes as hexadecimal digits after `=`, or as `#LENGTH:HASH`. */
static void are_bytes(int step, const char *what, const unsigned char *bytes, long count, const char *expected) {
    char *found = malloc(2 * (size_t)count + 64);
    if (*expected == '#') {
        unsigned long long hash = 0xcbf29ce484222325ull;
        for (long i = 0; i < count; i++) hash = (hash ^ bytes[i]) * 0x100000001b3ull;
        sprintf(found, "#%ld:%016llx", count, hash);
    } else {
        found[0] = '=';
        found[1] = '\0';
        for (long i = 0; i < count; i++) sprintf(found + 1 + 2 * i, "%02x", bytes[i]);
    }
    if (strcmp(found, expected) != 0) {
        printf("step %d, rank %d: %s\n  is  %s\n  not %s\n", step, rank, what, found, expected);
        wrong = 1;
    }
    free(found);
}

static long count_of(struct access *it, MPI_Datatype type) {
    int count = -1;
    MPI_Get_count(&it->status, type, &count);
    return count == MPI_UNDEFINED ? -1 : count;
}

static long elements_of(struct access *it) {
    int elements = -1;
    MPI_Get_elements(&it->status, it->type, &elements);
    return elements == MPI_UNDEFINED ? -1 : elements;
}

static MPI_Offset position(void) {
    MPI_Offset offset = -1;
    MPI_File_get_position(file, &offset);
    return offset;
}

static MPI_Offset byte_offset(void) {
    MPI_Offset byte = -1;
    MPI_File_get_byte_offset(file, position(), &byte);
    return byte;
}

static MPI_Offset shared_position(void) {
    MPI_Offset offset = -1;
    MPI_File_get_position_shared(file, &offset);
    return offset;
}

static MPI_Offset size(void) {
    MPI_Offset bytes = -1;
    MPI_File_get_size(file, &bytes);
    return bytes;
}

static void fill(const char *path, long bytes, unsigned salt) {
    FILE *stream = fopen(path, "w");
    for (long i = 0; i < bytes; i++) putc(pattern(salt, i), stream);
    fclose(stream);
}

static void is_file(int step, const char *path, const char *expected) {
    struct stat facts;
    FILE *stream = stat(path, &facts) == 0 ? fopen(path, "r") : NULL;
    if (!stream || strcmp(expected, "absent") == 0) {
        if (!stream != !strcmp(expected, "absent")) printf("step %d: the file is %s\n", step, stream ? "there" : "absent");
        wrong |= !stream != !strcmp(expected, "absent");
        return;
    }
    unsigned char *bytes = malloc((size_t)facts.st_size + 1);
    long count = (long)fread(bytes, 1, (size_t)facts.st_size, stream);
    are_bytes(step, "the file", bytes, count, expected);
    fclose(stream);
}
