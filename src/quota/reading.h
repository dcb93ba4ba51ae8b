/*
 * How the integers that a script returned are read: a row for each family.
 *
 * Integers only, and the same arithmetic as the scripts', so that weir and Redis never disagree about who was let
 * through. Whatever Redis returned, nothing overflows: what comes in is cut to what a clock can mean, far below 2^63.
 * Any thread.
 */
#ifndef WEIR_QUOTA_READING_H
#define WEIR_QUOTA_READING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "quota/ask.h"

/*
 * Integers that a script returns for one call: funnels R, those with a warm-up 2, windows 1 + 3 * R, holders 3, several
 * keys all theirs.
 */
#define QUOTA_NUMBERS_MAX (QUOTA_PARTS_MAX + 3 * QUOTA_PARTS_RATES_MAX)

/* Of holders. */
enum { HOLDERS_GRANTED, HOLDERS_HELD, HOLDERS_RETRY_MS, HOLDERS_NUMBERS };

#define QUOTA_DEBT_MOST QUOTA_MOST /* and what is forced beyond it is forgotten */
#define QUOTA_NEVER INT64_MAX      /* longer than any wait */

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

/* What is kept of an answer: the state behind its last call. */
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

/* A row: how a family's numbers are read. Who holds a place is told by quota_reply_holding, and has no more. */
struct reading {
    unsigned (*numbers)(const struct quota_ask *ask);
    bool (*is_sane)(const struct quota_ask *ask, const int64_t *numbers, uint64_t n);
    uint64_t (*granted)(const struct quota_ask *ask, const int64_t *numbers, uint64_t n);
    /* What is left when so many have been let through, told to the last of them. */
    void (*tell)(const struct quota_ask *ask, const int64_t *numbers, uint64_t granted, struct quota_outcome *outcome);
    /* The same, kept. */
    void (*settle)(const struct quota_ask *ask, const int64_t *numbers, uint64_t granted, uint64_t refused,
                   struct quota_memory *memory);
    /* quota_memory.exact_ns of what is kept. */
    int64_t (*exact)(const struct quota_memory *memory);
    /* False: what is kept does not refuse. */
    bool (*recall)(const struct quota_memory *memory, const struct quota_ask *ask, int64_t elapsed_ns,
                   struct quota_outcome *outcome);
};

/* The rows of the families with files of their own. */
const struct reading *reading_of_funnels(void), *reading_of_warmups(void), *reading_of_windows(void);

/* The row of what is asked. */
const struct reading *quota_reading(const struct quota_ask *ask);

/* Tries that n calls are: of PARTIAL a call is as many as it has units. */
uint64_t quota_tries(const struct quota_ask *ask, uint64_t n);

unsigned quota_numbers(const struct quota_ask *ask);

/* Can they be what a script of weir's has returned for n such calls? What cannot is believed in nothing. */
bool quota_numbers_are_sane(const struct quota_ask *ask, const int64_t *numbers, uint64_t n);

/*
 * How many of n calls the script has let through, of PARTIAL ones how many units. Of peeks, which take nothing, 1 or 0:
 * all of them get the same.
 */
uint64_t quota_granted(const struct quota_ask *ask, const int64_t *numbers, uint64_t n);

/* How many of n calls this one of several keys alone has room for. */
uint64_t quota_part_fitting(const struct quota_ask *part, const int64_t *numbers, uint64_t n);

/* The number, cut to what is between these. */
static inline int64_t quota_within(int64_t number, int64_t least, int64_t most)
{
    return number < least ? least : number > most ? most : number;
}

static inline bool quota_is_within(int64_t number, int64_t least, int64_t most)
{
    return number >= least && number <= most;
}

/* How many units would pass in one call over what a funnel owes. */
static inline int64_t quota_funnel_remaining(const struct quota_rate *rate, int64_t debt_ns)
{
    int64_t room_ns = quota_burst_ns(rate) - debt_ns;
    return room_ns < 0 ? 0 : quota_within(quota_units(rate, room_ns), 0, rate->limit);
}

#endif
