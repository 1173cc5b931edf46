/* Who serves a file. */
#ifndef SERVED_H
#define SERVED_H

#include "../../programs/check.h"

/* Whether these hints in force are pario's. Hints that the caller gave do not count: some MPIs give back
 * whatever they got. */
static inline int is_pario(MPI_Info info) {
    char key[MPI_MAX_INFO_KEY + 1];
    int count = 0, ours = 0;
    MPI_Info_get_nkeys(info, &count);
    for (int i = 0; i < count; i++) {
        MPI_Info_get_nthkey(info, i, key);
        ours |= strncmp(key, "pario_", 6) == 0 && strcmp(key, "pario_disable") != 0;
    }
    return ours;
}

#endif
