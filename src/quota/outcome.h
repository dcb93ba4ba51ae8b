/*
 * What became of a question: the few integers that a script returned, made into the outcome of each call they answer;
 * and the replies that tell it.
 *
 * Integers only, and the same arithmetic as upstream/scripts/funnel.lua, so that weir and Redis never disagree about
 * who was let through. Any thread. A script decides n calls on one key as if they had come one after the other: the
 * first of them pass, and from the first that is refused on none does.
 */
#ifndef WEIR_QUOTA_OUTCOME_H
#define WEIR_QUOTA_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/slice.h"
#include "quota/ask.h"
#include "resp/build.h"

/*
 * Integers that a script returns for one call: funnels R, those with a warm-up 2, windows 1 + 3 * R, holders 3, several
 * keys all theirs.
 */
#define QUOTA_NUMBERS_MAX (QUOTA_PARTS_MAX + 3 * QUOTA_PARTS_RATES_MAX)
unsigned quota_numbers(const struct quota_ask *ask);

/* Can they be what a script of weir's has returned for n such calls? What cannot is believed in nothing. */
bool quota_numbers_are_sane(const struct quota_ask *ask, const int64_t *numbers, uint64_t n);

struct quota_outcome {
    int64_t limit, remaining;
    int64_t retry_ns; /* -1: allowed, or never */
    int64_t reset_ns;
    int64_t granted; /* units, when it is let through: of PARTIAL fewer than it asked for, perhaps */
    int64_t wait_ns; /* > 0: allowed, but only so long after the decision; the other fields are of that moment */
    bool is_limited;
    bool is_penalised; /* by a penalty, whatever the rates say; with is_limited */
    /* Of several keys: which of them is told; and those without room, shadows too, as bits. */
    uint8_t part, refusing;
    struct slice refused_by; /* for quota_reply: how the one that is told is called, where it refuses */
};

/*
 * How many of n calls the script has let through, of PARTIAL ones how many units. Of peeks, which take nothing, 1 or 0:
 * all of them get the same.
 */
uint64_t quota_granted(const struct quota_ask *ask, const int64_t *numbers, uint64_t n);

/* The outcome of the k-th of n, counted from 0. Only for asks with rates. */
void quota_outcome(const struct quota_ask *ask, const int64_t *numbers, uint64_t n, uint64_t k,
                   struct quota_outcome *outcome);

/* A key may be under a penalty once its calls have been decided. */
struct quota_hold {
    int64_t left_ns;  /* 0: it is not */
    uint64_t granted; /* tries there was room for before it began, or whatever stands against them */
};

/* The same where keys may be under penalties: a hold for each of several keys, or one. */
bool quota_holds_are_sane(const struct quota_ask *ask, const int64_t *numbers, const struct quota_hold *holds,
                          uint64_t n);
uint64_t quota_granted_held(const struct quota_ask *ask, const int64_t *numbers, const struct quota_hold *holds,
                            uint64_t n);
void quota_outcome_held(const struct quota_ask *ask, const int64_t *numbers, const struct quota_hold *holds, uint64_t n,
                        uint64_t k, struct quota_outcome *outcome);

/* ---- a denial is remembered, so that the next call need not ask ---- */

/* Another weir may have reset the key. */
#define QUOTA_MEMORY_NS NS_PER_S

struct quota_memory {
    struct quota_rule rule;
    bool is_first;    /* of windows that start with their first use */
    int64_t cost;     /* of the call that was denied */
    int64_t exact_ns; /* so long not even one unit passes, so that nothing changes but by the time */
    /* Of each rate, after the decision: of a funnel its debt in ns; of a window units used, and times in ns. */
    int64_t debt[QUOTA_RATES_MAX];
    int64_t retry_ns[QUOTA_RATES_MAX];
    int64_t reset_ns[QUOTA_RATES_MAX];
};

/* False: the last of the n was let through, or a smaller call may be at any time: there is no denial to remember. */
bool quota_remember(const struct quota_ask *ask, const int64_t *numbers, uint64_t n, struct quota_memory *memory);

/*
 * Is `ask`, on the same key of the same database, still denied `elapsed_ns` after the remembered question was sent?
 * Then the outcome tells it, with times recomputed. False: it may pass by now, or nothing is known about it: Redis must
 * be asked. Of another cost than the remembered one a window knows nothing.
 */
__attribute__((warn_unused_result)) bool quota_recall(const struct quota_memory *memory, const struct quota_ask *ask,
                                                      uint64_t elapsed_ns, struct quota_outcome *outcome);

/* ---- replies ---- */

/*
 * Five integers, of PARTIAL six, ms rounded up, and of several keys who has refused; RESP3: a map, if the ask does not
 * say otherwise. THROTTLE: redis-cell's array of seconds in either version.
 */
void quota_reply(struct build *out, const struct quota_ask *ask, const struct quota_outcome *outcome);

/* What holders.lua returned for one key: granted, held, retry_ms. `token` is what ACQUIRE asked with. */
void quota_reply_holding(struct build *out, const struct quota_ask *ask, const int64_t *numbers, struct slice token);

#endif
