/*
 * Tests of the command table: the hand-written rows agree with the facts, and no stateful command
 * is shareable by accident.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "limit/command/command.h"
#include "limit/command/own.h"
#include "limit/command/travel.h"

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])
#define NOTHING ((struct slice){NULL, 0})

static struct command_table *table;

static int set_up(void **state)
{
    (void)state;
    table = command_table_builtin();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    command_table_put(table);
    return 0;
}

static struct slice name_of(const struct command *row)
{
    return slice_of(row->name, row->name_len);
}

static const struct command *find(const char *name, const char *sub)
{
    return command_find(table, slice_str(name), sub ? slice_str(sub) : NOTHING);
}

static const struct command *row_of(const char *name)
{
    const struct command *row = command_by_name(table, slice_str(name));
    if (!row)
        fail_msg("no row %s", name);
    return row;
}

/* Looks up a full name as a client sends it: a subcommand is two words. */
static const struct command *find_words(const struct command_table *in, struct slice full)
{
    const char *bar = memchr(full.at, '|', full.len);
    if (!bar)
        return command_find(in, full, NOTHING);
    size_t len = (size_t)(bar - full.at);
    return command_find(in, slice_of(full.at, len), slice_of(bar + 1, full.len - len - 1));
}

static bool is_listed(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

/* ---- facts and hand rows ---- */

static const char *const facts[] = {
#define ROW(name, ...) name,
#include "limit/commands.def"
#undef ROW
};

/* Hand-written rows that COMMAND of 7.0 does not list: commands of other servers ... */
static const char *const of_others[] = {"waitaof",      "stralgo",  "hexpire",  "hexpireat",
                                        "hexpiretime",  "hpersist", "hpexpire", "hpexpireat",
                                        "hpexpiretime", "hpttl",    "httl"};

/* ... and rows that every table has: subcommands of 7.0, and words that weir answers by closing. */
static const char *const beyond_facts[] = {"client|setinfo", "client|no-touch", "post", "host:"};

static bool has_hand_row(struct slice name)
{
    for (size_t i = 0; i < travel_count(); i++) {
        struct slice row = travel_row(i)->name;
        if (slice_eq(row, name))
            return true;
        if (row.at[row.len - 1] == '*' && name.len >= row.len - 1 &&
            memcmp(row.at, name.at, row.len - 1) == 0)
            return true;
    }
    return false;
}

static void hand_rows_are_about_known_commands(void **state)
{
    (void)state;
    for (size_t i = 0; i < travel_count(); i++) {
        char name[COMMAND_NAME_MAX + 1];
        snprintf(name, sizeof name, "%s", travel_row(i)->name.at);
        char *star = strstr(name, "|*");
        if (star)
            *star = '\0';
        if (!is_listed(name, facts, COUNT_OF(facts)) &&
            !is_listed(name, beyond_facts, COUNT_OF(beyond_facts)) &&
            !is_listed(name, of_others, COUNT_OF(of_others)))
            fail_msg("travel.def: %s is no command of Redis 7", name);
        if (star && !row_of(name)->has_subcommands)
            fail_msg("travel.def: %s has no subcommands", name);
    }
}

static void hand_rows_are_unique(void **state)
{
    (void)state;
    for (size_t i = 0; i < travel_count(); i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(travel_row(i)->name.at, travel_row(j)->name.at);
}

/*
 * A container without a subcommand gets an arity error from Redis. Real clients always send a
 * subcommand.
 */
static void all_that_redis_7_has_was_looked_at(void **state)
{
    (void)state;
    for (size_t id = 1; id < command_table_count(table); id++) {
        const struct command *row = command_table_row(table, id);
        if (!row->has_subcommands && row->flow != FLOW_OWN && !has_hand_row(name_of(row)))
            fail_msg("%s has no row in travel.def", row->name);
    }
}

static void facts_are_all_there(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(facts); i++)
        assert_string_equal(row_of(facts[i])->name, facts[i]);
    /* Row 0, weir's own, the facts, and some hand-written rows beyond the facts. */
    assert_int_equal(command_table_count(table),
                     1 + own_count() + COUNT_OF(facts) + COUNT_OF(beyond_facts));
    for (size_t i = 0; i < COUNT_OF(of_others); i++)
        assert_null(command_by_name(table, slice_str(of_others[i])));
}

static void facts_are_as_redis_says(void **state)
{
    (void)state;
    const struct command *get = row_of("get");
    assert_int_equal(get->arity, 2);
    assert_int_equal(get->flags, CMD_READONLY | CMD_FAST);
    assert_int_equal(get->first_key, 1);
    assert_int_equal(get->last_key, 1);
    assert_int_equal(get->key_step, 1);
    const struct command *mset = row_of("mset");
    assert_int_equal(mset->arity, -3);
    assert_int_equal(mset->last_key, -1);
    assert_int_equal(mset->key_step, 2);
    assert_int_equal(row_of("config|get")->flags, CMD_ADMIN | CMD_NOSCRIPT);
    assert_true(row_of("zunion")->flags & CMD_MOVABLEKEYS);
}

/* ---- how commands travel ---- */

/*
 * Every built-in command that moves its client to a private lane. A change of this list changes
 * what weir can multiplex, or what clients can do to each other.
 */
static const char *const private[] = {"multi",
                                      "exec",
                                      "discard",
                                      "watch",
                                      "unwatch",
                                      "subscribe",
                                      "psubscribe",
                                      "ssubscribe",
                                      "unsubscribe",
                                      "punsubscribe",
                                      "sunsubscribe",
                                      "monitor",
                                      "client|id",
                                      "client|info",
                                      "client|tracking",
                                      "client|caching",
                                      "client|no-evict",
                                      "client|no-touch",
                                      "client|list",
                                      "client|kill",
                                      "client|unblock",
                                      "client|unpause",
                                      "blpop",
                                      "brpop",
                                      "blmove",
                                      "blmpop",
                                      "brpoplpush",
                                      "bzpopmin",
                                      "bzpopmax",
                                      "bzmpop",
                                      "xread",
                                      "xreadgroup",
                                      "wait",
                                      "script|help",
                                      "script|exists",
                                      "script|flush",
                                      "script|kill",
                                      "function|kill",
                                      "function|stats",
                                      "acl|setuser",
                                      "config|set",
                                      "command|getkeys",
                                      "command|getkeysandflags",
                                      "save",
                                      "bgsave",
                                      "bgrewriteaof",
                                      "pfdebug",
                                      "pfselftest",
                                      "readonly",
                                      "flushall",
                                      "flushdb",
                                      "shutdown",
                                      "failover",
                                      "replicaof",
                                      "slaveof",
                                      "acl|cat",
                                      "acl|deluser",
                                      "acl|dryrun",
                                      "acl|genpass",
                                      "acl|getuser",
                                      "acl|help",
                                      "acl|list",
                                      "acl|log",
                                      "acl|users",
                                      "config|help",
                                      "config|resetstat",
                                      "config|rewrite",
                                      "function|delete",
                                      "function|dump",
                                      "function|flush",
                                      "latency|doctor",
                                      "latency|graph",
                                      "latency|help",
                                      "latency|histogram",
                                      "latency|history",
                                      "latency|latest",
                                      "latency|reset",
                                      "memory|doctor",
                                      "memory|help",
                                      "memory|malloc-stats",
                                      "memory|purge",
                                      "memory|stats",
                                      "slowlog|help",
                                      "slowlog|reset",
                                      "object|help",
                                      "xgroup|help",
                                      "xinfo|help",
                                      "post",
                                      "host:"};

/* Private commands with replies that may look like anything. */
static const char *const forging[] = {
    "eval", "eval_ro", "evalsha", "evalsha_ro", "fcall", "fcall_ro", "script|load", "script|debug",
    "function|load", "function|restore", "function|help", "function|list", "module|help",
    "module|list", "module|load", "module|loadex", "module|unload", "debug", "migrate", "sync",
    "psync", "replconf", "acl|load", "acl|save", "cluster|addslots", "cluster|addslotsrange",
    "cluster|bumpepoch", "cluster|count-failure-reports", "cluster|delslots",
    "cluster|delslotsrange", "cluster|failover", "cluster|flushslots", "cluster|forget",
    "cluster|getkeysinslot", "cluster|help", "cluster|keyslot", "cluster|links", "cluster|meet",
    "cluster|replicas", "cluster|replicate", "cluster|reset", "cluster|saveconfig",
    "cluster|set-config-epoch", "cluster|setslot", "cluster|slaves", "hrandfield", "zrandmember",
    "sdiff",
    /* containers without a subcommand */
    "acl", "cluster", "config", "function", "latency", "memory", "module", "object", "pubsub",
    "script", "slowlog", "xgroup", "xinfo"};

static void exactly_these_are_private(void **state)
{
    (void)state;
    for (size_t id = 1; id < command_table_count(table); id++) {
        const struct command *row = command_table_row(table, id);
        bool forges = is_listed(row->name, forging, COUNT_OF(forging));
        if (row->is_shareable == (forges || is_listed(row->name, private, COUNT_OF(private))))
            fail_msg("%s is %s", row->name, row->is_shareable ? "shareable" : "private");
        if (row->may_forge != forges)
            fail_msg("%s %s", row->name, row->may_forge ? "may forge" : "may not forge");
    }
}

static void exactly_these_pin(void **state)
{
    (void)state;
    static const char *const pinning[] = {"client|id", "client|info", "script|debug",
                                          "sync",      "psync",       "replconf"};
    for (size_t id = 0; id < command_table_count(table); id++) {
        const struct command *row = command_table_row(table, id);
        assert_int_equal(row->pins, is_listed(row->name, pinning, COUNT_OF(pinning)));
    }
}

static void no_star_is_shared(void **state)
{
    (void)state;
    for (size_t i = 0; i < travel_count(); i++) {
        const struct travel *row = travel_row(i);
        bool is_star = row->name.at[row->name.len - 1] == '*';
        if (is_star && (row->is_shareable || !row->may_forge))
            fail_msg("%s covers what nobody has looked at", row->name.at);
        assert_false(row->is_shareable &&
                     (row->may_forge || row->pins || row->blocks || row->is_urgent));
    }
}

static void exactly_these_block(void **state)
{
    (void)state;
    static const char *const blocking[] = {"blpop",  "brpop",      "blmove",   "brpoplpush",
                                           "blmpop", "bzpopmin",   "bzpopmax", "bzmpop",
                                           "xread",  "xreadgroup", "wait"};
    for (size_t id = 0; id < command_table_count(table); id++) {
        const struct command *row = command_table_row(table, id);
        assert_int_equal(row->blocks, is_listed(row->name, blocking, COUNT_OF(blocking)));
        assert_false(row->blocks && row->is_shareable);
    }
}

static void exactly_these_are_control(void **state)
{
    (void)state;
    static const char *const control[] = {
        "hello",     "auth",   "select",      "ping",         "echo",        "time",
        "quit",      "reset",  "info",        "role",         "readonly",    "asking",
        "multi",     "exec",   "discard",     "watch",        "unwatch",     "command",
        "readwrite", "client", "unsubscribe", "punsubscribe", "sunsubscribe"};
    static const char *const limited_clients[] = {"client|kill", "client|pause", "client|list",
                                                  "client|unblock"};
    for (size_t id = 0; id < command_table_count(table); id++) {
        const struct command *row = command_table_row(table, id);
        char top[COMMAND_NAME_MAX + 1];
        snprintf(top, sizeof top, "%.*s", (int)strcspn(row->name, "|"), row->name);
        bool expected = is_listed(top, control, COUNT_OF(control)) &&
                        !is_listed(row->name, limited_clients, COUNT_OF(limited_clients));
        if (row->flow != FLOW_OWN && expected != ((row->flags & CMD_CONTROL) != 0))
            fail_msg("%s: control is %d", row->name, !expected);
    }
}

static void only_one_reply_is_shareable(void **state)
{
    (void)state;
    static const char *const kept_by_weir[] = {"quit",           "auth",        "hello",
                                               "select",         "reset",       "client|getname",
                                               "client|setname", "client|reply"};
    for (size_t id = 0; id < command_table_count(table); id++) {
        const struct command *row = command_table_row(table, id);
        if (!row->is_shareable || row->flow == FLOW_OWN ||
            is_listed(row->name, kept_by_weir, COUNT_OF(kept_by_weir)))
            continue;
        bool is_of_others = row->effect == EFFECT_ADMIT || row->effect == EFFECT_PAUSE ||
                            row->effect == EFFECT_COMMAND || row->effect == EFFECT_INFO;
        assert_int_equal(row->flow, FLOW_ONE);
        /*
         * No shareable command changes what Redis remembers of its connection, apart from the
         * library's name.
         */
        assert_true(row->effect == EFFECT_NONE || row->effect == EFFECT_LIBRARY || is_of_others);
    }
}

/*
 * CLIENT PAUSE ... WRITE delays these commands: writes, and commands that Redis flags as "may
 * replicate" without listing the flag.
 */
static void exactly_these_are_pausable(void **state)
{
    (void)state;
    static const char *const others[] = {"publish", "spublish", "pfcount"};
    for (size_t id = 0; id < command_table_count(table); id++) {
        const struct command *row = command_table_row(table, id);
        bool is_listed_here = is_listed(row->name, others, COUNT_OF(others));
        assert_int_equal(row->is_pausable, is_listed_here || (row->flags & CMD_WRITE) != 0);
        assert_true(!is_listed_here || row->is_shareable);
    }
}

static void exactly_these_are_urgent(void **state)
{
    (void)state;
    static const char *const urgent[] = {"client|unpause", "script|kill", "function|kill",
                                         "function|stats", "shutdown"};
    for (size_t id = 0; id < command_table_count(table); id++) {
        const struct command *row = command_table_row(table, id);
        assert_int_equal(row->is_urgent, is_listed(row->name, urgent, COUNT_OF(urgent)));
    }
}

static void flows_and_effects(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum flow flow;
        enum effect effect;
    } rows[] = {
        {"get", FLOW_ONE, EFFECT_NONE},
        {"auth", FLOW_ONE, EFFECT_AUTH},
        {"hello", FLOW_ONE, EFFECT_HELLO},
        {"select", FLOW_ONE, EFFECT_SELECT},
        {"client|setname", FLOW_ONE, EFFECT_NAME},
        {"client|setinfo", FLOW_ONE, EFFECT_LIBRARY},
        {"reset", FLOW_ONE, EFFECT_RESET},
        {"config|set", FLOW_ONE, EFFECT_ADMIT},
        {"config|get", FLOW_ONE, EFFECT_NONE},
        {"acl|setuser", FLOW_ONE, EFFECT_ADMIT},
        {"acl|load", FLOW_ONE, EFFECT_ADMIT},
        {"acl|whoami", FLOW_ONE, EFFECT_NONE},
        {"client|pause", FLOW_ONE, EFFECT_PAUSE},
        {"client|unpause", FLOW_ONE, EFFECT_UNPAUSE},
        {"multi", FLOW_ONE, EFFECT_MULTI},
        {"exec", FLOW_ONE, EFFECT_EXEC},
        {"discard", FLOW_ONE, EFFECT_DISCARD},
        {"watch", FLOW_ONE, EFFECT_WATCH},
        {"unwatch", FLOW_ONE, EFFECT_UNWATCH},
        {"client|tracking", FLOW_ONE, EFFECT_TRACKING},
        {"subscribe", FLOW_SUBSCRIBE, EFFECT_NONE},
        {"psubscribe", FLOW_SUBSCRIBE, EFFECT_NONE},
        {"ssubscribe", FLOW_SUBSCRIBE, EFFECT_NONE},
        {"unsubscribe", FLOW_UNSUBSCRIBE, EFFECT_NONE},
        {"punsubscribe", FLOW_UNSUBSCRIBE, EFFECT_NONE},
        {"sunsubscribe", FLOW_UNSUBSCRIBE, EFFECT_NONE},
        {"monitor", FLOW_MONITOR, EFFECT_NONE},
        {"client|reply", FLOW_REPLY, EFFECT_NONE},
        {"sync", FLOW_PASSTHROUGH, EFFECT_NONE},
        {"psync", FLOW_PASSTHROUGH, EFFECT_NONE},
        {"replconf", FLOW_PASSTHROUGH, EFFECT_NONE},
        {"quit", FLOW_QUIT, EFFECT_NONE},
        {"post", FLOW_DROP, EFFECT_NONE},
        {"host:", FLOW_DROP, EFFECT_NONE},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(row_of(rows[i].name)->flow, rows[i].flow);
        assert_int_equal(row_of(rows[i].name)->effect, rows[i].effect);
    }
}

