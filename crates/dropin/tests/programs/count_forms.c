/* ranks: 1 2 3 4 7
 * The thirty functions with counts of type MPI_Count, on every host: headers may lack them, so they
 * are declared here and looked up at run time.
 */
#include "check.h"

typedef int read_at_form(MPI_File, MPI_Offset, void *, MPI_Count, MPI_Datatype, MPI_Status *);
typedef int write_at_form(MPI_File, MPI_Offset, const void *, MPI_Count, MPI_Datatype, MPI_Status *);
typedef int iread_at_form(MPI_File, MPI_Offset, void *, MPI_Count, MPI_Datatype, MPI_Request *);
typedef int iwrite_at_form(MPI_File, MPI_Offset, const void *, MPI_Count, MPI_Datatype, MPI_Request *);
typedef int read_form(MPI_File, void *, MPI_Count, MPI_Datatype, MPI_Status *);
typedef int write_form(MPI_File, const void *, MPI_Count, MPI_Datatype, MPI_Status *);
typedef int iread_form(MPI_File, void *, MPI_Count, MPI_Datatype, MPI_Request *);
typedef int iwrite_form(MPI_File, const void *, MPI_Count, MPI_Datatype, MPI_Request *);
typedef int begin_at_read_form(MPI_File, MPI_Offset, void *, MPI_Count, MPI_Datatype);
typedef int begin_at_write_form(MPI_File, MPI_Offset, const void *, MPI_Count, MPI_Datatype);
typedef int begin_read_form(MPI_File, void *, MPI_Count, MPI_Datatype);
typedef int begin_write_form(MPI_File, const void *, MPI_Count, MPI_Datatype);
typedef int type_extent_form(MPI_File, MPI_Datatype, MPI_Count *);

enum { WORDS = 300 };

static MPI_File file;
static int data[WORDS], back[WORDS], steps;
static MPI_Status status;
static MPI_Request request = MPI_REQUEST_NULL;

/* Each step has its own part of the file; there, each rank has its own. */
static MPI_Offset place(int step) { return ((MPI_Offset)step * check.size + check.rank) * WORDS; }

static void fresh(void) {
    steps++;
    for (int i = 0; i < WORDS; i++) data[i] = steps << 16 | check.rank << 12 | i;
    memset(back, -1, sizeof back);
}

/* Pointers at this step's place: one's own, and the shared one at the place of the first rank. */
static void seek(void) {
    CHECK_OK(MPI_File_seek(file, place(steps), MPI_SEEK_SET));
    check_barrier();
    CHECK_OK(MPI_File_seek_shared(file, (MPI_Offset)steps * check.size * WORDS, MPI_SEEK_SET));
}

static void expect_moved(int code, const char *what) {
    CHECK(code == MPI_SUCCESS, "%s: %s", what, check_error_text(code));
    CHECK_COUNT(status, MPI_INT, WORDS);
}

static void expect_same(const char *what) { CHECK(memcmp(data, back, sizeof data) == 0, "%s reads what was written", what); }

/* Reads back in an order of its own: those of shared pointers may come from any rank's part. */
static void expect_somebodys(const char *what) {
    int owner = back[0] >> 12 & 15, same = owner < check.size;
    for (int i = 0; i < WORDS; i++) same &= back[i] == (steps << 16 | owner << 12 | i);
    CHECK(same, "%s: %#x %#x", what, back[0], back[WORDS - 1]);
}

#define FIND(kind, name) kind *name = NULL; *(void **)&name = check_symbol("MPI_File_" #name)
#define FINISH(code, what) do { int started = (code); expect_moved(started ? started : MPI_Wait(&request, &status), what); } while (0)

