/* ranks: 1 2 4
 * Calls of libc that fail in the middle of MPI-IO, by the library fault_shim in front of libpario.so.
 *
 *   injected DIR [short|full] [[-]KIND]   every access with the n-th call failing, for n = 1, 2, ...;
 *                                         of one kind only, or of all kinds but one
 *   injected DIR first KIND NTH ERROR RANK
 *                                         one round of everything in a process that has done nothing before
 *
 * Whatever fails: nobody hangs and nobody crashes, all ranks of a collective call have the same class,
 * statuses say what is in the file, nothing else is touched, nothing is left behind, and the same call
 * succeeds afterwards.
 */
#define CHECK_SECONDS 90
#include "../../programs/check.h"
#include <dirent.h>
#include <limits.h>
#include "injected_calls.h"
#include "injected_kinds.h"
#include "meeting.h"

enum { OLD = 1, NEW = 7, GUARD = 64, MARK = 0xee, ROUND_SECONDS = 20, CALLS_MAX = 500 };

/* Where a rank's bytes are: in pieces between those of the others, or in one block. */
typedef enum { INTERLEAVED, BLOCKS } layout;

typedef struct {
    const access_call *call;
    layout layout;
    int atomic;
    int fresh; /* on a communicator of its own */
} scene;

typedef struct {
    fault_kind kind;
    long nth, times;
    int error, victim;
} fault;

static const char *path;
static unsigned char *whole, buffer[GUARD + OWN + GUARD], *const data = buffer + GUARD;
static char story[256];
static const char *chosen = "";
static int descriptors_before;
static long rounds;

/* --- what the faults did --- */

static void told_of_hang(int signal) {
    char text[1200];
    (void)signal;
    int length = snprintf(text, sizeof text, "FAIL %s:%d rank %d: hangs in %s, failed call %s\n", check_leaf(check.file),
                          check.line, check.rank, story, fault_last());
    if (write(STDOUT_FILENO, text, (size_t)length) < 0) _exit(1);
    sleep(1);
    _exit(1);
}

static void arm(const fault *what) {
    if (check.rank == what->victim) fault_arm(what->kind, what->nth, what->error, what->times);
    else fault_arm(what->kind, LONG_MAX, what->error, 0);
}

static int anywhere(int here) {
    int nowhere, there;
    meet_with(here, &nowhere, &there);
    return there;
}

static const char *shown(int code) {
    static char text[MPI_MAX_ERROR_STRING + 700];
    snprintf(text, sizeof text, "%s, after %s: %s", story, fault_last(), check_error_text(code));
    return text;
}

/* A call of all ranks has returned: the same class everywhere, and no error without a fault. */
static int agreed(int code, const fault *what, const char *file, int line) {
    int class = check_class_of(code), lowest, highest, fired = anywhere(fault_fired() > 0);
    meet_with(class, &lowest, &highest);
    check_one(lowest == highest, file, line, "all ranks have the same class", "%d to %d here %d: %s", lowest, highest, class, shown(code));
    if (code != MPI_SUCCESS) check_one(fired && !is_repeated(what->error), file, line, "an error has a cause", "%s", shown(code));
    return lowest == MPI_SUCCESS && highest == MPI_SUCCESS;
}

#define AGREED(call) (check_at(__FILE__, __LINE__), agreed((call), what, __FILE__, __LINE__))

/* A call of all ranks; a fault that lasts is over once it has been noticed, and then the call succeeds. */
#define PERSISTS(call) \
    do { \
        if (!AGREED(call)) { \
            if (what->times > 1) fault_disarm(); \
            meet(); \
            int again = (call); \
            CHECK(again == MPI_SUCCESS, "the second time: %s", shown(again)); \
        } \
    } while (0)

/* --- what the file holds --- */

static long long file_bytes(const scene *scene) {
    if (scene->call->position != KNOWN) return (long long)OWN * (2 * check.size + 1);
    if (scene->layout == INTERLEAVED) return (long long)PIECE * PIECES * (check.size + 1);
    return (long long)(OWN + PIECE) * check.size;
}

/* The place of a data byte of a rank; a piece that belongs to nobody lies behind each of theirs. */
static long long place(const scene *scene, int rank, int k) {
    if (scene->layout == INTERLEAVED) return ((long long)(k / PIECE) * (check.size + 1) + rank) * PIECE + k % PIECE;
    return (long long)rank * (OWN + PIECE) + k;
}

static unsigned char own_byte(int rank, int k) { return check_byte(k, NEW + rank); }