/* Adds a command that weir does not know, with these flags. */
static const struct command *newcomer(struct command_table *in, const char *name, uint16_t flags)
{
    command_table_add(in,
                      &(struct command_info){.name = slice_str(name), .arity = 2, .flags = flags});
    return command_find(in, slice_str(name), NOTHING);
}

static void newcomers_travel_alone(void **state)
{
    (void)state;
    static const uint16_t flags[] = {0,
                                     CMD_WRITE,
                                     CMD_READONLY,
                                     CMD_NOSCRIPT,
                                     CMD_PUBSUB,
                                     CMD_BLOCKING,
                                     CMD_MODULE | CMD_READONLY,
                                     CMD_ADMIN,
                                     CMD_NO_AUTH,
                                     CMD_FAST,
                                     CMD_READONLY | CMD_BLOCKING,
                                     CMD_READONLY | CMD_FAST};
    struct command_table *own = command_table_new();
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        const struct command *row = newcomer(own, "newcomer", flags[i]);
        assert_false(row->is_shareable);
        assert_true(row->may_forge);
        assert_int_equal(row->flow, FLOW_ONE);
        assert_int_equal(row->blocks, (flags[i] & CMD_BLOCKING) != 0);
        assert_int_equal(row->pins, (flags[i] & CMD_MODULE) != 0);
    }
    command_table_put(own);
}

