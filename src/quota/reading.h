/*
 * What the integers mean that a script returned: a row of functions for each family of algorithms.
 *
 * Integers only, with the same arithmetic as the scripts', so that weir and Redis never disagree about which calls
 * passed. Whatever Redis returned, nothing overflows: numbers are cut to what a clock can mean, far below 2^63. Any
 * thread.
 */
#ifndef WEIR_QUOTA_READING_H
#define WEIR_QUOTA_READING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "quota/ask.h"

/*
 * How many integers a script returns for one call with R rates: funnels R, with a warm-up 2, windows 1 + 3 * R, holders
 * 3; for several keys the sum.
 */
#define QUOTA_NUMBERS_MAX (QUOTA_PARTS_MAX + 3 * QUOTA_PARTS_RATES_MAX)

/* The integers of FAMILY_HOLDING. */
enum { HOLDERS_GRANTED, HOLDERS_HELD, HOLDERS_RETRY_MS, HOLDERS_NUMBERS };

#define QUOTA_DEBT_MOST QUOTA_MOST /* debts are cut to this */
#define QUOTA_NEVER INT64_MAX      /* longer than any wait */

struct quota_outcome {
    int64_t limit, remaining;
    int64_t retry_ns; /* -1: allowed, or never */
    int64_t reset_ns;
    int64_t granted;   /* units, if it passes; with PARTIAL maybe fewer than asked for */
    int64_t wait_ns;   /* > 0: it passes, but only so long after the decision; the other fields are for that moment */
    bool is_limited;   /* it is refused */
    bool is_penalised; /* with is_limited: by a penalty, whatever the rates say */
    /*
     * Several keys: the index of the one the fields above are of; and bits of those without room, shadow ones included.
     */
    uint8_t part, refusing;
    struct slice refused_by; /* for quota_reply: the name of that key or limit, if it refuses */
};

/* What is remembered of a denial: the state after its last call. */
struct quota_memory {
    struct quota_rule rule;
    bool is_first;    /* FROM FIRST */
    int64_t cost;     /* of the call that was denied */
    int64_t exact_ns; /* for so long not even one unit passes: the state changes by the time only */
    /* For each rate: the debt of a funnel in ns, or what a window holds; times in ns. */
    int64_t debt[QUOTA_RATES_MAX];
    int64_t retry_ns[QUOTA_RATES_MAX];
    int64_t reset_ns[QUOTA_RATES_MAX];
};

/* A row: the functions of a family. FAMILY_PARTS has only the first three, FAMILY_HOLDING the first two. */
struct reading {
    unsigned (*numbers)(const struct quota_ask *ask);
    bool (*is_sane)(const struct quota_ask *ask, const int64_t *numbers, uint64_t n);
    uint64_t (*granted)(const struct quota_ask *ask, const int64_t *numbers, uint64_t n);
    /* What is remembered once `granted` calls have passed, and `refused` ones count. */
    void (*settle)(const struct quota_ask *ask, const int64_t *numbers, uint64_t granted, uint64_t refused,
                   struct quota_memory *memory);
    /* How long rate i refuses a call by what is remembered; at most 0: not at all. */
    int64_t (*retry)(const struct quota_memory *memory, const struct quota_ask *ask, unsigned i, int64_t elapsed_ns);
    /* quota_memory.exact_ns for that state. */
    int64_t (*exact)(const struct quota_memory *memory);
};

/* The row for the ask's family. */
const struct reading *quota_reading(const struct quota_ask *ask);

/* How many tries n calls are: a PARTIAL call is one try for each unit. */
uint64_t quota_tries(const struct quota_ask *ask, uint64_t n);

unsigned quota_numbers(const struct quota_ask *ask);

/* True if a script can have returned these for n such calls; if not the answer is rejected. */
bool quota_numbers_are_sane(const struct quota_ask *ask, const int64_t *numbers, uint64_t n);

/*
 * How many of n calls passed; of PARTIAL ones how many units. Of peeks, which all get the same answer, 1 or 0.
 */
uint64_t quota_granted(const struct quota_ask *ask, const int64_t *numbers, uint64_t n);

/* For one of several keys: how many of n calls it has room for, whatever the others have. */
uint64_t quota_part_fitting(const struct quota_ask *part, const int64_t *numbers, uint64_t n);

/* The number, clamped to [least, most]. */
static inline int64_t quota_within(int64_t number, int64_t least, int64_t most)
{
    return number < least ? least : number > most ? most : number;
}

static inline bool quota_is_within(int64_t number, int64_t least, int64_t most)
{
    return number >= least && number <= most;
}

#endif