static long long load(void) {
    int file = open(path, O_RDONLY);
    long long bytes = file < 0 ? -1 : read(file, whole, (size_t)(OWN + PIECE) * (2 * check.size + 2));
    if (file >= 0) close(file);
    return bytes;
}

/* The first `count` bytes are new, the rest of them old or new; the others are old. */
static void expect_written_at(const scene *scene, int count) {
    CHECK_EQ(load(), file_bytes(scene));
    int bad = 0, first = -1;
    for (int k = 0; k < OWN; k++) {
        long long at = place(scene, check.rank, k);
        int ok = whole[at] == own_byte(check.rank, k) || (k >= count && whole[at] == check_byte(at, OLD));
        if (!ok && !bad++) first = k;
        whole[at] = check_byte(at, OLD); /* seen */
    }
    CHECK(!bad, "%d bytes are wrong, the first is %d, the status counts %d: %s", bad, first, count, shown(MPI_SUCCESS));
    for (int rank = 0; rank < check.size; rank++)
        for (int k = 0; k < OWN; k++) whole[place(scene, rank, k)] = check_byte(place(scene, rank, k), OLD);
    size_t same = check_filled(whole, 0, (size_t)file_bytes(scene), OLD);
    CHECK(same == (size_t)file_bytes(scene), "byte %zu is nobody's and has changed: %s", same, shown(MPI_SUCCESS));
}

/* Records lie in an order that only the shared pointer knows; this rank's is one of them. */
static void expect_record(int count) {
    long long bytes = load();
    int longest = 0;
    for (long long at = 0; at + OWN <= bytes; at += OWN) {
        int k = 0;
        while (k < OWN && whole[at + k] == own_byte(check.rank, k)) k++;
        if (k > longest) longest = k;
    }
    CHECK(longest >= count, "a record has %d bytes, the status counts %d: %s", longest, count, shown(MPI_SUCCESS));
}

/* What was counted is the file's. */
static void expect_read(const scene *scene, int count) {
    for (int i = 0; i < GUARD; i++)
        if (buffer[i] != MARK || data[OWN + i] != MARK) {
            CHECK(0, "memory beside the buffer has changed: %s", shown(MPI_SUCCESS));
            break;
        }
    int k = 0;
    if (scene->call->position == KNOWN) {
        while (k < count && data[k] == check_byte(place(scene, check.rank, k), OLD)) k++;
    } else {
        for (int record = 0; record < 2 * check.size + 1 && k < count; record++)
            for (k = 0; k < count && data[k] == check_byte((long long)record * OWN + k, OLD);) k++;
    }
    CHECK(k == count, "byte %d of %d read is wrong: %s", k, count, shown(MPI_SUCCESS));
}

static void expect_moved(const scene *scene, int code, MPI_Status *status) {
    int count = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    if (code == MPI_SUCCESS) CHECK(count == OWN, "a success counts %d: %s", count, shown(code));
    else if (!CHECK(count >= 0 && count <= OWN, "a failure counts %d: %s", count, shown(code))) count = 0;
    meet();
    if (scene->call->direction == READS) expect_read(scene, count);
    else if (scene->call->position == KNOWN) expect_written_at(scene, count);
    else expect_record(count);
    meet();
}

/* --- what is left --- */

static int entries(const char *directory, const char *prefix) {
    int count = 0;
    DIR *list = opendir(directory);
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (entry->d_name[0] != '.' || !strncmp(entry->d_name, ".injected", 9)) count += !strncmp(entry->d_name, prefix, strlen(prefix));
    if (list) closedir(list);
    return count;
}

/* Removes what a round could not remove. */
static void sweep(void) {
    char name[CHECK_PATH];
    DIR *list = check.rank == 0 ? opendir(check.dir) : NULL;
    for (struct dirent *entry; list && (entry = readdir(list));) {
        snprintf(name, sizeof name, "%s/%s", check.dir, entry->d_name);
        if (!strncmp(entry->d_name, ".injected", 9)) unlink(name);
    }
    if (list) closedir(list);
}