/*
 * A data command is shared only if the server's flags agree: the server may use the name for
 * another command.
 */
static void flags_speak_against_a_row(void **state)
{
    (void)state;
    static const uint16_t against[] = {CMD_NOSCRIPT, CMD_BLOCKING, CMD_PUBSUB, CMD_ADMIN,
                                       CMD_MODULE};
    struct command_table *own = command_table_new();
    assert_true(newcomer(own, "get", CMD_READONLY | CMD_FAST)->is_shareable);
    assert_true(newcomer(own, "hexpire", CMD_WRITE | CMD_FAST)->is_shareable);
    assert_false(newcomer(own, "get", CMD_FAST)->is_shareable);
    for (size_t i = 0; i < COUNT_OF(against); i++) {
        const struct command *row = newcomer(own, "hexpire", CMD_WRITE | against[i]);
        assert_false(row->is_shareable);
        assert_true(row->may_forge);
    }
    assert_true(newcomer(own, "ping", CMD_FAST)->is_shareable);
    assert_false(newcomer(own, "ping", CMD_FAST | CMD_MODULE)->is_shareable);
    command_table_put(own);
}

static void newcomers_cannot_call_themselves_control(void **state)
{
    (void)state;
    struct command_table *own = command_table_new();
    assert_false(newcomer(own, "mine", CMD_READONLY | CMD_CONTROL)->flags & CMD_CONTROL);
    command_table_put(own);
}

