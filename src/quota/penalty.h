/*
 * A penalty: who has been limited stays limited for a time, which may double each time that it happens again.
 *
 * Any thread; nothing is allocated. Written "1h", or "1m..1h" where it grows.
 */
#ifndef WEIR_QUOTA_PENALTY_H
#define WEIR_QUOTA_PENALTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct quota_penalty {
    int64_t first_ms;   /* 0: there is none */
    int64_t longest_ms; /* first_ms: it does not grow */
};

/* False: `why` says what is wrong with it, and the penalty is as it was. */
__attribute__((warn_unused_result)) bool penalty_parse(struct slice text, struct quota_penalty *penalty, char *why,
                                                       size_t why_size);

/* A time by itself, which is not 0. */
__attribute__((warn_unused_result)) bool penalty_parse_time(struct slice text, int64_t *ms, char *why, size_t why_size);

/* What is known of a key's penalties. All 0: nothing. */
struct penalty_state {
    uint64_t until;      /* when the last one ends, on the clock of whoever keeps it, in ns */
    uint64_t last, rest; /* how long the last one that grows was; it is forgotten `rest` ns after `until` */
};

/* One more begins now. One that does not grow leaves the level of those that do. */
void penalty_begin(const struct quota_penalty *penalty, uint64_t now_ns, struct penalty_state *state);

#endif