static void explicit_offsets(void) {
    FIND(write_at_form, write_at_c);
    FIND(read_at_form, read_at_c);
    FIND(write_at_form, write_at_all_c);
    FIND(read_at_form, read_at_all_c);
    FIND(iwrite_at_form, iwrite_at_c);
    FIND(iread_at_form, iread_at_c);
    FIND(iwrite_at_form, iwrite_at_all_c);
    FIND(iread_at_form, iread_at_all_c);
    if (!write_at_c || !read_at_c || !write_at_all_c || !read_at_all_c || !iwrite_at_c || !iread_at_c || !iwrite_at_all_c || !iread_at_all_c) return;
    fresh();
    expect_moved(write_at_c(file, place(steps), data, WORDS, MPI_INT, &status), "write_at_c");
    expect_moved(read_at_c(file, place(steps), back, WORDS, MPI_INT, &status), "read_at_c");
    expect_same("read_at_c");
    fresh();
    expect_moved(write_at_all_c(file, place(steps), data, WORDS, MPI_INT, &status), "write_at_all_c");
    expect_moved(read_at_all_c(file, place(steps), back, WORDS, MPI_INT, &status), "read_at_all_c");
    expect_same("read_at_all_c");
    fresh();
    FINISH(iwrite_at_c(file, place(steps), data, WORDS, MPI_INT, &request), "iwrite_at_c");
    FINISH(iread_at_c(file, place(steps), back, WORDS, MPI_INT, &request), "iread_at_c");
    expect_same("iread_at_c");
    fresh();
    FINISH(iwrite_at_all_c(file, place(steps), data, WORDS, MPI_INT, &request), "iwrite_at_all_c");
    FINISH(iread_at_all_c(file, place(steps), back, WORDS, MPI_INT, &request), "iread_at_all_c");
    expect_same("iread_at_all_c");
    CHECK_CLASS(write_at_c(file, 0, data, -1, MPI_INT, &status), MPI_ERR_COUNT, MPI_ERR_ARG);
    CHECK_CLASS(read_at_c(file, -1, data, 1, MPI_INT, &status), MPI_ERR_ARG);
}

static void own_pointers(void) {
    FIND(write_form, write_c);
    FIND(read_form, read_c);
    FIND(write_form, write_all_c);
    FIND(read_form, read_all_c);
    FIND(iwrite_form, iwrite_c);
    FIND(iread_form, iread_c);
    FIND(iwrite_form, iwrite_all_c);
    FIND(iread_form, iread_all_c);
    if (!write_c || !read_c || !write_all_c || !read_all_c || !iwrite_c || !iread_c || !iwrite_all_c || !iread_all_c) return;
    fresh();
    seek();
    expect_moved(write_c(file, data, WORDS, MPI_INT, &status), "write_c");
    seek();
    expect_moved(read_c(file, back, WORDS, MPI_INT, &status), "read_c");
    expect_same("read_c");
    fresh();
    seek();
    expect_moved(write_all_c(file, data, WORDS, MPI_INT, &status), "write_all_c");
    seek();
    expect_moved(read_all_c(file, back, WORDS, MPI_INT, &status), "read_all_c");
    expect_same("read_all_c");
    fresh();
    seek();
    FINISH(iwrite_c(file, data, WORDS, MPI_INT, &request), "iwrite_c");
    seek();
    FINISH(iread_c(file, back, WORDS, MPI_INT, &request), "iread_c");
    expect_same("iread_c");
    fresh();
    seek();
    FINISH(iwrite_all_c(file, data, WORDS, MPI_INT, &request), "iwrite_all_c");
    seek();
    FINISH(iread_all_c(file, back, WORDS, MPI_INT, &request), "iread_all_c");
    expect_same("iread_all_c");
    MPI_Offset at = -1;
    CHECK_OK(MPI_File_get_position(file, &at));
    CHECK_EQ(at, place(steps) + WORDS);
}

