/* The script of a batch: words separated by blanks, one file per rank. */
#ifndef SCRIPT_H
#define SCRIPT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCRIPT_WORD = 512 };

static FILE *script;

/* The next word, or NULL at the end; good until the next call. */
static const char *script_try_word(void) {
    static char word[SCRIPT_WORD];
    return fscanf(script, "%511s", word) == 1 ? word : NULL;
}

static const char *script_word(void) {
    const char *word = script_try_word();
    if (word) return word;
    fprintf(stderr, "the script ends in the middle of a case\n");
    exit(2);
}

static long long script_number(void) {
    const char *word = script_word();
    char *end;
    long long number = strtoll(word, &end, 10);
    if (*end == '\0') return number;
    fprintf(stderr, "`%s` in the script is not a number\n", word);
    exit(2);
}

static int script_int(void) { return (int)script_number(); }

static int script_is(const char *word, const char *wanted) { return strcmp(word, wanted) == 0; }

#endif
