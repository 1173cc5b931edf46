/* ranks: 1 2 3 4 7
 * The error classes of files: each provoked, with a text that says something.
 */
#include "check.h"

static MPI_File file;
static MPI_Status status;
static char byte;

/* A code of the class, whose text exists and fits. */
static void expect(int code, int wanted, const char *what) {
    char text[MPI_MAX_ERROR_STRING + 1];
    int length = -1, class = check_class_of(code);
    memset(text, '?', sizeof text);
    CHECK(class == wanted, "%s: class %d, not %d", what, class, wanted);
    CHECK_OK(MPI_Error_string(code, text, &length));
    CHECK(length > 0 && length < MPI_MAX_ERROR_STRING && text[length] == '\0', "%s: a text of %d characters", what, length);
    CHECK((int)strlen(text) == length, "%s: '%s'", what, text);
}

static int open_mode(const char *path, int mode) { return MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file); }

static void opening(void) {
    const char *path = check_path("opening"), *absent = check_path("absent");
    char long_name[CHECK_PATH];
    check_make_shared(path, 10, 1);
    expect(open_mode(absent, MPI_MODE_RDONLY), MPI_ERR_NO_SUCH_FILE, "a file that is not there");
    expect(open_mode(path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL), MPI_ERR_FILE_EXISTS, "a file that is there");
    expect(open_mode(path, MPI_MODE_RDONLY | MPI_MODE_RDWR), MPI_ERR_AMODE, "two ways");
    int size = snprintf(long_name, sizeof long_name, "%s/", check.dir);
    memset(long_name + size, 'n', 300);
    long_name[size + 300] = '\0';
    expect(open_mode(long_name, MPI_MODE_RDWR | MPI_MODE_CREATE), MPI_ERR_BAD_FILE, "a name that is too long");
    expect(MPI_File_delete(absent, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE, "deleting what is not there");
    check_remove(path);
}

static void calls(void) {
    const char *path = check_path("calls");
    check_make_shared(path, 10, 1);
    CHECK_OK(open_mode(path, MPI_MODE_RDONLY));
    expect(MPI_File_write_at(file, 0, &byte, 1, MPI_BYTE, &status), MPI_ERR_READ_ONLY, "writing a file for reading");
    expect(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "x32", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP, "a representation");
    expect(MPI_File_set_view(file, 0, MPI_DATATYPE_NULL, MPI_BYTE, "native", MPI_INFO_NULL), MPI_ERR_TYPE, "no etype");
    expect(MPI_File_read_at(file, -1, &byte, 1, MPI_BYTE, &status), MPI_ERR_ARG, "a negative offset");
    expect(MPI_File_read_at(file, 0, &byte, -1, MPI_BYTE, &status), MPI_ERR_COUNT, "a negative count");
    expect(MPI_File_read_at(file, 0, &byte, 1, MPI_DATATYPE_NULL, &status), MPI_ERR_TYPE, "no type");
    CHECK_OK(MPI_File_close(&file));
    CHECK_OK(open_mode(path, MPI_MODE_WRONLY));
    expect(MPI_File_read_at(file, 0, &byte, 1, MPI_BYTE, &status), MPI_ERR_ACCESS, "reading a file for writing");
    CHECK_OK(MPI_File_close(&file));
    CHECK_OK(open_mode(path, MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL));
    expect(MPI_File_read_at(file, 0, &byte, 1, MPI_BYTE, &status), MPI_ERR_UNSUPPORTED_OPERATION, "an offset in a sequential file");
    CHECK_OK(MPI_File_close(&file));
    if (check.size > 1) {
        CHECK_OK(open_mode(path, MPI_MODE_RDWR));
        expect(MPI_File_set_size(file, check.rank ? 20 : 30), MPI_ERR_NOT_SAME, "different sizes");
        CHECK_OK(MPI_File_close(&file));
    }
    check_remove(path);
}

/* The null handle is no file; calls on it fail and return. */
static void null_handle(void) {
    MPI_File none = MPI_FILE_NULL;
    MPI_Offset offset;
    MPI_Info info;
    MPI_Group group;
    MPI_Request request = MPI_REQUEST_NULL;
    int number;
    expect(MPI_File_close(&none), MPI_ERR_FILE, "close");
    expect(MPI_File_get_size(MPI_FILE_NULL, &offset), MPI_ERR_FILE, "get_size");
    expect(MPI_File_set_size(MPI_FILE_NULL, 0), MPI_ERR_FILE, "set_size");
    expect(MPI_File_get_amode(MPI_FILE_NULL, &number), MPI_ERR_FILE, "get_amode");
    expect(MPI_File_get_group(MPI_FILE_NULL, &group), MPI_ERR_FILE, "get_group");
    expect(MPI_File_get_info(MPI_FILE_NULL, &info), MPI_ERR_FILE, "get_info");
    expect(MPI_File_seek(MPI_FILE_NULL, 0, MPI_SEEK_SET), MPI_ERR_FILE, "seek");
    expect(MPI_File_get_position(MPI_FILE_NULL, &offset), MPI_ERR_FILE, "get_position");
    expect(MPI_File_set_view(MPI_FILE_NULL, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), MPI_ERR_FILE, "set_view");
    expect(MPI_File_read(MPI_FILE_NULL, &byte, 1, MPI_BYTE, &status), MPI_ERR_FILE, "read");
    expect(MPI_File_write_at(MPI_FILE_NULL, 0, &byte, 1, MPI_BYTE, &status), MPI_ERR_FILE, "write_at");
    expect(MPI_File_read_at_all(MPI_FILE_NULL, 0, &byte, 1, MPI_BYTE, &status), MPI_ERR_FILE, "read_at_all");
    expect(MPI_File_iread(MPI_FILE_NULL, &byte, 1, MPI_BYTE, &request), MPI_ERR_FILE, "iread");
    expect(MPI_File_write_shared(MPI_FILE_NULL, &byte, 1, MPI_BYTE, &status), MPI_ERR_FILE, "write_shared");
    expect(MPI_File_write_all_begin(MPI_FILE_NULL, &byte, 1, MPI_BYTE), MPI_ERR_FILE, "write_all_begin");
    expect(MPI_File_sync(MPI_FILE_NULL), MPI_ERR_FILE, "sync");
    expect(MPI_File_set_atomicity(MPI_FILE_NULL, 1), MPI_ERR_FILE, "set_atomicity");
}

/* The text of a code says what was wrong, whatever the host makes of codes that others add. */
static void says(int code, const char *word) {
    CHECK(strstr(check_error_text(code), word) != NULL, "'%s' does not say %s", check_error_text(code), word);
}

static int last_used_code(void) {
    int *last = NULL, flag = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag);
    return flag ? *last : -1;
}

