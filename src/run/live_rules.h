/*
 * The rules that run: made of a configuration and the command table, each time one of them has changed.
 *
 * Debts and counts of limits go on in the new rules (limit/ledger.h), and so does what a configuration may not change
 * while weir runs. Main thread.
 */
#ifndef WEIR_RUN_LIVE_RULES_H
#define WEIR_RUN_LIVE_RULES_H

#include <stdbool.h>

#include "front/rules.h"
#include "limit/command.h"
#include "limit/journal.h"
#include "limit/ledger.h"
#include "quota/named.h"
#include "run/config.h"

struct live_rules {
    const struct config *start;     /* what weir was started with */
    struct command_table *commands; /* one reference */
    struct rules *rules;            /* one reference; NULL: none yet */
    struct ledger *ledger;
    struct journal *journal;
    unsigned asked_clients;       /* max-clients as configured, and */
    unsigned max_clients;         /* as it fits */
    void (*on_change)(void *arg); /* the rules or the table are others; NULL: nobody is told */
    void *arg;
};

void live_rules_init(struct live_rules *live, const struct config *start, struct command_table *commands,
                     struct journal *journal);
void live_rules_fini(struct live_rules *live);

/*
 * Let a configuration run; it is the whole file, or what ran with another line. False: there have been too many limits
 * since the start.
 */
__attribute__((warn_unused_result)) bool live_rules_adopt(struct live_rules *live, const struct config *config,
                                                          bool is_reload);

/* The same with another command table; takes over the reference. */
void live_rules_rebind(struct live_rules *live, struct command_table *commands);

/* The same with other rates of single keys; takes over `named`. */
void live_rules_set_named(struct live_rules *live, struct named *named);

#endif
