/* The table of commands, and the names and keys of a command. */
#ifndef WEIR_SIM_REDIS_COMMANDS_H
#define WEIR_SIM_REDIS_COMMANDS_H

#include "tests/sim/redis_state.h"

void commands_init(struct redis *redis);
void commands_fini(struct redis *redis);

/* The command of these words; NULL: unknown. A container's name alone gives the container. */
const struct command *command_find(const struct redis *redis, const struct slice *argv,
                                   size_t argc);
/* "client|id" too */
const struct command *command_by_name(const struct redis *redis, struct slice name);
bool command_is_container(const struct command *command);

/* The name in errors and CLIENT LIST: before 7.0 that of the container for a subcommand. */
const char *command_name(const struct redis *redis, const struct command *command);

/* Iterates over the keys of a call. key_next returns an index into argv; 0: no more. */
struct key_walk {
    size_t at, left, step;
};
struct key_walk key_walk(const struct command *command, const struct slice *argv, size_t argc);
size_t key_next(struct key_walk *walk);

/* Replies "unknown subcommand ..." for a known subcommand with a wrong number of words. */
void reply_subcommand(struct redis_conn *conn, const struct slice *argv);

#define COMMAND(name, arity, first, last, step, since, bits, flags, categories, function)          \
    void cmd_##function(struct redis_conn *conn, const struct slice *argv, size_t argc);
#define SUBCOMMAND COMMAND
#include "tests/sim/redis_commands.def"
#undef COMMAND
#undef SUBCOMMAND

#endif
