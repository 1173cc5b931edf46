/* ranks: 2
 * Says who serves a file: pario publishes hints of its own, no other MPI-IO has them.
 * Arguments: the directory, the name of the file, and hints `key=value` to open it with.
 */
#include "exercise.h"
#include "served.h"

int main(int argc, char **argv) {
    MPI_File file;
    MPI_Info hints, used;
    char path[CHECK_PATH], byte = 'x';
    check_begin(argc, argv);
    snprintf(path, sizeof path, "%s/%s", check.dir, argc > 2 ? argv[2] : "file");
    MPI_Info_create(&hints);
    for (int i = 3; i < argc; i++) {
        char *hint = strdup(argv[i]), *value = strchr(hint, '=');
        *value++ = 0;
        MPI_Info_set(hints, hint, value);
        free(hint);
    }
    CHECK_OK(MPI_File_open(check.comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, hints, &file));
    CHECK_OK(MPI_File_get_info(file, &used));
    CHECK_OK(MPI_File_write_at_all(file, check.rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    if (check.rank == 0) printf("who: served by %s\n", is_pario(used) ? "pario" : "the host");
    CHECK_OK(MPI_File_close(&file));
    check_barrier();
    CHECK_EQ(check_size(path), check.size);
    MPI_Info_free(&used);
    MPI_Info_free(&hints);
    return check_end();
}
