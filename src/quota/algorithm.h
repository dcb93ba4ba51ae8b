/* The algorithms of LIMIT commands: the rows of algorithms.def. Constant; any thread. */
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

/* The meaning of the integers that the script returns for a key. */
enum quota_family {
    /* GCRA: for each rate the debt before the call; a call that waits has its time reserved */
    FAMILY_FUNNEL,
    FAMILY_WARM, /* the debt, and how long the key has rested */
    /* number of calls granted; for each rate the usage, and when the rate has room again */
    FAMILY_WINDOW,
    FAMILY_PARTS,   /* several keys: the integers of each key's own algorithm */
    FAMILY_HOLDING, /* granted, number of holders, when the first holder ends */
    FAMILY_NOTHING, /* there is no script */
    FAMILIES
};

/*
 * How equal calls are sent to Redis. JOINED: as one entry with a count. BY_TOKEN: in one batch,
 * each with its token. ALONE: each in a batch of its own.
 */
enum quota_joining { QUOTA_JOINED, QUOTA_BY_TOKEN, QUOTA_ALONE };

struct quota_algorithm {
    const char *name; /* lower case */
    /* the first byte of the values of the keys, or the operation of the script */
    const char *word;
    enum script script; /* SCRIPT_COUNT: none */
    uint16_t options;   /* bits of enum quota_option that the commands take */
    uint8_t family;     /* enum quota_family */
    uint8_t joining;    /* enum quota_joining */
    /*
     * longest time for which Redis is busy with a key, and with each rate of the key in addition;
     * measured
     */
    uint8_t work_us, rate_us;
    bool is_named;     /* a [limit NAME] can have this algorithm */
    bool takes_permit; /* a call gets a token, which holds a permit of the key from then on */
};

const struct quota_algorithm *quota_algorithm(uint8_t kind);

/* Returns the first letter of the values of the algorithm's keys; for algorithms with is_named. */
static inline unsigned char quota_letter(uint8_t kind)
{
    return (unsigned char)quota_algorithm(kind)->word[0];
}

/*
 * Returns the algorithm of this name with is_named, in either case. QUOTA_KINDS: no algorithm has
 * this name.
 */
enum quota_kind quota_named_kind(struct slice name);

#endif
