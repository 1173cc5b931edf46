/* ranks: 4
 * Opens files in one of several ways, each of which makes pario warn; the job is to have one line of it.
 *
 *   warned DIR self|split|world NAME=VALUE   with that hint, on these communicators
 *   warned DIR last NAME=VALUE               by the last rank alone, on MPI_COMM_SELF
 */
#define _GNU_SOURCE
#include "../../programs/check.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Lets io_uring_setup fail, as containers do. */
static void forbid_rings(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "%s", strerror(errno));
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "%s", strerror(errno));
}

static void open_twice(MPI_Comm comm, int number, MPI_Info info) {
    char name[40];
    snprintf(name, sizeof name, "data%d", number);
    for (int i = 0; i < 2; i++) {
        MPI_File file;
        CHECK_OK(MPI_File_open(comm, check_path(name), MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &file));
        CHECK_OK(MPI_File_close(&file));
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    const char *where = argc > 2 ? argv[2] : "world";
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, check.rank % 2, check.rank, &half);
    MPI_Info info;
    MPI_Info_create(&info);
    char *hint = argc > 3 ? argv[3] : "cb_nodes=many", *value = strchr(hint, '=');
    *value++ = '\0';
    MPI_Info_set(info, hint, value);
    if (!strcmp(value, "uring")) forbid_rings();
    if (!strcmp(where, "self")) open_twice(MPI_COMM_SELF, check.rank, info);
    if (!strcmp(where, "split")) open_twice(half, check.rank % 2, info);
    if (!strcmp(where, "world")) open_twice(MPI_COMM_WORLD, 0, info);
    if (!strcmp(where, "last") && check.rank == check.size - 1) open_twice(MPI_COMM_SELF, 0, info);
    MPI_Info_free(&info);
    MPI_Comm_free(&half);
    return check_end();
}
