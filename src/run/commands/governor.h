/*
 * Config manager: the running configuration, which is the file as last read with the changes of
 * LIMIT SET since.
 *
 * Every change, a reload or a single line, is all or nothing. New rules are built beside the old
 * rules, and replace the old rules or are dropped. Main thread.
 */
#ifndef WEIR_RUN_GOVERNOR_H
#define WEIR_RUN_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

#include "front/commands/order.h"
#include "run/commands/live_rules.h"
#include "run/config/config.h"
#include "run/config/config_file.h"

struct governor;

/* The reloads so far. */
struct reloads {
    uint64_t good, bad;
    uint64_t last_good_unix_ms; /* 0: none */
    bool is_last_bad;
    char last_error[512]; /* of the last failed reload */
};

/*
 * Begins with `config`, which was built from `file` with the built-in command table. All must
 * outlive the config manager.
 */
struct governor *governor_new(const struct config *config, const struct config_file *file,
                              struct command_table *builtin, struct journal *journal);

/* Returns the newest rules; the reference stays the config manager's. */
struct rules *governor_rules(const struct governor *governor);

/*
 * Returns the running rules and their command table. The owner may set on_change and arg, and calls
 * live_rules_settle once every worker has the newest rules.
 */
struct live_rules *governor_live(struct governor *governor);

/* No other part may have references to subjects or rules any more. */
void governor_free(struct governor *governor);

/* Uses the command table that the upstream has reported. Takes over the reference. */
void governor_on_table(struct governor *governor, struct command_table *commands);

/*
 * Reads the file again. False: the file is not used; logged. True: call governor_tell_reloaded when
 * every worker has the new rules, which logs the reload.
 */
__attribute__((warn_unused_result)) bool governor_reload(struct governor *governor);
void governor_tell_reloaded(const struct governor *governor);

/* The path of the configuration file; NULL: none. */
const char *governor_path(const struct governor *governor);

const struct reloads *governor_reloads(const struct governor *governor);

/* Carries out the admin command, and sets its result. */
void governor_carry_out(struct governor *governor, struct order *order);

/* Carries out n admin commands. Consecutive ones that change the configuration are one step. */
void governor_carry_out_all(struct governor *governor, struct order *const *orders, size_t n);

/*
 * governor_next_end returns when the next block or line ends (base/clock.h); 0: none does.
 * governor_end removes what has ended by now, and logs it.
 */
uint64_t governor_next_end(const struct governor *governor);
void governor_end(struct governor *governor, uint64_t now_ns);

/* Sets weir's own password; copied. False: out of memory, and nothing changes. */
bool governor_set_password(struct governor *governor, char *password);

/*
 * Returns the admin commands in force as text for a successor (run/commands/handover.h); heap.
 * NULL: out of memory.
 */
char *governor_hand_over(const struct governor *governor);

/*
 * Returns how many subjects are blocked. *id: the limit id of refusals by blocks, valid if
 * *has_been.
 */
size_t governor_blocks(const struct governor *governor, bool *has_been, uint16_t *id);

#endif
