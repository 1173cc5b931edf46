/* ranks: 1 2 3 4 7
 * The completion calls on mixtures of file requests, messages, inactive and null requests.
 */
#include "check.h"

enum { FILES = 4, MESSAGES = 2, ALL = 2 * FILES + 2 * MESSAGES + 2, WORDS = 256, LENGTH = WORDS * (int)sizeof(int) };

/* One mixture: writes and reads of a file, messages round a ring, a null and an inactive request. */
typedef struct {
    MPI_File file;
    MPI_Request requests[ALL], persistent;
    int written[FILES][WORDS], readable[FILES][WORDS], sent[MESSAGES][WORDS], received[MESSAGES][WORDS];
    int left, number;
} mixture;

static int is_file(int place) { return place < 2 * FILES; }
static int is_message(int place) { return place >= 2 * FILES && place < 2 * FILES + 2 * MESSAGES; }

static void begin(mixture *mix, MPI_File file, int number) {
    int next = (check.rank + 1) % check.size, previous = (check.rank + check.size - 1) % check.size, at = 0;
    memset(mix, 0, sizeof *mix);
    mix->file = file;
    mix->number = number;
    for (int i = 0; i < FILES; i++) {
        for (int w = 0; w < WORDS; w++) mix->written[i][w] = number << 20 | check.rank << 12 | i << 8 | w;
        CHECK_OK(MPI_File_iwrite_at(file, (check.rank * FILES + i) * LENGTH, mix->written[i], WORDS, MPI_INT, &mix->requests[at++]));
    }
    /* Reads of a part of the file that nobody writes. */
    for (int i = 0; i < FILES; i++)
        CHECK_OK(MPI_File_iread_at(file, (MPI_Offset)(1 << 20) + i * LENGTH, mix->readable[i], WORDS, MPI_INT, &mix->requests[at++]));
    for (int i = 0; i < MESSAGES; i++) {
        for (int w = 0; w < WORDS; w++) mix->sent[i][w] = number << 20 | check.rank << 12 | i << 8 | w;
        MPI_Irecv(mix->received[i], WORDS, MPI_INT, previous, i, MPI_COMM_WORLD, &mix->requests[at++]);
        MPI_Isend(mix->sent[i], WORDS, MPI_INT, next, i, MPI_COMM_WORLD, &mix->requests[at++]);
    }
    mix->requests[at++] = MPI_REQUEST_NULL;
    MPI_Send_init(mix->sent[0], 1, MPI_INT, next, 99, MPI_COMM_WORLD, &mix->persistent);
    mix->requests[at++] = mix->persistent;
    mix->left = 2 * FILES + 2 * MESSAGES;
}

/* A status that a completion call returned for a place. */
static void expect_status(MPI_Status *status, int place) {
    if (is_file(place)) CHECK_COUNT(*status, MPI_INT, WORDS);
    else if (is_message(place) && place % 2 == 0) {
        CHECK_COUNT(*status, MPI_INT, WORDS);
        CHECK_EQ(status->MPI_SOURCE, (check.rank + check.size - 1) % check.size);
    }
}

static void finish(mixture *mix) {
    int previous = (check.rank + check.size - 1) % check.size;
    for (int i = 0; i < ALL - 2; i++) CHECK(mix->requests[i] == MPI_REQUEST_NULL, "request %d is done and gone", i);
    MPI_Request_free(&mix->persistent);
    for (int i = 0; i < FILES; i++) {
        CHECK_FILE(check_path("data"), (check.rank * FILES + i) * LENGTH, mix->written[i], LENGTH);
        CHECK_FILLED(mix->readable[i], (1 << 20) + i * LENGTH, LENGTH, 1);
    }
    for (int i = 0; i < MESSAGES; i++) CHECK_EQ(mix->received[i][WORDS - 1], mix->number << 20 | previous << 12 | i << 8 | (WORDS - 1));
}

/* Within loops of unknown length only failures count, so that the number of checks is always the same. */
#define EXPECT_OK(call) ((call) == MPI_SUCCESS || CHECK(0, "%s", #call))

