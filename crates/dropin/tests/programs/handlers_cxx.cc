/* ranks: 1 2 3
 * needs: cxx
 * Error handlers of the C++ bindings: functions that use the MPI::File they get, functions that
 * throw, and MPI::ERRORS_THROW_EXCEPTIONS, on files and on MPI::FILE_NULL.
 *
 * MPICH's bindings call the handler once more when the C function returns the error, so the number of
 * calls is only compared with none.
 */
#include <mpi.h>
#include <sys/resource.h>

#include <string>
#include <vector>

#include "check.h"

static const int MODE = MPI::MODE_RDWR | MPI::MODE_CREATE | MPI::MODE_DELETE_ON_CLOSE;

/* What the last handler saw. */
static struct {
    int calls, error_class, amode;
    MPI_File file;
} heard;

static int class_of(int code) { return MPI::Get_error_class(code); }

static void forget() { heard = {}; }

/* Uses the file it gets, as an object and by its handle. */
static void listening(MPI::File &file, int *code, ...) {
    heard.calls++;
    heard.error_class = class_of(*code);
    heard.file = file;
    if (heard.file != MPI_FILE_NULL) heard.amode = file.Get_amode();
}

struct Refused {
    int error_class;
};

static void throwing(MPI::File &, int *code, ...) { throw Refused{class_of(*code)}; }

static MPI::File open_file(const char *leaf) {
    return MPI::File::Open(MPI::COMM_WORLD, check_path(leaf), MODE, MPI::INFO_NULL);
}

/* A read of a negative count: an error of this file that nothing else depends on. */
static void fail(MPI::File &file) {
    char byte;
    file.Read_at(0, &byte, -1, MPI::BYTE);
}

static void fail_together(MPI::File &file) {
    char byte;
    file.Read_at_all(0, &byte, -1, MPI::BYTE);
}

#if defined(OPEN_MPI) && !OMPI_HAVE_CXX_EXCEPTION_SUPPORT
/* Open MPI without exceptions leaves the code in a variable instead. */
template <typename Work>
static int thrown_by(Work work) {
    MPI::mpi_errno = MPI::SUCCESS;
    work();
    return class_of(MPI::mpi_errno);
}
#else
/* The class of the MPI::Exception that `work` throws, or success. */
template <typename Work>
static int thrown_by(Work work) {
    try {
        work();
    } catch (MPI::Exception &exception) {
        std::string text = exception.Get_error_string();
        CHECK(!text.empty(), "an exception with a text");
        CHECK_EQ(exception.Get_error_class(), class_of(exception.Get_error_code()));
        return exception.Get_error_class();
    }
    return MPI::SUCCESS;
}
#endif

/* The class that the handler `throwing` was called with, or success. */
template <typename Work>
static int refused_by(Work work) {
    try {
        work();
    } catch (const Refused &refused) {
        return refused.error_class;
    }
    return MPI::SUCCESS;
}

/* What was interrupted by an exception is as good as new. */
static void still_works(MPI::File &file) {
    char written = (char)('a' + check.rank), read = 0;
    file.Write_at(check.rank, &written, 1, MPI::BYTE);
    file.Read_at(check.rank, &read, 1, MPI::BYTE);
    CHECK_EQ(read, written);
    file.Write_at_all(check.rank, &written, 1, MPI::BYTE);
}

static void of_a_file() {
    MPI::Errhandler handler = MPI::File::Create_errhandler(listening);
    MPI::File file = open_file("own");
    file.Set_errhandler(handler);
    MPI::Errhandler found = file.Get_errhandler();
    CHECK(found == handler, "Get_errhandler gives what was set");
    found.Free();
    forget();
    fail(file);
    CHECK(heard.calls > 0, "%d calls", heard.calls);
    CHECK_EQ(heard.error_class, MPI::ERR_COUNT);
    CHECK_EQ(heard.amode, MODE);
    CHECK(heard.file == (MPI_File)file, "the handler gets the file");
    forget();
    fail_together(file);
    CHECK(heard.calls > 0, "%d calls", heard.calls);
    CHECK_EQ(heard.amode, MODE);
    forget();
    file.Call_errhandler(MPI::ERR_NO_SPACE);
    CHECK(heard.calls > 0, "%d calls", heard.calls);
    CHECK_EQ(heard.error_class, MPI::ERR_NO_SPACE);
    CHECK_EQ(heard.amode, MODE);
    /* A handler that was freed stays in force where it is set. */
    handler.Free();
    CHECK((MPI_Errhandler)handler == MPI_ERRHANDLER_NULL, "freeing leaves the null handler");
    forget();
    fail(file);
    CHECK(heard.calls > 0, "%d calls", heard.calls);
    still_works(file);
    file.Set_errhandler(MPI::ERRORS_RETURN);
    forget();
    fail(file);
    CHECK_EQ(heard.calls, 0);
    file.Close();
}

