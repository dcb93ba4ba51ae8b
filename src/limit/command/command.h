/*
 * The command table: flags, categories, keys and allowed lanes of every command and subcommand.
 *
 * Built once, then immutable except for the costs in its rows. Reference-counted: workers may use
 * an old table while a new one is handed out. Look-ups allocate nothing.
 */
#ifndef WEIR_LIMIT_COMMAND_H
#define WEIR_LIMIT_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/command/command_row.h"
#include "limit/command/travel.h"

struct command_table;

/* ---- building (one thread) ---- */

/*
 * The answer of `COMMAND` for one command or subcommand. `name` is in Redis' form: "config|get" for
 * subcommands.
 */
struct command_info {
    struct slice name;
    int64_t arity, first_key, last_key, key_step;
    uint16_t flags;                 /* CMD_*, without CMD_CONTROL and CMD_HANDSHAKE */
    const struct slice *categories; /* without the '@' */
    size_t n_categories;
    struct fanout_tips tips;
};

/* Makes an empty table with one reference. Aborts the process if memory is out. */
struct command_table *command_table_new(void);

/* Adds or replaces a row. travel.def decides which lanes the command may use. */
void command_table_add(struct command_table *table, const struct command_info *info);

/* Makes the compiled-in table (commands.def: Redis 7.0) with one reference. */
struct command_table *command_table_builtin(void);

/* The compiled-in table, read-only, made once for the process and never freed. Any thread. */
const struct command_table *command_table_known(void);

/* adds a reference; any thread */
struct command_table *command_table_get(struct command_table *table);
void command_table_put(struct command_table *table);

/* The CMD_* flag for the flag `name` of COMMAND; 0: weir does not need it. */
uint16_t command_flag(struct slice name);

/* ---- using (any thread) ---- */

/*
 * Returns the row for the first two arguments of a command; case does not matter. A known
 * subcommand has its own row. An unknown command or subcommand gets row 0: named "", not shareable,
 * may forge (command_row.h).
 */
const struct command *command_find(const struct command_table *table, struct slice name,
                                   struct slice sub);

/* "read", "write" ...: for metrics. */
const char *command_kind_name(enum command_kind kind);

/* Returns the row of this full lower-case name ("config|get"); NULL: none. */
const struct command *command_by_name(const struct command_table *table, struct slice name);

/* number of rows, row 0 included */
size_t command_table_count(const struct command_table *table);
const struct command *command_table_row(const struct command_table *table, size_t id);
size_t command_table_categories(const struct command_table *table);
struct slice command_table_category(const struct command_table *table, size_t bit);

/* ---- costs (main thread) ---- */

/* Sets the cost of one call of this row in ns, and the number of calls behind that estimate. */
void command_table_set_cost(struct command_table *table, size_t id, uint32_t ns, uint32_t calls);

/* Copies the known costs of `from` to the rows of equal name in `to`. */
void command_table_carry_costs(struct command_table *to, const struct command_table *from);

#endif