static void waitall(mixture *mix) {
    MPI_Status statuses[ALL];
    CHECK_OK(MPI_Waitall(ALL, mix->requests, statuses));
    for (int i = 0; i < ALL; i++) expect_status(&statuses[i], i);
}

static void waitall_ignoring(mixture *mix) { CHECK_OK(MPI_Waitall(ALL, mix->requests, MPI_STATUSES_IGNORE)); }

static void wait_each(mixture *mix) {
    for (int i = ALL - 1; i >= 0; i--) {
        MPI_Status status;
        CHECK_OK(MPI_Wait(&mix->requests[i], &status));
        expect_status(&status, i);
        if (i >= ALL - 2) CHECK_COUNT(status, MPI_INT, 0); /* null and inactive: an empty status */
    }
}

static void waitany(mixture *mix) {
    int seen[ALL] = {0}, place;
    MPI_Status status;
    for (int i = 0; i < mix->left; i++) {
        CHECK_OK(MPI_Waitany(ALL, mix->requests, &place, &status));
        if (!CHECK(place >= 0 && place < ALL - 2 && !seen[place], "place %d", place)) return;
        seen[place] = 1;
        expect_status(&status, place);
    }
    CHECK_OK(MPI_Waitany(ALL, mix->requests, &place, &status));
    CHECK(place == MPI_UNDEFINED, "nothing is left to wait for: %d", place);
}

static void waitsome(mixture *mix) {
    int done = 0, count, places[ALL];
    MPI_Status statuses[ALL];
    while (done < mix->left) {
        if (!EXPECT_OK(MPI_Waitsome(ALL, mix->requests, &count, places, statuses))) return;
        if (count <= 0 || count > ALL) {
            CHECK(0, "waitsome completed %d", count);
            return;
        }
        for (int i = 0; i < count; i++) {
            CHECK(places[i] >= 0 && places[i] < ALL - 2, "place %d", places[i]);
            expect_status(&statuses[i], places[i]);
        }
        done += count;
    }
    CHECK_OK(MPI_Waitsome(ALL, mix->requests, &count, places, statuses));
    CHECK(count == MPI_UNDEFINED, "nothing is left to wait for: %d", count);
}

static void test_each(mixture *mix) {
    for (int i = 0; i < ALL; i++) {
        int flag = 0;
        MPI_Status status;
        while (!flag)
            if (!EXPECT_OK(MPI_Test(&mix->requests[i], &flag, &status))) return;
        expect_status(&status, i);
    }
}

static void testall(mixture *mix) {
    int flag = 0;
    MPI_Status statuses[ALL];
    while (!flag)
        if (!EXPECT_OK(MPI_Testall(ALL, mix->requests, &flag, statuses))) return;
    for (int i = 0; i < ALL; i++) expect_status(&statuses[i], i);
}

static void testany(mixture *mix) {
    int done = 0, flag, place;
    MPI_Status status;
    while (done < mix->left) {
        if (!EXPECT_OK(MPI_Testany(ALL, mix->requests, &place, &flag, &status))) return;
        if (!flag) continue;
        if (!CHECK(place >= 0 && place < ALL - 2, "place %d with %d left", place, mix->left - done)) return;
        expect_status(&status, place);
        done++;
    }
    CHECK_OK(MPI_Testany(ALL, mix->requests, &place, &flag, &status));
    CHECK(flag && place == MPI_UNDEFINED, "flag %d, place %d", flag, place);
}

static void testsome(mixture *mix) {
    int done = 0, count, places[ALL];
    MPI_Status statuses[ALL];
    while (done < mix->left) {
        if (!EXPECT_OK(MPI_Testsome(ALL, mix->requests, &count, places, statuses))) return;
        if (count < 0 || count > ALL) {
            CHECK(0, "testsome completed %d", count);
            return;
        }
        for (int i = 0; i < count; i++) expect_status(&statuses[i], places[i]);
        done += count;
    }
    CHECK_OK(MPI_Testsome(ALL, mix->requests, &count, places, statuses));
    CHECK(count == MPI_UNDEFINED, "nothing is left: %d", count);
}

