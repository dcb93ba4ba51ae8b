/*
 * A mark tells the client that bytes belong to. A client writes a mark into its words, and the
 * upstream copies the mark into the answers. Bytes from the input cannot contain a mark: the first
 * byte of a mark is replaced in these bytes.
 */
#ifndef WEIR_FUZZ_SESSION_MARK_H
#define WEIR_FUZZ_SESSION_MARK_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/slice.h"

#define MARK_BYTE '\x01'
/* MARK_BYTE, the client's letter, four digits: the number of the request; 0: of no request */
#define MARK_LEN 6
#define MARK_ROOM (MARK_LEN + 1)

static inline void mark_print(char out[MARK_ROOM], char who, unsigned number)
{
    snprintf(out, MARK_ROOM, "%c%c%04x", MARK_BYTE, who, number & 0xffff);
}

/* Finds the first mark in `text`. Returns its client's letter; 0: none. `number` may be NULL. */
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
