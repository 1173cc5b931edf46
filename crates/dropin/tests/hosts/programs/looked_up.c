/* ranks: 2
 * Looks all functions up in the library that it is told to load, as interpreters do, and says who
 * serves a file. Arguments: the directory and the library.
 */
#include "exercise.h"

#define FIND(name) __typeof__(&name) found_##name = NULL; *(void **)&found_##name = find(#name)

static void *library;

static void *find(const char *name) {
    void *symbol = dlsym(library, name);
    CHECK(symbol != NULL, "%s", name);
    return symbol;
}

int main(int argc, char **argv) {
    MPI_File file;
    MPI_Info used;
    int count = 0, ours = 0, mine = 0, back = -1;
    char path[CHECK_PATH], key[MPI_MAX_INFO_KEY + 1];
    check_begin(argc, argv);
    library = dlopen(argc > 2 ? argv[2] : NULL, RTLD_NOW | RTLD_LOCAL);
    if (!CHECK(library != NULL, "%s", dlerror())) return check_end();
    FIND(MPI_Comm_rank);
    FIND(MPI_File_open);
    FIND(MPI_File_get_info);
    FIND(MPI_File_write_at_all);
    FIND(MPI_File_read_at_all);
    FIND(MPI_File_close);
    FIND(MPI_Info_get_nkeys);
    FIND(MPI_Info_get_nthkey);
    FIND(MPI_Info_free);
    snprintf(path, sizeof path, "%s/file.dat", check.dir);
    CHECK_OK(found_MPI_Comm_rank(MPI_COMM_WORLD, &mine));
    CHECK_EQ(mine, check.rank);
    CHECK_OK(found_MPI_File_open(check.comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    CHECK_OK(found_MPI_File_write_at_all(file, mine * (int)sizeof mine, &mine, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK_OK(found_MPI_File_read_at_all(file, mine * (int)sizeof mine, &back, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK_EQ(back, mine);
    CHECK_OK(found_MPI_File_get_info(file, &used));
    CHECK_OK(found_MPI_Info_get_nkeys(used, &count));
    for (int i = 0; i < count; i++) {
        found_MPI_Info_get_nthkey(used, i, key);
        ours |= strncmp(key, "pario_", 6) == 0;
    }
    if (check.rank == 0) printf("looked_up: served by %s\n", ours ? "pario" : "the host");
    CHECK_OK(found_MPI_Info_free(&used));
    CHECK_OK(found_MPI_File_close(&file));
    return check_end();
}
