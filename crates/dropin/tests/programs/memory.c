/* ranks: 1 2 3 4
 * Collective calls with millions of small pieces: memory grows by buffers of a fixed size, not with
 * the number of pieces.
 */
#include "check.h"

enum { DATA = 16 << 20, MOST_KB = 24 << 10 };

static char *data, *back;

/* A number of /proc/self/status, in KiB. */
static long status_kb(const char *name) {
    char line[256];
    long value = -1;
    FILE *file = fopen("/proc/self/status", "r");
    if (!file) return value;
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name))) value = atol(line + strlen(name) + 1);
    fclose(file);
    return value;
}

/* Forgets the highest memory use so far; without the right to, the program's own one stays. */
static void forget_peak(void) {
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (!file) return;
    fputs("5", file);
    fclose(file);
}

static void run(const char *path, int piece) {
    MPI_File file;
    MPI_Status status;
    MPI_Datatype bytes, filetype;
    MPI_Type_contiguous(piece, MPI_BYTE, &bytes);
    MPI_Type_create_resized(bytes, 0, (MPI_Aint)piece * check.size, &filetype);
    MPI_Type_commit(&filetype);
    memset(back, 0, DATA);
    check_remove(path);
    forget_peak();
    long before = status_kb("VmHWM");
    CHECK_OK(MPI_File_open(check.comm, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_set_view(file, (MPI_Offset)check.rank * piece, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    CHECK_OK(MPI_File_write_at_all(file, 0, data, DATA, MPI_BYTE, &status));
    CHECK_COUNT(status, MPI_BYTE, DATA);
    CHECK_OK(MPI_File_read_at_all(file, 0, back, DATA, MPI_BYTE, &status));
    CHECK_COUNT(status, MPI_BYTE, DATA);
    long grown = status_kb("VmHWM") - before;
    CHECK(grown <= MOST_KB, "%d pieces of %d bytes: grown by %ld KiB, allowed are %d", DATA / piece, piece, grown, MOST_KB);
    CHECK(memcmp(data, back, DATA) == 0, "pieces of %d bytes come back", piece);
    CHECK_OK(MPI_File_close(&file));
    MPI_Type_free(&bytes);
    MPI_Type_free(&filetype);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    const char *path = check_path("pieces");
    data = malloc(DATA);
    back = malloc(DATA);
    check_fill(data, (long long)check.rank * DATA, DATA, 3);
    run(path, 1 << 20);
    run(path, 64);
    run(path, 8);
    check_remove(path);
    free(data);
    free(back);
    return check_end();
}
