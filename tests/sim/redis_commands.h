/*
 * The table of commands, and what can be read off a row: names, keys.
 */
#ifndef WEIR_SIM_REDIS_COMMANDS_H
#define WEIR_SIM_REDIS_COMMANDS_H

#include "tests/sim/redis_state.h"

void commands_init(struct redis *redis);
void commands_fini(struct redis *redis);

/* What the words call for; NULL: nothing that is known. Of a container alone, the container. */
const struct command *command_find(const struct redis *redis, const struct slice *argv, size_t argc);
const struct command *command_by_name(const struct redis *redis, struct slice name); /* "client|id" too */
bool command_is_container(const struct command *command);

/* As errors and CLIENT LIST show it: before 7.0 a subcommand was no command of its own. */
const char *command_name(const struct redis *redis, const struct command *command);

/* Its keys among the arguments, one after the other: their places; 0: no more. */
struct key_walk {
    size_t at, left, step;
};
struct key_walk key_walk(const struct command *command, const struct slice *argv, size_t argc);
size_t key_next(struct key_walk *walk);

/* "unknown subcommand ..." for a known one whose words do not fit. */
void reply_subcommand(struct redis_conn *conn, const struct slice *argv);

#define COMMAND(name, arity, first, last, step, since, bits, flags, categories, function)                              \
    void cmd_##function(struct redis_conn *conn, const struct slice *argv, size_t argc);
#define SUBCOMMAND COMMAND
#include "tests/sim/redis_commands.def"
#undef COMMAND
#undef SUBCOMMAND

#endif
