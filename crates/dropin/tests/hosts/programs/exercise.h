/* A bit of everything that ranks do together: strided, ordered, shared and nonblocking access. */
#ifndef EXERCISE_H
#define EXERCISE_H

#include "../../programs/check.h"

enum { EXERCISE_PIECE = 64, EXERCISE_PIECES = 4096, EXERCISE_BYTES = EXERCISE_PIECE * EXERCISE_PIECES };

/* Rank r's data byte k of a file whose pieces go round the ranks. */
static inline long long exercise_offset(long long k) {
    return (k / EXERCISE_PIECE * check.size + check.rank) * EXERCISE_PIECE + k % EXERCISE_PIECE;
}

static inline void exercise_fill(char *bytes, int salt) {
    for (long long k = 0; k < EXERCISE_BYTES; k++) bytes[k] = (char)check_byte(exercise_offset(k), salt);
}

/* Pieces of all ranks interleave; every rank reads its own back, and rank 0 the file by POSIX. */
static inline void exercise_strided(const char *path, int salt) {
    MPI_File file;
    MPI_Datatype piece, view;
    MPI_Status status;
    char *out = malloc(EXERCISE_BYTES), *in = calloc(1, EXERCISE_BYTES);
    MPI_Type_contiguous(EXERCISE_PIECE, MPI_BYTE, &piece);
    MPI_Type_create_resized(piece, 0, (MPI_Aint)EXERCISE_PIECE * check.size, &view);
    MPI_Type_commit(&view);
    exercise_fill(out, salt);
    CHECK_OK(MPI_File_open(check.comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_set_view(file, (MPI_Offset)check.rank * EXERCISE_PIECE, MPI_BYTE, view, "native", MPI_INFO_NULL));
    CHECK_OK(MPI_File_write_all(file, out, EXERCISE_BYTES, MPI_BYTE, &status));
    CHECK_COUNT(status, MPI_BYTE, EXERCISE_BYTES);
    CHECK_OK(MPI_File_read_at_all(file, 0, in, EXERCISE_BYTES, MPI_BYTE, &status));
    CHECK_COUNT(status, MPI_BYTE, EXERCISE_BYTES);
    CHECK(memcmp(in, out, EXERCISE_BYTES) == 0, "what is read is what was written");
    CHECK_OK(MPI_File_close(&file));
    long long whole = (long long)EXERCISE_BYTES * check.size;
    check_barrier();
    if (check.rank == 0) {
        char *expected = malloc((size_t)whole);
        check_fill(expected, 0, (size_t)whole, salt);
        CHECK_EQ(check_size(path), whole);
        CHECK_FILE(path, 0, expected, (size_t)whole);
        free(expected);
    }
    MPI_Type_free(&piece);
    MPI_Type_free(&view);
    free(out);
    free(in);
}

/* Ordered and shared records, then nonblocking collectives over them. */
static inline void exercise_pointers(const char *path) {
    MPI_File file;
    MPI_Offset end;
    MPI_Status status;
    MPI_Request requests[2];
    int record[256], back[2][256];
    for (int i = 0; i < 256; i++) record[i] = check.rank;
    CHECK_OK(MPI_File_open(check.comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_write_ordered(file, record, 256, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, 256);
    CHECK_OK(MPI_File_write_shared(file, record, 256, MPI_INT, &status));
    check_barrier();
    CHECK_OK(MPI_File_get_position_shared(file, &end));
    CHECK_EQ(end, 2 * (long long)sizeof record * check.size);
    int other = (check.rank + 1) % check.size;
    MPI_Offset places[2] = {(MPI_Offset)sizeof record * other, (MPI_Offset)sizeof record * check.rank};
    CHECK_OK(MPI_File_iread_at_all(file, places[0], back[0], 256, MPI_INT, &requests[0]));
    CHECK_OK(MPI_File_iread_at_all(file, places[1], back[1], 256, MPI_INT, &requests[1]));
    CHECK_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK_EQ(back[0][0], other);
    CHECK_EQ(back[0][255], other);
    CHECK_EQ(back[1][255], check.rank);
    CHECK_OK(MPI_File_close(&file));
}

static inline void exercise(void) {
    exercise_strided(check_path("strided"), 1);
    exercise_pointers(check_path("pointers"));
    exercise_strided(check_path("again"), 2);
}

#endif
