/*
 * One limit: unit, rate and burst, scope of its funnel, and action on excess. Also the grammar of a
 * limit: "1000/s burst 2000 per subject over refuse".
 */
#ifndef WEIR_LIMIT_LIMIT_H
#define WEIR_LIMIT_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/funnel.h"

struct class;

/* What a limit counts. */
enum unit {
    /* units that each command costs when the command asks to pass (limit/policy/policy.h) */
    UNIT_COMMANDS, /* of a class */
    UNIT_COST,
    /* units known at other times */
    UNIT_BYTES_IN,    /* charged after the bytes have passed, which allows debt */
    UNIT_BYTES_OUT,   /* charged after the bytes have passed, which allows debt */
    UNIT_INFLIGHT,    /* calls without a reply yet: a gauge, no rate */
    UNIT_CONNECTIONS, /* a gauge, no rate */
    UNIT_CONNECTS,
    UNIT_AUTH_FAILURES, /* failed logins of an address */
    UNIT_COUNT
};

/* Which connections share one funnel. */
enum scope { PER_SUBJECT, PER_CONNECTION, PER_POLICY, SCOPE_COUNT };

/* What happens to a command, connection or login beyond the limit. */
enum action { OVER_REFUSE, OVER_DELAY, OVER_CLOSE, OVER_SHADOW, OVER_DENY, ACTION_COUNT };

#define LIMIT_LABEL_MAX 96

struct limit {
    const struct class *class; /* with UNIT_COMMANDS; otherwise NULL */
    struct rate rate;          /* a gauge has only count and burst, both equal to the limit */
    uint64_t delay_ns;         /* with OVER_DELAY: the longest wait */
    uint64_t until_ns;         /* end of a limit that an operator has set (monotonic); 0: no end */
    uint16_t position;         /* index among the limits of the same line */
    uint16_t slot;             /* index of the funnel in each holder; set by registry_enter */
    /*
     * first index of the words of the limit's departures (limit/queue.h), if limit_has_positions;
     * set by registry_enter
     */
    uint16_t departures;
    /* index of the limit's counters, for the life of the process; set by registry_enter */
    uint16_t id;
    uint8_t unit;                /* enum unit */
    uint8_t scope;               /* enum scope */
    uint8_t action;              /* enum action; OVER_DENY has no rate */
    bool is_own;                 /* an operator has set the limit for one subject alone */
    bool is_block;               /* an operator has blocked the subject: denies in every mode */
    char label[LIMIT_LABEL_MAX]; /* "free/write": the name in a refusal */
};

struct slice unit_name(enum unit unit);       /* "commands", "cost", "bytes-in" ... */
struct slice scope_name(enum scope scope);    /* "subject" ... */
struct slice action_name(enum action action); /* "refuse" ... */

/*
 * The unit of the left side of a policy's line. UNIT_COMMANDS, for a class, if no other unit has
 * that name.
 */
enum unit unit_find(struct slice what);

/* What a limit on this unit decides about, in the singular: "command", "connection", "login". */
const char *unit_noun(enum unit unit);

/* True if each command costs some of this unit when it asks to pass. */
static inline bool unit_is_taken(enum unit unit)
{
    return unit < UNIT_BYTES_IN;
}

/* True if the unit is a number at one moment (in flight, connections), not a rate. */
static inline bool unit_is_gauge(enum unit unit)
{
    return unit == UNIT_INFLIGHT || unit == UNIT_CONNECTIONS;
}

static inline bool unit_is_bytes(enum unit unit)
{
    return unit == UNIT_BYTES_IN || unit == UNIT_BYTES_OUT;
}

/*
 * True if the limit delays commands in a queue with a position for each. False for bytes, since
 * their number is unknown while a command waits.
 */
static inline bool limit_has_positions(const struct limit *limit)
{
    return limit->action == OVER_DELAY && unit_is_taken((enum unit)limit->unit);
}

/*
 * Parses one limit on `unit`: an amount, then the clauses burst, per and over in any order, each at
 * most once. Sets rate, delay_ns, unit, scope and action of *limit. False: *limit is untouched and
 * `why` holds the reason, for example a unit that does not allow the scope or the action.
 */
__attribute__((warn_unused_result)) bool limit_parse(struct slice text, enum unit unit,
                                                     struct limit *limit, char *why,
                                                     size_t why_size);

/* Prints the amount: "1000/s", "10mb/s", "64"; NUL-terminated. Returns the length. */
#define LIMIT_RATE_MAX 64
size_t limit_print_rate(const struct limit *limit, char *out);

/*
 * Prints the action as after "over": "refuse", "delay 200ms"; NUL-terminated. Returns the length.
 */
#define LIMIT_ACTION_MAX 64
size_t limit_print_action(const struct limit *limit, char *out);

#endif
