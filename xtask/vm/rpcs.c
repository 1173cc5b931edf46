/* Counts the RPCs that NFS clients send for some patterns of access, one rank per node, from /proc/self/mountstats.
 * Locks of NFS 3 use another protocol and are not counted: use version 4.
 *
 * usage: rpcs DIRECTORY [NAME], on NFS; prints a line per pattern whose name contains NAME: its name, then RPCs per
 * write and per read call of a rank.
 * With RPCS_BY_NAME in the environment, the RPCs of all ranks by name follow each line.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 128, NAME_MAX_LEN = 64, CONTENDED_CALLS = 40 };

static int rank, size;

/* RPCs by name, in the order of the kernel's list, which is the same on all nodes. */
struct counts {
    int names;
    char name[NAMES_MAX][NAME_MAX_LEN];
    long count[NAMES_MAX];
};

/* The RPCs that this node's client has sent so far, but for those that keep its lease. */
static struct counts count_rpcs(const char *directory) {
    FILE *file = fopen("/proc/self/mountstats", "r");
    char line[4096], name[NAME_MAX_LEN], point[4096] = "";
    struct counts all = {0};
    long count;
    int is_mount = 0, is_list = 0;
    if (!file) MPI_Abort(MPI_COMM_WORLD, 1);
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "device %*s mounted on %4095s", point) == 1) {
            is_mount = !strncmp(point, directory, strlen(point)) && strstr(line, "fstype nfs");
            is_list = 0;
        }
        if (is_mount && strstr(line, "per-op statistics")) is_list = 1;
        else if (is_mount && is_list && sscanf(line, " %63[A-Z_]: %ld", name, &count) == 2 && strcmp(name, "RENEW") &&
                 strcmp(name, "SEQUENCE") && all.names < NAMES_MAX) {
            strcpy(all.name[all.names], name);
            all.count[all.names++] = count;
        }
    }
    fclose(file);
    return all;
}

/* The sum of what all ranks have sent since. */
static struct counts sent_since(const struct counts *before, const char *directory) {
    struct counts now = count_rpcs(directory);
    for (int i = 0; i < now.names; i++) now.count[i] -= before->count[i];
    MPI_Allreduce(MPI_IN_PLACE, now.count, now.names, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return now;
}

static double sum(const struct counts *counts) {
    long sum = 0;
    for (int i = 0; i < counts->names; i++) sum += counts->count[i];
    return (double)sum;
}

static void print_names(const char *call, const struct counts *counts) {
    printf("  %s:", call);
    for (int i = 0; i < counts->names; i++)
        if (counts->count[i]) printf(" %s %ld", counts->name[i], counts->count[i]);
    printf("\n");
}

struct pattern {
    const char *name;
    int piece, count, calls; /* bytes per piece, pieces per call, calls */
    int collective, interleaved;
    int contended; /* every call writes the same range */
};

static const struct pattern patterns[] = {
    {"strided, collective, 1000 B", 1000, 100, 1, 1, 1},
    {"strided, collective, 65000 B", 65000, 20, 1, 1, 1},
    {"strided, independent, 1000 B", 1000, 100, 1, 0, 1},
    {"contiguous, collective, 1 MiB", 1 << 20, 1, 4, 1, 0},
    {"contiguous, independent, 1 MiB", 1 << 20, 1, 4, 0, 0},
    {"contiguous, independent, 256 KiB", 1 << 18, 1, 16, 0, 0},
    {"small calls, independent, 1000 B", 1000, 1, 100, 0, 1},
    {"small calls, collective, 1000 B", 1000, 1, 100, 1, 1},
    {"contended, independent, 1000 B", 1000, 20, CONTENDED_CALLS, 0, 1, 1},
};

/* Prints how many calls the slowest rank had made when the first had made all of them, and the longest call. */
static void print_fairness(const double *ends, double start) {
    double first, longest = ends[0] - start, longest_of_all;
    int made = 0, fewest;
    MPI_Allreduce(&ends[CONTENDED_CALLS - 1], &first, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    for (int i = 0; i < CONTENDED_CALLS; i++) {
        made += ends[i] <= first;
        if (i && ends[i] - ends[i - 1] > longest) longest = ends[i] - ends[i - 1];
    }
    MPI_Reduce(&made, &fewest, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&longest, &longest_of_all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("  the slowest rank had made %d of %d calls when the first was done; first %.0f ms, longest call %.0f ms\n",
               fewest, CONTENDED_CALLS, 1e3 * (first - start), 1e3 * longest_of_all);
}

static struct counts run(const struct pattern *pattern, const char *directory, int writing) {
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
    struct counts before = count_rpcs(directory);
    double ends[CONTENDED_CALLS], start_time = MPI_Wtime();
    for (int call = 0; call < pattern->calls; call++) {
        MPI_Offset at = pattern->contended ? 0 : (MPI_Offset)call * bytes;
        if (writing && pattern->collective) MPI_File_write_at_all(file, at, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        else if (writing) MPI_File_write_at(file, at, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        else if (pattern->collective) MPI_File_read_at_all(file, at, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        else MPI_File_read_at(file, at, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
        if (pattern->contended) ends[call] = MPI_Wtime();
    }
    /* What a client has put off. */
    if (writing) MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    struct counts sent = sent_since(&before, directory);
    if (pattern->contended && writing) print_fairness(ends, start_time);
    for (int i = 0; !writing && i < bytes; i++)
        if (data[i] != 'a' + rank) {
            printf("wrong data in %s\n", pattern->name);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    MPI_File_close(&file);
    MPI_Type_free(&view);
    MPI_Type_free(&block);
    free(data);
    return sent;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc < 2 || argc > 3) MPI_Abort(MPI_COMM_WORLD, 2);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        if (argc == 3 && !strstr(patterns[i].name, argv[2])) continue;
        struct counts written = run(&patterns[i], argv[1], 1), read = run(&patterns[i], argv[1], 0);
        double calls = (double)patterns[i].calls * size;
        if (rank != 0) continue;
        printf("%-34s %8.2f %8.2f\n", patterns[i].name, sum(&written) / calls, sum(&read) / calls);
        if (!getenv("RPCS_BY_NAME")) continue;
        print_names("write", &written);
        print_names("read", &read);
    }
    MPI_Finalize();
    return 0;
}