/* A name that cannot be removed at all stays. */
static void expect_nothing_left(const fault *what) {
    char own_segments[40];
    snprintf(own_segments, sizeof own_segments, "pario-%d-", (int)getpid());
    int names = what->kind == FAULT_UNLINK && what->times > 1 ? INT_MAX : 0;
    meet();
    int now = entries("/proc/self/fd", "");
    /* The thread of a file's background calls may let go of it a moment after close has returned. */
    for (int looks = 0; now > descriptors_before && looks < 100; looks++) {
        check_sleep_ms(10);
        now = entries("/proc/self/fd", "");
    }
    CHECK(now <= descriptors_before, "%d descriptors, before there were %d: %s", now, descriptors_before, shown(MPI_SUCCESS));
    CHECK(entries(check.dir, "injected") <= 1, "%d files in the directory: %s", entries(check.dir, ""), shown(MPI_SUCCESS));
    CHECK(entries(check.dir, ".") <= names, "%d hidden files in the directory: %s", entries(check.dir, "."), shown(MPI_SUCCESS));
    CHECK(entries("/dev/shm", own_segments) == 0, "%d segments: %s", entries("/dev/shm", own_segments), shown(MPI_SUCCESS));
    meet();
    if (names) sweep();
}

/* --- rounds --- */

static void tell(const char *what_is_done, const fault *what) {
    char error[64];
    snprintf(error, sizeof error, "%s", what->error == FAULT_SHORT ? "short" : strerror(what->error));
    snprintf(story, sizeof story, "%s, %s number %ld of rank %d%s: %s", what_is_done, kinds[what->kind].name, what->nth,
             what->victim, what->times > 1 ? " and all that follow" : "", error);
    check_at(__FILE__, __LINE__);
    alarm(ROUND_SECONDS);
    rounds++;
}

static MPI_File open_file(MPI_Comm comm, const fault *what) {
    MPI_File file = MPI_FILE_NULL;
    PERSISTS(MPI_File_open(comm, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file));
    return file;
}

static void set_view(const scene *scene, MPI_File file, const fault *what) {
    MPI_Datatype piece, tile = MPI_BYTE;
    MPI_Offset start = 0;
    if (scene->call->position == KNOWN) start = place(scene, check.rank, 0);
    if (scene->call->position == KNOWN && scene->layout == INTERLEAVED) {
        MPI_Type_contiguous(PIECE, MPI_BYTE, &piece);
        MPI_Type_create_resized(piece, 0, (MPI_Aint)PIECE * (check.size + 1), &tile);
        MPI_Type_commit(&tile);
        MPI_Type_free(&piece);
    }
    PERSISTS(MPI_File_set_view(file, start, MPI_BYTE, tile, "native", MPI_INFO_NULL));
    if (tile != MPI_BYTE) MPI_Type_free(&tile);
}

/* One attempt; whether all ranks succeeded. */
static int attempt(const scene *scene, MPI_File file, const fault *what) {
    MPI_Status status;
    memset(&status, 0, sizeof status);
    memset(buffer, MARK, sizeof buffer);
    if (scene->call->direction == WRITES)
        for (int k = 0; k < OWN; k++) data[k] = own_byte(check.rank, k);
    if (scene->call->position == KNOWN) CHECK_OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
    check_at(scene->call->name, __LINE__);
    int code = scene->call->run(file, data, &status);
    if (scene->call->company == TOGETHER) AGREED(code);
    else {
        /* Without its shared pointer a file is of no use to any rank. */
        int fired = scene->call->position == SHARED ? anywhere(fault_fired() > 0) : fault_fired() > 0;
        CHECK(code == MPI_SUCCESS || fired && !is_repeated(what->error), "an error has a cause: %s", shown(code));
    }
    expect_moved(scene, code, &status);
    return !anywhere(code != MPI_SUCCESS);
}

static void restore(const scene *scene) {
    meet();
    if (check.rank == 0) check_make(path, (size_t)file_bytes(scene), OLD);
    meet();
}

/* Success must not be reported if a call that makes data safe has failed. */
static void expect_reported(int is_success, fault_kind kind, const fault *what, long fired_before) {
    int struck = fault_fired() > fired_before && what->kind == kind && strstr(fault_last(), path) && !is_repeated(what->error);
    CHECK(!(struck && is_success), "it was not reported: %s", shown(MPI_SUCCESS));
}

static void close_file(MPI_File *file, const fault *what) {
    long before = fault_fired();
    int success = AGREED(MPI_File_close(file));
    expect_reported(success, FAULT_CLOSE, what, before);
    CHECK(*file == MPI_FILE_NULL, "a file is closed whatever close says: %s", shown(MPI_SUCCESS));
}

static MPI_File open_scene(const scene *scene, MPI_Comm comm, const fault *what) {
    MPI_File file = open_file(comm, what);
    set_view(scene, file, what);
    if (scene->atomic) PERSISTS(MPI_File_set_atomicity(file, 1));
    return file;
}

