/* ranks: 1 2 3 4 7
 * Several threads of each rank: on one handle, on handles of their own, and in collective calls on
 * different files at once.
 */
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 30, LENGTH = 3000 };

typedef struct {
    int number;
    MPI_File shared, own;
    MPI_Comm comm;
} worker;

static long long part(int thread, int round) {
    return (((long long)round * THREADS + thread) * check.size + check.rank) * LENGTH;
}

/* Independent access on a handle that all threads use. */
static void on_one_handle(worker *self) {
    unsigned char data[LENGTH], back[LENGTH];
    MPI_Status status;
    for (int round = 0; round < ROUNDS; round++) {
        long long at = part(self->number, round);
        check_fill(data, at, LENGTH, 1);
        if (round % 2) {
            CHECK_OK(MPI_File_write_at(self->shared, at, data, LENGTH, MPI_BYTE, &status));
        } else {
            MPI_Request request = MPI_REQUEST_NULL;
            CHECK_OK(MPI_File_iwrite_at(self->shared, at, data, LENGTH, MPI_BYTE, &request));
            CHECK_OK(MPI_Wait(&request, &status));
        }
        CHECK_COUNT(status, MPI_BYTE, LENGTH);
        CHECK_OK(MPI_File_read_at(self->shared, at, back, LENGTH, MPI_BYTE, &status));
        CHECK_FILLED(back, at, LENGTH, 1);
    }
}

/* Collective access, each thread with a file and a communicator of its own. */
static void on_own_handle(worker *self) {
    unsigned char data[LENGTH], back[LENGTH];
    MPI_Status status;
    for (int round = 0; round < ROUNDS; round++) {
        long long at = ((long long)round * check.size + check.rank) * LENGTH;
        check_fill(data, at, LENGTH, 2 + self->number);
        CHECK_OK(MPI_File_write_at_all(self->own, at, data, LENGTH, MPI_BYTE, &status));
        CHECK_COUNT(status, MPI_BYTE, LENGTH);
        MPI_Request request = MPI_REQUEST_NULL;
        CHECK_OK(MPI_File_iread_at_all(self->own, at, back, LENGTH, MPI_BYTE, &request));
        CHECK_OK(MPI_Wait(&request, &status));
        CHECK_FILLED(back, at, LENGTH, 2 + self->number);
    }
}

static void *work(void *argument) {
    worker *self = argument;
    char leaf[16];
    snprintf(leaf, sizeof leaf, "own%d", self->number);
    char path[CHECK_PATH]; /* check_path's names are not for several threads */
    snprintf(path, sizeof path, "%s/%s.%s", check.dir, check.name, leaf);
    on_one_handle(self);
    CHECK_OK(MPI_File_open(self->comm, path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &self->own));
    on_own_handle(self);
    CHECK_OK(MPI_File_close(&self->own));
    return NULL;
}

int main(int argc, char **argv) {
    int provided = -1;
    check_prepare(argc, argv);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    check_attach(MPI_COMM_WORLD);
    if (provided != MPI_THREAD_MULTIPLE) {
        check_skip("everything", "this MPI does not give MPI_THREAD_MULTIPLE");
        return check_end();
    }
    const char *path = check_path("shared");
    worker workers[THREADS];
    pthread_t threads[THREADS];
    MPI_File shared;
    check_remove(path);
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &shared));
    for (int i = 0; i < THREADS; i++) {
        workers[i].number = i;
        workers[i].shared = shared;
        MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
    }
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, &workers[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) MPI_Comm_free(&workers[i].comm);
    /* Pointers that threads share: every record gets a place of its own. */
    MPI_Offset at = -1;
    CHECK_OK(MPI_File_get_position(shared, &at));
    CHECK_EQ(at, 0);
    CHECK_OK(MPI_File_close(&shared));
    size_t whole = (size_t)ROUNDS * THREADS * (size_t)check.size * LENGTH;
    unsigned char *expected = malloc(whole);
    check_fill(expected, 0, whole, 1);
    CHECK_FILE(path, 0, expected, whole);
    free(expected);
    check_remove(path);
    return check_end();
}
