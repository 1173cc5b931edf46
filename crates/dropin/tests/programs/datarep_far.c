/* ranks: 1
 * needs: disk long
 * More items than an int counts are read in one call through a data representation with functions
 * for large counts. The file has holes only and the functions leave the buffer alone, so that
 * neither takes much space.
 */
#define CHECK_SECONDS 90
#include "check.h"
#include <limits.h>
#include <sys/mman.h>

typedef int conversion_form(void *, MPI_Datatype, MPI_Count, void *, MPI_Offset, void *);
typedef int register_form(const char *, conversion_form *, conversion_form *, MPI_Datarep_extent_function *, void *);
typedef int read_at_form(MPI_File, MPI_Offset, void *, MPI_Count, MPI_Datatype, MPI_Status *);

#define ITEMS ((MPI_Count)INT_MAX + 1000)

static void *buffer;
static MPI_Count counted;
static MPI_Offset farthest;
static int unexpected;

static int count_items(void *user, MPI_Datatype type, MPI_Count count, void *filed, MPI_Offset position, void *state) {
    MPI_Offset end = position + count, known = __atomic_load_n(&farthest, __ATOMIC_RELAXED);
    int odd = user != buffer || type != MPI_CHAR || count <= 0 || position < 0 || ((char *)filed)[0] != 0 || state != &counted;
    __atomic_add_fetch(&unexpected, odd, __ATOMIC_RELAXED);
    __atomic_add_fetch(&counted, count, __ATOMIC_RELAXED);
    while (end > known && !__atomic_compare_exchange_n(&farthest, &known, end, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    return MPI_SUCCESS;
}

static int byte_extent(MPI_Datatype type, MPI_Aint *extent, void *state) {
    int size = 0;
    (void)state;
    MPI_Type_size(type, &size);
    *extent = size;
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    MPI_File file;
    MPI_Status status;
    MPI_Count moved = -1;
    register_form *register_c = NULL;
    read_at_form *read_at_c = NULL;
    check_begin(argc, argv);
    *(void **)&register_c = check_symbol("MPI_Register_datarep_c");
    *(void **)&read_at_c = check_symbol("MPI_File_read_at_c");
    const char *path = check_path("holes");
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_set_size(file, ITEMS));
    buffer = mmap(NULL, ITEMS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (CHECK(buffer != MAP_FAILED, "%s", strerror(errno)) && register_c && read_at_c) {
        CHECK_OK(register_c("counted", count_items, count_items, byte_extent, &counted));
        CHECK_OK(MPI_File_set_view(file, 0, MPI_CHAR, MPI_CHAR, "counted", MPI_INFO_NULL));
        CHECK_OK(read_at_c(file, 0, buffer, ITEMS, MPI_CHAR, &status));
        MPI_Get_elements_x(&status, MPI_CHAR, &moved);
        CHECK_EQ(moved, ITEMS);
        CHECK_EQ(counted, ITEMS);
        CHECK_EQ(farthest, ITEMS);
        CHECK_EQ(unexpected, 0);
    }
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
    return check_end();
}