static int access_round(const scene *scene, const fault *what) {
    char name[100];
    MPI_Comm comm = check.comm;
    snprintf(name, sizeof name, "%s, %s%s%s", scene->call->name, scene->layout == INTERLEAVED ? "interleaved" : "blocks",
             scene->atomic ? ", atomic" : "", scene->fresh ? ", new communicator" : "");
    tell(name, what);
    restore(scene);
    if (scene->fresh) MPI_Comm_dup(check.comm, &comm);
    arm(what);
    MPI_File file = open_scene(scene, comm, what);
    if (!attempt(scene, file, what)) {
        if (what->times > 1) fault_disarm();
        int success = attempt(scene, file, what);
        if (!success && scene->call->position != KNOWN) {
            /* What a file was opened without it does not get later: the next one has it. */
            close_file(&file, what);
            file = open_scene(scene, comm, what);
            success = attempt(scene, file, what);
        }
        CHECK(success, "the next time succeeds: %s", shown(MPI_SUCCESS));
    }
    if (scene->call->direction == WRITES) {
        long before = fault_fired();
        int success = AGREED(MPI_File_sync(file));
        expect_reported(success, FAULT_SYNC, what, before);
    }
    close_file(&file, what);
    fault_disarm();
    if (scene->fresh) MPI_Comm_free(&comm);
    expect_nothing_left(what);
    return anywhere(fault_fired() > 0);
}

/* Sizes: what was asked for, or what was there. */
static int size_round(const scene *scene, const fault *what) {
    enum { LONG = 300000, SHORT = 1000 };
    MPI_Offset bytes = -1;
    tell("sizes", what);
    restore(scene);
    long long before = file_bytes(scene);
    arm(what);
    MPI_File file = open_file(check.comm, what);
    int success = AGREED(MPI_File_preallocate(file, LONG));
    CHECK(success ? check_size(path) >= LONG : check_size(path) >= before, "%lld bytes after preallocate: %s", check_size(path), shown(MPI_SUCCESS));
    load();
    CHECK_EQ(check_filled(whole, 0, (size_t)before, OLD), before);
    meet();
    PERSISTS(MPI_File_set_size(file, SHORT));
    CHECK_EQ(check_size(path), SHORT);
    int code = MPI_File_get_size(file, &bytes);
    if (code == MPI_SUCCESS) CHECK_EQ(bytes, SHORT);
    else CHECK(fault_fired() && !is_repeated(what->error), "an error has a cause: %s", shown(code));
    if (code != MPI_SUCCESS && what->times > 1) fault_disarm();
    if (code != MPI_SUCCESS) CHECK_OK(MPI_File_seek(file, 0, MPI_SEEK_END));
    meet();
    long fired = fault_fired();
    success = AGREED(MPI_File_sync(file));
    expect_reported(success, FAULT_SYNC, what, fired);
    close_file(&file, what);
    fault_disarm();
    expect_nothing_left(what);
    return anywhere(fault_fired() > 0);
}

