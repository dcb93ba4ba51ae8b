/*
 * The algorithms that LIMIT commands decide by: the rows of algorithms.def. Constant; any thread.
 */
#ifndef WEIR_QUOTA_ALGORITHM_H
#define WEIR_QUOTA_ALGORITHM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "upstream/script.h"

enum quota_kind {
#define ALGORITHM(id, ...) QUOTA_##id,
#include "quota/algorithms.def"
#undef ALGORITHM
    QUOTA_KINDS
};

/* The options of LIMIT commands, as bits. */
enum quota_option {
    OPTION_NONE = 0,
    OPTION_BURST = 1 << 0,
    OPTION_COST = 1 << 1,
    OPTION_WAIT = 1 << 2,
    OPTION_PEEK = 1 << 3,
    OPTION_APPROX = 1 << 4,
    OPTION_AS = 1 << 5,
    OPTION_FORCE = 1 << 6,
    OPTION_PARTIAL = 1 << 7,
    OPTION_BORROW = 1 << 8,
    OPTION_CREDIT = 1 << 9,
    OPTION_COUNT = 1 << 10,
    OPTION_FROM = 1 << 11,
    OPTION_PENALTY = 1 << 12,
    OPTION_WARMUP = 1 << 13,
};

/* What the numbers mean that the script returns for a key. */
enum quota_family {
    FAMILY_FUNNEL,  /* GCRA: for each rate the debt before the call; a call that waits has its turn reserved */
    FAMILY_WARM,    /* the debt, and how long the key has rested */
    FAMILY_WINDOW,  /* how many were granted; for each rate what is used, and when there is room again */
    FAMILY_PARTS,   /* several keys: of each the numbers of its own algorithm */
    FAMILY_HOLDING, /* granted, number of holders, when one of them ends */
    FAMILY_NOTHING, /* there is no script */
    FAMILIES
};

/*
 * How equal calls travel to Redis: as one with a count; in one batch, each with its token; each in a call of its own.
 */
enum quota_joining { QUOTA_JOINED, QUOTA_BY_TOKEN, QUOTA_ALONE };

struct quota_algorithm {
    const char *name;         /* lower case */
    const char *word;         /* what its keys begin with, or the operation of its script */
    enum script script;       /* SCRIPT_COUNT: none */
    uint16_t options;         /* bits of enum quota_option that its commands take */
    uint8_t family;           /* enum quota_family */
    uint8_t joining;          /* enum quota_joining */
    uint8_t work_us, rate_us; /* how long Redis is busy with a key, at worst, and with each of its rates besides */
    bool is_named;            /* a [limit NAME] can have it */
    bool takes_place;         /* a call gets a token, which holds a place in the key from then on */
};

const struct quota_algorithm *quota_algorithm(uint8_t kind);

/* The letter that values of its keys begin with; for algorithms with is_named. */
static inline unsigned char quota_letter(uint8_t kind)
{
    return (unsigned char)quota_algorithm(kind)->word[0];
}

/* The algorithm of this name with is_named; case does not matter. QUOTA_KINDS: none. */
enum quota_kind quota_named_kind(struct slice name);

#endif