static void a_later_subcommand_follows_its_container(void **state)
{
    (void)state;
    struct command_table *own = command_table_builtin();
    command_table_add(own,
                      &(struct command_info){.name = SLICE("client|capa"), .flags = CMD_NOSCRIPT});
    command_table_add(
        own, &(struct command_info){.name = SLICE("cluster|slot-stats"), .flags = CMD_READONLY});
    const struct command *capa = command_find(own, SLICE("CLIENT"), SLICE("CAPA"));
    assert_string_equal(capa->name, "client|capa");
    assert_false(capa->is_shareable);
    assert_true(capa->pins);
    assert_true(capa->may_forge);
    assert_true(capa->flags & CMD_CONTROL);
    const struct command *slot_stats = command_find(own, SLICE("CLUSTER"), SLICE("SLOT-STATS"));
    assert_string_equal(slot_stats->name, "cluster|slot-stats");
    assert_false(slot_stats->is_shareable);
    assert_true(slot_stats->may_forge);
    command_table_put(own);
}

/*
 * Clients send CLIENT SETINFO to any server. An old server replies with an error, which has no
 * effect.
 */
static void a_subcommand_that_the_server_does_not_list(void **state)
{
    (void)state;
    const struct command *setinfo = find("CLIENT", "SETINFO");
    assert_true(setinfo->is_shareable);
    assert_true(setinfo->flags & CMD_CONTROL);
    const struct command *capa = find("CLIENT", "CAPA");
    assert_int_equal(capa->id, 0);
    assert_false(capa->is_shareable);
    assert_false(capa->pins);
    assert_true(capa->may_forge);
    assert_int_equal(find("OBJECT", "NOSUCH")->id, 0);
}

