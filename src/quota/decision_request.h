/*
 * A decision request: one parsed LIMIT command or CL.THROTTLE. Made by quota/request_parse.h.
 *
 * Any thread; nothing is allocated. All slices point into the request.
 */
#ifndef WEIR_QUOTA_DECISION_REQUEST_H
#define WEIR_QUOTA_DECISION_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "quota/penalty.h"
#include "quota/rule.h"
#include "resp/argv.h"

#define QUOTA_KEY_MAX 1024      /* bytes of a key, without the prefix */
#define QUOTA_KEYS_MAX 64       /* keys of a RESET */
#define QUOTA_HOLDERS_MAX 10000 /* most holders of ACQUIRE */

/*
 * Limits of a call on several keys. These limits bound the time for which one call occupies Redis,
 * except for CREDIT.
 */
#define QUOTA_PARTS_MAX 8
#define QUOTA_PARTS_RATES_MAX 16

/*
 * The form of a reply of several fields: by the client's protocol version, or as AS ARRAY and AS
 * MAP say.
 */
enum quota_shape { QUOTA_AS_SPOKEN, QUOTA_AS_ARRAY, QUOTA_AS_MAP };

/* The words FORCE, PARTIAL, BORROW and CREDIT. TAKE: none of the four. */
enum quota_mode {
    QUOTA_TAKE,    /* passes if all units have room */
    QUOTA_FORCE,   /* passes, whatever the debt */
    QUOTA_PARTIAL, /* takes as many units as have room */
    QUOTA_BORROW,  /* passes if one unit has room; the other units become debt */
    QUOTA_CREDIT,  /* gives units back */
};

struct decision_request {
    /* has rates if the request needs a decision; for CHECK decision_request_resolve sets it */
    struct quota_rule rule;
    struct slice key;      /* key as the client wrote it; RESET: the first key */
    struct slice name;     /* CHECK, BAN CHECK, UNBAN CHECK: the limit's name; else empty */
    struct slice token;    /* RENEW, RELEASE */
    struct argv_walk keys; /* RESET: iterates over all keys */
    /*
     * Several keys, all or nothing (kind QUOTA_ALL): the request for each key. The whole request
     * then has no rate and no key.
     */
    const struct decision_request *parts;
    uint8_t n_parts;
    bool is_named;     /* several keys: each belongs to a named limit */
    uint64_t wait_ns;  /* WAIT; 0: the call is answered at once */
    int64_t unix_s;    /* weir's clock when the call is sent; selects the calendar windows */
    int64_t cost;      /* units; THROTTLE: the quantity, which may be 0 or negative (a refund) */
    int64_t warmup_ns; /* WARMUP, of a bucket that is cold after rest (QUOTA_WARM); else 0 */
    /* ACQUIRE: the most holders at a time; BAN, UNBAN: the letter of the key's algorithm */
    int64_t max;
    /* ACQUIRE, RENEW: how long a permit lasts; BAN: how long the ban lasts */
    int64_t ttl_ms;
    struct quota_penalty penalty; /* PENALTY, for a key that is limited */
    uint8_t mode;                 /* enum quota_mode */
    uint8_t shape;                /* enum quota_shape */
    bool is_peek;                 /* PEEK: nothing is written */
    bool counts_all;              /* COUNT ALL: refused calls count too */
    bool is_first;                /* FROM FIRST: windows start with their first use */
    bool is_cell;                 /* CL.THROTTLE */
    /* a part in shadow mode: refuses nothing, and is charged as far as it has room */
    bool is_shadow;
    /* The key has no prefix, and is in the client's database. The caller sets the field. */
    bool is_unprefixed;
};

/* Returns the number of requests about single keys: the parts, or 1. */
static inline unsigned decision_request_count(const struct decision_request *ask)
{
    return ask->n_parts > 0 ? ask->n_parts : 1;
}

static inline const struct decision_request *decision_request_at(const struct decision_request *ask,
                                                                 unsigned i)
{
    return ask->n_parts > 0 ? &ask->parts[i] : ask;
}

/*
 * True if rates alone decide, on one key. Looks at the algorithm's family, since requests about
 * holders may have rates too.
 */
static inline bool quota_is_rated(const struct decision_request *ask)
{
    uint8_t family = quota_algorithm(ask->rule.kind)->family;
    return family == FAMILY_FUNNEL || family == FAMILY_WARM || family == FAMILY_WINDOW;
}

/*
 * True if rates alone decide, on one key or on several. These requests have outcomes
 * (quota/outcome.h).
 */
static inline bool quota_is_decision(const struct decision_request *ask)
{
    return quota_is_rated(ask) || ask->n_parts > 0;
}

/* True if the request asks for a permit, which a token holds from then on. */
static inline bool quota_takes_permit(const struct decision_request *ask)
{
    return quota_algorithm(ask->rule.kind)->takes_permit;
}

/*
 * True if the call passes whatever the debt. A call with redis-cell's quantity 0 passes only over
 * an allowed debt.
 */
static inline bool quota_is_sure(const struct decision_request *ask)
{
    return (ask->cost == 0 && ask->rule.kind != QUOTA_THROTTLE) || ask->mode == QUOTA_FORCE ||
           ask->mode == QUOTA_CREDIT;
}

/* True if the call may make room. Denials cached before are then invalid, also for later calls. */
static inline bool quota_makes_room(const struct decision_request *ask)
{
    return ask->rule.kind == QUOTA_RESET || ask->rule.kind == QUOTA_BAN ||
           ask->rule.kind == QUOTA_UNBAN || ask->mode == QUOTA_CREDIT ||
           (ask->rule.kind == QUOTA_THROTTLE && ask->cost < 0);
}

/* Returns how many units one try takes. A PARTIAL call is as many tries of one unit as its cost. */
static inline int64_t quota_charge(const struct decision_request *ask)
{
    return ask->mode == QUOTA_PARTIAL ? 1 : ask->mode == QUOTA_CREDIT ? -ask->cost : ask->cost;
}

#endif
