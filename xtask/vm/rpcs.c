/* Counts the RPCs that NFS clients send for some patterns of access, one rank per node, from /proc/self/mountstats.
 * Locks of NFS 3 use another protocol and are not counted: use version 4.
 *
 * usage: rpcs DIRECTORY, on NFS; prints a line per pattern: its name, then RPCs per write and per read call of a rank.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

/* The RPCs that this node's client has sent so far, but for those that keep its lease. */
static long rpcs(const char *directory) {
    FILE *file = fopen("/proc/self/mountstats", "r");
    char line[4096], name[64], point[4096] = "";
    long sum = 0, count;
    int is_mount = 0, is_list = 0;
    if (!file) MPI_Abort(MPI_COMM_WORLD, 1);
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "device %*s mounted on %4095s", point) == 1) {
            is_mount = !strncmp(point, directory, strlen(point)) && strstr(line, "fstype nfs");
            is_list = 0;
        }
        if (is_mount && strstr(line, "per-op statistics")) is_list = 1;
        else if (is_mount && is_list && sscanf(line, " %63[A-Z_]: %ld", name, &count) == 2 && strcmp(name, "RENEW") &&
                 strcmp(name, "SEQUENCE"))
            sum += count;
    }
    fclose(file);
    return sum;
}

struct pattern {
    const char *name;
    int piece, count, calls; /* bytes per piece, pieces per call, calls */
    int collective, interleaved;
};

static const struct pattern patterns[] = {
    {"strided, collective, 1000 B", 1000, 100, 1, 1, 1},
    {"strided, collective, 65000 B", 65000, 20, 1, 1, 1},
    {"strided, independent, 1000 B", 1000, 100, 1, 0, 1},
    {"contiguous, collective, 1 MiB", 1 << 20, 1, 4, 1, 0},
    {"contiguous, independent, 1 MiB", 1 << 20, 1, 4, 0, 0},
    {"small calls, independent, 1000 B", 1000, 1, 100, 0, 1},
    {"small calls, collective, 1000 B", 1000, 1, 100, 1, 1},
};

static long run(const struct pattern *pattern, const char *directory, int writing) {
    char path[4096];
    int bytes = pattern->piece * pattern->count;
    char *data = malloc((size_t)bytes);
    MPI_Datatype block, view;
    MPI_File file;
    memset(data, 'a' + rank, (size_t)bytes);
    snprintf(path, sizeof path, "%s/rpcs.%ld", directory, (long)(pattern - patterns));
    int stride = pattern->interleaved ? pattern->piece * size : pattern->piece;
    MPI_Offset start = pattern->interleaved ? (MPI_Offset)rank * pattern->piece : (MPI_Offset)rank * bytes * pattern->calls;
    MPI_Type_contiguous(pattern->piece, MPI_BYTE, &block);
    MPI_Type_create_resized(block, 0, stride, &view);
    MPI_Type_commit(&view);
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, start, MPI_BYTE, view, "native", MPI_INFO_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    long before = rpcs(directory);
    for (int call = 0; call < pattern->calls; call++) {
        MPI_Offset at = (MPI_Offset)call * bytes;
        if (writing && pattern->collective) MPI_File_write_at_all(file, at, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        else if (writing) MPI_File_write_at(file, at, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        else if (pattern->collective) MPI_File_read_at_all(file, at, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        else MPI_File_read_at(file, at, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    /* What a client has put off. */
    if (writing) MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    long sent = rpcs(directory) - before, all = 0;
    MPI_Allreduce(&sent, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; !writing && i < bytes; i++)
        if (data[i] != 'a' + rank) {
            printf("wrong data in %s\n", pattern->name);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    MPI_File_close(&file);
    MPI_Type_free(&view);
    MPI_Type_free(&block);
    free(data);
    return all;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 2) MPI_Abort(MPI_COMM_WORLD, 2);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        long written = run(&patterns[i], argv[1], 1), read = run(&patterns[i], argv[1], 0);
        double calls = (double)patterns[i].calls * size;
        if (rank == 0) printf("%-34s %8.2f %8.2f\n", patterns[i].name, (double)written / calls, (double)read / calls);
    }
    MPI_Finalize();
    return 0;
}