/* ---- lookup ---- */

static void every_row_is_found_in_any_case(void **state)
{
    (void)state;
    for (size_t id = 1; id < command_table_count(table); id++) {
        const struct command *row = command_table_row(table, id);
        char upper[COMMAND_NAME_MAX + 1];
        char mixed[COMMAND_NAME_MAX + 1];
        for (size_t i = 0; i <= row->name_len; i++) {
            char c = row->name[i];
            upper[i] = c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
            mixed[i] = i % 2 ? upper[i] : c;
        }
        assert_ptr_equal(find_words(table, name_of(row)), row);
        assert_ptr_equal(find_words(table, slice_of(upper, row->name_len)), row);
        assert_ptr_equal(find_words(table, slice_of(mixed, row->name_len)), row);
        assert_ptr_equal(command_by_name(table, name_of(row)), row);
    }
}

static void ids_are_dense(void **state)
{
    (void)state;
    for (size_t id = 0; id < command_table_count(table); id++)
        assert_int_equal(command_table_row(table, id)->id, id);
}

static void unknown_is_row_0(void **state)
{
    (void)state;
    const struct command *unknown = command_table_row(table, 0);
    assert_string_equal(unknown->name, "");
    assert_false(unknown->is_shareable);
    assert_true(unknown->may_forge);
    assert_int_equal(unknown->flow, FLOW_ONE);
    assert_int_equal(unknown->flags, 0);
    assert_ptr_equal(find("nosuch", NULL), unknown);
    assert_ptr_equal(find("", NULL), unknown);
    assert_ptr_equal(find("", "get"), unknown);
    assert_ptr_equal(command_find(table, NOTHING, NOTHING), unknown);
    assert_ptr_equal(find("config", "nosuch"), unknown);
    assert_ptr_equal(find("config", "get|x"), unknown);
    assert_ptr_equal(find("client|*", NULL), unknown);
    assert_ptr_equal(find("client", "*"), unknown);
    assert_null(command_by_name(table, SLICE("")));
    assert_null(command_by_name(table, SLICE("nosuch")));
}

