/*
 * The running configuration: the file as it was read last, and what LIMIT SET has changed since.
 *
 * Every change, a reload or a single line, is all or nothing: new rules are built beside the old ones, and replace them
 * or are dropped. Main thread.
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
    char last_error[512]; /* of the last one that failed */
};

/*
 * Begin with `config`, which was built from `file` with the built-in command table; all outlive the governor.
 */
struct governor *governor_new(const struct config *config, const struct config_file *file,
                              struct command_table *builtin, struct journal *journal);

/* The rules that workers should have now; the reference stays the governor's. */
struct rules *governor_rules(const struct governor *governor);

/*
 * With the command table and what else belongs to the rules. The owner may set on_change and arg,
 * and settles debts once every worker has what was changed last (live_rules_settle).
 */
struct live_rules *governor_live(struct governor *governor);

/* Nobody may hold subjects or rules any more. */
void governor_free(struct governor *governor);

/* Use the command table that the upstream has reported; takes over the reference. */
void governor_on_table(struct governor *governor, struct command_table *commands);

/*
 * Read the file again. False: it is not used, and the log says why. True: the log says so with
 * governor_tell_reloaded, when every worker has it.
 */
__attribute__((warn_unused_result)) bool governor_reload(struct governor *governor);
void governor_tell_reloaded(const struct governor *governor);

/* The file it reads; NULL: none. */
const char *governor_path(const struct governor *governor);

const struct reloads *governor_reloads(const struct governor *governor);

/* Carry out the order, and set its result. */
void governor_carry_out(struct governor *governor, struct order *order);

/* The same for many: those that change the configuration and stand beside each other are carried out in one step. */
void governor_carry_out_all(struct governor *governor, struct order *const *orders, size_t n);

/*
 * When something that was ordered for a time ends (by base/clock.h); 0: nothing does. governor_end: it is over,
 * whatever has ended by now; logged.
 */
uint64_t governor_next_end(const struct governor *governor);
void governor_end(struct governor *governor, uint64_t now_ns);

/* weir's own password is this one from now on; copied. False: out of memory, and nothing changes. */
bool governor_set_password(struct governor *governor, char *password);

/* What has been ordered, as text for the process that replaces this one (run/commands/handover.h); heap. NULL: out of memory. */
char *governor_hand_over(const struct governor *governor);

/* How many subjects are blocked; *id: of the tallies of what that has refused, if there has been any. */
size_t governor_blocks(const struct governor *governor, bool *has_been, uint16_t *id);

#endif
