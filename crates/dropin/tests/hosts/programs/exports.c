/* ranks: 1
 * The functions of the standard's chapter on files, which the drop-in library must have under both names:
 * one that it lacked would get its handles to the MPI's own. Argument: the library.
 */
#include "../../programs/check.h"
#include <dlfcn.h>

/* Functions without a count. */
static const char *const plain[] = {
    "open", "close", "delete", "set_size", "preallocate", "get_size", "get_group", "get_amode",
    "set_info", "get_info", "set_view", "get_view", "seek", "get_position", "get_byte_offset",
    "seek_shared", "get_position_shared", "set_atomicity", "get_atomicity", "sync", "get_type_extent",
    "get_type_extent_c", "set_errhandler", "get_errhandler", "create_errhandler", "call_errhandler",
    "c2f", "f2c", "toint", "fromint", "read_at_all_end", "write_at_all_end", "read_all_end",
    "write_all_end", "read_ordered_end", "write_ordered_end",
};

/* Functions with a count, of both widths. */
static const char *const counting[] = {
    "read_at", "read_at_all", "write_at", "write_at_all", "iread_at", "iread_at_all", "iwrite_at",
    "iwrite_at_all", "read", "read_all", "write", "write_all", "iread", "iread_all", "iwrite",
    "iwrite_all", "read_shared", "write_shared", "iread_shared", "iwrite_shared", "read_ordered",
    "write_ordered", "read_at_all_begin", "write_at_all_begin", "read_all_begin", "write_all_begin",
    "read_ordered_begin", "write_ordered_begin",
};

static void *library;
static int functions;

static void expect(const char *stem, const char *name, const char *suffix) {
    char symbol[128];
    for (int profiling = 0; profiling < 2; profiling++) {
        snprintf(symbol, sizeof symbol, "%sMPI_%s%s%s", profiling ? "P" : "", stem, name, suffix);
        CHECK(dlsym(library, symbol) != NULL, "%s", symbol);
    }
    functions++;
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    library = argc > 2 ? dlopen(argv[2], RTLD_NOW) : NULL;
    CHECK(library != NULL, "%s", dlerror());
    for (size_t i = 0; library && i < sizeof plain / sizeof *plain; i++) expect("File_", plain[i], "");
    for (size_t i = 0; library && i < sizeof counting / sizeof *counting; i++) {
        expect("File_", counting[i], "");
        expect("File_", counting[i], "_c");
    }
    expect("Register_datarep", "", "");
    expect("Register_datarep", "", "_c");
    CHECK_EQ(functions, 94);
    return check_end();
}
