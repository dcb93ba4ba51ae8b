/*
 * Config manager: the running configuration, which is the file as last read with the changes of
 * LIMIT SET since.
 *
 * Every change, a reload or a single line, is all or nothing. New rules are built beside the old
 * rules, and replace the old rules or are dropped. Main thread.
 */
#ifndef WEIR_RUN_CONFIG_MANAGER_H
#define WEIR_RUN_CONFIG_MANAGER_H

#include <stdbool.h>
#include <stdint.h>

#include "front/commands/admin_command.h"
#include "run/commands/live_rules.h"
#include "run/config/config.h"
#include "run/config/config_file.h"

struct config_manager;

/* The reloads so far. */
struct reloads {
    uint64_t good, bad;
    uint64_t last_good_unix_ms; /* 0: none */
    bool is_last_bad;
    char last_error[512]; /* the error of the last failed reload */
};

/*
 * Returns a config manager that runs `config`, which was built from `file` with the built-in
 * command table. All three must outlive the config manager.
 */
struct config_manager *config_manager_new(const struct config *config,
                                          const struct config_file *file,
                                          struct command_table *builtin, struct journal *journal);

/* Returns the newest rules; the reference stays the config manager's. */
struct rules *config_manager_rules(const struct config_manager *manager);

/*
 * Returns the running rules and their command table. The owner may set on_change and arg, and calls
 * live_rules_settle once every worker has the newest rules.
 */
struct live_rules *config_manager_live(struct config_manager *manager);

/* No other part may have references to subjects or rules any more. */
void config_manager_free(struct config_manager *manager);

/* Uses the command table that the upstream has reported. Takes over the reference. */
void config_manager_on_table(struct config_manager *manager, struct command_table *commands);

/*
 * Reads the file again. False: the file is not used; logged. True: the caller calls
 * config_manager_tell_reloaded, which logs the reload, once every worker has the new rules.
 */
__attribute__((warn_unused_result)) bool config_manager_reload(struct config_manager *manager);
void config_manager_tell_reloaded(const struct config_manager *manager);

/* The path of the configuration file; NULL: none. */
const char *config_manager_path(const struct config_manager *manager);

const struct reloads *config_manager_reloads(const struct config_manager *manager);

/* Carries out the admin command, and sets its result. */
void config_manager_carry_out(struct config_manager *manager, struct admin_command *admin_command);

/* Carries out n admin commands. Consecutive commands that change the configuration are one step. */
void config_manager_carry_out_all(struct config_manager *manager,
                                  struct admin_command *const *admin_commands, size_t n);

/* Returns when the next block or line ends (base/clock.h); 0: no block or line ends. */
uint64_t config_manager_next_end(const struct config_manager *manager);

/* Removes and logs the blocks and lines that have ended. */
void config_manager_end(struct config_manager *manager, uint64_t now_ns);

/* Sets weir's own password; copied. False: out of memory, and nothing changes. */
bool config_manager_set_password(struct config_manager *manager, char *password);

/*
 * Returns the admin commands in force as text for a successor (run/commands/handover.h); heap.
 * NULL: out of memory.
 */
char *config_manager_hand_over(const struct config_manager *manager);

/*
 * Returns how many subjects are blocked. *id: the limit id of refusals by blocks, valid if
 * *has_been.
 */
size_t config_manager_blocks(const struct config_manager *manager, bool *has_been, uint16_t *id);

#endif
