/* What a program says to the preloaded library fault_shim.  The functions are absent without it. */
#ifndef FAULT_SHIM_H
#define FAULT_SHIM_H

/* Kinds of libc calls that can fail. */
typedef enum {
    FAULT_OPEN, FAULT_CLOSE, FAULT_READ, FAULT_WRITE, FAULT_SEEK, FAULT_TRUNCATE, FAULT_ALLOCATE, FAULT_SYNC,
    FAULT_STAT, FAULT_STATX, FAULT_STATFS, FAULT_LOCK, FAULT_UNLOCK, FAULT_UNLINK, FAULT_MAP, FAULT_UNMAP,
    FAULT_MADVISE, FAULT_MEMFD, FAULT_RING_SETUP, FAULT_RING_ENTER, FAULT_RING_REGISTER, FAULT_EVENTFD,
    FAULT_EVENT_WRITE, FAULT_THREAD, FAULT_ATTRIBUTE, FAULT_ADVISE, FAULT_PATH, FAULT_KINDS
} fault_kind;

/* An errno that no call has: the call is made with half of its bytes. */
enum { FAULT_SHORT = 10001 };

/* From the `nth` call of a kind on that pario makes (the first is 1), `times` calls fail with `error`.
 * Replaces what was armed before. */
extern void fault_arm(fault_kind kind, long nth, int error, long times) __attribute__((weak));

/* Makes all calls succeed again; returns how many have failed since `fault_arm`. */
extern long fault_disarm(void) __attribute__((weak));

/* How many calls have failed since `fault_arm`. */
extern long fault_fired(void) __attribute__((weak));

/* How many calls of a kind pario has made since `fault_arm`, until `fault_disarm`. */
extern long fault_calls(fault_kind kind) __attribute__((weak));

/* The call that failed last, with the file it was about. */
extern const char *fault_last(void) __attribute__((weak));

#endif
