/* ranks: 1 2 3
 * needs: disk
 * Past 2 and 4 GiB: sizes, offsets, displacements, types and counts, in sparse files and with
 * little memory.
 */
#include "check.h"
#include <sys/mman.h>

static const long long GIB = 1LL << 30;

/* Addresses for `length` bytes that share the memory of a few: large buffers that cost nothing. */
static unsigned char *folded(size_t length) {
    enum { FOLD = 16 << 20 };
    int memory = memfd_create("folded", MFD_CLOEXEC);
    unsigned char *start = mmap(NULL, length + FOLD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory < 0 || start == MAP_FAILED || ftruncate(memory, FOLD)) return NULL;
    for (size_t at = 0; at < length; at += FOLD)
        if (mmap(start + at, FOLD, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory, 0) == MAP_FAILED) return NULL;
    close(memory);
    return start;
}

/* Addresses for `length` bytes, given memory only where they are touched. */
static unsigned char *untouched(size_t length) {
    void *start = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

static void sizes_and_offsets(void) {
    const char *path = check_path("sparse");
    static const long long places[] = {(1LL << 31) - 2, (1LL << 32) - 2, 5LL << 30, 1LL << 40};
    MPI_File file;
    MPI_Status status;
    MPI_Offset size = -1;
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_set_size(file, 6 * GIB));
    CHECK_OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, 6 * GIB);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        long long at = places[i] + check.rank * 100;
        unsigned char data[100], back[100];
        check_fill(data, at, 100, 1);
        CHECK_OK(MPI_File_write_at_all(file, at, data, 100, MPI_BYTE, &status));
        CHECK_COUNT(status, MPI_BYTE, 100);
        CHECK_OK(MPI_File_read_at(file, at, back, 100, MPI_BYTE, &status));
        CHECK_FILLED(back, at, 100, 1);
        CHECK_OK(MPI_File_seek(file, at, MPI_SEEK_SET));
        CHECK_OK(MPI_File_read_all(file, back, 50, MPI_BYTE, &status));
        CHECK_FILLED(back, at, 50, 1);
        CHECK_OK(MPI_File_get_position(file, &size));
        CHECK_EQ(size, at + 50);
        CHECK_OK(MPI_File_sync(file));
        check_barrier();
        CHECK_FILE(path, at, data, 100);
    }
    CHECK_OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, (1LL << 40) + 100 * check.size);
    CHECK_OK(MPI_File_seek_shared(file, 4 * GIB, MPI_SEEK_SET));
    unsigned char byte = 7;
    CHECK_OK(MPI_File_write_ordered(file, &byte, 1, MPI_BYTE, &status));
    CHECK_OK(MPI_File_get_position_shared(file, &size));
    CHECK_EQ(size, 4 * GIB + check.size);
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

