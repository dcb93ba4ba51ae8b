/*
 * The meaning of the integers that a script returned: a row of functions for each family of
 * algorithms.
 *
 * The functions use integers only, with the arithmetic of the scripts. weir and Redis thus never
 * disagree about which calls passed. No value from Redis makes a sum overflow: numbers are cut to
 * the range of a clock, far below 2^63.
 *
 * Any thread.
 */
#ifndef WEIR_QUOTA_READING_H
#define WEIR_QUOTA_READING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "quota/decision_request.h"

/*
 * How many integers a script returns for one call with R rates. Funnels: R. Buckets with a warm-up:
 * 2. Windows: 1 + 3 * R. Holders: 3. Several keys: the sum over the keys.
 */
#define QUOTA_NUMBERS_MAX (QUOTA_PARTS_MAX + 3 * QUOTA_PARTS_RATES_MAX)

/* The integers of FAMILY_HOLDING. */
enum { HOLDERS_GRANTED, HOLDERS_HELD, HOLDERS_RETRY_MS, HOLDERS_NUMBERS };

#define QUOTA_DEBT_MOST QUOTA_MOST /* debts are cut to this value */
#define QUOTA_NEVER INT64_MAX      /* longer than any wait */

struct quota_outcome {
    int64_t limit, remaining;
    int64_t retry_ns; /* -1: allowed, or never */
    int64_t reset_ns;
    int64_t granted; /* units, if the call passes; with PARTIAL maybe fewer than requested */
    /* > 0: the call passes after this time, and the other fields describe that moment */
    int64_t wait_ns;
    bool is_limited;   /* the call is refused */
    bool is_penalised; /* with is_limited: a penalty refuses the call, whatever the rates allow */
    /*
     * Several keys. part: the index of the key that the fields above describe. refusing: bits of
     * the keys without room, keys in shadow mode included.
     */
    uint8_t part, refusing;
    struct slice refused_by; /* for quota_reply: the name of the refusing key or limit */
};

/* A cached denial: the state after the denied call. */
struct quota_memory {
    struct quota_rule rule;
    bool is_first;    /* FROM FIRST */
    int64_t cost;     /* cost of the call that was denied */
    int64_t exact_ns; /* time for which not even one unit passes, and only time changes the state */
    /* For each rate: the debt of a funnel in ns, or the usage of a window; times in ns. */
    int64_t debt[QUOTA_RATES_MAX];
    int64_t retry_ns[QUOTA_RATES_MAX];
    int64_t reset_ns[QUOTA_RATES_MAX];
};

/*
 * A row: the functions of a family. FAMILY_PARTS has only the first three functions, FAMILY_HOLDING
 * the first two.
 */
struct reading {
    unsigned (*numbers)(const struct decision_request *ask);
    bool (*is_sane)(const struct decision_request *ask, const int64_t *numbers, uint64_t n);
    uint64_t (*granted)(const struct decision_request *ask, const int64_t *numbers, uint64_t n);
    /* Sets the state after `granted` calls have passed and `refused` calls have been counted. */
    void (*settle)(const struct decision_request *ask, const int64_t *numbers, uint64_t granted,
                   uint64_t refused, struct quota_memory *memory);
    /*
     * Returns how long rate i of the cached state refuses the call, in ns; at most 0: the rate does
     * not refuse.
     */
    int64_t (*retry)(const struct quota_memory *memory, const struct decision_request *ask,
                     unsigned i, int64_t elapsed_ns);
    /* Returns quota_memory.exact_ns of the state. */
    int64_t (*exact)(const struct quota_memory *memory);
};

/* Returns the row for the family of the request. */
const struct reading *quota_reading(const struct decision_request *ask);

/* Returns how many tries n calls are: a PARTIAL call is one try for each unit. */
uint64_t quota_tries(const struct decision_request *ask, uint64_t n);

unsigned quota_numbers(const struct decision_request *ask);

/*
 * True if a script can have returned these integers for n calls with this request. If not, the
 * answer is rejected.
 */
bool quota_numbers_are_sane(const struct decision_request *ask, const int64_t *numbers, uint64_t n);

/*
 * Returns how many of n calls passed. PARTIAL: how many units. PEEK: 1 or 0, since all calls get
 * the same answer.
 */
uint64_t quota_granted(const struct decision_request *ask, const int64_t *numbers, uint64_t n);

/*
 * For one of several keys: returns how many of n calls the key has room for, whatever the other
 * keys.
 */
uint64_t quota_part_fitting(const struct decision_request *part, const int64_t *numbers,
                            uint64_t n);

/* Returns the number, clamped to [least, most]. */
static inline int64_t quota_within(int64_t number, int64_t least, int64_t most)
{
    return number < least ? least : number > most ? most : number;
}

static inline bool quota_is_within(int64_t number, int64_t least, int64_t most)
{
    return number >= least && number <= most;
}

#endif
