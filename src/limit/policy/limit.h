/*
 * One limit: what it counts, its rate and burst, who shares its funnel, and what happens to what exceeds it; and the
 * grammar it is written in, "1000/s burst 2000 per subject over refuse".
 */
#ifndef WEIR_LIMIT_LIMIT_H
#define WEIR_LIMIT_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/funnel.h"

struct class;

/* What is counted. */
enum unit {
    /* a rate of what each command takes when it wants to pass (limit/policy/policy.h) */
    UNIT_COMMANDS, /* of a class */
    UNIT_COST,
    /* known at other moments */
    UNIT_BYTES_IN,    /* charged after they have passed, so there can be debt */
    UNIT_BYTES_OUT,   /* the same */
    UNIT_INFLIGHT,    /* calls not answered yet: a gauge, no rate */
    UNIT_CONNECTIONS, /* a gauge too */
    UNIT_CONNECTS,
    UNIT_AUTH_FAILURES, /* failed logins of an address */
    UNIT_COUNT
};

/* Who shares the funnel. */
enum scope { PER_SUBJECT, PER_CONNECTION, PER_POLICY, SCOPE_COUNT };

/* What happens to what exceeds the limit. */
enum action { OVER_REFUSE, OVER_DELAY, OVER_CLOSE, OVER_SHADOW, OVER_DENY, ACTION_COUNT };

#define LIMIT_LABEL_MAX 96

struct limit {
    const struct class *class;   /* with UNIT_COMMANDS; else NULL */
    struct rate rate;            /* of a gauge only count and burst, both the limit */
    uint64_t delay_ns;           /* with OVER_DELAY: the longest wait */
    uint64_t until_ns;           /* an operator has set it until then (monotonic); 0: no end */
    uint16_t position;           /* among the limits of its line in the file */
    uint16_t slot;               /* index of its funnel in each subject (or other holder); set by the ledger */
    uint16_t departures;         /* first slot of its departure's words, if limit_has_places; set by the ledger */
    uint16_t id;                 /* index of its tallies, for as long as the process lives; set by the ledger */
    uint8_t unit;                /* enum unit */
    uint8_t scope;               /* enum scope */
    uint8_t action;              /* enum action; OVER_DENY has no rate */
    bool is_own;                 /* an operator has set it for one subject alone */
    bool is_block;               /* an operator has blocked the subject: it denies whatever the mode is */
    char label[LIMIT_LABEL_MAX]; /* "free/write": what a refusal names */
};

/* "commands", "cost", "bytes-in" ...; "subject" ...; "refuse" ... */
struct slice unit_name(enum unit unit);
struct slice scope_name(enum scope scope);
struct slice action_name(enum action action);

/* The unit for the left side of a policy's line; UNIT_COMMANDS (of a class) when it names no other unit. */
enum unit unit_find(struct slice what);

/* What a limit on it decides about, one of them: "command", "connection" ... */
const char *unit_noun(enum unit unit);

/* Does each command take some of it when it wants to pass? */
static inline bool unit_is_taken(enum unit unit)
{
    return unit < UNIT_BYTES_IN;
}

/* Does it limit a number at one moment (in flight, connections) rather than a rate? */
static inline bool unit_is_gauge(enum unit unit)
{
    return unit == UNIT_INFLIGHT || unit == UNIT_CONNECTIONS;
}

static inline bool unit_is_bytes(enum unit unit)
{
    return unit == UNIT_BYTES_IN || unit == UNIT_BYTES_OUT;
}

/*
 * Does it delay commands in a queue in which each has its place? Not for bytes: they are not known while a command
 * waits.
 */
static inline bool limit_has_places(const struct limit *limit)
{
    return limit->action == OVER_DELAY && unit_is_taken((enum unit)limit->unit);
}

/*
 * Parse one limit on `unit`: an amount, then the clauses burst, per and over in any order, each at most once. Sets
 * rate, delay_ns, unit, scope and action of *limit. False: *limit is untouched and `why` says what is wrong, for
 * instance that the unit does not go with the scope or the action.
 */
__attribute__((warn_unused_result)) bool limit_parse(struct slice text, enum unit unit, struct limit *limit, char *why,
                                                     size_t why_size);

/* The amount as it would be written, "1000/s", "10mb/s", "64"; NUL-terminated. Returns its length. */
#define LIMIT_RATE_MAX 64
size_t limit_print_rate(const struct limit *limit, char *out);

/* The action as it would be written behind "over": "refuse", "delay 200ms"; NUL-terminated. Returns its length. */
#define LIMIT_ACTION_MAX 64
size_t limit_print_action(const struct limit *limit, char *out);

#endif
