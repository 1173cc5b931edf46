/* ranks: 1 2 3 4 7
 * Children in the middle of it: whatever they do at their end, the parent's files are unharmed.
 */
#include "check.h"
#include <sys/wait.h>

enum { BLOCK = 10000, CHILDREN = 3 };

static void expect_child(pid_t pid) {
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid, "the child is there");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ends well: %#x", status);
}

/* Three kinds: one that just ends, one that runs its exit handlers, one that becomes another program. */
static void make_child(int kind) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
        if (kind == 0) _exit(0);
        if (kind == 1) exit(0);
        execlp("true", "true", (char *)NULL);
        _exit(9);
    }
    expect_child(pid);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    const char *path = check_path("data");
    MPI_File file;
    MPI_Status status;
    unsigned char data[BLOCK], back[BLOCK];
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    for (int step = 0; step < 2 * CHILDREN; step++) {
        long long at = ((long long)step * check.size + check.rank) * BLOCK;
        check_fill(data, at, BLOCK, 1);
        MPI_Request request = MPI_REQUEST_NULL;
        CHECK_OK(MPI_File_write_at_all(file, at, data, BLOCK, MPI_BYTE, &status));
        CHECK_OK(MPI_File_iread_at(file, at, back, BLOCK, MPI_BYTE, &request));
        CHECK_OK(MPI_Wait(&request, &status));
        make_child(step % CHILDREN);
        CHECK_FILLED(back, at, BLOCK, 1);
        CHECK_OK(MPI_File_read_at_all(file, at, back, BLOCK, MPI_BYTE, &status));
        CHECK_COUNT(status, MPI_BYTE, BLOCK);
        CHECK_FILLED(back, at, BLOCK, 1);
        CHECK_OK(MPI_File_write_shared(file, data, 1, MPI_BYTE, MPI_STATUS_IGNORE));
        check_barrier();
        CHECK_OK(MPI_File_write_at(file, at, data, BLOCK, MPI_BYTE, &status)); /* over what the shared pointer wrote */
        check_barrier();
    }
    CHECK(system("true") == 0, "a shell runs");
    CHECK_OK(MPI_File_set_size(file, 0));
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
    return check_end();
}
