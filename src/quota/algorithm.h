/*
 * What can be asked of Redis: the rows of algorithms.def.
 *
 * Any thread: they are constants.
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

/* Bits of the options that a command may take. */
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

/* What a script is sent, and what its numbers mean. */
enum quota_family {
    FAMILY_FUNNEL,  /* GCRA: a debt for each rate; a call that waits has its turn reserved */
    FAMILY_WARM,    /* a debt, and how long it has rested */
    FAMILY_WINDOW,  /* what was granted, and of each rate what is used, and when there is room */
    FAMILY_PARTS,   /* several keys, each with what its own algorithm sends and returns */
    FAMILY_HOLDING, /* granted, holders, when a place is free */
    FAMILY_NOTHING, /* no script */
    FAMILIES
};

enum quota_joining { QUOTA_JOINED, QUOTA_BY_TOKEN, QUOTA_ALONE };

struct quota_algorithm {
    const char *name; /* lower case */
    const char *word;
    enum script script; /* SCRIPT_COUNT: none */
    uint16_t options;   /* enum quota_option */
    uint8_t family;     /* enum quota_family */
    uint8_t joining;    /* enum quota_joining */
    uint8_t work_us, rate_us;
    bool is_named;
};

const struct quota_algorithm *quota_algorithm(uint8_t kind);

/* What the keys of one that an operator may name begin with: a letter. */
static inline unsigned char quota_letter(uint8_t kind)
{
    return (unsigned char)quota_algorithm(kind)->word[0];
}

/* Of those that an operator may name, in any case of letters; QUOTA_KINDS: none. */
enum quota_kind quota_named_kind(struct slice name);

#endif
