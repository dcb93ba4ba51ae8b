/*
 * The configuration that runs: the file as it was read last, and what was changed live since.
 *
 * Every change, a reload or one line, is all or nothing: new rules are built whole beside the old ones, and take their
 * place or are dropped. Lives on the main thread.
 */
#ifndef WEIR_RUN_GOVERNOR_H
#define WEIR_RUN_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

#include "front/order.h"
#include "front/rules.h"
#include "limit/journal.h"
#include "run/config.h"
#include "run/config_file.h"

struct governor;

/* How reading the file again has gone so far. */
struct reloads {
    uint64_t good, bad;
    uint64_t last_good_unix_ms; /* 0: none */
    bool is_last_bad;
    char last_error[512]; /* why the last one that went badly did */
};

/*
 * Begin with `config`, which was built from `file` (copied); both outlive the governor, as what weir was started with.
 * The command table is the built-in one.
 */
struct governor *governor_new(const struct config *config, const struct config_file *file,
                              struct command_table *builtin, struct journal *journal);

/* The record of subjects that no policy binds; lives as long as the governor. */
struct record *governor_unlimited(const struct governor *governor);

/* Nobody may hold subjects or rules any more. */
void governor_free(struct governor *governor);

/* From here on tell that governor_commands or governor_rules has changed. */
void governor_watch(struct governor *governor, void (*on_change)(void *arg), void *arg);

/* The upstream's own command table; takes over the reference. */
void governor_on_table(struct governor *governor, struct command_table *commands);

/* Read the file again. Whether that went well is in the log. */
void governor_reload(struct governor *governor);

/* The file it reads; NULL: none. */
const char *governor_path(const struct governor *governor);

const struct reloads *governor_reloads(const struct governor *governor);

/* Do what the order says, and set its result. */
void governor_carry_out(struct governor *governor, struct order *order);

/* What is to be handed out; the governor's references. */
struct command_table *governor_commands(const struct governor *governor);
struct rules *governor_rules(const struct governor *governor);

#endif