/* Files that go: after success they are gone, after an error they can be deleted. */
static int delete_round(const scene *scene, const fault *what) {
    MPI_File file = MPI_FILE_NULL;
    tell("deleting", what);
    restore(scene);
    arm(what);
    PERSISTS(MPI_File_open(check.comm, path, MPI_MODE_RDWR | MPI_MODE_APPEND | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
    int success = AGREED(MPI_File_close(&file));
    meet();
    if (success) CHECK(check_size(path) == -1, "it is still there: %s", shown(MPI_SUCCESS));
    restore(scene);
    if (check.rank == check.size - 1) {
        int code = MPI_File_delete(path, MPI_INFO_NULL);
        if (code != MPI_SUCCESS) {
            CHECK(fault_fired() && !is_repeated(what->error), "an error has a cause: %s", shown(code));
            if (what->times > 1) fault_disarm();
            code = MPI_File_delete(path, MPI_INFO_NULL);
            CHECK(code == MPI_SUCCESS, "the second time: %s", shown(code));
        }
        CHECK(check_size(path) == -1, "it is still there: %s", shown(MPI_SUCCESS));
    }
    fault_disarm();
    expect_nothing_left(what);
    return anywhere(fault_fired() > 0);
}

typedef int (*round_of)(const scene *scene, const fault *what);

/* The n-th call fails, for n = 1, 2, ... until all of them have. */
static void count_down(round_of round, const scene *scene, fault *what, int is_full) {
    long step = 1;
    for (what->nth = 1; what->nth < CALLS_MAX; what->nth += step) {
        if (!round(scene, what) || what->times > 1 && what->nth > 2) return;
        if (!is_full && what->nth >= 3) step *= 2;
    }
}

static int is_chosen(fault_kind kind) {
    if (*chosen == '-') return strcmp(chosen + 1, kinds[kind].name) != 0;
    return !*chosen || !strcmp(chosen, kinds[kind].name);
}

/* Which kinds of calls a round has is learnt from one without faults. */
static void all_faults(round_of round, const scene *scene, int is_full) {
    static unsigned turn;
    fault none = {FAULT_OPEN, LONG_MAX, EIO, 0, 0};
    int most[FAULT_KINDS];
    long before = rounds;
    double begun = check_now();
    round(scene, &none);
    for (int kind = 0; kind < FAULT_KINDS; kind++) most[kind] = anywhere((int)fault_calls(kind));
    for (int kind = 0; kind < FAULT_KINDS; kind++) {
        int errors = 0;
        if (!is_chosen(kind)) continue;
        while (kinds[kind].errors[errors]) errors++;
        for (int i = 0; i < errors && most[kind]; i++) {
            turn++;
            if (!is_full && (unsigned)i != turn % (unsigned)errors && kinds[kind].errors[i] != EIO) continue;
            fault what = {kind, 1, 1, kinds[kind].errors[i], 0};
            for (int victim = 0; victim < check.size; victim += check.size > 1 ? check.size - 1 : 1) {
                if (!is_full && victim != (int)(turn / 2 % 2) * (check.size - 1)) continue;
                what.victim = victim;
                what.times = 1;
                count_down(round, scene, &what, is_full);
                what.times = INT_MAX;
                if (can_last(what.error)) count_down(round, scene, &what, is_full);
            }
        }
    }
    if (is_full && check.rank == 0) printf("injected: %s: %ld rounds in %.1f s\n", scene->call->name, rounds - before, check_now() - begun);
}

static void everything(int is_full) {
    for (int i = 0; i < ACCESS_CALLS; i++)
        for (int layout = INTERLEAVED; layout <= BLOCKS; layout++)
            for (int atomic = 0; atomic <= 1; atomic++) {
                const access_call *call = &access_calls[i];
                if (call->position != KNOWN && layout == INTERLEAVED) continue;
                /* In the short form the reads are in blocks, the atomic ones interleaved. */
                if (!is_full && call->position == KNOWN && (call->direction == READS || atomic) != (layout == BLOCKS)) continue;
                if (!is_full && atomic != i / 2 % 2) continue;
                all_faults(access_round, &(scene){call, layout, atomic, 0}, is_full);
            }
    scene plain = {&access_calls[0], BLOCKS, 0, 0};
    all_faults(size_round, &plain, is_full);
    all_faults(delete_round, &plain, is_full);
}

/* What a process does when it opens its first file, and a communicator when it is first used. */
static void first(const fault *what) {
    for (int i = 0; i < ACCESS_CALLS; i++) {
        int fired = access_round(&(scene){&access_calls[i], i % 2 ? BLOCKS : INTERLEAVED, 0, i % 4 == 0}, what);
        if (check.rank == 0 && fired) printf("injected: fired: %s\n", story);
    }
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    if (!fault_arm) {
        check_skip("everything", "the library fault_shim is not preloaded");
        return 1;
    }
    signal(SIGALRM, told_of_hang);
    path = check_path("data");
    meeting_begin();
    whole = calloc(2 * check.size + 2, OWN + PIECE);
    descriptors_before = INT_MAX;
    const char *what = argc > 2 ? argv[2] : "short";
    if (!strcmp(what, "first") && argc > 6) {
        fault one = {FAULT_KINDS, atol(argv[4]), 1, atoi(argv[5]), atoi(argv[6])};
        for (int kind = 0; kind < FAULT_KINDS; kind++)
            if (!strcmp(kinds[kind].name, argv[3])) one.kind = kind;
        first(&one);
    } else {
        fault none = {FAULT_OPEN, LONG_MAX, EIO, 0, 0};
        first(&none);
        descriptors_before = entries("/proc/self/fd", "");
        if (argc > 3) chosen = argv[3];
        everything(!strcmp(what, "full"));
    }
    if (check.rank == 0) printf("injected: %ld rounds\n", rounds);
    check_remove(path);
    return check_end();
}
