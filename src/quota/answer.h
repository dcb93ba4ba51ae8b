/*
 * A reader for the reply of a script, which is a whole frame in memory. Every length is checked; false: the reply does
 * not have the expected form.
 */
#ifndef WEIR_QUOTA_ANSWER_H
#define WEIR_QUOTA_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct answer {
    const char *at;
    const char *end;
};

/* To read `text`, which may be any bytes. */
struct answer answer_of(struct slice text);

static inline bool answer_is_over(const struct answer *answer)
{
    return answer->at == answer->end;
}

/* Read a type byte and the rest of its line. */
__attribute__((warn_unused_result)) bool answer_line(struct answer *answer, char *type, struct slice *text);

/* Read a bulk string; nil is refused. */
__attribute__((warn_unused_result)) bool answer_bulk(struct answer *answer, struct slice *bulk);

/* Read an integer; or a bulk string with the reason why there is none, which goes into *error (else untouched). */
__attribute__((warn_unused_result)) bool answer_number(struct answer *answer, int64_t *number, struct slice *error);

/*
 * Read exactly n integers, separated by blanks, from what answer_number took for an error. False: it is something else.
 */
__attribute__((warn_unused_result)) bool answer_held(struct slice text, int64_t *numbers, size_t n);

/* `text` is an array header for exactly n elements: *first begins at the first of them. */
__attribute__((warn_unused_result)) bool answer_begin(struct slice text, size_t n, struct answer *first);

#endif
