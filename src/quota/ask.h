/*
 * One parsed LIMIT command or CL.THROTTLE: what the application asks for. Made by quota/ask_parse.h.
 *
 * Any thread; nothing is allocated. All slices point into the request.
 */
#ifndef WEIR_QUOTA_ASK_H
#define WEIR_QUOTA_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "quota/penalty.h"
#include "quota/rule.h"
#include "resp/argv.h"

#define QUOTA_KEY_MAX 1024      /* bytes of a key, without the prefix */
#define QUOTA_KEYS_MAX 64       /* of a RESET */
#define QUOTA_HOLDERS_MAX 10000 /* of ACQUIRE */

/* For a call on several keys; bounded so that it keeps Redis busy no longer than one call may (CREDIT excepted). */
#define QUOTA_PARTS_MAX 8
#define QUOTA_PARTS_RATES_MAX 16

/* How a reply of several fields is written: by the client's protocol version, or as AS ARRAY and AS MAP say. */
enum quota_shape { QUOTA_AS_SPOKEN, QUOTA_AS_ARRAY, QUOTA_AS_MAP };

/* The words FORCE, PARTIAL, BORROW and CREDIT; TAKE: none of them. */
enum quota_mode {
    QUOTA_TAKE,    /* passes if there is room for all units */
    QUOTA_FORCE,   /* passes, whatever the debt */
    QUOTA_PARTIAL, /* takes as many units as there is room for */
    QUOTA_BORROW,  /* passes if there is room for one unit; the rest becomes debt */
    QUOTA_CREDIT,  /* gives units back */
};

struct quota_ask {
    struct quota_rule rule; /* with rates if it asks for a decision; for CHECK set by quota_ask_resolve */
    struct slice key;       /* as the client wrote it; RESET: the first */
    struct slice name;      /* CHECK, BAN CHECK, UNBAN CHECK: the limit's name; else empty */
    struct slice token;     /* RENEW, RELEASE */
    struct argv_walk keys;  /* RESET: iterates over all keys */
    /*
     * Several keys, all or nothing (kind QUOTA_ALL): what is asked of each key. Then this ask has no rate and no key.
     */
    const struct quota_ask *parts;
    uint8_t n_parts;
    bool is_named;     /* several keys: each belongs to a named limit */
    uint64_t wait_ns;  /* WAIT; 0: answer at once */
    int64_t unix_s;    /* weir's clock at the time of asking: calendar windows are those around it */
    int64_t cost;      /* units; THROTTLE: the quantity, which may be 0 or negative (a refund) */
    int64_t warmup_ns; /* WARMUP, of a bucket that is cold after rest (QUOTA_WARM); else 0 */
    int64_t max;       /* ACQUIRE: the most holders at a time; BAN, UNBAN: the letter of the key's algorithm */
    int64_t ttl_ms;    /* ACQUIRE, RENEW: how long a holder may stay; BAN: its length */
    struct quota_penalty penalty; /* PENALTY: for a key that gets limited */
    uint8_t mode;                 /* enum quota_mode */
    uint8_t shape;                /* enum quota_shape */
    bool is_peek;                 /* PEEK: nothing is written */
    bool counts_all;              /* COUNT all: refused calls count too */
    bool is_first;                /* FROM first: windows start with their first use */
    bool is_cell;                 /* CL.THROTTLE */
    bool is_shadow;               /* a part that refuses nothing: shadow mode. Charged as far as it has room */
    bool is_raw;                  /* use the key without a prefix, in the client's database; set by the caller */
};

/* What is asked of single keys: the parts, or the ask itself. */
static inline unsigned quota_ask_count(const struct quota_ask *ask)
{
    return ask->n_parts > 0 ? ask->n_parts : 1;
}

static inline const struct quota_ask *quota_ask_at(const struct quota_ask *ask, unsigned i)
{
    return ask->n_parts > 0 ? &ask->parts[i] : ask;
}

/* True if rates alone decide, on one key. The family tells: holders may have rates, too. */
static inline bool quota_is_rated(const struct quota_ask *ask)
{
    uint8_t family = quota_algorithm(ask->rule.kind)->family;
    return family == FAMILY_FUNNEL || family == FAMILY_WARM || family == FAMILY_WINDOW;
}

/* True if rates alone decide, on one key or on several: it has outcomes (quota/outcome.h). */
static inline bool quota_is_decision(const struct quota_ask *ask)
{
    return quota_is_rated(ask) || ask->n_parts > 0;
}

/* True if it asks for a permit, which a token holds from then on. */
static inline bool quota_takes_place(const struct quota_ask *ask)
{
    return quota_algorithm(ask->rule.kind)->takes_place;
}

/* True if it passes whatever the debt. redis-cell's quantity 0 passes only over an allowed debt. */
static inline bool quota_is_sure(const struct quota_ask *ask)
{
    return (ask->cost == 0 && ask->rule.kind != QUOTA_THROTTLE) || ask->mode == QUOTA_FORCE ||
           ask->mode == QUOTA_CREDIT;
}

/* True if it may make room: denials remembered before it are void, also for calls behind it. */
static inline bool quota_makes_room(const struct quota_ask *ask)
{
    return ask->rule.kind == QUOTA_RESET || ask->rule.kind == QUOTA_BAN || ask->rule.kind == QUOTA_UNBAN ||
           ask->mode == QUOTA_CREDIT || (ask->rule.kind == QUOTA_THROTTLE && ask->cost < 0);
}

/* How many units one try takes; PARTIAL is as many tries of one unit as it costs. */
static inline int64_t quota_charge(const struct quota_ask *ask)
{
    return ask->mode == QUOTA_PARTIAL ? 1 : ask->mode == QUOTA_CREDIT ? -ask->cost : ask->cost;
}

#endif
