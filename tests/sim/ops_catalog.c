/*
 * COMMAND: weir's own commands must be listed beside Redis' in COMMAND, INFO, DOCS, LIST and COUNT.
 */
#include <stdio.h>
#include <string.h>

#include "tests/sim/ops.h"
#include "tests/sim/run.h"

#define ELEMENTS 10 /* of an entry for a command of weir's own */
#define WORDS_MAX 10

static bool is_before_7(void)
{
    return run.plan.redis.version < 70000;
}

/* Sends a line such as "LIMIT CHECK n k", split at blanks, behind COMMAND and the subcommand. */
static void say_call(struct client *client, const struct act *act, const char *subcommand,
                     const char *line)
{
    struct slice words[WORDS_MAX];
    unsigned n = 0;
    for (const char *at = line; *at != '\0';
         at += at[words[n - 1].len] == ' ' ? words[n - 1].len + 1 : words[n - 1].len)
        words[n++] = slice_of(at, strcspn(at, " "));
    say_begin(client, 1 + (subcommand != NULL ? 1U : 0U) + n);
    say_word(client, SLICE("COMMAND"));
    if (subcommand != NULL)
        say_word(client, slice_str(subcommand));
    for (unsigned i = 0; i < n; i++)
        say_word(client, words[i]);
    expect(client, act);
}

static const char *judge_error(const struct reply *reply, const char *error)
{
    return reply_begins(reply, '-', slice_str(error)) ? NULL
                                                      : "not the error that Redis has for it";
}

static bool has_cell(void)
{
    return strstr(run.plan.config, "cl-throttle = off") == NULL;
}

/* The facts of weir's own commands that are checked here. */
struct known {
    struct slice name;
    int arity, first_key;
    struct slice summary;
};

static const struct known all_known[] = {
#define OWN(name, arity, class, who, first, last, step, arguments, summary)                        \
    {{name, sizeof name - 1}, arity, first, {summary, sizeof summary - 1}},
#include "limit/command/own.def"
#undef OWN
};
#define N_KNOWN (sizeof all_known / sizeof all_known[0])

/* Finds a command of weir's own by its full name. NULL: none. */
static const struct known *known(struct slice name)
{
    for (size_t i = 0; i < N_KNOWN; i++)
        if (slice_eq_nocase(all_known[i].name, name))
            return &all_known[i];
    return NULL;
}

/* Like known(), if weir has the command in this run. */
static const struct known *known_shown(struct slice name)
{
    const struct known *own = known(name);
    return own != NULL && (has_cell() || own->first_key != 1) ? own : NULL;
}

/* ---- COMMAND, COUNT ---- */

static void say_count(struct client *client, struct act *act)
{
    say_call(client, act, "COUNT", "");
}

/* The count must be that of earlier replies to COMMAND and COUNT. */
static const char *judge_number(struct client *client, int64_t number)
{
    int64_t before = client->session.n_commands;
    client->session.n_commands = number;
    return before == 0 || before == number || !run_is_whole() ? NULL : "not so many commands";
}

static const char *judge_count(struct client *client, const struct act *act,
                               const struct reply *reply)
{
    (void)act;
    if (reply->type != ':')
        return "it is no number";
    return client->session.is_executing ? NULL : judge_number(client, reply->number);
}

static void say_commands(struct client *client, struct act *act)
{
    say_call(client, act, act->a % 2 == 0 || is_before_7() ? NULL : "INFO", "");
}

/* Judges the entry of one of weir's own commands. */
static const char *judge_entry(const struct reply *entry, const struct known *own)
{
    struct reply name, arity, key;
    if (entry->type != '*' || entry->is_nil || entry->number != ELEMENTS ||
        !reply_at(entry, 0, &name) || !reply_at(entry, 1, &arity) || !reply_at(entry, 3, &key))
        return "it is no entry of a command";
    if (!reply_is(&name, '$', own->name))
        return "an entry of another command";
    return reply_is_integer(&arity, own->arity) && reply_is_integer(&key, own->first_key)
               ? NULL
               : "not as it is called";
}

