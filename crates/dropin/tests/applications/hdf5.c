/* ranks: 1 2 3 4
 * Parallel HDF5: chunked, contiguous and growing datasets, collective and independent hyperslabs.
 * Arguments: the file, `write` or `read`. What is in the file does not depend on the ranks.
 */
#include <hdf5.h>

#include "../programs/check.h"

enum { ROWS = 150, COLUMNS = 90, STEPS = 4 };

static double value(int which, int row, int column) { return which * 1e6 + row * 1e3 + column; }

#define H5(call) CHECK((call) >= 0, "HDF5 failed")

/* Rows go round the ranks; columns are cut into blocks. */
typedef enum { BY_ROWS, BY_COLUMNS } division;

/* The part of a plane that is this rank's; `first` shifts it down by whole planes. */
static hsize_t select_part(hid_t space, division how, hsize_t first) {
    hsize_t start[2], stride[2] = {1, 1}, count[2], whole = 1;
    if (how == BY_ROWS) {
        hsize_t mine = (ROWS - check.rank + check.size - 1) / check.size;
        start[0] = first + (hsize_t)check.rank, start[1] = 0;
        stride[0] = (hsize_t)check.size;
        count[0] = mine, count[1] = COLUMNS;
    } else {
        int low = COLUMNS * check.rank / check.size, high = COLUMNS * (check.rank + 1) / check.size;
        start[0] = first, start[1] = (hsize_t)low;
        count[0] = ROWS, count[1] = (hsize_t)(high - low);
    }
    whole = count[0] * count[1];
    if (whole == 0) H5(H5Sselect_none(space));
    else H5(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, NULL));
    return whole;
}

static void fill(double *buffer, division how, int which) {
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++) {
            int low = COLUMNS * check.rank / check.size, high = COLUMNS * (check.rank + 1) / check.size;
            int mine = how == BY_ROWS ? row % check.size == check.rank : column >= low && column < high;
            if (mine) *buffer++ = value(which, row, column);
        }
}

static void transfer(hid_t data, division how, int which, H5FD_mpio_xfer_t mode, int writes) {
    static double ours[ROWS * COLUMNS], theirs[ROWS * COLUMNS];
    hid_t space = H5Dget_space(data);
    hsize_t count = select_part(space, how, (hsize_t)(which >= 10 ? which - 10 : 0) * ROWS);
    hid_t memory = H5Screate_simple(1, &count, NULL);
    hid_t list = H5Pcreate(H5P_DATASET_XFER);
    H5(H5Pset_dxpl_mpio(list, mode));
    fill(ours, how, which);
    if (writes) {
        H5(H5Dwrite(data, H5T_NATIVE_DOUBLE, memory, space, list, ours));
    } else {
        H5(H5Dread(data, H5T_NATIVE_DOUBLE, memory, space, list, theirs));
        CHECK(memcmp(ours, theirs, count * sizeof *ours) == 0, "set %d is read as it was written", which);
    }
    H5Pclose(list);
    H5Sclose(memory);
    H5Sclose(space);
}

static hid_t dataset(hid_t file, const char *name, int chunked, int planes, int writes) {
    if (!writes) return H5Dopen2(file, name, H5P_DEFAULT);
    hsize_t sizes[2] = {(hsize_t)ROWS, COLUMNS}, most[2] = {H5S_UNLIMITED, COLUMNS}, chunk[2] = {32, 40};
    hid_t space = H5Screate_simple(2, sizes, planes > 1 ? most : NULL);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    if (chunked) H5(H5Pset_chunk(list, 2, chunk));
    hid_t data = H5Dcreate2(file, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    H5Pclose(list);
    H5Sclose(space);
    return data;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    int writes = argc > 2 && strcmp(argv[2], "write") == 0;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
    hid_t file = writes ? H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access) : H5Fopen(argv[1], H5F_ACC_RDONLY, access);
    H5(file);
    hid_t chunked = dataset(file, "chunked", 1, 1, writes);
    transfer(chunked, BY_ROWS, 1, H5FD_MPIO_COLLECTIVE, writes);
    H5(H5Dclose(chunked));
    hid_t contiguous = dataset(file, "contiguous", 0, 1, writes);
    transfer(contiguous, BY_COLUMNS, 2, H5FD_MPIO_COLLECTIVE, writes);
    H5(H5Dclose(contiguous));
    hid_t independent = dataset(file, "independent", 0, 1, writes);
    transfer(independent, BY_ROWS, 3, H5FD_MPIO_INDEPENDENT, writes);
    H5(H5Dclose(independent));
    hid_t growing = dataset(file, "growing", 1, STEPS, writes);
    for (int step = 0; step < STEPS; step++) {
        hsize_t sizes[2] = {(hsize_t)ROWS * (hsize_t)(step + 1), COLUMNS};
        if (writes) H5(H5Dset_extent(growing, sizes));
        transfer(growing, step % 2 ? BY_ROWS : BY_COLUMNS, 10 + step, H5FD_MPIO_COLLECTIVE, writes);
    }
    H5(H5Dclose(growing));
    if (writes) H5(H5Fflush(file, H5F_SCOPE_GLOBAL));
    H5(H5Fclose(file));
    H5Pclose(access);
    return check_end();
}