static void only_ascii_is_folded(void **state)
{
    (void)state;
    assert_string_equal(find("GeT", NULL)->name, "get");
    assert_string_equal(find("gEt", "x")->name, "get");
    assert_int_equal(find("g\xc5t", NULL)->id, 0);
    assert_int_equal(find("`et", NULL)->id, 0);
    assert_int_equal(find("eval\x7f", NULL)->id, 0);
    assert_int_equal(find("eval\x1fro", NULL)->id, 0);
    assert_int_equal(find("eval?ro", NULL)->id, 0);
}

static void containers(void **state)
{
    (void)state;
    assert_string_equal(find("CONFIG", "GET")->name, "config|get");
    assert_true(find("CONFIG", "GET")->in_container);
    assert_string_equal(find("client", NULL)->name, "client");
    assert_true(find("client", NULL)->has_subcommands);
    assert_string_equal(find("client", "")->name, "client");
    assert_string_equal(find("command", NULL)->name, "command");
    assert_string_equal(find("command", "docs")->name, "command|docs");
    assert_int_equal(find("config|get", NULL)->id, 0);
    assert_int_equal(find("config|get", "get")->id, 0);
    assert_int_equal(find("config|", "get")->id, 0);
    assert_false(find("get", NULL)->has_subcommands);
}

static void a_nul_never_matches(void **state)
{
    (void)state;
    assert_int_equal(command_find(table, SLICE("get\0"), NOTHING)->id, 0);
    assert_int_equal(command_find(table, SLICE("\0get"), NOTHING)->id, 0);
    assert_int_equal(command_find(table, SLICE("g\0et"), NOTHING)->id, 0);
    assert_int_equal(command_find(table, SLICE("\0"), NOTHING)->id, 0);
    assert_int_equal(command_find(table, SLICE("config"), SLICE("get\0"))->id, 0);
    assert_int_equal(command_find(table, SLICE("config\0"), SLICE("get"))->id, 0);
}

/* The names are at the end of their memory, so that a sanitizer reports a read past the end. */
static void names_of_every_length(void **state)
{
    (void)state;
    for (size_t len = 0; len <= 3 * COMMAND_NAME_MAX; len++) {
        char *text = malloc(len + 1);
        memset(text, 'x', len + 1);
        assert_int_equal(command_find(table, slice_of(text + 1, len), NOTHING)->id, 0);
        assert_int_equal(
            command_find(table, SLICE("config"), slice_of(text + 1, len))->in_container, false);
        assert_null(command_by_name(table, slice_of(text + 1, len)));
        free(text);
    }
}

static void the_longest_name(void **state)
{
    (void)state;
    char longest[COMMAND_NAME_MAX + 2];
    memset(longest, 'x', sizeof longest);
    struct command_table *own = command_table_new();
    size_t n = command_table_count(own);
    command_table_add(own, &(struct command_info){.name = slice_of(longest, COMMAND_NAME_MAX)});
    assert_int_equal(command_table_count(own), n + 1);
    assert_int_equal(command_find(own, slice_of(longest, COMMAND_NAME_MAX), NOTHING)->id, n);
    command_table_add(own, &(struct command_info){.name = slice_of(longest, COMMAND_NAME_MAX + 1)});
    command_table_add(own, &(struct command_info){.name = SLICE("")});
    assert_int_equal(command_table_count(own), n + 1);
    command_table_put(own);
}