static void shared_pointers(void) {
    FIND(write_form, write_shared_c);
    FIND(read_form, read_shared_c);
    FIND(iwrite_form, iwrite_shared_c);
    FIND(iread_form, iread_shared_c);
    FIND(write_form, write_ordered_c);
    FIND(read_form, read_ordered_c);
    if (!write_shared_c || !read_shared_c || !iwrite_shared_c || !iread_shared_c || !write_ordered_c || !read_ordered_c) return;
    fresh();
    seek();
    expect_moved(write_shared_c(file, data, WORDS, MPI_INT, &status), "write_shared_c");
    CHECK_OK(MPI_File_sync(file));
    seek();
    expect_moved(read_shared_c(file, back, WORDS, MPI_INT, &status), "read_shared_c");
    expect_somebodys("read_shared_c");
    fresh();
    seek();
    FINISH(iwrite_shared_c(file, data, WORDS, MPI_INT, &request), "iwrite_shared_c");
    CHECK_OK(MPI_File_sync(file));
    seek();
    FINISH(iread_shared_c(file, back, WORDS, MPI_INT, &request), "iread_shared_c");
    expect_somebodys("iread_shared_c");
    fresh();
    seek();
    expect_moved(write_ordered_c(file, data, WORDS, MPI_INT, &status), "write_ordered_c");
    seek();
    expect_moved(read_ordered_c(file, back, WORDS, MPI_INT, &status), "read_ordered_c");
    expect_same("read_ordered_c");
}

static void split(void) {
    FIND(begin_at_write_form, write_at_all_begin_c);
    FIND(begin_at_read_form, read_at_all_begin_c);
    FIND(begin_write_form, write_all_begin_c);
    FIND(begin_read_form, read_all_begin_c);
    FIND(begin_write_form, write_ordered_begin_c);
    FIND(begin_read_form, read_ordered_begin_c);
    if (!write_at_all_begin_c || !read_at_all_begin_c || !write_all_begin_c || !read_all_begin_c || !write_ordered_begin_c ||
        !read_ordered_begin_c)
        return;
    fresh();
    CHECK_OK(write_at_all_begin_c(file, place(steps), data, WORDS, MPI_INT));
    expect_moved(MPI_File_write_at_all_end(file, data, &status), "write_at_all_begin_c");
    CHECK_OK(read_at_all_begin_c(file, place(steps), back, WORDS, MPI_INT));
    expect_moved(MPI_File_read_at_all_end(file, back, &status), "read_at_all_begin_c");
    expect_same("read_at_all_begin_c");
    fresh();
    seek();
    CHECK_OK(write_all_begin_c(file, data, WORDS, MPI_INT));
    expect_moved(MPI_File_write_all_end(file, data, &status), "write_all_begin_c");
    seek();
    CHECK_OK(read_all_begin_c(file, back, WORDS, MPI_INT));
    expect_moved(MPI_File_read_all_end(file, back, &status), "read_all_begin_c");
    expect_same("read_all_begin_c");
    fresh();
    seek();
    CHECK_OK(write_ordered_begin_c(file, data, WORDS, MPI_INT));
    expect_moved(MPI_File_write_ordered_end(file, data, &status), "write_ordered_begin_c");
    seek();
    CHECK_OK(read_ordered_begin_c(file, back, WORDS, MPI_INT));
    expect_moved(MPI_File_read_ordered_end(file, back, &status), "read_ordered_begin_c");
    expect_same("read_ordered_begin_c");
}

static void type_extent(void) {
    FIND(type_extent_form, get_type_extent_c);
    MPI_Count extent = -1;
    if (!get_type_extent_c) return;
    CHECK_OK(get_type_extent_c(file, MPI_DOUBLE, &extent));
    CHECK_EQ(extent, sizeof(double));
    check_symbol("MPI_Register_datarep_c");
}

/* Profiling names exist for all of them, too. */
static void profiling_names(void) {
    static const char *const names[] = {"PMPI_File_write_at_c", "PMPI_File_iread_all_c", "PMPI_File_read_ordered_begin_c",
                                        "PMPI_File_get_type_extent_c", "PMPI_File_open", "PMPI_File_close"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) check_symbol(names[i]);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    const char *path = check_path("data");
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    explicit_offsets();
    own_pointers();
    shared_pointers();
    split();
    type_extent();
    profiling_names();
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
    return check_end();
}
