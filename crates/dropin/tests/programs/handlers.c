/* ranks: 1 2 3 4 7
 * Error handlers: the default of files, inheritance, each file's own, and calls from the program.
 */
#include "check.h"

typedef struct {
    int calls, class;
    MPI_File file;
} heard;

static heard first, second;

static void note(heard *to, MPI_File *file, int *code) {
    to->calls++;
    to->class = check_class_of(*code);
    to->file = *file;
}

static void first_handler(MPI_File *file, int *code, ...) { note(&first, file, code); }
static void second_handler(MPI_File *file, int *code, ...) { note(&second, file, code); }

static MPI_Errhandler handler_of(MPI_File file) {
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    CHECK_OK(MPI_File_get_errhandler(file, &handler));
    return handler;
}

static void forget(void) {
    memset(&first, 0, sizeof first);
    memset(&second, 0, sizeof second);
}

/* A read at a negative offset: an error of this file that nothing else depends on. */
static int fail(MPI_File file) {
    char byte;
    MPI_Status status;
    return MPI_File_read_at(file, -1, &byte, 1, MPI_BYTE, &status);
}

static MPI_File open_file(const char *leaf) {
    MPI_File file = MPI_FILE_NULL;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, check_path(leaf), MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
                           MPI_INFO_NULL, &file));
    return file;
}

static void defaults(void) {
    MPI_Errhandler handler = handler_of(MPI_FILE_NULL);
    CHECK(handler == MPI_ERRORS_RETURN, "the default of files returns");
    MPI_File file = open_file("defaults");
    handler = handler_of(file);
    CHECK(handler == MPI_ERRORS_RETURN, "a file inherits it");
    CHECK_CLASS(fail(file), MPI_ERR_ARG);
    CHECK_OK(MPI_File_close(&file));
}

/* A handler of its own: called with the handle and the code, which the call returns as well. */
static void of_a_file(void) {
    MPI_Errhandler one, two, found;
    CHECK_OK(MPI_File_create_errhandler(first_handler, &one));
    CHECK_OK(MPI_File_create_errhandler(second_handler, &two));
    MPI_File file = open_file("own"), other = open_file("other");
    CHECK_OK(MPI_File_set_errhandler(file, one));
    CHECK_OK(MPI_File_set_errhandler(other, two));
    found = handler_of(file);
    CHECK(found == one, "get_errhandler gives what was set");
    MPI_Errhandler_free(&found);
    forget();
    CHECK_CLASS(fail(file), MPI_ERR_ARG);
    CHECK(first.calls == 1 && first.class == MPI_ERR_ARG && first.file == file, "%d calls, class %d", first.calls, first.class);
    CHECK_EQ(second.calls, 0);
    CHECK_CLASS(fail(other), MPI_ERR_ARG);
    CHECK(second.calls == 1 && second.file == other, "%d calls", second.calls);
    CHECK_EQ(first.calls, 1);
    /* A handler that was freed stays in force where it is set. */
    MPI_Errhandler_free(&one);
    CHECK(one == MPI_ERRHANDLER_NULL, "freeing leaves the null handler");
    CHECK_CLASS(fail(file), MPI_ERR_ARG);
    CHECK_EQ(first.calls, 2);
    /* Handlers change places. */
    CHECK_OK(MPI_File_set_errhandler(file, two));
    CHECK_CLASS(fail(file), MPI_ERR_ARG);
    CHECK(first.calls == 2 && second.calls == 2 && second.file == file, "%d and %d calls", first.calls, second.calls);
    CHECK_OK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
    CHECK_CLASS(fail(file), MPI_ERR_ARG);
    CHECK_EQ(second.calls, 2);
    /* Success calls nobody. */
    MPI_Offset size;
    CHECK_OK(MPI_File_get_size(other, &size));
    CHECK_EQ(second.calls, 2);
    /* Collective calls, nonblocking ones that fail at once. */
    char byte;
    MPI_Status status;
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK_CLASS(MPI_File_read_at_all(other, -1, &byte, 1, MPI_BYTE, &status), MPI_ERR_ARG);
    CHECK_EQ(second.calls, 3);
    CHECK_CLASS(MPI_File_iread_at(other, -1, &byte, 1, MPI_BYTE, &request), MPI_ERR_ARG);
    CHECK_EQ(second.calls, 4);
    CHECK_OK(MPI_File_close(&file));
    CHECK_OK(MPI_File_close(&other));
    MPI_Errhandler_free(&two);
}

/* Called by the program. */
static void called(void) {
    MPI_Errhandler one;
    CHECK_OK(MPI_File_create_errhandler(first_handler, &one));
    MPI_File file = open_file("called");
    forget();
    CHECK_OK(MPI_File_call_errhandler(file, MPI_ERR_OTHER)); /* the default returns, and so does this */
    CHECK_EQ(first.calls, 0);
    CHECK_OK(MPI_File_set_errhandler(file, one));
    CHECK_OK(MPI_File_call_errhandler(file, MPI_ERR_NO_SPACE));
    CHECK(first.calls == 1 && first.class == MPI_ERR_NO_SPACE && first.file == file, "%d calls, class %d", first.calls, first.class);
    CHECK_OK(MPI_File_close(&file));
    MPI_Errhandler_free(&one);
}

/* What is set on the null handle hears failed opens, and new files inherit it; old ones keep theirs. */
static void inherited(void) {
    MPI_Errhandler one, found;
    MPI_File before = open_file("before"), file;
    CHECK_OK(MPI_File_create_errhandler(first_handler, &one));
    CHECK_OK(MPI_File_set_errhandler(MPI_FILE_NULL, one));
    found = handler_of(MPI_FILE_NULL);
    CHECK(found == one, "the default is what was set");
    MPI_Errhandler_free(&found);
    forget();
    CHECK_CLASS(MPI_File_open(MPI_COMM_WORLD, check_path("absent"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    CHECK(first.calls == 1 && first.class == MPI_ERR_NO_SUCH_FILE && first.file == MPI_FILE_NULL, "%d calls, class %d", first.calls,
          first.class);
    CHECK_CLASS(MPI_File_delete(check_path("absent"), MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    CHECK_EQ(first.calls, 2);
    file = open_file("after");
    CHECK_CLASS(fail(file), MPI_ERR_ARG);
    CHECK(first.calls == 3 && first.file == file, "%d calls", first.calls);
    CHECK_CLASS(fail(before), MPI_ERR_ARG);
    CHECK_EQ(first.calls, 3);
    CHECK_OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    MPI_Errhandler_free(&one);
    CHECK_CLASS(fail(file), MPI_ERR_ARG);
    CHECK_EQ(first.calls, 4);
    CHECK_OK(MPI_File_close(&file));
    CHECK_OK(MPI_File_close(&before));
    CHECK_CLASS(MPI_File_open(MPI_COMM_WORLD, check_path("absent"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    CHECK_EQ(first.calls, 4);
}

/* Handlers of communicators have nothing to do with files. */
static int of_communicator;
static void communicator_handler(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    (void)code;
    of_communicator++;
}

static void apart(void) {
    MPI_Errhandler handler;
    MPI_Comm comm;
    MPI_File file = MPI_FILE_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(communicator_handler, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    CHECK_CLASS(MPI_File_open(comm, check_path("absent"), MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_NO_SUCH_FILE);
    CHECK_OK(MPI_File_open(comm, check_path("apart"), MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    CHECK_CLASS(fail(file), MPI_ERR_ARG);
    CHECK_EQ(of_communicator, 0);
    CHECK_OK(MPI_File_close(&file));
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    defaults();
    of_a_file();
    called();
    inherited();
    apart();
    return check_end();
}
