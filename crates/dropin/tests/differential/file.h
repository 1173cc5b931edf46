/* The file of a case: communicator, opening, what it holds, where its pointers are. */
#ifndef FILE_H
#define FILE_H

#include <sys/stat.h>
#include <unistd.h>

#include "completion.h"

static struct {
    int world_rank, world_size;
    const char *directory;
    char path[4096];
    MPI_Comm comm;
    MPI_File file;
    /* Whether the queries after each step include the shared pointer; whether the file has positions. */
    int asks_shared, asks_individual;
    int mode;
    struct pending pending;
    struct access *split;
    /* Some rank has accesses pending. */
    int is_busy;
} at;

/* A barrier of all ranks that sleeps: there are often more ranks than cores, and the hosts' own
 * barriers keep them busy. */
static void file_barrier(void) {
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (MPI_Test(&request, &done, MPI_STATUS_IGNORE); !done; MPI_Test(&request, &done, MPI_STATUS_IGNORE)) usleep(20);
}

static MPI_Comm file_communicator(const char *kind, int *color) {
    MPI_Comm comm;
    int rank = at.world_rank;
    *color = 0;
    if (script_is(kind, "self")) {
        *color = rank;
        MPI_Comm_dup(MPI_COMM_SELF, &comm);
    } else if (script_is(kind, "halves")) {
        *color = rank >= (at.world_size + 1) / 2;
        MPI_Comm_split(MPI_COMM_WORLD, *color, rank, &comm);
    } else if (script_is(kind, "reversed")) {
        MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    } else if (script_is(kind, "dup")) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    } else {
        comm = MPI_COMM_WORLD;
    }
    return comm;
}

static int file_mode(const char *letters) {
    static const struct { char letter; int mode; } modes[] = {
        {'c', MPI_MODE_CREATE}, {'r', MPI_MODE_RDONLY}, {'w', MPI_MODE_WRONLY}, {'b', MPI_MODE_RDWR},
        {'e', MPI_MODE_EXCL}, {'d', MPI_MODE_DELETE_ON_CLOSE}, {'u', MPI_MODE_UNIQUE_OPEN},
        {'a', MPI_MODE_APPEND}, {'s', MPI_MODE_SEQUENTIAL}};
    int mode = 0;
    at.asks_individual = strchr(letters, 's') == NULL;
    for (; *letters; letters++)
        for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
            if (modes[i].letter == *letters) mode |= modes[i].mode;
    return mode;
}

static MPI_Info file_info(void) {
    int count = script_int();
    MPI_Info info = MPI_INFO_NULL;
    if (count > 0) MPI_Info_create(&info);
    for (int i = 0; i < count; i++) {
        char key[SCRIPT_WORD];
        snprintf(key, sizeof key, "%s", script_word());
        MPI_Info_set(info, key, script_word());
    }
    return info;
}

static void file_free_info(MPI_Info *info) {
    if (*info != MPI_INFO_NULL) MPI_Info_free(info);
}

static void file_open(int step) {
    int mode = at.mode = file_mode(script_word());
    MPI_Info info = file_info();
    at.file = MPI_FILE_NULL;
    int code = MPI_File_open(at.comm, at.path, mode, info, &at.file);
    file_free_info(&info);
    record_class(step, "open", code);
    if (code != MPI_SUCCESS) at.file = MPI_FILE_NULL;
}

static void file_close(int step) {
    if (at.file == MPI_FILE_NULL) return;
    record_class(step, "close", MPI_File_close(&at.file));
}

static int file_is_first(void) {
    int rank;
    MPI_Comm_rank(at.comm, &rank);
    return rank == 0;
}

/* One rank of the file's communicator fills it before it is opened. */
static void file_prepare(long long bytes, unsigned salt) {
    if (file_is_first()) {
        unlink(at.path);
        FILE *file = bytes >= 0 ? fopen(at.path, "w") : NULL;
        for (long long i = 0; i < bytes; i++) putc(access_pattern(salt, i), file);
        if (file) fclose(file);
    }
    file_barrier();
}

/* The bytes of the file as POSIX has them, or NULL. */
static unsigned char *file_bytes(long long *count) {
    struct stat facts;
    FILE *file = stat(at.path, &facts) == 0 ? fopen(at.path, "r") : NULL;
    if (!file) return NULL;
    unsigned char *bytes = malloc((size_t)facts.st_size + 1);
    *count = (long long)fread(bytes, 1, (size_t)facts.st_size, file);
    fclose(file);
    return bytes;
}

/* What one rank of the file's communicator finds in it, after all have closed it. */
static void file_contents(int step) {
    long long count;
    file_barrier();
    if (!file_is_first()) return;
    unsigned char *bytes = file_bytes(&count);
    if (bytes) record_bytes(step, "file", bytes, count);
    else fprintf(record, "%d.file absent\n", step);
    free(bytes);
    unlink(at.path);
}

/* The same while it is open, so that a wrong write is seen at once. */
static void file_glance(int step) {
    long long count;
    unsigned char *bytes = file_is_first() ? file_bytes(&count) : NULL;
    if (bytes) record_hash(step, "contents", bytes, count);
    free(bytes);
}

/* Pointers and size, while nothing moves them. */
static void file_query(int step) {
    MPI_Offset offset, byte;
    file_barrier();
    if (at.file != MPI_FILE_NULL) {
        offset = -1;
        if (at.asks_individual && !at.split) {
            MPI_File_get_position(at.file, &offset);
            record_number(step, "position", offset);
            byte = -1;
            MPI_File_get_byte_offset(at.file, offset, &byte);
            record_number(step, "byte_offset", byte);
        }
        offset = -1;
        if (at.asks_shared && at.asks_individual && !at.is_busy) {
            MPI_File_get_position_shared(at.file, &offset);
            record_number(step, "shared_position", offset);
        }
        offset = -1;
        if (!at.is_busy) {
            MPI_File_get_size(at.file, &offset);
            record_number(step, "size", offset);
            file_glance(step);
        }
    }
    file_barrier();
}

#endif
