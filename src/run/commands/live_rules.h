/*
 * The running rules: made from a configuration and the command table, anew whenever one of them changes.
 *
 * New rules keep the debts and counts of limits (limit/figures/ledger.h), and whatever needs a restart to change.
 * Main thread.
 */
#ifndef WEIR_RUN_LIVE_RULES_H
#define WEIR_RUN_LIVE_RULES_H

#include <stdbool.h>

#include "front/rules.h"
#include "limit/command/command.h"
#include "limit/figures/journal.h"
#include "limit/figures/ledger.h"
#include "limit/subjects.h"
#include "quota/named.h"
#include "run/config/config.h"

struct live_rules {
    const struct config *start;     /* what weir was started with */
    struct command_table *commands; /* one reference */
    struct rules *rules;            /* one reference; NULL: none yet */
    struct ledger *ledger;
    struct record *unlimited;  /* of subjects that no policy binds; the ledger's */
    struct variants variants;  /* bound to no table */
    struct shared_set *blocks; /* one reference; NULL: nobody is blocked */
    struct limit unbound;      /* of connections that are not bound yet ... */
    struct record *addresses;  /* ... of addresses; the ledger's */
    struct limit block;        /* its id is that of the tallies of what blocks refuse ... */
    bool has_block;            /* ... once there has been one */
    bool is_changed;           /* rates have changed, for some subject, since live_rules_settle */
    struct journal *journal;
    unsigned asked_clients;       /* max-clients as configured */
    unsigned max_clients;         /* as many of them as descriptors allow */
    void (*on_change)(void *arg); /* called when the rules or the table have been replaced; may be NULL */
    void *arg;
};

void live_rules_init(struct live_rules *live, const struct config *start, struct command_table *commands,
                     struct journal *journal);
void live_rules_fini(struct live_rules *live);

/*
 * Make and use the rules of a configuration: that of the whole file (is_reload), or of a changed line; `variants` are
 * made from its policies, and taken over. False: too many limits since the start; nothing has changed, and the variants
 * stay the caller's.
 */
__attribute__((warn_unused_result)) bool live_rules_adopt(struct live_rules *live, const struct config *config,
                                                          const struct variants *variants, bool is_reload);

/*
 * Every worker has the rules: the debts that no client has brought to their rates are brought there now, and have run
 * out at the old ones until now.
 */
void live_rules_settle(struct live_rules *live, struct subjects *const tables[2]);

/* Use another command table; takes over the reference. */
void live_rules_rebind(struct live_rules *live, struct command_table *commands);

/* Have these blocked from now on; takes over `blocks`. False: as with live_rules_adopt, and `blocks` stay the caller's. */
__attribute__((warn_unused_result)) bool live_rules_set_blocks(struct live_rules *live, struct shared_set *blocks);

/* Use other overrides; takes over `named`. */
void live_rules_set_named(struct live_rules *live, struct named *named);

/* weir logs in with this password from now on, and where that is refused with the one before. Copied. */
void live_rules_set_password(struct live_rules *live, char *password);

#endif
