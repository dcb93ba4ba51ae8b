/*
 * What runs: the configuration in memory with the lines that stand over it, the rules made from them, and how others
 * take their place, wholly or not at all. The main thread.
 */
#ifndef WEIR_RUN_RUNNING_H
#define WEIR_RUN_RUNNING_H

#include "limit/command/command.h"
#include "limit/figures/journal.h"
#include "run/commands/draft.h"
#include "run/commands/live_rules.h"
#include "run/commands/set_lines.h"
#include "run/config/config.h"
#include "run/config/config_edit.h"
#include "run/config/config_file.h"

struct running {
    const char *path; /* NULL: no file */
    struct config_file loaded, file;
    struct set_lines lines; /* over the file */
    struct live_rules live;
    struct command_table *builtin; /* one reference */
    struct journal *journal;
};

/* Begin with `config`, which was built from `file` with the built-in command table. */
void running_init(struct running *running, const struct config *config, const struct config_file *file,
                  struct command_table *builtin, struct journal *journal);
void running_fini(struct running *running);

/*
 * Read the file again, and log what is wrong with it. Returns NULL, or the first that is (heap). *unchanged: what
 * needs a restart, heap; NULL: nothing does.
 */
__attribute__((warn_unused_result)) char *running_read_again(struct running *running, char **unchanged);

/* A copy to be changed; and to run it, which takes it over. Returns NULL, or what is wrong with it (heap). */
struct draft running_draft(const struct running *running);
__attribute__((warn_unused_result)) char *running_use(struct running *running, struct draft *draft);

/* In what the file on disk, which there is, differs. Returns NULL, or what is wrong with it (heap). */
__attribute__((warn_unused_result)) char *running_compare(const struct running *running, struct differences *d);

#endif
