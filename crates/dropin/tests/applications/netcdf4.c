/* ranks: 1 2 3 4
 * NetCDF-4 on parallel HDF5: fixed and unlimited dimensions, collective and independent access.
 * Arguments: the file, `write` or `read`. What is in the file does not depend on the ranks.
 */
#include "../programs/check.h"

#include <netcdf.h>
#include <netcdf_par.h>

enum { ROWS = 60, COLUMNS = 48, RECORDS = 3 };

#define NC(call) check_nc((call), __LINE__, #call)

static void check_nc(int code, int line, const char *what) {
    check_one(code == NC_NOERR, __FILE__, line, what, "%s", nc_strerror(code));
}

static double value(int which, size_t row, size_t column) { return which * 1e6 + (double)row * 1e3 + (double)column; }

static size_t low(int rank) { return (size_t)(COLUMNS * rank / check.size); }

/* Blocks of columns. */
static void transfer(int file, int variable, int which, const size_t *start, const size_t *count, int writes) {
    static double ours[ROWS * COLUMNS], theirs[ROWS * COLUMNS];
    size_t width = low(check.rank + 1) - low(check.rank);
    for (size_t row = 0; row < ROWS; row++)
        for (size_t column = 0; column < width; column++)
            ours[row * width + column] = value(which, row, low(check.rank) + column);
    if (writes) {
        NC(nc_put_vara_double(file, variable, start, count, ours));
    } else {
        NC(nc_get_vara_double(file, variable, start, count, theirs));
        CHECK(memcmp(ours, theirs, ROWS * width * sizeof *ours) == 0, "variable %d as written", which);
    }
}

static void define(int file) {
    int dimensions[3], variable;
    size_t chunks[3] = {1, 20, 16};
    NC(nc_def_dim(file, "record", NC_UNLIMITED, &dimensions[0]));
    NC(nc_def_dim(file, "row", ROWS, &dimensions[1]));
    NC(nc_def_dim(file, "column", COLUMNS, &dimensions[2]));
    NC(nc_def_var(file, "fixed", NC_DOUBLE, 2, dimensions + 1, &variable));
    NC(nc_def_var(file, "records", NC_DOUBLE, 3, dimensions, &variable));
    NC(nc_def_var_chunking(file, variable, NC_CHUNKED, chunks));
    NC(nc_put_att_text(file, variable, "unit", 1, "m"));
    NC(nc_enddef(file));
}

int main(int argc, char **argv) {
    int file, fixed, records;
    check_begin(argc, argv);
    int writes = argc > 2 && strcmp(argv[2], "write") == 0;
    if (writes) {
        NC(nc_create_par(argv[1], NC_NETCDF4 | NC_CLOBBER, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
        define(file);
    } else {
        NC(nc_open_par(argv[1], NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
    }
    NC(nc_inq_varid(file, "fixed", &fixed));
    NC(nc_inq_varid(file, "records", &records));
    NC(nc_var_par_access(file, fixed, NC_INDEPENDENT));
    NC(nc_var_par_access(file, records, NC_COLLECTIVE));
    size_t start[3] = {0, 0, low(check.rank)}, count[3] = {1, ROWS, low(check.rank + 1) - low(check.rank)};
    transfer(file, fixed, 1, start + 1, count + 1, writes);
    for (size_t record = 0; record < RECORDS; record++) {
        start[0] = record;
        transfer(file, records, 10 + (int)record, start, count, writes);
    }
    NC(nc_close(file));
    return check_end();
}
