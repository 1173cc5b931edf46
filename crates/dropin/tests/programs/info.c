/* ranks: 1 2 3 4 7
 * Hints: what is given at open, with a view and later; what comes back; what nobody knows.
 */
#include "check.h"

/* The value of a key, or NULL. */
static const char *value_of(MPI_Info info, const char *key) {
    static char value[MPI_MAX_INFO_VAL + 1];
    int there = 0;
    CHECK_OK(MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &there));
    return there ? value : NULL;
}

/* Every key of the info has a value that can be read. Returns how many start with `prefix`. */
static int well_formed(MPI_Info info, const char *prefix) {
    int keys = -1, matching = 0;
    CHECK_OK(MPI_Info_get_nkeys(info, &keys));
    for (int i = 0; i < keys; i++) {
        char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
        int there = 0, length = -1;
        CHECK_OK(MPI_Info_get_nthkey(info, i, key));
        CHECK_OK(MPI_Info_get_valuelen(info, key, &length, &there));
        CHECK(there, "key %s has a value", key);
        CHECK_OK(MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &there));
        CHECK(there && (int)strlen(value) == length, "value of %s: '%s', length %d", key, value, length);
        matching += strncmp(key, prefix, strlen(prefix)) == 0;
    }
    return matching;
}

static void expect(MPI_File file, const char *key, const char *wanted) {
    MPI_Info used;
    if (!CHECK_OK(MPI_File_get_info(file, &used))) return;
    const char *value = value_of(used, key);
    /* A hint may be ignored; one that is reported has the value that was given. */
    if (value) CHECK(strcmp(value, wanted) == 0, "%s is %s, given %s", key, value, wanted);
    MPI_Info_free(&used);
}

static MPI_Info pairs(const char *key, const char *value, const char *key2, const char *value2) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    if (key2) MPI_Info_set(info, key2, value2);
    return info;
}

static void at_open(void) {
    MPI_File file;
    MPI_Info given = pairs("cb_buffer_size", "1048576", "a_key_that_nobody_knows", "with a value");
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, check_path("open"), MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
                           given, &file));
    MPI_Info_free(&given); /* the file has its own copy */
    expect(file, "cb_buffer_size", "1048576");
    MPI_Info used, again;
    CHECK_OK(MPI_File_get_info(file, &used));
    CHECK_OK(MPI_File_get_info(file, &again));
    CHECK(used != again && used != MPI_INFO_NULL, "each get_info makes a new info");
    if (well_formed(used, "pario_") > 0) {
        CHECK(value_of(used, "romio_filesystem_type") != NULL, "published hints are there");
        CHECK(value_of(used, "ind_rd_buffer_size") != NULL, "hints with defaults are there");
    }
    /* The copy is the caller's: changing it changes nothing. */
    MPI_Info_set(used, "cb_buffer_size", "4096");
    expect(file, "cb_buffer_size", "1048576");
    MPI_Info_free(&used);
    MPI_Info_free(&again);
    CHECK_OK(MPI_File_close(&file));
}

static void later(void) {
    MPI_File file;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, check_path("later"), MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
                           MPI_INFO_NULL, &file));
    MPI_Info info = pairs("romio_ds_write", "disable", "another_unknown_key", "7");
    CHECK_OK(MPI_File_set_info(file, info));
    MPI_Info_free(&info);
    expect(file, "romio_ds_write", "disable");
    info = pairs("ind_rd_buffer_size", "65536", NULL, NULL);
    CHECK_OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", info));
    MPI_Info_free(&info);
    expect(file, "ind_rd_buffer_size", "65536");
    expect(file, "romio_ds_write", "disable");
    MPI_File_set_info(file, MPI_INFO_NULL); /* may be refused, but changes nothing */
    expect(file, "ind_rd_buffer_size", "65536");
    /* Values that make no sense are ignored, like hints that nobody knows. */
    info = pairs("cb_buffer_size", "many", "cb_nodes", "-3");
    CHECK_OK(MPI_File_set_info(file, info));
    MPI_Info_free(&info);
    int mark = check.rank + 1, back = 0;
    MPI_Status status;
    CHECK_OK(MPI_File_write_at_all(file, check.rank, &mark, 1, MPI_INT, &status));
    CHECK_OK(MPI_File_read_at_all(file, check.rank, &back, 1, MPI_INT, &status));
    CHECK_EQ(back, mark);
    CHECK_OK(MPI_File_close(&file));
}

