/* ranks: 1 2 3 4
 * PnetCDF: fixed and record variables, collective, independent, strided and nonblocking access.
 * Arguments: the file, `write` or `read`. What is in the file does not depend on the ranks.
 */
#include <pnetcdf.h>

#include "../programs/check.h"

enum { ROWS = 60, COLUMNS = 48, RECORDS = 3 };

static int value(int which, int row, int column) { return which * 1000000 + row * 1000 + column; }

#define NC(call) check_nc((call), __LINE__, #call)

static void check_nc(int code, int line, const char *what) {
    check_one(code == NC_NOERR, __FILE__, line, what, "%s", ncmpi_strerror(code));
}

/* This rank's rows: every size-th. */
static MPI_Offset rows_here(void) { return (ROWS - check.rank + check.size - 1) / check.size; }

static void fill(int *buffer, int which) {
    for (int row = check.rank; row < ROWS; row += check.size)
        for (int column = 0; column < COLUMNS; column++) *buffer++ = value(which, row, column);
}

static void compare(const int *theirs, int which) {
    static int ours[ROWS * COLUMNS];
    fill(ours, which);
    CHECK(memcmp(ours, theirs, (size_t)rows_here() * COLUMNS * sizeof *ours) == 0, "variable %d as written", which);
}

static void define(int file) {
    int dimensions[3], variable;
    NC(ncmpi_def_dim(file, "record", NC_UNLIMITED, &dimensions[0]));
    NC(ncmpi_def_dim(file, "row", ROWS, &dimensions[1]));
    NC(ncmpi_def_dim(file, "column", COLUMNS, &dimensions[2]));
    NC(ncmpi_def_var(file, "fixed", NC_INT, 2, dimensions + 1, &variable));
    NC(ncmpi_def_var(file, "records", NC_INT, 3, dimensions, &variable));
    NC(ncmpi_def_var(file, "other", NC_DOUBLE, 3, dimensions, &variable));
    NC(ncmpi_put_att_text(file, variable, "unit", 1, "m"));
    NC(ncmpi_enddef(file));
}

int main(int argc, char **argv) {
    static int buffers[RECORDS + 1][ROWS * COLUMNS];
    int file, fixed, records, other, requests[RECORDS], states[RECORDS];
    check_begin(argc, argv);
    int writes = argc > 2 && strcmp(argv[2], "write") == 0;
    if (writes) {
        NC(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
        define(file);
    } else {
        NC(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &file));
    }
    NC(ncmpi_inq_varid(file, "fixed", &fixed));
    NC(ncmpi_inq_varid(file, "records", &records));
    NC(ncmpi_inq_varid(file, "other", &other));
    MPI_Offset start[3] = {0, check.rank, 0}, count[3] = {1, rows_here(), COLUMNS}, stride[3] = {1, check.size, 1};
    if (writes) {
        fill(buffers[RECORDS], 1);
        NC(ncmpi_put_vars_int_all(file, fixed, start + 1, count + 1, stride + 1, buffers[RECORDS]));
    } else {
        NC(ncmpi_get_vars_int_all(file, fixed, start + 1, count + 1, stride + 1, buffers[RECORDS]));
        compare(buffers[RECORDS], 1);
    }
    for (int record = 0; record < RECORDS; record++) {
        start[0] = record;
        if (writes) {
            fill(buffers[record], 10 + record);
            NC(ncmpi_iput_vars_int(file, records, start, count, stride, buffers[record], &requests[record]));
        } else {
            NC(ncmpi_iget_vars_int(file, records, start, count, stride, buffers[record], &requests[record]));
        }
    }
    NC(ncmpi_wait_all(file, RECORDS, requests, states));
    for (int record = 0; record < RECORDS; record++) {
        NC(states[record]);
        if (!writes) compare(buffers[record], 10 + record);
    }
    NC(ncmpi_begin_indep_data(file));
    start[0] = 1;
    if (writes) {
        fill(buffers[0], 20);
        NC(ncmpi_put_vars_int(file, other, start, count, stride, buffers[0]));
    } else {
        NC(ncmpi_get_vars_int(file, other, start, count, stride, buffers[0]));
        compare(buffers[0], 20);
    }
    NC(ncmpi_end_indep_data(file));
    NC(ncmpi_close(file));
    return check_end();
}
