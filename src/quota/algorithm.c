#include "quota/algorithm.h"

enum { UNNAMED, NAMED };
enum { NO_PERMIT, TAKES_PERMIT };

/* Within a row DECISION and the options stand for their bits. */
enum {
    NONE = OPTION_NONE,
    BURST = OPTION_BURST,
    WAIT = OPTION_WAIT,
    APPROX = OPTION_APPROX,
    WARMUP = OPTION_WARMUP,
    AS = OPTION_AS,
    DECISION = OPTION_COST | OPTION_WAIT | OPTION_PEEK | OPTION_AS | OPTION_FORCE | OPTION_PARTIAL |
               OPTION_BORROW | OPTION_CREDIT | OPTION_COUNT | OPTION_FROM | OPTION_PENALTY,
};

static const struct quota_algorithm rows[QUOTA_KINDS] = {
#define ALGORITHM(id, name_, command, options_, family_, script_, word_, naming, joining_, permit, \
                  work, rate)                                                                      \
    [QUOTA_##id] = {.name = (name_),                                                               \
                    .word = (word_),                                                               \
                    .script = SCRIPT_##script_,                                                    \
                    .options = (options_),                                                         \
                    .family = FAMILY_##family_,                                                    \
                    .joining = QUOTA_##joining_,                                                   \
                    .work_us = (work),                                                             \
                    .rate_us = (rate),                                                             \
                    .is_named = (naming) == NAMED,                                                 \
                    .takes_permit = (permit) == TAKES_PERMIT},
#include "quota/algorithms.def"
#undef ALGORITHM
};

const struct quota_algorithm *quota_algorithm(uint8_t kind)
{
    return &rows[kind];
}

enum quota_kind quota_named_kind(struct slice name)
{
    unsigned kind = 0;
    while (kind < QUOTA_KINDS &&
           !(rows[kind].is_named && slice_eq_nocase(name, slice_str(rows[kind].name))))
        kind++;
    return (enum quota_kind)kind;
}