/* ---- building ---- */

static void a_new_table_knows_what_weir_answers(void **state)
{
    (void)state;
    struct command_table *own = command_table_new();
    assert_int_equal(command_find(own, SLICE("QUIT"), NOTHING)->flow, FLOW_QUIT);
    assert_true(command_find(own, SLICE("QUIT"), NOTHING)->flags & CMD_NO_AUTH);
    assert_int_equal(command_find(own, SLICE("Post"), NOTHING)->flow, FLOW_DROP);
    assert_int_equal(command_find(own, SLICE("Host:"), NOTHING)->flow, FLOW_DROP);
    assert_int_equal(command_find(own, SLICE("get"), NOTHING)->id, 0);
    command_table_put(own);
}

static void adding_twice_replaces(void **state)
{
    (void)state;
    const struct slice first[] = {SLICE("one"), SLICE("two")};
    const struct slice second[] = {SLICE("TWO"), SLICE("three")};
    struct command_table *own = command_table_new();
    command_table_add(own, &(struct command_info){.name = SLICE("FT.Search"),
                                                  .arity = -3,
                                                  .flags = CMD_READONLY,
                                                  .categories = first,
                                                  .n_categories = 2});
    size_t n = command_table_count(own);
    size_t bits = command_table_categories(own);
    uint16_t id = command_find(own, SLICE("ft.search"), NOTHING)->id;
    command_table_add(own, &(struct command_info){.name = SLICE("ft.search"),
                                                  .arity = 4,
                                                  .first_key = 1,
                                                  .last_key = INT64_MAX,
                                                  .key_step = INT64_MIN,
                                                  .flags = CMD_WRITE | CMD_MODULE,
                                                  .categories = second,
                                                  .n_categories = 2});
    const struct command *row = command_find(own, SLICE("FT.SEARCH"), NOTHING);
    assert_int_equal(command_table_count(own), n);
    assert_int_equal(command_table_categories(own), bits + 1);
    assert_int_equal(row->id, id);
    assert_int_equal(row->arity, 4);
    assert_int_equal(row->flags, CMD_WRITE | CMD_MODULE);
    assert_int_equal(row->last_key, INT16_MAX);
    assert_int_equal(row->key_step, INT16_MIN);
    assert_false(row->is_shareable);
    assert_true(row->categories == (UINT64_C(3) << (bits - 1)));
    assert_true(slice_eq(command_table_category(own, bits), SLICE("three")));
    command_table_put(own);
}

/* Redis 6.2 lists "client" alone. */
static void a_container_brings_its_subcommands(void **state)
{
    (void)state;
    struct command_table *own = command_table_new();
    command_table_add(
        own, &(struct command_info){.name = SLICE("client"), .arity = -2, .flags = CMD_ADMIN});
    assert_int_equal(command_find(own, SLICE("client"), SLICE("reply"))->flow, FLOW_REPLY);
    assert_int_equal(command_find(own, SLICE("client"), SLICE("setname"))->effect, EFFECT_NAME);
    assert_int_equal(command_find(own, SLICE("client"), SLICE("setinfo"))->flow, FLOW_ONE);
    assert_true(command_find(own, SLICE("client"), SLICE("setinfo"))->is_shareable);
    assert_int_equal(command_find(own, SLICE("config"), SLICE("get"))->id, 0);
    command_table_put(own);
}

static void subcommands_may_come_before_their_container(void **state)
{
    (void)state;
    struct command_table *own = command_table_new();
    command_table_add(own,
                      &(struct command_info){.name = SLICE("box|open"), .flags = CMD_READONLY});
    assert_int_equal(command_find(own, SLICE("box"), SLICE("open"))->id, 0);
    command_table_add(own, &(struct command_info){.name = SLICE("box")});
    assert_string_equal(command_find(own, SLICE("box"), SLICE("open"))->name, "box|open");
    assert_string_equal(command_find(own, SLICE("box"), NOTHING)->name, "box");
    command_table_put(own);
}

