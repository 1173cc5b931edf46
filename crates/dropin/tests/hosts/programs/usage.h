/* What a process holds: descriptors, threads, mappings, allocated memory. */
#ifndef USAGE_H
#define USAGE_H
#include "../../programs/check.h"
#include <dirent.h>
#include <malloc.h>

typedef struct {
    long descriptors, threads, mappings, allocated_kb, resident_kb;
} usage;

static inline long usage_entries(const char *directory) {
    long count = 0;
    DIR *list = opendir(directory);
    while (list && readdir(list)) count++;
    if (list) closedir(list);
    return count;
}

static inline usage usage_now(void) {
    usage now = {.descriptors = usage_entries("/proc/self/fd"), .threads = usage_entries("/proc/self/task")};
    char line[4096];
    FILE *file = fopen("/proc/self/maps", "r");
    while (file && fgets(line, sizeof line, file)) now.mappings++;
    if (file) fclose(file);
    file = fopen("/proc/self/statm", "r");
    long pages[2] = {0, 0};
    if (file && fscanf(file, "%ld %ld", &pages[0], &pages[1]) == 2) now.resident_kb = pages[1] * (sysconf(_SC_PAGESIZE) / 1024);
    if (file) fclose(file);
    struct mallinfo2 memory = mallinfo2();
    now.allocated_kb = (long)((memory.uordblks + memory.hblkhd) / 1024);
    return now;
}

#endif
