/* ranks: 1 2 3 4
 *
 * Runs the cases of a script, by whatever MPI-IO it finds, and records what each rank sees.
 *
 *     mpirun -n N ./cases DIRECTORY SCRIPT RECORD SECONDS
 *
 * Rank r reads SCRIPT.r and writes RECORD.r; files of the cases are made in DIRECTORY. A case that takes
 * longer than SECONDS ends the job, with a line `hang` in the records; the driver goes on after it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <signal.h>

#include "steps.h"

static void cases_hang(int signal) {
    (void)signal;
    ssize_t written = write(fileno(record), "\nhang\n", 6);
    _exit(written == 6 ? 9 : 10);
}

/* For each rank its own script and record. */
static FILE *cases_open(const char *name, const char *mode) {
    char path[4200];
    snprintf(path, sizeof path, "%s.%d", name, at.world_rank);
    FILE *file = fopen(path, mode);
    if (file) return file;
    perror(path);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

static void cases_one(const char *number) {
    int color, step;
    fprintf(record, "case %s\n", number);
    at.comm = file_communicator(script_word(), &color);
    snprintf(at.path, sizeof at.path, "%s/file.%d", at.directory, color);
    long long bytes = script_number();
    file_prepare(bytes, (unsigned)script_number());
    at.asks_shared = script_int();
    /* Nothing of a case that went wrong is left. */
    at.is_busy = 0;
    at.split = NULL;
    at.pending.count = 0;
    file_open(0);
    file_query(0);
    for (step = 1;; step++) {
        const char *word = script_word();
        if (script_is(word, "end")) break;
        fflush(record);
        steps_run(step, word);
    }
    file_close(step);
    file_contents(step);
    if (at.comm != MPI_COMM_WORLD) MPI_Comm_free(&at.comm);
    fprintf(record, "end %s\n", number);
    fflush(record);
    file_barrier();
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc != 5) {
        fprintf(stderr, "usage: %s DIRECTORY SCRIPT RECORD SECONDS\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &at.world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &at.world_size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    at.directory = argv[1];
    script = cases_open(argv[2], "r");
    record = cases_open(argv[3], "w");
    signal(SIGALRM, cases_hang);
    const char *word;
    while ((word = script_try_word())) {
        char number[SCRIPT_WORD];
        if (!script_is(word, "case")) {
            fprintf(stderr, "`%s` in the script where a case should begin\n", word);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        snprintf(number, sizeof number, "%s", script_word());
        alarm((unsigned)atoi(argv[4]));
        cases_one(number);
    }
    alarm(0);
    fclose(record);
    MPI_Finalize();
    return 0;
}