/* Scripts that know ROMIO read these keys: the values are spelled as MPICH's get_info spells them. */
static void as_romio(void) {
    static const char *const plain[][2] = {
        {"cb_buffer_size", "16777216"}, {"romio_cb_read", "automatic"}, {"romio_cb_write", "automatic"},
        {"romio_no_indep_rw", "false"}, {"romio_cb_pfr", "disable"}, {"romio_cb_alltoall", "automatic"},
        {"ind_rd_buffer_size", "4194304"}, {"ind_wr_buffer_size", "524288"}, {"romio_ds_read", "automatic"},
        {"romio_ds_write", "automatic"},
    };
    static const char *const collective[][2] = {
        {"romio_no_indep_rw", "true"}, {"romio_cb_read", "enable"}, {"romio_cb_write", "enable"}, {"cb_nodes", "1"},
    };
    int mode = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE;
    const char *path = check_path("romio");
    MPI_File file;
    MPI_Info used;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_get_info(file, &used));
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        const char *value = value_of(used, plain[i][0]);
        CHECK(value && strcmp(value, plain[i][1]) == 0, "%s is %s", plain[i][0], value ? value : "absent");
    }
    const char *driver = value_of(used, "romio_filesystem_type");
    CHECK(driver && strncmp(driver, "UFS:", 4) == 0, "the driver is %s", driver ? driver : "absent");
    MPI_Info_free(&used);
    CHECK_OK(MPI_File_close(&file));

    /* One aggregator on the host where rank 0 runs; independent accesses work all the same. */
    char list[MPI_MAX_PROCESSOR_NAME + 8];
    int length;
    MPI_Get_processor_name(list, &length);
    strcpy(list + length, ":1");
    MPI_Info given = pairs("romio_no_indep_rw", "true", "cb_config_list", list);
    MPI_Info_set(given, "cb_nodes", "64");
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, mode, given, &file));
    CHECK_OK(MPI_File_get_info(file, &used));
    for (size_t i = 0; i < sizeof collective / sizeof *collective; i++) {
        const char *value = value_of(used, collective[i][0]);
        CHECK(value && strcmp(value, collective[i][1]) == 0, "%s is %s", collective[i][0], value ? value : "absent");
    }
    const char *value = value_of(used, "cb_config_list");
    CHECK(value && strcmp(value, list) == 0, "cb_config_list is %s", value ? value : "absent");
    MPI_Info_free(&used);
    int mark = check.rank, back = -1;
    MPI_Status status;
    CHECK_OK(MPI_File_write_at(file, check.rank * (int)sizeof mark, &mark, 1, MPI_INT, &status));
    CHECK_OK(MPI_File_read_at(file, check.rank * (int)sizeof mark, &back, 1, MPI_INT, &status));
    CHECK_EQ(back, mark);
    CHECK_OK(MPI_File_close(&file));
    MPI_Info_free(&given);
}

/* Results don't depend on hints: the same interleaved access under many settings. */
static void results(void) {
    static const char *const settings[][4] = {
        {"romio_cb_write", "enable", "romio_cb_read", "enable"},
        {"romio_cb_write", "disable", "romio_cb_read", "disable"},
        {"cb_buffer_size", "512", "cb_nodes", "1"},
        {"romio_ds_read", "enable", "romio_ds_write", "disable"},
        {"access_style", "read_once,sequential", "collective_buffering", "true"},
        {"striping_unit", "65536", "striping_factor", "2"},
        {"romio_no_indep_rw", "true", "cb_config_list", "*:1"},
        {"romio_cb_pfr", "enable", "romio_cb_fr_alignment", "4096"},
        {"cb_config_list", "elsewhere:2,*:2", "cb_nodes", "2"},
        {"cb_config_list", "elsewhere:2", "romio_cb_write", "enable"},
    };
    enum { BLOCK = 24, BLOCKS = 40 };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const char *path = check_path("results");
        const char *const *pair = settings[i];
        check_remove(path);
        MPI_Info info = pairs(pair[0], pair[1], pair[2], pair[3]);
        MPI_File file;
        CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &file));
        MPI_Info_free(&info);
        MPI_Datatype type;
        MPI_Type_vector(BLOCKS, BLOCK, BLOCK * check.size, MPI_BYTE, &type);
        MPI_Type_commit(&type);
        CHECK_OK(MPI_File_set_view(file, (MPI_Offset)check.rank * BLOCK, MPI_BYTE, type, "native", MPI_INFO_NULL));
        unsigned char data[BLOCK * BLOCKS], back[BLOCK * BLOCKS];
        for (int k = 0; k < BLOCKS; k++)
            check_fill(data + k * BLOCK, ((long long)k * check.size + check.rank) * BLOCK, BLOCK, 9);
        MPI_Status status;
        CHECK_OK(MPI_File_write_all(file, data, sizeof data, MPI_BYTE, &status));
        CHECK_COUNT(status, MPI_BYTE, (int)sizeof data);
        CHECK_OK(MPI_File_sync(file));
        check_barrier();
        memset(back, 0, sizeof back);
        CHECK_OK(MPI_File_read_at_all(file, 0, back, sizeof back, MPI_BYTE, &status));
        CHECK(memcmp(data, back, sizeof data) == 0, "setting %zu reads back what was written", i);
        CHECK_OK(MPI_File_close(&file));
        MPI_Type_free(&type);
        size_t whole = (size_t)BLOCK * BLOCKS * (size_t)check.size;
        unsigned char *expected = malloc(whole);
        check_fill(expected, 0, whole, 9);
        CHECK_FILE(path, 0, expected, whole);
        CHECK_EQ(check_size(path), whole);
        free(expected);
        check_remove(path);
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    at_open();
    later();
    as_romio();
    results();
    return check_end();
}
