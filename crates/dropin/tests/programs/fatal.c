/* ranks: 1
 * Handlers that end the job: tried in children that are jobs of one process each.
 */
#include "check.h"
#include <sys/wait.h>

extern char **environ;

enum { SURVIVED = 222, CHILD_SECONDS = 30 };

/* A child must not take itself for a rank of this job. */
static void leave_the_job(void) {
    static const char *const prefixes[] = {"PMI_", "PMIX_", "PMIXD", "OMPI_COMM_", "OMPI_MCA_ess", "OMPI_MCA_orte", "OMPI_MCA_pmix",
                                           "OMPI_MCA_initial", "OMPI_UNIVERSE", "OMPI_APP_CTX", "OMPI_FIRST_RANKS", "OMPI_NUM_APP",
                                           "OMPI_FILE_LOCATION", "OMPI_ARGV", "OMPI_COMMAND", "PRTE_LAUNCHED", "MPI_LOCAL", "HYDI_", "HYDRA_"};
    for (int again = 1; again;) {
        again = 0;
        for (char **entry = environ; *entry && !again; entry++)
            for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes && !again; i++)
                if (strncmp(*entry, prefixes[i], strlen(prefixes[i])) == 0) {
                    char name[256] = "";
                    snprintf(name, sizeof name, "%.*s", (int)strcspn(*entry, "="), *entry);
                    unsetenv(name);
                    again = 1;
                }
    }
}

/* What a child does; coming back from the failing call means having survived it. */
static int child(const char *what, const char *dir) {
    MPI_File file = MPI_FILE_NULL;
    char path[CHECK_PATH], byte;
    MPI_Status status;
    MPI_Init(NULL, NULL);
    snprintf(path, sizeof path, "%s/fatal.child", dir);
    MPI_Errhandler handler = MPI_ERRORS_ARE_FATAL;
    if (strcmp(what, "return") == 0) handler = MPI_ERRORS_RETURN;
#ifdef MPI_ERRORS_ABORT
    if (strcmp(what, "abort") == 0) handler = MPI_ERRORS_ABORT;
#endif
    if (strcmp(what, "open") == 0) {
        MPI_File_set_errhandler(MPI_FILE_NULL, handler);
        MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    } else {
        if (MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file)) return 3;
        MPI_File_set_errhandler(file, handler);
        if (strcmp(what, "call") == 0) MPI_File_call_errhandler(file, MPI_ERR_OTHER);
        else MPI_File_read_at(file, -1, &byte, 1, MPI_BYTE, &status);
        MPI_File_close(&file);
    }
    MPI_Finalize();
    return SURVIVED;
}

/* The exit status of a child, -1 for a signal, -2 for a hang. */
static int run(const char *program, const char *dir, const char *what) {
    pid_t pid = fork();
    int status = 0;
    if (pid == 0) {
        int quiet = open("/dev/null", O_WRONLY);
        dup2(quiet, STDOUT_FILENO);
        dup2(quiet, STDERR_FILENO);
        leave_the_job();
        execl(program, program, dir, what, (char *)NULL);
        _exit(4);
    }
    for (int tries = 0; tries < CHILD_SECONDS * 20; tries++) {
        if (waitpid(pid, &status, WNOHANG) == pid) return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        check_sleep_ms(50);
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return -2;
}

int main(int argc, char **argv) {
    static const char *const fatal[] = {"open", "file", "call", "abort"};
    if (argc > 2) return child(argv[2], argv[1]);
    check_prepare(argc, argv);
    /* Before this process is an MPI process itself. */
    int survived = run(argv[0], check.dir, "return"), ended[4];
    for (int i = 0; i < 4; i++) ended[i] = run(argv[0], check.dir, fatal[i]);
    MPI_Init(&argc, &argv);
    check_attach(MPI_COMM_WORLD);
    /* The children are silent: this file shows who serves such files here. */
    MPI_File file;
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    CHECK_OK(MPI_File_open(MPI_COMM_SELF, check_path("parent"), mode, MPI_INFO_NULL, &file));
    CHECK_OK(MPI_File_close(&file));
    CHECK(survived == SURVIVED, "with ERRORS_RETURN the program goes on: %d", survived);
    for (int i = 0; i < 4; i++)
        CHECK(ended[i] != SURVIVED && ended[i] != 0 && ended[i] != -2 && ended[i] != 3, "%s ends the job: %d", fatal[i], ended[i]);
    unlink(check_path("child"));
    return check_end();
}
