/* The steps of a case. */
#ifndef STEPS_H
#define STEPS_H

#include "file.h"

/* Whether an access fails on every rank, so that nothing of it is pending anywhere. */
static int steps_is_refused(const struct access *it) {
    if (it->direction == ACCESS_READ && (at.mode & MPI_MODE_WRONLY)) return 1;
    if (it->direction == ACCESS_WRITE && (at.mode & MPI_MODE_RDONLY)) return 1;
    if (it->family != ACCESS_SHARED && (at.mode & MPI_MODE_SEQUENTIAL)) return 1;
    return it->family == ACCESS_EXPLICIT && it->offset < 0;
}

static void steps_access(int step) {
    struct access *it = access_read_script(step);
    int turns = it->family == ACCESS_SHARED && !it->collective;
    if (it->how != ACCESS_BLOCKING && !steps_is_refused(it)) at.is_busy = 1;
    if (at.file == MPI_FILE_NULL) it->active = 0;
    for (int turn = 0; turn < (turns ? at.world_size : 1); turn++) {
        /* The shared pointer serves ranks in the order of their calls, so they take turns. */
        if (turns) file_barrier();
        if (!it || !it->active || (turns && turn != at.world_rank)) continue;
        enum access_how how = it->how;
        it = access_call(at.file, it);
        if (it && how == ACCESS_SPLIT) at.split = it;
        else if (it) completion_add(&at.pending, it);
        it = NULL;
    }
    if (it) access_free(it);
}

static void steps_split_end(int step) {
    (void)step;
    at.is_busy = 0;
    if (!at.split) return;
    record_class(at.split->step, "end", access_end(at.file, at.split));
    access_record(at.split);
    access_free(at.split);
    at.split = NULL;
}

static void steps_view(int step) {
    MPI_Offset displacement = script_number();
    MPI_Datatype etype = types_read_committed(), filetype = types_read_committed();
    MPI_Info info = file_info();
    record_class(step, "class", MPI_File_set_view(at.file, displacement, etype, filetype, "native", info));
    MPI_Offset got = -1;
    MPI_Datatype types[2] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
    char name[MPI_MAX_DATAREP_STRING + 1] = "";
    MPI_File_get_view(at.file, &got, &types[0], &types[1], name);
    record_number(step, "view_displacement", got);
    for (int i = 0; i < 2; i++) {
        MPI_Aint low = -1, extent = -1;
        int size = -1;
        if (types[i] != MPI_DATATYPE_NULL) {
            MPI_Type_get_extent(types[i], &low, &extent);
            MPI_Type_size(types[i], &size);
            types_free(&types[i]);
        }
        record_number(step, i ? "view_filetype_size" : "view_etype_size", size);
        record_number(step, i ? "view_filetype_extent" : "view_etype_extent", extent);
    }
    file_free_info(&info);
    types_free(&etype);
    types_free(&filetype);
}

static int steps_whence(void) {
    switch (script_word()[0]) {
        case 's': return MPI_SEEK_SET;
        case 'c': return MPI_SEEK_CUR;
        default: return MPI_SEEK_END;
    }
}

static void steps_seek(int step, int shared) {
    MPI_Offset offset = script_number();
    int whence = steps_whence();
    int code = shared ? MPI_File_seek_shared(at.file, offset, whence) : MPI_File_seek(at.file, offset, whence);
    record_class(step, "class", code);
}

static void steps_atomicity(int step) {
    int wanted = script_int(), got = -1;
    record_class(step, "class", MPI_File_set_atomicity(at.file, wanted));
    MPI_File_get_atomicity(at.file, &got);
    record_number(step, "atomicity", got != 0);
}

static void steps_info(int step) {
    MPI_Info info = file_info();
    record_class(step, "class", MPI_File_set_info(at.file, info));
    file_free_info(&info);
}

static void steps_extent(int step) {
    MPI_Datatype type = types_read_committed();
    MPI_Aint extent = -1;
    record_class(step, "class", MPI_File_get_type_extent(at.file, type, &extent));
    record_number(step, "extent", extent);
    types_free(&type);
}

/* Arguments of a step on a file that could not be opened are skipped. */
static void steps_skip_line(void) {
    int letter;
    while ((letter = getc(script)) != '\n' && letter != EOF) {}
}

static void steps_run(int step, const char *word) {
    char name[32];
    snprintf(name, sizeof name, "%s", word);
    if (at.file == MPI_FILE_NULL && !script_is(name, "reopen")) steps_skip_line();
    else if (script_is(name, "access")) steps_access(step);
    else if (script_is(name, "view")) steps_view(step);
    else if (script_is(name, "complete")) { completion_run(&at.pending, script_word()); at.is_busy = 0; }
    else if (script_is(name, "split_end")) steps_split_end(step);
    else if (script_is(name, "seek")) steps_seek(step, 0);
    else if (script_is(name, "seek_shared")) steps_seek(step, 1);
    else if (script_is(name, "set_size")) record_class(step, "class", MPI_File_set_size(at.file, script_number()));
    else if (script_is(name, "preallocate")) record_class(step, "class", MPI_File_preallocate(at.file, script_number()));
    else if (script_is(name, "sync")) record_class(step, "class", MPI_File_sync(at.file));
    else if (script_is(name, "atomicity")) steps_atomicity(step);
    else if (script_is(name, "info")) steps_info(step);
    else if (script_is(name, "extent")) steps_extent(step);
    else if (script_is(name, "reopen")) { file_close(step); file_barrier(); file_open(step); }
    else {
        fprintf(stderr, "no step is called `%s`\n", name);
        exit(2);
    }
    file_query(step);
}

#endif