/* Views whose pieces are gigabytes apart, and arrays of more than 2^31 elements. */
static void views(void) {
    const char *path = check_path("views");
    MPI_File file;
    MPI_Datatype type;
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    MPI_Type_create_hvector(3, 1, (MPI_Aint)(3 * GIB), MPI_INT, &type);
    MPI_Type_commit(&type);
    CHECK_OK(MPI_File_set_view(file, 4 * GIB + 4 * check.rank, MPI_INT, type, "native", MPI_INFO_NULL));
    int data[3] = {check.rank, check.rank + 10, check.rank + 20}, back[3] = {0};
    MPI_Status status;
    CHECK_OK(MPI_File_write_all(file, data, 3, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, 3);
    CHECK_OK(MPI_File_read_at_all(file, 0, back, 3, MPI_INT, &status));
    CHECK(memcmp(data, back, sizeof data) == 0, "%d %d %d", back[0], back[1], back[2]);
    CHECK_OK(MPI_File_sync(file));
    check_barrier();
    for (int i = 0; i < 3; i++) CHECK_FILE(path, (4 + 3 * i) * GIB + 4 * check.rank, &data[i], 4);
    MPI_Offset byte = -1;
    CHECK_OK(MPI_File_get_byte_offset(file, 2, &byte));
    CHECK_EQ(byte, 10 * GIB + 4 * check.rank);
    MPI_Type_free(&type);

    /* 70,000 x 70,000 doubles: a corner of 4 x 4 near the end. */
    int whole[2] = {70000, 70000}, part[2] = {4, 4}, start[2] = {69990, 69900 + 4 * check.rank};
    MPI_Type_create_subarray(2, whole, part, start, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    CHECK_OK(MPI_File_set_view(file, 0, MPI_DOUBLE, type, "native", MPI_INFO_NULL));
    double corner[16], again[16] = {0};
    for (int i = 0; i < 16; i++) corner[i] = check.rank * 100 + i;
    CHECK_OK(MPI_File_write_all(file, corner, 16, MPI_DOUBLE, &status));
    CHECK_OK(MPI_File_read_at_all(file, 0, again, 16, MPI_DOUBLE, &status));
    CHECK(memcmp(corner, again, sizeof corner) == 0, "%g %g", again[0], again[15]);
    CHECK_OK(MPI_File_sync(file));
    check_barrier();
    for (int i = 0; i < 4; i++) CHECK_FILE(path, ((69990LL + i) * 70000 + start[1]) * 8, &corner[4 * i], 32);
    CHECK_OK(MPI_File_close(&file));
    MPI_Type_free(&type);
    check_remove(path);
}

/* One item of 3 GiB, and 2^31 of one byte: more than the file has, so that little is moved. */
static void big_items(void) {
    const char *path = check_own_path("items");
    enum { LENGTH = 100000 };
    check_make(path, LENGTH, 2);
    MPI_File file;
    MPI_Status status;
    MPI_Datatype row, big;
    MPI_Type_contiguous(1 << 20, MPI_BYTE, &row);
    MPI_Type_contiguous(3 << 10, row, &big);
    MPI_Type_commit(&big);
    size_t capacity = (size_t)(6 * GIB);
    unsigned char *buffer = untouched(capacity);
    if (!CHECK(buffer != NULL, "addresses for %zu bytes", capacity)) return;
    CHECK_OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_read_at(file, 0, buffer, 2, big, &status));
    CHECK_COUNT(status, MPI_BYTE, LENGTH);
    CHECK_COUNT(status, big, MPI_UNDEFINED);
    CHECK_FILLED(buffer, 0, LENGTH, 2);
    memset(buffer, 0, LENGTH);
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK_OK(MPI_File_iread_at(file, 10, buffer, 1, big, &request));
    CHECK_OK(MPI_Wait(&request, &status));
    CHECK_COUNT(status, MPI_BYTE, LENGTH - 10);
    CHECK_FILLED(buffer, 10, LENGTH - 10, 2);
    int (*read_c)(MPI_File, MPI_Offset, void *, MPI_Count, MPI_Datatype, MPI_Status *);
    *(void **)&read_c = check_symbol("MPI_File_read_at_c");
    if (read_c) {
        memset(buffer, 0, LENGTH);
        CHECK_OK(read_c(file, 1, buffer, (MPI_Count)(5 * GIB), MPI_BYTE, &status));
        CHECK_COUNT(status, MPI_BYTE, LENGTH - 1);
        CHECK_FILLED(buffer, 1, LENGTH - 1, 2);
    }
    CHECK_OK(MPI_File_close(&file));
    munmap(buffer, capacity);
    MPI_Type_free(&big);
    MPI_Type_free(&row);
    unlink(path);
}

/* More than 2 GiB in one call: rank 0 reads a hole into folded memory. */
static void past_two_gib(void) {
    const char *path = check_path("hole");
    long long length = 2 * GIB + 4096;
    MPI_File file;
    MPI_Status status;
    if (check.rank != 0) return;
    int descriptor = open(path, O_CREAT | O_RDWR | O_TRUNC, 0644);
    unsigned char mark[16], *buffer = folded((size_t)length);
    check_fill(mark, length - 16, 16, 3);
    if (!CHECK(buffer && pwrite(descriptor, mark, 16, length - 16) == 16, "a hole of 2 GiB, and memory for it")) return;
    close(descriptor);
    MPI_Datatype row, big;
    MPI_Type_contiguous(1 << 20, MPI_BYTE, &row);
    MPI_Type_create_struct(2, (int[]){2048, 4096}, (MPI_Aint[]){0, (MPI_Aint)(2 * GIB)}, (MPI_Datatype[]){row, MPI_BYTE}, &big);
    MPI_Type_commit(&big);
    CHECK_OK(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_read_at(file, 0, buffer, 1, big, &status));
    MPI_Count bytes = -1;
    MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
    CHECK_EQ(bytes, length);
    CHECK_COUNT(status, big, 1);
    CHECK_COUNT(status, MPI_BYTE, MPI_UNDEFINED); /* it does not fit an int */
    CHECK_FILLED(buffer + length - 16, length - 16, 16, 3);
    CHECK_OK(MPI_File_close(&file));
    MPI_Type_free(&big);
    MPI_Type_free(&row);
    munmap(buffer, (size_t)length);
    unlink(path);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    sizes_and_offsets();
    views();
    past_two_gib();
    big_items();
    check_barrier();
    return check_end();
}
