/*
 * What Redis has answered to a script, taken piece by piece. Every length is checked: false is an answer that is not
 * what it should be.
 */
#ifndef WEIR_QUOTA_ANSWER_H
#define WEIR_QUOTA_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

struct answer {
    const char *at;
    const char *end;
};

/* A type byte and the line behind it. */
__attribute__((warn_unused_result)) bool answer_line(struct answer *answer, char *type, struct slice *text);

/* An integer; or a bulk string, which says why there is none: then *error is that, and else untouched. */
__attribute__((warn_unused_result)) bool answer_number(struct answer *answer, int64_t *number, struct slice *error);

#endif