static const char *judge_commands(struct client *client, const struct act *act,
                                  const struct reply *reply)
{
    if (!run_is_whole())
        return NULL; /* Redis may be another version by now */
    struct slice inside = reply->inside;
    struct reply entry, name;
    unsigned n_own = 0;
    (void)act;
    if (reply->type != '*' || reply->is_nil)
        return "it is no list of commands";
    if (client->session.is_executing)
        return NULL; /* EXEC's reply is passed on unchanged */
    while (reply_next(&inside, &entry)) {
        const struct known *own = reply_at(&entry, 0, &name) ? known_shown(name.text) : NULL;
        const char *why = own != NULL ? judge_entry(&entry, own) : NULL;
        if (why != NULL)
            return why;
        n_own += own != NULL;
    }
    if (n_own != 1 + (unsigned)has_cell())
        return "weir's own commands are not in it";
    return judge_number(client, reply->number);
}

/* ---- INFO, DOCS ---- */

static const char *const names[] = {"get",         "LIMIT",     "nonesuch", "limit|check",
                                    "cl.throttle", "limit|all", "lmove"};
#define N_NAMES (sizeof names / sizeof names[0])
#define ASKED 3

static struct slice name_of(const struct act *act, unsigned i)
{
    return slice_str(names[(act->a + i * (1 + act->b % (N_NAMES - 1))) % N_NAMES]);
}

static void say_names(struct client *client, const struct act *act, struct slice subcommand)
{
    say_begin(client, 2 + ASKED);
    say_word(client, SLICE("COMMAND"));
    say_word(client, subcommand);
    for (unsigned i = 0; i < ASKED; i++)
        say_word(client, name_of(act, i));
    expect(client, act);
}

static bool is_redis(struct slice name)
{
    return known(name) == NULL && !slice_eq(name, SLICE("nonesuch"));
}

static void say_info(struct client *client, struct act *act)
{
    say_names(client, act, SLICE("INFO"));
}

static const char *judge_info(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    if (!run_is_whole())
        return NULL; /* Redis may be another version by now */
    struct reply entry, name;
    if (reply->type != '*' || reply->number != ASKED)
        return "not as many entries as names";
    const char *why = NULL;
    for (unsigned i = 0; i < ASKED && why == NULL; i++) {
        const struct known *own =
            client->session.is_executing ? NULL : known_shown(name_of(act, i));
        if (!reply_at(reply, i, &entry))
            why = "an entry is not there";
        else if (own != NULL)
            why = judge_entry(&entry, own);
        else if (entry.is_nil == is_redis(name_of(act, i)))
            why = "there is such a command, or is not";
        else if (is_redis(name_of(act, i)) &&
                 (!reply_at(&entry, 0, &name) || !reply_is(&name, '$', name_of(act, i))))
            why = "an entry of another command";
    }
    return why;
}

static bool asks_all(const struct act *act)
{
    return act->c % 8 == 0;
}

static void say_docs(struct client *client, struct act *act)
{
    if (asks_all(act))
        say_call(client, act, "DOCS", "");
    else
        say_names(client, act, SLICE("DOCS"));
}

static const char *judge_docs(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    if (!run_is_whole())
        return NULL; /* Redis may be another version by now */
    struct slice inside = reply->inside;
    struct reply name, about;
    unsigned n_own = 0, n_asked = asks_all(act) ? 1 + (unsigned)has_cell() : 0;
    if (is_before_7())
        return judge_error(reply, "ERR Unknown subcommand or wrong number of arguments for 'DOCS'");
    if (reply->type != (client->session.is_resp3 ? '%' : '*'))
        return "it is no map";
    if (client->session.is_executing)
        return NULL;
    while (reply_next(&inside, &name) && reply_next(&inside, &about)) {
        const struct known *own = known_shown(name.text);
        struct reply summary;
        if (own != NULL &&
            (!reply_at(&about, 1, &summary) || !reply_is(&summary, '$', own->summary)))
            return "not what is said of it";
        n_own += own != NULL;
    }
    for (unsigned i = 0; i < ASKED && !asks_all(act); i++)
        n_asked += known_shown(name_of(act, i)) != NULL;
    return n_own == n_asked ? NULL : "not as many of weir's own as were asked for";
}

/* ---- LIST ---- */

/* Only a list without a filter has weir's own commands, and all of them. */
static const struct {
    const char *words;
    const char *error; /* NULL: none */
} lists[] = {
    {"", NULL},
    {"FILTERBY ACLCAT Transaction", NULL},
    {"FILTERBY PATTERN limit|f*", NULL},
    {"filterby module limit", NULL},
    {"FILTERBY", "ERR syntax error"},
    {"FILTERBY PATTERN a FILTERBY PATTERN b", "ERR syntax error"},
};
#define N_LISTS (sizeof lists / sizeof lists[0])

