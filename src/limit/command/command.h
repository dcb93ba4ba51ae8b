/*
 * The command table: for every command and subcommand its flags, categories and keys, and which lanes it may use.
 *
 * Built once, then immutable but for the costs in its rows; reference-counted, so that workers can use an
 * old table while a new one is handed out. Lookups allocate nothing.
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

/* What `COMMAND` says of one command or subcommand. The name is as Redis gives it ("config|get" for subcommands). */
struct command_info {
    struct slice name;
    int64_t arity, first_key, last_key, key_step;
    uint16_t flags;                 /* CMD_*, without CMD_CONTROL and CMD_HANDSHAKE */
    const struct slice *categories; /* without the '@' */
    size_t n_categories;
    struct fanout_tips tips;
};

/* An empty table with one reference. Never fails: out of memory ends the process. */
struct command_table *command_table_new(void);

/* Add or replace a row; which lanes it may use comes from travel.def. */
void command_table_add(struct command_table *table, const struct command_info *info);

/* The table that is compiled in (commands.def: Redis 7.0); one reference. */
struct command_table *command_table_builtin(void);

/* The same table, read-only, made once for the process and never freed. Any thread. */
const struct command_table *command_table_known(void);

struct command_table *command_table_get(struct command_table *table); /* one more reference; any thread */
void command_table_put(struct command_table *table);

/* The CMD_* flag for COMMAND's flag `name`; 0: weir does not need it. */
uint16_t command_flag(struct slice name);

/* ---- using (any thread) ---- */

/*
 * The row for a command's first two arguments; case does not matter. A known subcommand has a row of its own; an
 * unknown subcommand, and an unknown command, gets row 0: named "", not shareable, may forge.
 */
const struct command *command_find(const struct command_table *table, struct slice name, struct slice sub);

/* "read", "write" ...: for metrics. */
const char *command_kind_name(enum command_kind kind);

/* The row of this full lower-case name ("config|get"); NULL: none. */
const struct command *command_by_name(const struct command_table *table, struct slice name);

size_t command_table_count(const struct command_table *table); /* rows, the unknown one included */
const struct command *command_table_row(const struct command_table *table, size_t id);
size_t command_table_categories(const struct command_table *table);
struct slice command_table_category(const struct command_table *table, size_t bit);

/* ---- costs (main thread) ---- */

/* A call of this row costs Redis so much, as so many calls tell. */
void command_table_set_cost(struct command_table *table, size_t id, uint32_t ns, uint32_t calls);

/* What Redis has told of costs for `from` counts for the rows of the same names in `to`. */
void command_table_carry_costs(struct command_table *to, const struct command_table *from);

#endif
