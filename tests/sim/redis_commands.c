/* The table of commands. */
#include "tests/sim/redis_commands.h"

#include <stdio.h>

#include "tests/sim/redis_call.h"
#include "tests/sim/redis_reply.h"

#define NAME_MAX_LEN 64

static const struct command rows[] = {
#define ROW(child, text, n, first, last, step, version, more, flag_words, category_words,          \
            function)                                                                              \
    {.name = (text),                                                                               \
     .flags = (flag_words),                                                                        \
     .categories = (category_words),                                                               \
     .run = cmd_##function,                                                                        \
     .arity = (n),                                                                                 \
     .first_key = (first),                                                                         \
     .last_key = (last),                                                                           \
     .key_step = (step),                                                                           \
     .since = (version),                                                                           \
     .bits = (more),                                                                               \
     .is_child = (child)},
#define COMMAND(...) ROW(false, __VA_ARGS__)
#define SUBCOMMAND(...) ROW(true, __VA_ARGS__)
#include "tests/sim/redis_commands.def"
#undef COMMAND
#undef SUBCOMMAND
#undef ROW
};
#define N_ROWS (sizeof rows / sizeof rows[0])

static bool has_word(const char *words, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += len)
        if ((at == words || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
            return true;
    return false;
}

static uint32_t bits_of(const char *flags)
{
    static const struct {
        const char *word;
        uint32_t bit;
    } words[] = {
        {"write", FLAG_WRITE},       {"readonly", FLAG_READONLY},
        {"admin", FLAG_ADMIN},       {"pubsub", FLAG_PUBSUB},
        {"noscript", FLAG_NOSCRIPT}, {"blocking", FLAG_BLOCKING},
        {"no_auth", FLAG_NO_AUTH},   {"allow_busy", FLAG_ALLOW_BUSY},
        {"no_multi", FLAG_NO_MULTI}, {"skip_monitor", FLAG_SKIP_MONITOR},
        {"denyoom", FLAG_DENYOOM},   {"loading", FLAG_LOADING},
        {"stale", FLAG_STALE},
    };
    uint32_t bits = 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (has_word(flags, words[i].word))
            bits |= words[i].bit;
    return bits;
}

/* Flags of a container before 7.0, when subcommands were no commands. */
static void make_old_container(struct command *command)
{
    bool is_client = strcmp(command->name, "client") == 0;
    bool is_script = strcmp(command->name, "script") == 0;
    command->bits |= FLAG_NOSCRIPT;
    if (!is_script)
        command->bits |= FLAG_LOADING | FLAG_STALE;
    if (is_script)
        command->bits |= FLAG_MAY_REPLICATE;
    else if (strcmp(command->name, "pubsub") != 0)
        command->bits |= FLAG_ADMIN;
    command->categories = is_client ? "admin slow dangerous connection" : command[1].categories;
}

static void make_old(struct command *command)
{
    static const struct {
        void (*run)(struct redis_conn *conn, const struct slice *argv, size_t argc);
        int arity;
    } arities[] = {{cmd_pexpire, 3}, {cmd_client_caching, -3}, {cmd_command_getkeys, -3}};
    for (size_t i = 0; i < sizeof arities / sizeof arities[0]; i++)
        if (command->run == arities[i].run)
            command->arity = arities[i].arity;
    if (command->run == cmd_container)
        make_old_container(command);
    if (command->run == cmd_reset)
        command->bits &= ~(uint32_t)FLAG_NO_AUTH;
    if (command->bits & FLAG_SCRIPT)
        command->bits &= ~(uint32_t)FLAG_STALE;
    if (command->run == cmd_ping)
        command->bits |= FLAG_STALE;
    if (command->run == cmd_echo)
        command->bits &= ~(uint32_t)(FLAG_STALE | FLAG_LOADING);
    if (command->run == cmd_wait)
        command->categories = "keyspace slow";
    if (command->run == cmd_select)
        command->categories = "keyspace fast";
}

void commands_init(struct redis *redis)
{
    redis->commands = take_memory(sizeof rows);
    memcpy(redis->commands, rows, sizeof rows);
    redis->n_commands_known = N_ROWS;
    struct command *parent = NULL;
    for (size_t i = 0; i < N_ROWS; i++) {
        struct command *command = &redis->commands[i];
        command->id = (uint16_t)i;
        command->bits |= bits_of(command->flags);
        if (!command->is_child)
            parent = command;
        else if (parent != NULL)
            parent->n_children++;
        if (!is_at_least(redis, 70000))
            make_old(command);
        bool is_looser =
            command->run == cmd_command_getkeys || command->run == cmd_command_getkeysandflags;
        if (is_at_least(redis, 70200) && is_looser)
            command->arity = -3;
        if ((command->bits & FLAG_CLUSTER) != 0 && !redis->config.is_cluster)
            command->since = UINT32_MAX;
        if (is_at_least(redis, command->since))
            dict_add(&redis->command_names, slice_str(command->name))->value = command;
    }
}

void commands_fini(struct redis *redis)
{
    dict_fini(&redis->command_names, NULL);
    free(redis->commands);
    redis->commands = NULL;
}

/* Looks up `name`, with `prefix` and "|" before it unless that is empty, in lower case. */
static const struct command *find(const struct redis *redis, struct slice prefix, struct slice name)
{
    char folded[2 * NAME_MAX_LEN + 1];
    size_t len = 0;
    if (prefix.len > NAME_MAX_LEN || name.len > NAME_MAX_LEN)
        return NULL;
    for (size_t i = 0; i < prefix.len; i++)
        folded[len++] = ascii_lower(prefix.at[i]);
    if (prefix.len > 0)
        folded[len++] = '|';
    for (size_t i = 0; i < name.len; i++)
        folded[len++] = ascii_lower(name.at[i]);
    return dict_get(&redis->command_names, slice_of(folded, len));
}

const struct command *command_by_name(const struct redis *redis, struct slice name)
{
    return find(redis, SLICE(""), name);
}

bool command_is_container(const struct command *command)
{
    return command->n_children > 0;
}

const struct command *command_find(const struct redis *redis, const struct slice *argv, size_t argc)
{
    const struct command *command = find(redis, SLICE(""), argv[0]);
    if (command == NULL || command->is_child)
        return NULL;
    bool is_whole = command->n_children == 0 || argc == 1 || !is_at_least(redis, 70000);
    return is_whole ? command : find(redis, argv[0], argv[1]);
}

const char *command_name(const struct redis *redis, const struct command *command)
{
    const char *bar = is_at_least(redis, 70000) ? NULL : strchr(command->name, '|');
    if (bar == NULL)
        return command->name;
    while (command->is_child)
        command--;
    return command->name;
}

/* ---- keys ---- */

/* As atoi: the number at the start. */
static int64_t leading_number(struct slice text)
{
    char copy[24] = "";
    memcpy(copy, text.at, text.len < sizeof copy ? text.len : sizeof copy - 1);
    return strtoll(copy, NULL, 10);
}

struct key_walk key_walk(const struct command *command, const struct slice *argv, size_t argc)
{
    if (command->bits & FLAG_SCRIPT) {
        int64_t n = argc >= 3 ? leading_number(argv[2]) : 0;
        bool is_good = n > 0 && (uint64_t)n <= argc - 3;
        return (struct key_walk){3, is_good ? (size_t)n : 0, 1};
    }
    if (command->first_key == 0 || (size_t)command->first_key >= argc)
        return (struct key_walk){0};
    int last = command->last_key < 0 ? (int)argc + command->last_key : command->last_key;
    int span = last - command->first_key;
    size_t n = span < 0 ? 0 : (size_t)(span / command->key_step) + 1;
    return (struct key_walk){(size_t)command->first_key, n, (size_t)command->key_step};
}

size_t key_next(struct key_walk *walk)
{
    if (walk->left == 0)
        return 0;
    walk->left--;
    size_t at = walk->at;
    walk->at += walk->step;
    return at;
}

/* ---- COMMAND ---- */

/* `prefix` '\0': none. */
static void reply_words(struct redis_conn *conn, const char *words, char prefix)
{
    size_t n = *words != '\0';
    for (const char *at = words; *at != '\0'; at++)
        n += *at == ' ';
    reply_set(conn, n);
    while (*words != '\0') {
        size_t len = strcspn(words, " ");
        char word[NAME_MAX_LEN] = {prefix};
        size_t before = prefix != '\0';
        if (before + len >= sizeof word)
            abort();
        memcpy(word + before, words, len);
        word[before + len] = '\0';
        reply_status(conn, word);
        words += len + (words[len] == ' ');
    }
}

static bool is_known(const struct redis *redis, const struct command *command)
{
    return is_at_least(redis, command->since);
}

static void reply_info(struct redis_conn *conn, const struct command *command)
{
    const struct redis *redis = conn->redis;
    bool has_more = is_at_least(redis, 70000);
    reply_array(conn, has_more ? 10 : 7);
    reply_word(conn, command->name);
    reply_number(conn, command->arity);
    reply_words(conn, command->flags, '\0');
    reply_number(conn, command->first_key);
    reply_number(conn, command->last_key);
    reply_number(conn, command->key_step);
    reply_words(conn, command->categories, '@');
    if (!has_more)
        return;
    reply_set(conn, 0); /* tips */
    reply_set(conn, 0); /* key specifications */
    size_t n = 0;
    for (size_t i = 1; i <= command->n_children; i++)
        n += is_known(redis, &command[i]);
    reply_set(conn, n);
    for (size_t i = 1; i <= command->n_children; i++)
        if (is_known(redis, &command[i]))
            reply_info(conn, &command[i]);
}

static size_t count_commands(const struct redis *redis)
{
    size_t n = 0;
    for (size_t i = 0; i < redis->n_commands_known; i++)
        n += !redis->commands[i].is_child && is_known(redis, &redis->commands[i]);
    return n;
}

static void reply_all(struct redis_conn *conn)
{
    const struct redis *redis = conn->redis;
    reply_array(conn, count_commands(redis));
    for (size_t i = 0; i < redis->n_commands_known; i++)
        if (!redis->commands[i].is_child && is_known(redis, &redis->commands[i]))
            reply_info(conn, &redis->commands[i]);
}

void cmd_command(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    if (argc > 1)
        cmd_container(conn, argv, argc);
    else
        reply_all(conn);
}

void cmd_command_count(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argv;
    (void)argc;
    reply_number(conn, (int64_t)count_commands(conn->redis));
}

void cmd_command_info(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    if (argc == 2 && is_at_least(conn->redis, 70000)) {
        reply_all(conn);
        return;
    }
    reply_array(conn, argc - 2);
    for (size_t i = 2; i < argc; i++) {
        const struct command *command = command_by_name(conn->redis, argv[i]);
        if (command != NULL)
            reply_info(conn, command);
        else
            reply_null(conn);
    }
}

/* Without the texts for people. */
void cmd_command_docs(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    const struct redis *redis = conn->redis;
    size_t n = 0;
    size_t mark = reply_mark(conn);
    for (size_t i = 0; i < (argc > 2 ? argc - 2 : redis->n_commands_known); i++) {
        const struct command *command =
            argc > 2 ? command_by_name(redis, argv[2 + i]) : &redis->commands[i];
        if (command == NULL || !is_known(redis, command) || (argc == 2 && command->is_child))
            continue;
        reply_word(conn, command->name);
        reply_map(conn, 0);
        n++;
    }
    reply_map_at(conn, mark, n);
}

void reply_subcommand(struct redis_conn *conn, const struct slice *argv)
{
    char upper[NAME_MAX_LEN] = "";
    for (size_t i = 0; i < argv[0].len && i + 1 < sizeof upper; i++)
        upper[i] = ascii_upper(argv[0].at[i]);
    int shown = (int)text_upto_nul(argv[1]).len;
    shown = shown > 128 ? 128 : shown;
    bool is_new = is_at_least(conn->redis, 70000);
    reply_error(conn,
                "ERR %snknown subcommand or wrong number of arguments for '%.*s'. Try %s HELP.",
                is_new ? "u" : "U", shown, argv[1].at, upper);
}

/* Before 7.0 a container checks its subcommand itself. */
void cmd_container(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    const struct command *child = find(conn->redis, argv[0], argv[1]);
    if (child != NULL && call_fits(child, argc))
        child->run(conn, argv, argc);
    else
        reply_subcommand(conn, argv);
}