static void a_large_table(void **state)
{
    (void)state;
    enum { MANY = 3000 };
    char name[32];
    struct command_table *own = command_table_builtin();
    size_t before = command_table_count(own);
    for (int i = 0; i < MANY; i++) {
        int len = snprintf(name, sizeof name, "mod.%d", i);
        command_table_add(
            own, &(struct command_info){.name = slice_of(name, (size_t)len), .flags = CMD_MODULE});
    }
    assert_int_equal(command_table_count(own), before + MANY);
    for (size_t id = 1; id < command_table_count(own); id++)
        assert_int_equal(find_words(own, name_of(command_table_row(own, id)))->id, id);
    command_table_put(own);
}

static void categories_are_interned(void **state)
{
    (void)state;
    /* @limit, @limit-read, @limit-write */
    assert_int_equal(command_table_categories(table), 21 + 3);
    for (size_t id = 1; id < command_table_count(table); id++) {
        const struct command *row = command_table_row(table, id);
        for (size_t bit = 0; bit < command_table_categories(table); bit++)
            if (slice_eq(command_table_category(table, bit), SLICE("write")))
                assert_int_equal(row->categories >> bit & 1, (row->flags & CMD_WRITE) != 0);
    }
}

static void categories_past_the_last_bit_are_forgotten(void **state)
{
    (void)state;
    char text[70][8];
    struct slice categories[70];
    for (int i = 0; i < 70; i++)
        categories[i] = slice_of(text[i], (size_t)snprintf(text[i], sizeof text[i], "c%d", i));
    struct command_table *own = command_table_new();
    command_table_add(own, &(struct command_info){
                               .name = SLICE("x"), .categories = categories, .n_categories = 70});
    assert_int_equal(command_table_categories(own), 64);
    command_table_put(own);
}

static void flags_by_name(void **state)
{
    (void)state;
    assert_int_equal(command_flag(SLICE("readonly")), CMD_READONLY);
    assert_int_equal(command_flag(SLICE("no_auth")), CMD_NO_AUTH);
    assert_int_equal(command_flag(SLICE("stale")), 0);
    assert_int_equal(command_flag(SLICE("")), 0);
}

static void the_last_reference_frees(void **state)
{
    (void)state;
    struct command_table *own = command_table_builtin();
    assert_ptr_equal(command_table_get(own), own);
    command_table_put(own);
    assert_string_equal(command_find(own, SLICE("get"), NOTHING)->name, "get");
    command_table_put(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hand_rows_are_about_known_commands),
        cmocka_unit_test(hand_rows_are_unique),
        cmocka_unit_test(all_that_redis_7_has_was_looked_at),
        cmocka_unit_test(facts_are_all_there),
        cmocka_unit_test(facts_are_as_redis_says),
        cmocka_unit_test(exactly_these_are_private),
        cmocka_unit_test(exactly_these_pin),
        cmocka_unit_test(no_star_is_shared),
        cmocka_unit_test(exactly_these_block),
        cmocka_unit_test(exactly_these_are_control),
        cmocka_unit_test(only_one_reply_is_shareable),
        cmocka_unit_test(exactly_these_are_urgent),
        cmocka_unit_test(exactly_these_are_pausable),
        cmocka_unit_test(flows_and_effects),
        cmocka_unit_test(newcomers_travel_alone),
        cmocka_unit_test(flags_speak_against_a_row),
        cmocka_unit_test(newcomers_cannot_call_themselves_control),
        cmocka_unit_test(a_later_subcommand_follows_its_container),
        cmocka_unit_test(a_subcommand_that_the_server_does_not_list),
        cmocka_unit_test(every_row_is_found_in_any_case),
        cmocka_unit_test(ids_are_dense),
        cmocka_unit_test(unknown_is_row_0),
        cmocka_unit_test(only_ascii_is_folded),
        cmocka_unit_test(containers),
        cmocka_unit_test(a_nul_never_matches),
        cmocka_unit_test(names_of_every_length),
        cmocka_unit_test(the_longest_name),
        cmocka_unit_test(a_new_table_knows_what_weir_answers),
        cmocka_unit_test(adding_twice_replaces),
        cmocka_unit_test(a_container_brings_its_subcommands),
        cmocka_unit_test(subcommands_may_come_before_their_container),
        cmocka_unit_test(a_large_table),
        cmocka_unit_test(categories_are_interned),
        cmocka_unit_test(categories_past_the_last_bit_are_forgotten),
        cmocka_unit_test(flags_by_name),
        cmocka_unit_test(the_last_reference_frees),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
