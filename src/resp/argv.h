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
 * An iterator over the arguments of a complete multibulk request. argv_next returns false after the last one. Of bytes
 * that are not such a request it gives only the bulks at their beginning: whoever must know that all announced
 * arguments are there runs request_scan first, or counts.
 */
struct argv_walk {
    const char *at;
    const char *end;
    uint32_t left; /* arguments not given yet, by the header */
};

void argv_walk_init(struct argv_walk *walk, struct slice request);
__attribute__((warn_unused_result)) bool argv_next(struct argv_walk *walk, struct slice *arg);

/*
 * Rewrite an inline request (a line, with or without its line end) as multibulk into `out`, by the rules of Redis'
 * sdssplitargs: blanks separate; "double quotes" know \xHH \n \r \t \b \a and \anything; 'single quotes' know \'; a
 * closing quote must be followed by a blank or the end.
 * `out` needs room for ARGV_INLINE_ROOM(line.len) bytes. *out_len is 0 for a line without words.
 * False: unbalanced quotes.
 */
#define ARGV_INLINE_ROOM(line_len) ((line_len)*8 + 32)
__attribute__((warn_unused_result)) bool argv_split(struct slice line, char *out, size_t *out_len);

#endif
