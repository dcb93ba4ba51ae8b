/*
 * Marks: what a client writes into its words, and the upstream into the answers to them, so that bytes say whose they
 * are. Nobody else can write one: of what comes from an input the first byte of a mark is taken out.
 */
#ifndef WEIR_FUZZ_SESSION_MARK_H
#define WEIR_FUZZ_SESSION_MARK_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/slice.h"

#define MARK_BYTE '\x01'
#define MARK_LEN 6 /* MARK_BYTE, the client's letter, four digits: its question's number; 0: of none */
#define MARK_ROOM (MARK_LEN + 1)

static inline void mark_print(char out[MARK_ROOM], char who, unsigned number)
{
    snprintf(out, MARK_ROOM, "%c%c%04x", MARK_BYTE, who, number & 0xffff);
}

/* The first mark in `text`: its client's letter; 0: there is none. `number` may be NULL. */
static inline char mark_find(struct slice text, unsigned *number)
{
    const char *at = text.len > 0 ? memchr(text.at, MARK_BYTE, text.len) : NULL;
    unsigned found = 0;
    if (at == NULL || (size_t)(text.at + text.len - at) < MARK_LEN)
        return 0;
    for (int i = 2; i < MARK_LEN; i++)
        found = found << 4 | (unsigned)(at[i] <= '9' ? at[i] - '0' : at[i] - 'a' + 10);
    if (number != NULL)
        *number = found;
    return at[1];
}

#endif
