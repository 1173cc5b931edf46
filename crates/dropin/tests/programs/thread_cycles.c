/* ranks: 1 2 3 4
 * Threads that open, write and close on communicators of their own, all at once and again and again; in the middle of
 * it, children that end without disturbing anyone.
 */
#include "check.h"
#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>

enum { THREADS = 4, ROUNDS = 25, LENGTH = 2000 };

typedef struct {
    int number;
    MPI_Comm comm;
} worker;

static long descriptors(void) {
    long count = 0;
    DIR *list = opendir("/proc/self/fd");
    while (list && readdir(list)) count++;
    if (list) closedir(list);
    return count;
}

static void one_round(worker *self, int round) {
    unsigned char data[LENGTH], back[LENGTH];
    char path[CHECK_PATH]; /* check_path's names are not for several threads */
    MPI_File file;
    MPI_Status status;
    MPI_Request request;
    snprintf(path, sizeof path, "%s/%s.%d", check.dir, check.name, self->number);
    long long at = (long long)check.rank * LENGTH;
    int salt = 10 * self->number + round;
    check_fill(data, at, LENGTH, salt);
    CHECK_OK(MPI_File_open(self->comm, path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_iwrite_at_all(file, at, data, LENGTH, MPI_BYTE, &request));
    CHECK_OK(MPI_Wait(&request, &status));
    CHECK_OK(MPI_File_seek_shared(file, (MPI_Offset)check.size * LENGTH, MPI_SEEK_SET)); /* behind what others may still read */
    CHECK_OK(MPI_File_iread_at(file, at, back, LENGTH, MPI_BYTE, &request));
    if (self->number == 0 && round % 8 == 0) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        int end = -1;
        CHECK(waitpid(child, &end, 0) == child && end == 0, "the child ends well: %#x", end);
    }
    CHECK_OK(MPI_Wait(&request, &status));
    CHECK_COUNT(status, MPI_BYTE, LENGTH);
    CHECK_FILLED(back, at, LENGTH, salt);
    CHECK_OK(MPI_File_write_shared(file, data, 1, MPI_BYTE, &status));
    CHECK_OK(MPI_File_close(&file));
}

static void *work(void *argument) {
    for (int round = 0; round < ROUNDS; round++) one_round(argument, round);
    return NULL;
}

static void run(worker *workers) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, &workers[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

int main(int argc, char **argv) {
    int provided = -1;
    worker workers[THREADS];
    check_prepare(argc, argv);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    check_attach(MPI_COMM_WORLD);
    if (provided != MPI_THREAD_MULTIPLE) {
        check_skip("everything", "this MPI does not give MPI_THREAD_MULTIPLE");
        return check_end();
    }
    for (int i = 0; i < THREADS; i++) {
        workers[i].number = i;
        MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
    }
    run(workers);
    long before = descriptors();
    run(workers);
    CHECK(descriptors() <= before, "%ld descriptors, then %ld", before, descriptors());
    for (int i = 0; i < THREADS; i++) MPI_Comm_free(&workers[i].comm);
    return check_end();
}