/* Looking does not complete; waiting afterwards does, with the same status. */
static void get_status(mixture *mix) {
    for (int i = 0; i < ALL - 2; i++) {
        int flag = 0;
        MPI_Status status;
        while (!flag)
            if (!EXPECT_OK(MPI_Request_get_status(mix->requests[i], &flag, &status))) return;
        expect_status(&status, i);
        CHECK(mix->requests[i] != MPI_REQUEST_NULL, "the request is still there");
        CHECK_OK(MPI_Wait(&mix->requests[i], &status));
        expect_status(&status, i);
    }
    int flag = 0;
    CHECK_OK(MPI_Request_get_status(MPI_REQUEST_NULL, &flag, MPI_STATUS_IGNORE));
    CHECK(flag, "the null request is done");
}

/* A cancelled file operation is either cancelled or done. */
static void cancel(MPI_File file) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    int words[WORDS], cancelled = 0;
    for (int w = 0; w < WORDS; w++) words[w] = w + check.rank;
    CHECK_OK(MPI_File_iwrite_at(file, (check.rank + 64) * LENGTH, words, WORDS, MPI_INT, &request));
    CHECK_OK(MPI_Cancel(&request));
    CHECK_OK(MPI_Wait(&request, &status));
    CHECK_OK(MPI_Test_cancelled(&status, &cancelled));
    if (!cancelled) {
        CHECK_COUNT(status, MPI_INT, WORDS);
        CHECK_FILE(check_path("data"), (check.rank + 64) * LENGTH, words, LENGTH);
    }
    CHECK(request == MPI_REQUEST_NULL, "the request is gone");
}

/* Files only, and none at all. */
static void plain_arrays(MPI_File file) {
    MPI_Request none[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[3];
    int flag = 0, place = 0, words[3] = {1, 2, 3}, back[3] = {0};
    CHECK_OK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
    CHECK_OK(MPI_Waitall(3, none, statuses));
    CHECK_OK(MPI_Testall(3, none, &flag, statuses));
    CHECK(flag, "null requests are done");
    CHECK_OK(MPI_Waitany(3, none, &place, MPI_STATUS_IGNORE));
    CHECK(place == MPI_UNDEFINED, "place %d", place);
    MPI_Offset base = (MPI_Offset)(2 << 20) + check.rank * 12;
    for (int i = 0; i < 3; i++) CHECK_OK(MPI_File_iwrite_at(file, base + 4 * i, &words[i], 1, MPI_INT, &none[i]));
    CHECK_OK(MPI_Waitall(3, none, statuses));
    for (int i = 0; i < 3; i++) CHECK_OK(MPI_File_iread_at(file, base + 4 * i, &back[i], 1, MPI_INT, &none[i]));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(MPI_Waitany(3, none, &place, &statuses[0]));
        CHECK(place >= 0 && place < 3, "place %d", place);
        CHECK_COUNT(statuses[0], MPI_INT, 1);
    }
    CHECK(back[0] == 1 && back[1] == 2 && back[2] == 3, "%d %d %d", back[0], back[1], back[2]);
}

int main(int argc, char **argv) {
    static void (*const methods[])(mixture *) = {waitall,   waitall_ignoring, wait_each,  waitany, waitsome,
                                              test_each, testany,          testsome,   testall, get_status};
    static mixture mix;
    check_begin(argc, argv);
    const char *path = check_path("data");
    check_make_shared(path, (1 << 20) + FILES * LENGTH, 1);
    MPI_File file;
    CHECK_OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        begin(&mix, file, (int)i + 1);
        methods[i](&mix);
        finish(&mix);
        check_barrier();
    }
    cancel(file);
    plain_arrays(file);
    CHECK_OK(MPI_File_close(&file));
    check_remove(path);
    return check_end();
}
