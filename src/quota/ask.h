/*
 * What an application asks for with one LIMIT command or CL.THROTTLE; quota/ask_parse.h reads it from its words.
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

/* Of one call on several keys: with these all that it can ask but CREDIT takes Redis no longer than one call may. */
#define QUOTA_PARTS_MAX 8
#define QUOTA_PARTS_RATES_MAX 16

/* How a reply of several fields is written: as the client's protocol has it, or as it was asked for. */
enum quota_shape { QUOTA_AS_SPOKEN, QUOTA_AS_ARRAY, QUOTA_AS_MAP };

/* How what is asked for is decided. */
enum quota_mode {
    QUOTA_TAKE,    /* let through if there is room for all of it */
    QUOTA_FORCE,   /* let through whatever is owed */
    QUOTA_PARTIAL, /* as many units as there is room for */
    QUOTA_BORROW,  /* let through if there is room for one unit: the rest is owed */
    QUOTA_CREDIT,  /* given back */
};

struct quota_ask {
    struct quota_rule rule; /* rates only for algorithms; of CHECK by quota_ask_resolve */
    struct slice key;       /* as the client wrote it; of RESET the first */
    struct slice name;      /* of CHECK, BAN CHECK and UNBAN CHECK: the limit's; else there is none */
    struct slice token;     /* of RENEW and RELEASE */
    struct argv_walk keys;  /* of RESET: the walk that gives all of them */
    /* Of several keys, all or nothing (kind ALL): what each of them is asked. It has no rate and no key itself. */
    const struct quota_ask *parts;
    uint8_t n_parts;
    bool is_named;     /* of several keys: each is a named limit's */
    uint64_t wait_ns;  /* 0: answer at once */
    int64_t unix_s;    /* weir's clock when it is asked: around it lie the calendar's windows that Redis is told */
    int64_t cost;      /* of nothing 0; of THROTTLE the quantity, which may be 0 or a refund */
    int64_t warmup_ns; /* of a bucket that is cold after rest, QUOTA_WARM */
    int64_t max;       /* of ACQUIRE: holders at once; of BAN and UNBAN: the letter of the key's algorithm */
    int64_t ttl_ms;    /* of ACQUIRE and RENEW: a holder's time; of BAN */
    struct quota_penalty penalty; /* of who is limited */
    uint8_t mode;                 /* enum quota_mode */
    uint8_t shape;                /* enum quota_shape */
    bool is_peek;                 /* nothing is to be written */
    bool counts_all;              /* what is refused counts too */
    bool is_first;                /* windows start with their first use */
    bool is_cell;                 /* CL.THROTTLE */
    bool is_shadow;               /* of a part: it refuses nothing, and is charged with what it has room for */
    bool is_raw;                  /* the key as it is, in the client's database: whoever knows the settings says so */
};

/* Does it ask whether something may pass? */
static inline bool quota_is_decision(const struct quota_ask *ask)
{
    return ask->rule.n_rates > 0 || ask->n_parts > 0;
}

/* Is it let through whatever is owed? COST 0 is; redis-cell's quantity of 0 looks whether 0 more would fit. */
static inline bool quota_is_sure(const struct quota_ask *ask)
{
    return (ask->cost == 0 && ask->rule.kind != QUOTA_THROTTLE) || ask->mode == QUOTA_FORCE ||
           ask->mode == QUOTA_CREDIT;
}

/* The units that each of its tries takes; a PARTIAL one is as many tries of one unit as it costs. */
static inline int64_t quota_charge(const struct quota_ask *ask)
{
    return ask->mode == QUOTA_PARTIAL ? 1 : ask->mode == QUOTA_CREDIT ? -ask->cost : ask->cost;
}

#endif
