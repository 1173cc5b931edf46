/* ranks: 1 2 3 4 7
 * set_view and get_view: what comes back, what is refused, and where data goes.
 */
#include "check.h"

static MPI_File open_file(const char *leaf, int mode) {
    MPI_File file = MPI_FILE_NULL;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, check_path(leaf), mode, MPI_INFO_NULL, &file));
    return file;
}

static MPI_Datatype committed(MPI_Datatype type) {
    MPI_Type_commit(&type);
    return type;
}

static void expect_same_type(MPI_Datatype found, MPI_Datatype wanted, const char *what) {
    int size[2];
    MPI_Aint low[2], extent[2], true_low[2], true_extent[2];
    MPI_Type_size(found, &size[0]);
    MPI_Type_size(wanted, &size[1]);
    MPI_Type_get_extent(found, &low[0], &extent[0]);
    MPI_Type_get_extent(wanted, &low[1], &extent[1]);
    MPI_Type_get_true_extent(found, &true_low[0], &true_extent[0]);
    MPI_Type_get_true_extent(wanted, &true_low[1], &true_extent[1]);
    CHECK(size[0] == size[1] && low[0] == low[1] && extent[0] == extent[1] && true_low[0] == true_low[1] &&
              true_extent[0] == true_extent[1],
          "%s: size %d, %d extent %ld, %ld", what, size[0], size[1], (long)extent[0], (long)extent[1]);
}

static int combiner_of(MPI_Datatype type) {
    int integers, addresses, types, combiner = -1;
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    return combiner;
}

static void free_derived(MPI_Datatype type) {
    if (combiner_of(type) != MPI_COMBINER_NAMED) MPI_Type_free(&type);
}

/* get_view says what set_view was told. */
static void expect_view(MPI_File file, MPI_Offset wanted_disp, MPI_Datatype etype, MPI_Datatype filetype,
                        const char *datarep) {
    MPI_Offset disp = -1;
    MPI_Datatype found_etype, found_filetype;
    char name[MPI_MAX_DATAREP_STRING + 1] = "";
    if (!CHECK_OK(MPI_File_get_view(file, &disp, &found_etype, &found_filetype, name))) return;
    CHECK_EQ(disp, wanted_disp);
    CHECK(strcmp(name, datarep) == 0, "data representation %s, wanted %s", name, datarep);
    expect_same_type(found_etype, etype, "etype");
    expect_same_type(found_filetype, filetype, "filetype");
    /* Predefined types come back themselves, derived ones as copies. */
    if (combiner_of(etype) == MPI_COMBINER_NAMED) CHECK(found_etype == etype, "a predefined etype is itself");
    else CHECK(combiner_of(found_etype) != MPI_COMBINER_NAMED, "a derived etype is derived");
    if (combiner_of(filetype) == MPI_COMBINER_NAMED) CHECK(found_filetype == filetype, "a predefined filetype is itself");
    else CHECK(combiner_of(found_filetype) != MPI_COMBINER_NAMED, "a derived filetype is derived");
    free_derived(found_etype);
    free_derived(found_filetype);
}

/* Types of equal content, named, derived and derived anew, in turn: each comes back as what it is, and lasts
 * when the program has freed its own. */
static void alike(MPI_File file) {
    for (int round = 0; round < 3; round++) {
        MPI_Datatype twin, again;
        MPI_Type_dup(MPI_INT, &twin);
        MPI_Type_contiguous(1, MPI_INT, &again);
        MPI_Type_commit(&again);
        MPI_Datatype types[] = {MPI_INT, twin, twin, again, MPI_INT, again, twin};
        for (int k = 0; k < (int)(sizeof types / sizeof *types); k++) {
            CHECK_OK(MPI_File_set_view(file, 4 * k, MPI_INT, types[k], "native", MPI_INFO_NULL));
            expect_view(file, 4 * k, MPI_INT, types[k], "native");
        }
        MPI_Type_free(&twin);
        MPI_Type_free(&again);
        MPI_Type_dup(MPI_INT, &twin);
        expect_view(file, 24, MPI_INT, twin, "native");
        MPI_Type_free(&twin);
    }
}

