/* COMMAND LIST, GETKEYS and GETKEYSANDFLAGS. */
#include "tests/sim/redis_call.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_reply.h"

/* ---- LIST ---- */

static bool has_category(const struct command *command, struct slice category)
{
    const char *at = command->categories;
    while (*at != '\0') {
        size_t len = strcspn(at, " ");
        if (slice_eq_nocase(slice_of(at, len), category))
            return true;
        at += len + (at[len] == ' ');
    }
    return false;
}

static bool is_listed(const struct command *command, struct slice kind, struct slice value)
{
    if (text_is(kind, "pattern"))
        return text_matches(value, slice_str(command->name), true);
    return text_is(kind, "aclcat") && has_category(command, value); /* no module has commands */
}

void cmd_command_list(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    const struct redis *redis = conn->redis;
    bool has_filter =
        argc == 5 && text_is(argv[2], "filterby") &&
        (text_is(argv[3], "pattern") || text_is(argv[3], "aclcat") || text_is(argv[3], "module"));
    if (argc > 2 && !has_filter) {
        reply_syntax(conn);
        return;
    }
    size_t mark = reply_mark(conn);
    size_t n = 0;
    for (size_t i = 0; i < redis->n_commands_known; i++) {
        const struct command *command = &redis->commands[i];
        if (!is_at_least(redis, command->since) ||
            (has_filter && !is_listed(command, argv[3], argv[4])))
            continue;
        reply_word(conn, command->name);
        n++;
    }
    reply_array_at(conn, mark, n);
}

/* ---- GETKEYS ---- */

/* Finds the command of the words behind the subcommand. NULL: no keys, and the error is replied. */
static const struct command *find_call(struct redis_conn *conn, const struct slice *argv,
                                       size_t argc)
{
    const struct command *command = command_find(conn->redis, argv, argc);
    bool is_script = command != NULL && (command->bits & FLAG_SCRIPT) != 0;
    if (command == NULL)
        reply_error(conn, "ERR Invalid command specified");
    else if (command->first_key == 0 && !is_script)
        reply_error(conn, "ERR The command has no key arguments");
    else if (!call_fits(command, argc))
        reply_error(conn, "ERR Invalid number of arguments specified for command");
    else
        return command;
    return NULL;
}

void cmd_command_getkeys(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    const struct slice *words = argv + 2;
    const struct command *command = find_call(conn, words, argc - 2);
    if (command == NULL)
        return;
    struct key_walk walk = key_walk(command, words, argc - 2);
    if (walk.left == 0 && !is_at_least(conn->redis, 70000)) {
        reply_error(conn, "ERR Invalid arguments specified for command");
        return;
    }
    reply_array(conn, walk.left);
    for (size_t at; (at = key_next(&walk)) != 0;)
        reply_bulk(conn, words[at]);
}

/* Only for commands without keys: the model has no flags of keys. */
void cmd_command_getkeysandflags(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    if (find_call(conn, argv + 2, argc - 2) != NULL)
        reply_subcommand(conn, argv);
}
