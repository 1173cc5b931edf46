/* The data accesses of MPI-IO, each as one call that moves OWN bytes of a rank. */
#ifndef INJECTED_CALLS_H
#define INJECTED_CALLS_H
#include <mpi.h>

enum { PIECE = 1024, PIECES = 24, OWN = PIECE * PIECES };

typedef enum { READS, WRITES } direction;
typedef enum { ALONE, TOGETHER } company;
/* Whose position: a place that is known, or one that the shared pointer gives. */
typedef enum { KNOWN, SHARED, ORDERED } position;

typedef struct {
    const char *name;
    direction direction;
    company company;
    position position;
    int (*run)(MPI_File file, void *data, MPI_Status *status);
} access_call;

#define CALL(name, arguments) \
    static int call_##name(MPI_File file, void *data, MPI_Status *status) { return MPI_File_##name arguments; }

/* Nonblocking: an error may come from the start or from the end. */
#define STARTED(name, arguments) \
    static int call_##name(MPI_File file, void *data, MPI_Status *status) { \
        MPI_Request request = MPI_REQUEST_NULL; \
        int code = MPI_File_##name arguments; \
        return code == MPI_SUCCESS ? MPI_Wait(&request, status) : code; \
    }

#define SPLIT(name, arguments) \
    static int split_##name(MPI_File file, void *data, MPI_Status *status) { \
        int code = MPI_File_##name##_begin arguments; \
        return code == MPI_SUCCESS ? MPI_File_##name##_end(file, data, status) : code; \
    }

#define AT (file, 0, data, OWN, MPI_BYTE, status)
#define HERE (file, data, OWN, MPI_BYTE, status)
#define START_AT (file, 0, data, OWN, MPI_BYTE, &request)
#define START_HERE (file, data, OWN, MPI_BYTE, &request)
#define BEGIN_AT (file, 0, data, OWN, MPI_BYTE)
#define BEGIN_HERE (file, data, OWN, MPI_BYTE)

CALL(write_at, AT)
CALL(write, HERE)
CALL(write_shared, HERE)
CALL(write_at_all, AT)
CALL(write_all, HERE)
CALL(write_ordered, HERE)
STARTED(iwrite_at, START_AT)
STARTED(iwrite, START_HERE)
STARTED(iwrite_shared, START_HERE)
STARTED(iwrite_at_all, START_AT)
STARTED(iwrite_all, START_HERE)
SPLIT(write_at_all, BEGIN_AT)
SPLIT(write_all, BEGIN_HERE)
SPLIT(write_ordered, BEGIN_HERE)
CALL(read_at, AT)
CALL(read, HERE)
CALL(read_shared, HERE)
CALL(read_at_all, AT)
CALL(read_all, HERE)
CALL(read_ordered, HERE)
STARTED(iread_at, START_AT)
STARTED(iread, START_HERE)
STARTED(iread_shared, START_HERE)
STARTED(iread_at_all, START_AT)
STARTED(iread_all, START_HERE)
SPLIT(read_at_all, BEGIN_AT)
SPLIT(read_all, BEGIN_HERE)
SPLIT(read_ordered, BEGIN_HERE)

#define BOTH(name, company, position) \
    {"write" #name, WRITES, company, position, call_write##name}, {"read" #name, READS, company, position, call_read##name}
#define BOTH_STARTED(name, company, position) \
    {"iwrite" #name, WRITES, company, position, call_iwrite##name}, {"iread" #name, READS, company, position, call_iread##name}
#define BOTH_SPLIT(name, company, position) \
    {"split write" #name, WRITES, company, position, split_write##name}, \
        {"split read" #name, READS, company, position, split_read##name}

static const access_call access_calls[] = {
    BOTH(_at, ALONE, KNOWN),
    BOTH(, ALONE, KNOWN),
    BOTH(_shared, ALONE, SHARED),
    BOTH_STARTED(_at, ALONE, KNOWN),
    BOTH_STARTED(, ALONE, KNOWN),
    BOTH_STARTED(_shared, ALONE, SHARED),
    BOTH(_at_all, TOGETHER, KNOWN),
    BOTH(_all, TOGETHER, KNOWN),
    BOTH(_ordered, TOGETHER, ORDERED),
    BOTH_STARTED(_at_all, TOGETHER, KNOWN),
    BOTH_STARTED(_all, TOGETHER, KNOWN),
    BOTH_SPLIT(_at_all, TOGETHER, KNOWN),
    BOTH_SPLIT(_all, TOGETHER, KNOWN),
    BOTH_SPLIT(_ordered, TOGETHER, ORDERED),
};

enum { ACCESS_CALLS = sizeof access_calls / sizeof *access_calls };

#endif