static void that_throws() {
    MPI::Errhandler handler = MPI::File::Create_errhandler(throwing);
    MPI::File file = open_file("throwing");
    file.Set_errhandler(handler);
    for (int i = 0; i < 100; i++) CHECK_EQ(refused_by([&] { fail(file); }), MPI::ERR_COUNT);
    CHECK_EQ(refused_by([&] { fail_together(file); }), MPI::ERR_COUNT);
    CHECK_EQ(refused_by([&] { file.Call_errhandler(MPI::ERR_NO_SPACE); }), MPI::ERR_NO_SPACE);
    char byte;
    CHECK_EQ(refused_by([&] { file.Iread_at(0, &byte, -1, MPI::BYTE); }), MPI::ERR_COUNT);
    still_works(file);
    handler.Free();
    file.Close();
}

static void exceptions_of_a_file() {
    MPI::File file = open_file("exceptions");
    file.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
    MPI::Errhandler found = file.Get_errhandler();
    CHECK(found == MPI::ERRORS_THROW_EXCEPTIONS, "Get_errhandler gives what was set");
    for (int i = 0; i < 100; i++) CHECK_EQ(thrown_by([&] { fail(file); }), MPI::ERR_COUNT);
    CHECK_EQ(thrown_by([&] { fail_together(file); }), MPI::ERR_COUNT);
    CHECK_EQ(thrown_by([&] { file.Call_errhandler(MPI::ERR_NO_SPACE); }), MPI::ERR_NO_SPACE);
    still_works(file);
    file.Set_errhandler(MPI::ERRORS_RETURN);
    CHECK_EQ(thrown_by([&] { fail(file); }), MPI::SUCCESS);
    file.Close();
}

/* Hears failed opens and deletions; files that are opened meanwhile inherit it. */
static void of_no_file() {
    MPI::File none(MPI_FILE_NULL);
    std::string absent = check_path("absent");
    auto open_absent = [&] { MPI::File::Open(MPI::COMM_WORLD, absent.c_str(), MPI::MODE_RDONLY, MPI::INFO_NULL); };
    auto delete_absent = [&] { MPI::File::Delete(absent.c_str(), MPI::INFO_NULL); };
    MPI::File before = open_file("before");

    none.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
    CHECK(none.Get_errhandler() == MPI::ERRORS_THROW_EXCEPTIONS, "the default is what was set");
    CHECK_EQ(thrown_by(open_absent), MPI::ERR_NO_SUCH_FILE);
    CHECK_EQ(thrown_by(delete_absent), MPI::ERR_NO_SUCH_FILE);
    MPI::File file = open_file("inherits");
    CHECK_EQ(thrown_by([&] { fail(file); }), MPI::ERR_COUNT);
    CHECK_EQ(thrown_by([&] { fail(before); }), MPI::SUCCESS);
    file.Close();

    MPI::Errhandler handler = MPI::File::Create_errhandler(throwing);
    none.Set_errhandler(handler);
    CHECK_EQ(refused_by(open_absent), MPI::ERR_NO_SUCH_FILE);
    CHECK_EQ(refused_by(delete_absent), MPI::ERR_NO_SUCH_FILE);
    handler.Free();

    handler = MPI::File::Create_errhandler(listening);
    none.Set_errhandler(handler);
    forget();
    open_absent();
    CHECK(heard.calls > 0, "%d calls", heard.calls);
    CHECK_EQ(heard.error_class, MPI::ERR_NO_SUCH_FILE);
    CHECK(heard.file == MPI_FILE_NULL, "a failed open has no file");
    handler.Free();

    none.Set_errhandler(MPI::ERRORS_RETURN);
    forget();
    open_absent();
    CHECK_EQ(heard.calls, 0);
    before.Close();
}

/* An error that the completion of a request tells of: a limit of the file's size stops the write. */
static void that_throws_later() {
    const int limit = 1 << 20;
    struct rlimit old, low;
    getrlimit(RLIMIT_FSIZE, &old);
    low = old;
    low.rlim_cur = limit;
    signal(SIGXFSZ, SIG_IGN);
    MPI::Errhandler handler = MPI::File::Create_errhandler(throwing);
    MPI::File file = open_file("later");
    file.Set_errhandler(handler);
    std::vector<char> data(limit);
    setrlimit(RLIMIT_FSIZE, &low);
    MPI::Request requests[2] = {file.Iwrite_at(2 * limit, data.data(), limit, MPI::BYTE),
                                file.Iwrite_at(check.rank, data.data(), 1, MPI::BYTE)};
    CHECK(refused_by([&] { requests[0].Wait(); }) != MPI::SUCCESS, "the error comes with the wait");
    requests[1].Wait();
    MPI::Request more[2] = {file.Iwrite_at(2 * limit, data.data(), limit, MPI::BYTE),
                            file.Iwrite_at(check.rank, data.data(), 1, MPI::BYTE)};
    CHECK(refused_by([&] { MPI::Request::Waitall(2, more); }) != MPI::SUCCESS, "and with that of several");
    setrlimit(RLIMIT_FSIZE, &old);
    still_works(file);
    handler.Free();
    file.Close();
}

int main(int argc, char **argv) {
    check_prepare(argc, argv);
    MPI::Init(argc, argv);
    check_attach(MPI_COMM_WORLD);
    of_a_file();
    that_throws();
    exceptions_of_a_file();
    of_no_file();
    that_throws_later();
    return check_end();
}
