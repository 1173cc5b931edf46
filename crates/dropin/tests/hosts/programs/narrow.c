/* ranks: 3
 * Shared memory that turns out to be small, full, or not shared, after MPI has set itself up.
 * The first argument is the directory, the second `small`, `full` or `apart`.
 * It runs in a mount namespace of the job; mounting needs root.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/mount.h>

#include "exercise.h"

static void cover(void) {
    CHECK(mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1m") == 0, "%s", strerror(errno));
}

/* Takes all that is left, so that not even a page can be had. */
static void fill(void) {
    char page[4096] = {0};
    int descriptor = open("/dev/shm/full", O_CREAT | O_WRONLY, 0600);
    while (write(descriptor, page, sizeof page) > 0) {
    }
    close(descriptor);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    const char *how = argc > 2 ? argv[2] : "";
    if (strcmp(how, "apart") == 0) {
        CHECK(unshare(CLONE_NEWNS) == 0, "%s", strerror(errno));
        cover();
    } else if (check.rank == 0) {
        CHECK(strcmp(how, "small") == 0 || strcmp(how, "full") == 0, "how: %s", how);
        cover();
        if (strcmp(how, "full") == 0) fill();
    }
    check_barrier();
    exercise();
    return check_end();
}
