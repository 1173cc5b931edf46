/* Ranks of one machine that meet in shared memory: thousands of times, where MPI's own barrier would spin through
 * the time slices of ranks that have no core.
 */
#ifndef MEETING_H
#define MEETING_H
#include "../../programs/check.h"
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { MEETING_RANKS = 64 };

static struct {
    int arrived, round;
    int values[MEETING_RANKS];
} *meeting;

/* Collective: makes the memory. */
static inline void meeting_begin(void) {
    const char *name = check_path("meeting");
    if (check.rank == 0) check_make(name, 4096, 0);
    check_barrier();
    int file = open(name, O_RDWR);
    meeting = mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (check.rank == 0) memset(meeting, 0, sizeof *meeting);
    close(file);
    check_remove(name);
}

/* Returns when all ranks are here. Who waits keeps the MPI's messages moving. */
static inline void meet(void) {
    const struct timespec while_asleep = {0, 1000000};
    int round = __atomic_load_n(&meeting->round, __ATOMIC_SEQ_CST), flag;
    if (__atomic_add_fetch(&meeting->arrived, 1, __ATOMIC_SEQ_CST) == check.size) {
        __atomic_store_n(&meeting->arrived, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&meeting->round, round + 1, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, &meeting->round, FUTEX_WAKE, MEETING_RANKS);
        return;
    }
    while (__atomic_load_n(&meeting->round, __ATOMIC_SEQ_CST) == round) {
        syscall(SYS_futex, &meeting->round, FUTEX_WAIT, round, &while_asleep);
        if (__atomic_load_n(&meeting->round, __ATOMIC_SEQ_CST) != round) return;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, check.comm, &flag, MPI_STATUS_IGNORE);
    }
}

/* The lowest and the highest of the ranks' values. */
static inline void meet_with(int value, int *lowest, int *highest) {
    meeting->values[check.rank] = value;
    meet();
    *lowest = *highest = value;
    for (int i = 0; i < check.size; i++) {
        if (meeting->values[i] < *lowest) *lowest = meeting->values[i];
        if (meeting->values[i] > *highest) *highest = meeting->values[i];
    }
    meet();
}

#endif