static void say_list(struct client *client, struct act *act)
{
    say_call(client, act, "LIST", lists[act->a % N_LISTS].words);
}

static const char *judge_list(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    if (!run_is_whole())
        return NULL; /* Redis may be another version by now */
    struct slice inside = reply->inside;
    struct reply name;
    int n_own = 0,
        wanted = lists[act->a % N_LISTS].words[0] == '\0' ? (int)N_KNOWN - !has_cell() : 0;
    if (is_before_7())
        return judge_error(reply, "ERR Unknown subcommand or wrong number of arguments for 'LIST'");
    if (lists[act->a % N_LISTS].error != NULL)
        return judge_error(reply, lists[act->a % N_LISTS].error);
    if (reply->type != '*' && reply->type != '~')
        return "it is no list";
    if (client->session.is_executing)
        return NULL;
    while (reply_next(&inside, &name))
        n_own += known_shown(name.text) != NULL;
    return n_own == wanted ? NULL : "not those of weir's own that belong there";
}

/* ---- GETKEYS ---- */

#define NO_KEYS "ERR The command has no key arguments"
#define NO_COMMAND "ERR Invalid command specified"

/* A call, and its keys or Redis' error. Redis knows none of weir's own commands. */
static const struct {
    const char *call;
    const char *keys; /* separated by blanks */
    const char *error;
} calls[] = {
    {"LIMIT FUNNEL a 1/s", NULL, NO_COMMAND},
    {"limit check name a AND other b", NULL, NO_COMMAND},
    {"NONESUCH a", NULL, NO_COMMAND},
    {"MSET a b c d", "a c", NULL},
    {"ECHO a", NULL, NO_KEYS},
};
#define N_CALLS (sizeof calls / sizeof calls[0])

static bool wants_flags(const struct act *act)
{
    return act->b % 2 == 0 && !is_before_7() &&
           memcmp(calls[act->a % N_CALLS].call, "MSET", 4) != 0;
}

static void say_keys(struct client *client, struct act *act)
{
    say_call(client, act, wants_flags(act) ? "GETKEYSANDFLAGS" : "GETKEYS",
             calls[act->a % N_CALLS].call);
}

static const char *judge_key_list(const struct act *act, const struct reply *reply)
{
    const char *keys = calls[act->a % N_CALLS].keys;
    struct slice inside = reply->inside;
    struct reply key;
    if (reply->type != '*' || reply->number != (int64_t)(strlen(keys) + 1) / 2)
        return "not as many keys";
    for (; reply_next(&inside, &key); keys += 2)
        if (!reply_is(&key, '$', slice_of(keys, 1)))
            return "not this key";
    return NULL;
}

static const char *judge_keys(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    (void)client;
    if (!run_is_whole())
        return NULL; /* Redis may be another version by now */
    const char *error = calls[act->a % N_CALLS].error;
    return error != NULL ? judge_error(reply, error) : judge_key_list(act, reply);
}

/* ---- LIMIT HELP ---- */

static void say_help(struct client *client, struct act *act)
{
    (void)act;
    say_begin(client, 2);
    say_word(client, SLICE("LIMIT"));
    say_word(client, SLICE("HELP"));
    expect(client, act);
}

static const char *judge_help(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    struct reply first, last;
    (void)client;
    (void)act;
    if (reply->type != '*' || reply->number < 3 || !reply_at(reply, 0, &first) ||
        !reply_at(reply, (size_t)reply->number - 1, &last))
        return "it is no help";
    return reply_begins(&first, '+', SLICE("LIMIT <subcommand>")) &&
                   reply_begins(&last, '+', SLICE("    "))
               ? NULL
               : "no help";
}

const struct op catalog_ops[] = {
    {"commands", 1, OP_CONTROL | OP_QUEUES, 0, say_commands, judge_commands},
    {"command_count", 2, OP_CONTROL | OP_QUEUES, 0, say_count, judge_count},
    {"command_info", 3, OP_CONTROL | OP_QUEUES, 0, say_info, judge_info},
    {"command_docs", 2, OP_CONTROL, 0, say_docs, judge_docs},
    {"command_list", 2, OP_CONTROL, 0, say_list, judge_list},
    {"command_keys", 3, OP_CONTROL, 0, say_keys, judge_keys},
    {"limit_help", 1, OP_CONTROL, 0, say_help, judge_help},
    {0},
};
