/* needs: tool
 * A profiling library: counts the calls of MPI_File_* that a program makes, passes them on by their
 * PMPI_ names, and says at the end what it saw:
 *   pmpi_tool: N file calls: open 2 close 2 ...
 * (N over all ranks, the kinds those of rank 0).
 * In front of a drop-in library it sees every call; behind it, none.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { KINDS_MAX = 128 };

static struct {
    const char *name;
    long calls;
} kinds[KINDS_MAX];

static void note(const char *name) {
    for (int i = 0; i < KINDS_MAX; i++) {
        if (kinds[i].name == NULL) kinds[i].name = name;
        if (strcmp(kinds[i].name, name) == 0) {
            kinds[i].calls++;
            return;
        }
    }
}

#define WRAP(name, parameters, arguments) \
    int MPI_File_##name parameters { \
        note(#name); \
        return PMPI_File_##name arguments; \
    }

/* Groups that share their parameters. */
#define READ(name) WRAP(name, (MPI_File f, void *b, int n, MPI_Datatype t, MPI_Status *s), (f, b, n, t, s))
#define WRITE(name) WRAP(name, (MPI_File f, const void *b, int n, MPI_Datatype t, MPI_Status *s), (f, b, n, t, s))
#define READ_AT(name) WRAP(name, (MPI_File f, MPI_Offset o, void *b, int n, MPI_Datatype t, MPI_Status *s), (f, o, b, n, t, s))
#define WRITE_AT(name) WRAP(name, (MPI_File f, MPI_Offset o, const void *b, int n, MPI_Datatype t, MPI_Status *s), (f, o, b, n, t, s))
#define IREAD(name) WRAP(name, (MPI_File f, void *b, int n, MPI_Datatype t, MPI_Request *r), (f, b, n, t, r))
#define IWRITE(name) WRAP(name, (MPI_File f, const void *b, int n, MPI_Datatype t, MPI_Request *r), (f, b, n, t, r))
#define IREAD_AT(name) WRAP(name, (MPI_File f, MPI_Offset o, void *b, int n, MPI_Datatype t, MPI_Request *r), (f, o, b, n, t, r))
#define IWRITE_AT(name) WRAP(name, (MPI_File f, MPI_Offset o, const void *b, int n, MPI_Datatype t, MPI_Request *r), (f, o, b, n, t, r))
#define BEGIN_READ(name) WRAP(name, (MPI_File f, void *b, int n, MPI_Datatype t), (f, b, n, t))
#define BEGIN_WRITE(name) WRAP(name, (MPI_File f, const void *b, int n, MPI_Datatype t), (f, b, n, t))
#define END_READ(name) WRAP(name, (MPI_File f, void *b, MPI_Status *s), (f, b, s))
#define END_WRITE(name) WRAP(name, (MPI_File f, const void *b, MPI_Status *s), (f, b, s))

WRAP(open, (MPI_Comm c, const char *p, int m, MPI_Info i, MPI_File *f), (c, p, m, i, f))
WRAP(close, (MPI_File * f), (f))
WRAP(delete, (const char *p, MPI_Info i), (p, i))
WRAP(set_size, (MPI_File f, MPI_Offset o), (f, o))
WRAP(preallocate, (MPI_File f, MPI_Offset o), (f, o))
WRAP(get_size, (MPI_File f, MPI_Offset *o), (f, o))
WRAP(get_group, (MPI_File f, MPI_Group *g), (f, g))
WRAP(get_amode, (MPI_File f, int *m), (f, m))
WRAP(set_info, (MPI_File f, MPI_Info i), (f, i))
WRAP(get_info, (MPI_File f, MPI_Info *i), (f, i))
WRAP(set_view, (MPI_File f, MPI_Offset o, MPI_Datatype e, MPI_Datatype t, const char *d, MPI_Info i), (f, o, e, t, d, i))
WRAP(get_view, (MPI_File f, MPI_Offset *o, MPI_Datatype *e, MPI_Datatype *t, char *d), (f, o, e, t, d))
READ_AT(read_at)
READ_AT(read_at_all)
WRITE_AT(write_at)
WRITE_AT(write_at_all)
IREAD_AT(iread_at)
IREAD_AT(iread_at_all)
IWRITE_AT(iwrite_at)
IWRITE_AT(iwrite_at_all)
READ(read)
READ(read_all)
READ(read_shared)
READ(read_ordered)
WRITE(write)
WRITE(write_all)
WRITE(write_shared)
WRITE(write_ordered)
IREAD(iread)
IREAD(iread_all)
IREAD(iread_shared)
IWRITE(iwrite)
IWRITE(iwrite_all)
IWRITE(iwrite_shared)
WRAP(read_at_all_begin, (MPI_File f, MPI_Offset o, void *b, int n, MPI_Datatype t), (f, o, b, n, t))
WRAP(write_at_all_begin, (MPI_File f, MPI_Offset o, const void *b, int n, MPI_Datatype t), (f, o, b, n, t))
BEGIN_READ(read_all_begin)
BEGIN_READ(read_ordered_begin)
BEGIN_WRITE(write_all_begin)
BEGIN_WRITE(write_ordered_begin)
END_READ(read_at_all_end)
END_READ(read_all_end)
END_READ(read_ordered_end)
END_WRITE(write_at_all_end)
END_WRITE(write_all_end)
END_WRITE(write_ordered_end)
WRAP(seek, (MPI_File f, MPI_Offset o, int w), (f, o, w))
WRAP(seek_shared, (MPI_File f, MPI_Offset o, int w), (f, o, w))
WRAP(get_position, (MPI_File f, MPI_Offset *o), (f, o))
WRAP(get_position_shared, (MPI_File f, MPI_Offset *o), (f, o))
WRAP(get_byte_offset, (MPI_File f, MPI_Offset o, MPI_Offset *d), (f, o, d))
WRAP(get_type_extent, (MPI_File f, MPI_Datatype t, MPI_Aint *e), (f, t, e))
WRAP(set_atomicity, (MPI_File f, int a), (f, a))
WRAP(get_atomicity, (MPI_File f, int *a), (f, a))
WRAP(sync, (MPI_File f), (f))

int MPI_Finalize(void) {
    long calls = 0, all = 0;
    int rank = -1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < KINDS_MAX && kinds[i].name; i++) calls += kinds[i].calls;
    PMPI_Reduce(&calls, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        fprintf(stderr, "pmpi_tool: %ld file calls:", all);
        for (int i = 0; i < KINDS_MAX && kinds[i].name; i++) fprintf(stderr, " %s %ld", kinds[i].name, kinds[i].calls);
        fprintf(stderr, "\n");
    }
    return PMPI_Finalize();
}
