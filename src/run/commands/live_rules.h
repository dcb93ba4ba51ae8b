/*
 * The running rules: made from a configuration and the command table, and made anew when the
 * configuration or the table changes.
 *
 * New rules keep the debts and counters of limits (limit/figures/registry.h), and every setting
 * that needs a restart. Main thread.
 */
#ifndef WEIR_RUN_LIVE_RULES_H
#define WEIR_RUN_LIVE_RULES_H

#include <stdbool.h>

#include "front/rules.h"
#include "limit/command/command.h"
#include "limit/figures/journal.h"
#include "limit/figures/registry.h"
#include "limit/subjects.h"
#include "quota/named.h"
#include "run/config/config.h"

struct live_rules {
    const struct config *start;     /* the configuration of the start */
    struct command_table *commands; /* one reference */
    struct rules *rules;            /* one reference; NULL: none yet */
    struct registry *registry;
    /* counters of subjects that no policy binds; owned by the registry */
    struct policy_state *unlimited;
    struct variants variants;  /* without a binding to a command table */
    struct shared_set *blocks; /* one reference; NULL: no subject is blocked */
    struct limit unbound;      /* the limit on connections without a policy yet */
    /* counters of addresses, which `unbound` limits; owned by the registry */
    struct policy_state *addresses;
    struct limit block; /* the limit with the id that counts refusals by blocks */
    bool has_block;     /* `block` has an id: there has been a block */
    bool is_changed;    /* rates of some subject have changed since live_rules_settle */
    struct journal *journal;
    unsigned asked_clients; /* max-clients as configured */
    unsigned max_clients;   /* max-clients as far as descriptors allow */
    /* called when the rules or the table have been replaced; may be NULL */
    void (*on_change)(void *arg);
    void *arg;
};

void live_rules_init(struct live_rules *live, const struct config *start,
                     struct command_table *commands, struct journal *journal);
void live_rules_fini(struct live_rules *live);

/*
 * Makes and installs the rules of a configuration: of the whole file (is_reload), or of a changed
 * line. `variants` are made from the configuration's policies, and taken over. False: too many
 * limits since the start; nothing has changed, and the caller keeps the variants.
 */
__attribute__((warn_unused_result)) bool live_rules_adopt(struct live_rules *live,
                                                          const struct config *config,
                                                          const struct variants *variants,
                                                          bool is_reload);

/*
 * Converts the debts of subjects without clients to the new rates. To be called when every worker
 * has the rules. Until this call the debts run off at the old rates.
 */
void live_rules_settle(struct live_rules *live, struct subjects *const tables[2]);

/* Uses another command table; takes over the reference. */
void live_rules_rebind(struct live_rules *live, struct command_table *commands);

/*
 * Replaces the blocks; takes over `blocks`. False: too many limits since the start; the caller
 * keeps `blocks`.
 */
__attribute__((warn_unused_result)) bool live_rules_set_blocks(struct live_rules *live,
                                                               struct shared_set *blocks);

/* Uses other overrides; takes over `named`. */
void live_rules_set_named(struct live_rules *live, struct named *named);

/*
 * Sets weir's password; copied. If a server refuses the new password, weir logs in with the
 * previous password.
 */
void live_rules_set_password(struct live_rules *live, char *password);

#endif
