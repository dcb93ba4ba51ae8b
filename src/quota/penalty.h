/*
 * A penalty: a key that has been limited stays limited for a time, which may double with each
 * repetition.
 *
 * Any thread; nothing is allocated. Notation: "1h", or "1m..1h" if the time grows.
 */
#ifndef WEIR_QUOTA_PENALTY_H
#define WEIR_QUOTA_PENALTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct quota_penalty {
    int64_t first_ms;   /* 0: no penalty */
    int64_t longest_ms; /* equal to first_ms: the time does not grow */
};

/* False: `why` says what is wrong, and *penalty is unchanged. */
__attribute__((warn_unused_result)) bool penalty_parse(struct slice text,
                                                       struct quota_penalty *penalty, char *why,
                                                       size_t why_size);

/* Parses one time, which must not be 0. */
__attribute__((warn_unused_result)) bool penalty_parse_time(struct slice text, int64_t *ms,
                                                            char *why, size_t why_size);

/* The penalties of one key, in ns. All 0: no penalty. */
struct penalty_state {
    uint64_t until; /* when the last penalty ends, on the caller's clock */
    /* length of the last penalty that grows; forgotten `rest` ns after `until` */
    uint64_t last, rest;
};

/* Begins a penalty now. A penalty that does not grow leaves `last` unchanged. */
void penalty_begin(const struct quota_penalty *penalty, uint64_t now_ns,
                   struct penalty_state *state);

#endif
