/* How to complete nonblocking accesses. */
#ifndef COMPLETION_H
#define COMPLETION_H

#include "access.h"

enum { COMPLETION_PENDING = 16 };

struct pending {
    struct access *accesses[COMPLETION_PENDING];
    int count;
};

static void completion_add(struct pending *pending, struct access *it) {
    if (pending->count == COMPLETION_PENDING) {
        fprintf(stderr, "more than %d accesses are pending\n", COMPLETION_PENDING);
        exit(2);
    }
    pending->accesses[pending->count++] = it;
}

static void completion_finish(struct access *it, int code, const MPI_Status *status) {
    it->status = *status;
    record_class(it->step, "wait", code);
    access_record(it);
    access_free(it);
}

static void completion_each(struct pending *pending, int backwards) {
    for (int i = 0; i < pending->count; i++) {
        MPI_Status status;
        struct access *it = pending->accesses[backwards ? pending->count - 1 - i : i];
        memset(&status, 0, sizeof status);
        int code = MPI_Wait(&it->request, &status);
        completion_finish(it, code, &status);
    }
}

static void completion_polled(struct pending *pending) {
    for (int i = 0; i < pending->count; i++) {
        MPI_Status status;
        struct access *it = pending->accesses[i];
        int done = 0, code = MPI_SUCCESS;
        memset(&status, 0, sizeof status);
        while (!done && code == MPI_SUCCESS) code = MPI_Test(&it->request, &done, &status);
        completion_finish(it, code, &status);
    }
}

static void completion_any(struct pending *pending, MPI_Request *requests) {
    for (int i = 0; i < pending->count; i++) {
        MPI_Status status;
        int which = MPI_UNDEFINED;
        memset(&status, 0, sizeof status);
        int code = MPI_Waitany(pending->count, requests, &which, &status);
        if (which == MPI_UNDEFINED) return;
        completion_finish(pending->accesses[which], code, &status);
    }
}

static void completion_some(struct pending *pending, MPI_Request *requests) {
    MPI_Status statuses[COMPLETION_PENDING];
    int which[COMPLETION_PENDING], finished = 0;
    while (finished < pending->count) {
        int done = MPI_UNDEFINED;
        memset(statuses, 0, sizeof statuses);
        int code = MPI_Waitsome(pending->count, requests, &done, which, statuses);
        if (done == MPI_UNDEFINED || done == 0) return;
        for (int i = 0; i < done; i++)
            completion_finish(pending->accesses[which[i]], code == MPI_SUCCESS ? code : statuses[i].MPI_ERROR,
                              &statuses[i]);
        finished += done;
    }
}

static void completion_together(struct pending *pending, MPI_Request *requests, int polled) {
    MPI_Status statuses[COMPLETION_PENDING];
    int done = 0, code = MPI_SUCCESS;
    memset(statuses, 0, sizeof statuses);
    if (polled) while (!done && code == MPI_SUCCESS) code = MPI_Testall(pending->count, requests, &done, statuses);
    else code = MPI_Waitall(pending->count, requests, statuses);
    for (int i = 0; i < pending->count; i++)
        completion_finish(pending->accesses[i], code == MPI_SUCCESS ? code : statuses[i].MPI_ERROR, &statuses[i]);
}

/* Completes all that is pending on this rank. */
static void completion_run(struct pending *pending, const char *method) {
    MPI_Request requests[COMPLETION_PENDING];
    for (int i = 0; i < pending->count; i++) requests[i] = pending->accesses[i]->request;
    if (script_is(method, "wait")) completion_each(pending, 0);
    else if (script_is(method, "backwards")) completion_each(pending, 1);
    else if (script_is(method, "test")) completion_polled(pending);
    else if (script_is(method, "waitany")) completion_any(pending, requests);
    else if (script_is(method, "waitsome")) completion_some(pending, requests);
    else completion_together(pending, requests, script_is(method, "testall"));
    pending->count = 0;
}

#endif