static void messages(void) {
    const char *absent = check_path("absent"), *missing = check_path("missing");
    int code = open_mode(absent, MPI_MODE_RDONLY);
    says(code, "MPI_File_open");
    says(code, absent);
    expect(code, MPI_ERR_NO_SUCH_FILE, "a code with a message");
    code = MPI_File_delete(missing, MPI_INFO_NULL);
    says(code, "MPI_File_delete");
    says(code, missing);
#ifdef OPEN_MPI
    /* Programs that know no other MPI compare codes with classes. */
    CHECK_EQ(code, MPI_ERR_NO_SUCH_FILE);
#else
    /* The class itself keeps its text. */
    CHECK(strstr(check_error_text(MPI_ERR_NO_SUCH_FILE), missing) == NULL, "the class says %s", missing);
#endif
    /* Where codes are classes, the message is that of the call before, not of any failure in the past. */
    CHECK_OK(open_mode(check_path("message"), MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE));
    CHECK_OK(MPI_File_close(&file));
    CHECK(strstr(check_error_text(MPI_ERR_NO_SUCH_FILE), missing) == NULL, "the class still says %s", missing);
    /* Codes are not used up. */
    int before = last_used_code();
    for (int i = 0; i < 1000; i++) code = MPI_File_delete(missing, MPI_INFO_NULL);
    CHECK_EQ(last_used_code(), before);
    says(code, missing);
}

/* Every class of the chapter has a text of its own, and is its own class. */
static void texts(void) {
    static const int classes[] = {MPI_ERR_FILE, MPI_ERR_NOT_SAME, MPI_ERR_AMODE, MPI_ERR_UNSUPPORTED_DATAREP,
                                  MPI_ERR_UNSUPPORTED_OPERATION, MPI_ERR_NO_SUCH_FILE, MPI_ERR_FILE_EXISTS, MPI_ERR_BAD_FILE,
                                  MPI_ERR_ACCESS, MPI_ERR_NO_SPACE, MPI_ERR_QUOTA, MPI_ERR_READ_ONLY, MPI_ERR_FILE_IN_USE,
                                  MPI_ERR_DUP_DATAREP, MPI_ERR_CONVERSION, MPI_ERR_IO};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) expect(classes[i], classes[i], "a class itself");
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    texts();
    null_handle();
    opening();
    calls();
    messages();
    return check_end();
}