static void round_trips(void) {
    static const char zeros[40];
    if (check.rank == 0) {
        FILE *stream = fopen(check_path("trips"), "w");
        CHECK(stream && fwrite(zeros, 1, sizeof zeros, stream) == sizeof zeros, "a file of zeros");
        fclose(stream);
    }
    check_barrier();
    MPI_File file = open_file("trips", MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    expect_view(file, 0, MPI_BYTE, MPI_BYTE, "native");
    alike(file);
    MPI_Datatype pair, every_third, shifted;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_vector(5, 1, 3, pair, &every_third);
    MPI_Type_commit(&every_third);
    MPI_Type_create_resized(MPI_INT, -4, 12, &shifted);
    MPI_Type_commit(&shifted);
    CHECK_OK(MPI_File_set_view(file, 40, pair, every_third, "native", MPI_INFO_NULL));
    expect_view(file, 40, pair, every_third, "native");
    CHECK_OK(MPI_File_set_view(file, 8, MPI_INT, shifted, "native", MPI_INFO_NULL));
    expect_view(file, 8, MPI_INT, shifted, "native");
    CHECK_OK(MPI_File_set_view(file, 1LL << 40, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL));
    expect_view(file, 1LL << 40, MPI_DOUBLE, MPI_DOUBLE, "native");
    /* The user's types may go at once: the view has its own. */
    MPI_Datatype gone;
    MPI_Type_vector(3, 1, 2, pair, &gone);
    MPI_Type_commit(&gone);
    CHECK_OK(MPI_File_set_view(file, 0, pair, gone, "native", MPI_INFO_NULL));
    MPI_Type_free(&gone);
    int data[6] = {1, 2, 3, 4, 5, 6}, wanted[10] = {1, 2, 0, 0, 3, 4, 0, 0, 5, 6};
    if (check.rank == 0) CHECK_OK(MPI_File_write_at(file, 0, data, 6, MPI_INT, MPI_STATUS_IGNORE));
    check_barrier();
    CHECK_FILE(check_path("trips"), 0, wanted, sizeof wanted);
    /* What get_view returns is itself good for a view. */
    MPI_Offset disp;
    MPI_Datatype etype, filetype;
    char name[MPI_MAX_DATAREP_STRING + 1];
    CHECK_OK(MPI_File_get_view(file, &disp, &etype, &filetype, name));
    CHECK_OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    MPI_Type_commit(&etype);
    MPI_Type_commit(&filetype);
    CHECK_OK(MPI_File_set_view(file, disp, etype, filetype, name, MPI_INFO_NULL));
    int back[6] = {0};
    CHECK_OK(MPI_File_read_at(file, 0, back, 3, etype, MPI_STATUS_IGNORE));
    CHECK(memcmp(back, data, sizeof data) == 0, "the returned view reads the same: %d %d %d", back[0], back[2], back[4]);
    free_derived(etype);
    free_derived(filetype);
    CHECK_OK(MPI_File_close(&file));
    MPI_Type_free(&pair);
    MPI_Type_free(&every_third);
    MPI_Type_free(&shifted);
}

/* Both pointers go to the start of the new view. */
static void pointers(void) {
    const char *path = check_path("pointers");
    check_make_shared(path, 400, 1);
    MPI_File file = open_file("pointers", MPI_MODE_RDWR);
    MPI_Offset at = -1;
    CHECK_OK(MPI_File_seek(file, 100, MPI_SEEK_SET));
    CHECK_OK(MPI_File_seek_shared(file, 50, MPI_SEEK_SET));
    CHECK_OK(MPI_File_set_view(file, 16, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    CHECK_OK(MPI_File_get_position(file, &at));
    CHECK_EQ(at, 0);
    CHECK_OK(MPI_File_get_position_shared(file, &at));
    CHECK_EQ(at, 0);
    unsigned char back[8];
    CHECK_OK(MPI_File_read(file, back, 2, MPI_INT, MPI_STATUS_IGNORE));
    CHECK_FILLED(back, 16, 8, 1);
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

static void refusals(void) {
    MPI_File file = open_file("refusals", MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE);
    CHECK_OK(MPI_File_set_view(file, 4, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    CHECK_CLASS(MPI_File_set_view(file, 0, MPI_DATATYPE_NULL, MPI_BYTE, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_File_set_view(file, 0, MPI_BYTE, MPI_DATATYPE_NULL, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_File_set_view(file, -1, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    CHECK_FAILS(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    CHECK_CLASS(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "of nobody", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
    CHECK_CLASS(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP, MPI_ERR_ARG);
    /* The view before stays in force. */
    expect_view(file, 4, MPI_INT, MPI_INT, "native");

    MPI_Datatype type;
    /* Not a whole number of etypes; odd_views.c has what is allowed. */
    MPI_Type_contiguous(3, MPI_BYTE, &type);
    type = committed(type);
    CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL), MPI_ERR_TYPE, MPI_ERR_ARG);
    MPI_Type_free(&type);
    /* Displacements that go down. */
    MPI_Type_indexed(2, (int[]){1, 1}, (int[]){3, 0}, MPI_INT, &type);
    type = committed(type);
    CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL), MPI_ERR_TYPE, MPI_ERR_ARG);
    MPI_Type_free(&type);
    /* Negative displacements. */
    MPI_Type_indexed(2, (int[]){1, 1}, (int[]){-2, 1}, MPI_INT, &type);
    type = committed(type);
    CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL), MPI_ERR_TYPE, MPI_ERR_ARG);
    MPI_Type_free(&type);
    /* Overlaps where the file can be written. */
    MPI_Type_indexed(2, (int[]){2, 2}, (int[]){0, 1}, MPI_INT, &type);
    type = committed(type);
    CHECK_CLASS(MPI_File_set_view(file, 0, MPI_INT, type, "native", MPI_INFO_NULL), MPI_ERR_TYPE, MPI_ERR_ARG);
    MPI_Type_free(&type);
    expect_view(file, 4, MPI_INT, MPI_INT, "native");
    CHECK_OK(MPI_File_close(&file));
}

/* Overlaps are legal for reading. */
static void overlapping_reads(void) {
    const char *path = check_path("overlap");
    check_make_shared(path, 200, 2);
    MPI_File file = open_file("overlap", MPI_MODE_RDONLY);
    MPI_Datatype type, stuck;
    /* Displacements may repeat, and elements overlap, as long as they don't go down. */
    MPI_Type_create_hindexed(3, (int[]){1, 1, 2}, (MPI_Aint[]){0, 0, 4}, MPI_INT, &type);
    type = committed(type);
    unsigned char back[32], wanted[32];
    CHECK_OK(MPI_File_set_view(file, 5, MPI_INT, type, "native", MPI_INFO_NULL));
    CHECK_OK(MPI_File_read_all(file, back, 8, MPI_INT, MPI_STATUS_IGNORE));
    for (int tile = 0; tile < 2; tile++) {
        check_fill(wanted + tile * 16, 5 + tile * 12, 4, 2);
        check_fill(wanted + tile * 16 + 4, 5 + tile * 12, 12, 2);
    }
    CHECK(memcmp(back, wanted, 32) == 0, "overlapping pieces are each read");
    MPI_Type_free(&type);
    /* Tiles that interleave: an extent smaller than the span. */
    MPI_Type_create_hindexed(2, (int[]){2, 2}, (MPI_Aint[]){0, 20}, MPI_BYTE, &type);
    MPI_Type_create_resized(type, 0, 4, &stuck);
    stuck = committed(stuck);
    CHECK_OK(MPI_File_set_view(file, 0, MPI_BYTE, stuck, "native", MPI_INFO_NULL));
    CHECK_OK(MPI_File_read_at_all(file, 0, back, 20, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int tile = 0; tile < 5; tile++) {
        check_fill(wanted + tile * 4, tile * 4, 2, 2);
        check_fill(wanted + tile * 4 + 2, tile * 4 + 20, 2, 2);
    }
    CHECK(memcmp(back, wanted, 20) == 0, "interleaving tiles are each read");
    MPI_Type_free(&stuck);
    MPI_Type_free(&type);
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

/* A rank may have no data at all, and take part. */
static void empty_views(void) {
    MPI_File file = open_file("empty", MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE);
    MPI_Datatype nothing, filetype;
    MPI_Type_contiguous(0, MPI_INT, &nothing);
    MPI_Type_commit(&nothing);
    int last = check.rank == check.size - 1;
    filetype = last ? nothing : MPI_INT;
    CHECK_OK(MPI_File_set_view(file, check.rank * 8, MPI_INT, filetype, "native", MPI_INFO_NULL));
    int data[2] = {check.rank, check.rank + 100}, back[2] = {-1, -1};
    MPI_Status status;
    CHECK_OK(MPI_File_write_all(file, data, last ? 0 : 2, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, last ? 0 : 2);
    CHECK_OK(MPI_File_write_all(file, data, last, nothing, &status));
    CHECK_OK(MPI_File_sync(file));
    check_barrier();
    CHECK_OK(MPI_File_read_at_all(file, 0, back, last ? 0 : 2, MPI_INT, &status));
    CHECK_COUNT(status, MPI_INT, last ? 0 : 2);
    if (!last) CHECK(back[0] == data[0] && back[1] == data[1], "%d %d", back[0], back[1]);
    MPI_Offset size = -1;
    CHECK_OK(MPI_File_get_size(file, &size));
    CHECK_EQ(size, (check.size - 1) * 8);
    if (last) CHECK_OK(MPI_File_read(file, back, 0, MPI_INT, &status));
    CHECK_OK(MPI_File_close(&file));
    MPI_Type_free(&nothing);
}

/* A sequential file takes views from where its shared pointer is. */
static void sequential(void) {
    const char *path = check_path("sequential");
    check_make_shared(path, 64, 3);
    MPI_File file = open_file("sequential", MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL);
    unsigned char back[8];
    CHECK_FAILS(MPI_File_set_view(file, 8, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    if (check.rank == 0) CHECK_OK(MPI_File_read_shared(file, back, 8, MPI_BYTE, MPI_STATUS_IGNORE));
    check_barrier();
    CHECK_OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    MPI_Offset disp = -1;
    MPI_Datatype etype, filetype;
    char name[MPI_MAX_DATAREP_STRING + 1];
    CHECK_OK(MPI_File_get_view(file, &disp, &etype, &filetype, name));
    CHECK_EQ(disp, 8);
    if (check.rank == 0) {
        CHECK_OK(MPI_File_read_shared(file, back, 1, MPI_INT, MPI_STATUS_IGNORE));
        CHECK_FILLED(back, 8, 4, 3);
    }
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    round_trips();
    pointers();
    refusals();
    overlapping_reads();
    empty_views();
    sequential();
    return check_end();
}
