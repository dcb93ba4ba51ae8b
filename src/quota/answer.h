/*
 * What Redis has answered to a script, taken piece by piece. Every length is checked: false is an answer that is not
 * what it should be.
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

/* Of any bytes. */
struct answer answer_of(struct slice text);

static inline bool answer_is_over(const struct answer *answer)
{
    return answer->at == answer->end;
}

/* A type byte and the line behind it. */
__attribute__((warn_unused_result)) bool answer_line(struct answer *answer, char *type, struct slice *text);

/* A bulk string that is not nil. */
__attribute__((warn_unused_result)) bool answer_bulk(struct answer *answer, struct slice *bulk);

/* An integer; or a bulk string, which says why there is none: then *error is that, and else untouched. */
__attribute__((warn_unused_result)) bool answer_number(struct answer *answer, int64_t *number, struct slice *error);

/*
 * As many integers as there is room for in what answer_number took for an error, with blanks between them. False: it
 * is something else.
 */
__attribute__((warn_unused_result)) bool answer_held(struct slice text, int64_t *numbers, size_t n);

/* An array of exactly n of those, and nothing else: *first is at the first of them. */
__attribute__((warn_unused_result)) bool answer_begin(struct slice text, size_t n, struct answer *first);

#endif
