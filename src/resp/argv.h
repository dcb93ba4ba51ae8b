/*
 * The arguments of one whole request in memory.
 */
#ifndef WEIR_RESP_ARGV_H
#define WEIR_RESP_ARGV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/*
 * An iterator over the arguments of a complete multibulk request. argv_next returns false after the
 * last argument. If the request is incomplete, argv_next returns only the complete bulks at the
 * beginning. A caller that needs all announced arguments runs request_scan first, or counts the
 * arguments.
 */
struct argv_walk {
    const char *at;
    const char *end;
    uint32_t left; /* announced arguments that argv_next has not returned yet */
};

void argv_walk_init(struct argv_walk *walk, struct slice request);
__attribute__((warn_unused_result)) bool argv_next(struct argv_walk *walk, struct slice *arg);

/*
 * Rewrites an inline request (a line, with or without its line end) as multibulk to `out`. The
 * rules are those of Redis' sdssplitargs:
 * - Blanks separate words.
 * - "double quotes" may contain the escapes \xHH \n \r \t \b \a and \ before any other byte;
 *   'single quotes' may contain \'.
 * - A closing quote must be followed by a blank or the end.
 *
 * `out` needs room for ARGV_INLINE_ROOM(line.len) bytes. *out_len is 0 for a line without words.
 * False if quotes are unbalanced.
 */
#define ARGV_INLINE_ROOM(line_len) ((line_len)*8 + 32)
__attribute__((warn_unused_result)) bool argv_split(struct slice line, char *out, size_t *out_len);

#endif
