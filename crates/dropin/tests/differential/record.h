/* What a rank saw, one `STEP.KEY VALUE` per line, which the driver compares. */
#ifndef RECORD_H
#define RECORD_H

#include <mpi.h>
#include <stdio.h>

/* Longer contents are recorded as their length and a hash. */
enum { RECORD_SHOWN = 4096 };

static FILE *record;

#define RECORD_CLASS(name) {MPI_ERR_##name, #name}

/* The names of error classes, whose values differ between hosts. */
static const char *record_class_name(int code) {
    static const struct { int class; const char *name; } names[] = {
        RECORD_CLASS(BUFFER), RECORD_CLASS(COUNT), RECORD_CLASS(TYPE), RECORD_CLASS(COMM), RECORD_CLASS(ACCESS),
        RECORD_CLASS(AMODE), RECORD_CLASS(ARG), RECORD_CLASS(OTHER), RECORD_CLASS(INTERN), RECORD_CLASS(IN_STATUS),
        RECORD_CLASS(BAD_FILE), RECORD_CLASS(FILE_EXISTS), RECORD_CLASS(FILE), RECORD_CLASS(IO),
        RECORD_CLASS(NO_MEM), RECORD_CLASS(NOT_SAME), RECORD_CLASS(NO_SPACE), RECORD_CLASS(NO_SUCH_FILE),
        RECORD_CLASS(READ_ONLY), RECORD_CLASS(UNSUPPORTED_OPERATION), RECORD_CLASS(REQUEST), RECORD_CLASS(PENDING),
        RECORD_CLASS(UNSUPPORTED_DATAREP), RECORD_CLASS(FILE_IN_USE), RECORD_CLASS(INFO), RECORD_CLASS(TRUNCATE)};
    int class = MPI_SUCCESS;
    if (code == MPI_SUCCESS) return "success";
    MPI_Error_class(code, &class);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].class == class) return names[i].name;
    return "unknown";
}

static void record_class(int step, const char *key, int code) {
    fprintf(record, "%d.%s %s\n", step, key, record_class_name(code));
}

static void record_number(int step, const char *key, long long number) {
    fprintf(record, "%d.%s %lld\n", step, key, number);
}

static void record_hash(int step, const char *key, const unsigned char *bytes, long long count) {
    unsigned long long hash = 0xcbf29ce484222325ull;
    for (long long i = 0; i < count; i++) hash = (hash ^ bytes[i]) * 0x100000001b3ull;
    fprintf(record, "%d.%s #%lld:%016llx\n", step, key, count, hash);
}

static void record_bytes(int step, const char *key, const unsigned char *bytes, long long count) {
    if (count > RECORD_SHOWN) {
        record_hash(step, key, bytes, count);
        return;
    }
    fprintf(record, "%d.%s =", step, key);
    for (long long i = 0; i < count; i++) {
        putc("0123456789abcdef"[bytes[i] >> 4], record);
        putc("0123456789abcdef"[bytes[i] & 15], record);
    }
    putc('\n', record);
}

/* How much a status says was moved. Elements are asked for unless `leaf_bytes` is 0: MPICH's
 * MPI_Get_elements aborts on distributed arrays, and where a basic element was moved in part. */
static void record_status(int step, MPI_Status *status, MPI_Datatype type, int leaf_bytes) {
    int count = -1, elements = -1, bytes = -1;
    MPI_Get_count(status, type, &count);
    MPI_Get_count(status, MPI_BYTE, &bytes);
    record_number(step, "count", count == MPI_UNDEFINED ? -1 : count);
    record_number(step, "bytes", bytes == MPI_UNDEFINED ? -1 : bytes);
    if (leaf_bytes == 0 || bytes <= 0 || bytes % leaf_bytes != 0) return;
    MPI_Get_elements(status, type, &elements);
    record_number(step, "elements", elements == MPI_UNDEFINED ? -1 : elements);
}

#endif
