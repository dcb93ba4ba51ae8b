/*
 * Operators' commands, sent by operators and by other clients. Limits can be shown and changed.
 * Each key of a named limit has the rate that was set last.
 */
#include <stdio.h>
#include <string.h>

#include "base/slice.h"
#include "tests/sim/ops.h"
#include "tests/sim/regime.h"
#include "tests/sim/run.h"

#define WORDS_MAX 12
#define GATES 2       /* named limits: gate0, gate1 */
#define GATE_COUNT 50 /* rate of each named limit, unless the key has its own rate */

static bool is_operator(const struct client *client)
{
    return run.plan.operators == OPERATORS_ALL ||
           (run.plan.operators == OPERATORS_USER && client->session.user == OPERATOR);
}

#define NOT_FOR_YOU "NOPERM this command is for operators"

/* Sends the line, split at blanks. */
static void say_line(struct client *client, const struct act *act, const char *line)
{
    struct slice words[WORDS_MAX];
    unsigned n = 0;
    for (const char *at = line; *at != '\0';
         at += at[words[n - 1].len] == ' ' ? words[n - 1].len + 1 : words[n - 1].len)
        words[n++] = slice_of(at, strcspn(at, " "));
    say_begin(client, n);
    for (unsigned i = 0; i < n; i++)
        say_word(client, words[i]);
    expect(client, act);
}

/* ---- admin commands, and the form of their replies ---- */

enum form { AN_ERROR, AN_OK, A_NUMBER, A_LIST, OK_OR_ERROR, NUMBER_OR_ERROR, A_MODE, ENTRIES };

static const struct order_form {
    const char *line;
    enum form form;
    const char *begins; /* start of the error */
} orders[] = {
    {"LIMIT LIST", ENTRIES, "limit"},
    {"LIMIT LIST nothing", A_LIST, NULL},
    {"LIMIT LIST def* REFUSING", A_LIST, NULL},
    {"LIMIT LIST x REFUSING y", AN_ERROR, "ERR syntax error, "},
    {"LIMIT TOP", ENTRIES, "subject"},
    {"LIMIT TOP 2 BY refused", ENTRIES, "subject"},
    {"LIMIT TOP 1000 by Bytes", ENTRIES, "subject"},
    {"LIMIT TOP BY limited", ENTRIES, "key"},
    {"LIMIT TOP 0", AN_ERROR, "ERR value is not an integer or out of range"},
    {"LIMIT TOP x", AN_ERROR, "ERR value is not an integer or out of range"},
    {"LIMIT TOP BY", AN_ERROR, "ERR syntax error, an argument is missing after 'BY'"},
    {"LIMIT TOP 3 OF bytes", AN_ERROR, "ERR syntax error, unexpected 'OF'"},
    {"LIMIT TOP BY size", AN_ERROR, "ERR syntax error, unexpected 'size'"},
    {"LIMIT TOP BY bytes x", AN_ERROR, "ERR syntax error, unexpected 'x'"},
    {"LIMIT SUGGEST", A_LIST, NULL},
    {"LIMIT SUGGEST default CLASS read", A_LIST, NULL},
    {"LIMIT SUGGEST nobody", AN_ERROR, "ERR no policy nobody"},
    {"LIMIT SUGGEST default OF read", AN_ERROR, "ERR syntax error, unexpected 'OF'"},
    {"LIMIT LOG", ENTRIES, "id"},
    {"LIMIT LOG 3", ENTRIES, "id"},
    {"LIMIT LOG 99999", ENTRIES, "id"},
    {"LIMIT LOG -1", AN_ERROR, "ERR value is not an integer or out of range"},
    {"LIMIT LOG 1 2", AN_ERROR, "ERR syntax error, unexpected '2'"},
    {"LIMIT SLOWLOG GET", A_LIST, NULL},
    {"LIMIT SLOWLOG get 2", A_LIST, NULL},
    {"LIMIT SLOWLOG GET -1", A_LIST, NULL},
    {"LIMIT SLOWLOG GET 0", A_LIST, NULL},
    {"LIMIT SLOWLOG GET -2", AN_ERROR, "ERR count should be greater than or equal to -1"},
    {"LIMIT SLOWLOG GET x", AN_ERROR, "ERR value is not an integer or out of range"},
    {"LIMIT SLOWLOG GET 1 2", AN_ERROR, "ERR unknown subcommand or wrong number of arguments"},
    {"LIMIT SLOWLOG LEN", A_NUMBER, NULL},
    {"LIMIT SLOWLOG LEN 1", AN_ERROR, "ERR unknown subcommand or wrong number of arguments"},
    {"LIMIT SLOWLOG RESET", AN_OK, NULL},
    {"LIMIT SLOWLOG HELP", A_LIST, NULL},
    {"LIMIT SET default cmd.zrevrange 70/s burst 3, 1000/h over shadow", AN_OK, NULL},
    {"LIMIT SET default cmd.zscore deny", AN_OK, NULL},
    {"LIMIT SET default cmd.zrevrange nothing", AN_ERROR, "ERR [policy default] cmd.zrevrange: "},
    {"LIMIT SET defualt cmd.zrevrange 1/s", AN_ERROR,
     "ERR no policy defualt (did you mean default?)"},
    {"LIMIT SET xyzzy cmd.zrevrange 1/s", AN_ERROR, "ERR no policy xyzzy"},
    {"LIMIT SET default admin yes", AN_ERROR, "ERR admin is not a limit"},
    {"LIMIT SET default cmd.zrevrange 1/s\n2/s", AN_ERROR,
     "ERR a configuration cannot contain control characters"},
    {"LIMIT SET LIMIT spare sliding 7/1d", AN_OK, NULL},
    {"LIMIT SET LIMIT spare over = shadow", AN_OK, NULL},
    {"LIMIT SET LIMIT spare fixed = 8/1d, 9/2d", AN_OK, NULL},
    {"LIMIT SET LIMIT spare over = refuse", AN_OK, NULL},
    {"LIMIT SET LIMIT spare over = maybe", AN_ERROR,
     "ERR [limit spare] over: \"maybe\" is neither refuse nor shadow"},
    {"LIMIT SET LIMIT spare ovr = shadow", AN_ERROR,
     "ERR [limit spare] ovr: unknown key (did you mean over?)"},
    {"LIMIT SET LIMIT spare when-down = local", AN_OK, NULL},
    {"LIMIT SET LIMIT spare when-down = maybe", AN_ERROR,
     "ERR [limit spare] when-down: \"maybe\" is neither error"},
    {"LIMIT SET LIMIT spare penalty = 0s", AN_ERROR,
     "ERR [limit spare] penalty: a penalty of 0 has no effect"},
    {"LIMIT SET LIMIT spare tz = UTC", AN_ERROR,
     "ERR [limit spare]: tz needs a rate by the calendar"},
    {"LIMIT SET LIMIT spare slidng 7/1d", AN_ERROR,
     "ERR [limit spare] slidng: unknown algorithm \"slidng\" (did you mean"},
    {"LIMIT SET LIMIT spare xyzzyx 7/1d", AN_ERROR,
     "ERR [limit spare] xyzzyx: unknown algorithm \"xyzzyx\": write"},
    {"LIMIT SET LIMIT spare sliding 7/1d burst 3", AN_ERROR,
     "ERR [limit spare] sliding: sliding has no burst"},
    {"LIMIT SET LIMIT spare sliding 10001/1d", AN_ERROR,
     "ERR [limit spare] sliding: an exact sliding window counts"},
    {"LIMIT SET LIMIT spare sliding 5/day", AN_ERROR,
     "ERR [limit spare] sliding: day, week and month are for FIXED"},
    {"LIMIT SET LIMIT spare funnel 7/1d burst", AN_ERROR,
     "ERR [limit spare] funnel: \"burst\" is the last word"},
    {"LIMIT SET LIMIT spare funnel 7/1d burst 0", AN_ERROR,
     "ERR [limit spare] funnel: a burst of 0 never lets "
     "anything pass"},
    {"LIMIT SET LIMIT spare funnel 7/1d burst x", AN_ERROR,
     "ERR [limit spare] funnel: \"x\" is not a count"},
    {"LIMIT SET LIMIT spare funnel 7/1d burst 2 burst 3", AN_ERROR,
     "ERR [limit spare] funnel: \"burst\" is given twice"},
    {"LIMIT SET LIMIT spare funnel 7/1d brst 3", AN_ERROR,
     "ERR [limit spare] funnel: unknown clause \"brst\""},
    {"LIMIT SET LIMIT spare funnel ,", AN_ERROR, "ERR [limit spare] funnel: a rate is missing"},
    {"LIMIT SET LIMIT spare sliding 1/d,2/d,3/d,4/d,5/d,6/d,7/d,8/d,9/d", AN_ERROR,
     "ERR [limit spare] sliding: too many rates: at most 8"},
    {"LIMIT SET LIMIT spare sliding", AN_ERROR, "ERR write a key and its value"},
    {"LIMIT SET LIMIT spare sliding =", AN_ERROR, "ERR write a key and its value"},
    {"LIMIT SET LIMIT gate sliding 7/1d", AN_ERROR,
     "ERR no limit is named gate (did you mean gate0?)"},
    {"LIMIT SET LIMIT gate0 funnel 7/1d FOR k", AN_ERROR,
     "ERR [limit gate0] has the algorithm sliding"},
    {"LIMIT SET LIMIT gate0 over shadow FOR k", AN_ERROR,
     "ERR [limit gate0] over: a single key takes only rates"},
    {"LIMIT SET LIMIT gate0 sliding 0/s FOR k", AN_ERROR, "ERR [limit gate0] sliding: "},
    {"LIMIT SET LIMIT gate0 sliding 1/s FOR k EX 0s", AN_ERROR,
     "ERR EX: the time must be longer than 0"},
    {"LIMIT SET LIMIT gate0 sliding 1/s FOR k EX x", AN_ERROR, "ERR EX: "},
    {"LIMIT SET LIMIT gate0 sliding 1/s FOR k\tk", AN_ERROR,
     "ERR a command cannot contain control characters"},
    {"LIMIT UNSET default cmd.zrevrange", OK_OR_ERROR,
     "ERR policy default has no limit cmd.zrevrange"},
    {"LIMIT UNSET default cmd.zscore", OK_OR_ERROR, "ERR policy default has no limit cmd.zscore"},
    {"LIMIT UNSET nonesuch all", AN_ERROR, "ERR no policy nonesuch"},
    {"LIMIT UNSET LIMIT gate0 FOR nobody", AN_ERROR,
     "ERR limit gate0 has no rates for the key nobody"},
    {"LIMIT UNSET LIMIT nonesuch FOR nobody", AN_ERROR, "ERR no limit is named nonesuch"},
    {"LIMIT UNSET LIMIT gate0 OF nobody", AN_ERROR, "ERR syntax error, unexpected 'OF'"},
    {"LIMIT UNSET LIMIT gate0 FOR", AN_ERROR,
     "ERR syntax error, an argument is missing after 'FOR'"},
    {"LIMIT UNSET LIMIT gate0 FOR a b", AN_ERROR, "ERR syntax error, unexpected 'b'"},
    {"LIMIT DIFF", ENTRIES, "section"},
    {"LIMIT MODE", A_MODE, NULL},
    {"LIMIT MODE shadow", AN_OK, NULL},
    {"LIMIT MODE ENFORCE", AN_OK, NULL},
    {"LIMIT MODE enforce", AN_OK, NULL},
    {"LIMIT MODE off", AN_ERROR, "ERR [weir] mode: "},
    {"LIMIT FORGIVE user:u2", NUMBER_OR_ERROR, "ERR "},
    {"LIMIT FORGIVE ip:10.0.0.1", NUMBER_OR_ERROR, "ERR "},
    {"LIMIT RELOAD", AN_OK, NULL},
};
#define N_ORDERS (sizeof orders / sizeof orders[0])

static void say_order(struct client *client, struct act *act)
{
    say_line(client, act, orders[act->a % N_ORDERS].line);
}

/* Maps, or arrays in RESP2, that all begin with this name. */
static const char *judge_entries(const struct client *client, const struct reply *reply,
                                 const char *name)
{
    struct slice inside = reply->inside;
    struct reply entry, first;
    if (reply->type != '*' || reply->is_nil)
        return "it is no list";
    while (reply_next(&inside, &entry))
        if (entry.type != (client->session.is_resp3 ? '%' : '*') || !reply_at(&entry, 0, &first) ||
            !reply_is(&first, '$', slice_str(name)))
            return "an entry that does not belong here";
    return NULL;
}

static const char *judge_form(const struct client *client, const struct order_form *order,
                              const struct reply *reply)
{
    bool is_error = order->begins != NULL && reply_begins(reply, '-', slice_str(order->begins));
    switch (order->form) {
    case AN_ERROR:
        return is_error ? NULL : "not the error that there is for it";
    case AN_OK:
        return reply_is_ok(reply) ? NULL : "it is not OK";
    case OK_OR_ERROR:
        return reply_is_ok(reply) || is_error ? NULL
                                              : "neither done, nor the error that there is for it";
    case NUMBER_OR_ERROR:
        return (reply->type == ':' && reply->number >= 0) || is_error
                   ? NULL
                   : "neither a number, nor the error that there is for it";
    case A_NUMBER:
        return reply->type == ':' && reply->number >= 0 ? NULL : "it is no number";
    case A_LIST:
        return reply->type == '*' && !reply->is_nil ? NULL : "it is no list";
    case A_MODE:
        return reply_is(reply, '$', SLICE("enforce")) || reply_is(reply, '$', SLICE("shadow"))
                   ? NULL
                   : "it is no mode";
    case ENTRIES:
        return judge_entries(client, reply, order->begins);
    }
    return "no form";
}

/* True if RELOAD or DIFF fails because of the file. */
static bool is_of_bad_file(const struct act *act, const struct reply *reply)
{
    bool is_reload = strcmp(orders[act->a % N_ORDERS].line, "LIMIT RELOAD") == 0;
    bool is_diff = strcmp(orders[act->a % N_ORDERS].line, "LIMIT DIFF") == 0;
    if (regime_was_filed(act->read_ns))
        return false;
    return (is_reload && reply_begins(reply, '-', SLICE("ERR configuration not reloaded: "))) ||
           (is_diff && reply_begins(reply, '-', SLICE("ERR the file cannot be compared: ")));
}

#define NEEDS_RESTART "OK, but needs a restart: "

/*
 * True if a reload names keys that only a restart changes: each is a key of the first
 * configuration.
 */
static bool is_of_restart(const struct act *act, const struct reply *reply)
{
    if (strcmp(orders[act->a % N_ORDERS].line, "LIMIT RELOAD") != 0 ||
        !reply_begins(reply, '+', SLICE(NEEDS_RESTART)))
        return false;
    struct slice names = reply->text;
    split_take(&names, strlen(NEEDS_RESTART));
    struct slice name;
    while (split_next(&names, ',', &name)) {
        char line[64];
        snprintf(line, sizeof line, "\n%.*s = ", (int)name.len, name.at);
        if (strstr(run.plan.config, line) == NULL)
            return false;
    }
    return true;
}

static const char *judge_order(struct client *client, const struct act *act,
                               const struct reply *reply)
{
    const struct order_form *order = &orders[act->a % N_ORDERS];
    bool is_wrong = order->form == AN_ERROR && strncmp(order->begins, "ERR wrong number", 16) == 0;
    if (!is_operator(client) && !is_wrong)
        return reply_begins(reply, '-', SLICE(NOT_FOR_YOU)) ? NULL : "not for it";
    return is_of_bad_file(act, reply) || is_of_restart(act, reply)
               ? NULL
               : judge_form(client, order, reply);
}

/* ---- rates of single keys ---- */

static unsigned gate(const struct act *act)
{
    return act->a % GATES;
}

static uint32_t rate(const struct act *act)
{
    return 2 + act->b % 1000;
}

static void say_gate_key(struct client *client, const struct act *act)
{
    say_text(client, "own:%u.%u:gate%u", client->number, client->life, gate(act));
}

/* EX is longer than any run, so no reload drops the rate. */
static void say_key_rate(struct client *client, struct act *act)
{
    say_begin(client, 9);
    say_word(client, SLICE("LIMIT"));
    say_word(client, SLICE("SET"));
    say_word(client, SLICE("LIMIT"));
    say_text(client, "gate%u", gate(act));
    say_text(client, "%s %u/1d", gate(act) == 0 ? "sliding" : "funnel =", rate(act));
    say_word(client, SLICE("FOR"));
    say_gate_key(client, act);
    say_word(client, SLICE("EX"));
    say_word(client, SLICE("9d"));
    expect(client, act);
}

static const char *judge_key_rate(struct client *client, const struct act *act,
                                  const struct reply *reply)
{
    if (!is_operator(client))
        return reply_begins(reply, '-', SLICE(NOT_FOR_YOU)) ? NULL : "not for it";
    client->session.gate_rates[gate(act)] = rate(act);
    return reply_is_ok(reply) ? NULL : "it is not OK";
}

static void say_key_unset(struct client *client, struct act *act)
{
    say_begin(client, 6);
    say_word(client, SLICE("LIMIT"));
    say_word(client, SLICE("UNSET"));
    say_word(client, SLICE("LIMIT"));
    say_text(client, "gate%u", gate(act));
    say_word(client, SLICE("FOR"));
    say_gate_key(client, act);
    expect(client, act);
}

static const char *judge_key_unset(struct client *client, const struct act *act,
                                   const struct reply *reply)
{
    uint32_t *own = &client->session.gate_rates[gate(act)];
    bool was_there = *own != 0;
    if (!is_operator(client))
        return reply_begins(reply, '-', SLICE(NOT_FOR_YOU)) ? NULL : "not for it";
    *own = 0;
    if (was_there)
        return reply_is_ok(reply) ? NULL : "the key's own rate is lost";
    return reply_begins(reply, '-', SLICE("ERR limit gate")) ? NULL
                                                             : "a rate that nobody has given";
}

/* PEEK charges nothing. */
static void say_gate(struct client *client, struct act *act)
{
    say_begin(client, 5);
    say_word(client, SLICE("LIMIT"));
    say_word(client, SLICE("CHECK"));
    say_text(client, "gate%u", gate(act));
    say_gate_key(client, act);
    say_word(client, SLICE("PEEK"));
    expect(client, act);
}

static const char *judge_gate(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    struct reply limit;
    uint32_t own = client->session.gate_rates[gate(act)];
    if (run.plan.operators == OPERATORS_NONE)
        return reply_begins(reply, '-', SLICE("ERR no limit is named 'gate"))
                   ? NULL
                   : "a limit that there is not";
    if (!limit_field(reply, 1, 5, &limit))
        return "it is no decision";
    if (!run.is_faultless)
        return NULL;
    return reply_is_integer(&limit, own != 0 ? own : GATE_COUNT) ? NULL : "not the rate of its key";
}

/* ---- LIMIT STATUS and EXPLAIN ---- */

static const struct order_form askings[] = {
    {"LIMIT STATUS FOR user:u2", A_LIST, NULL},
    {"LIMIT EXPLAIN SET k v FOR user:u2", A_LIST, NULL},
    {"LIMIT STATUS FOR ip:10.0.0.1", A_LIST, NULL},
    {"LIMIT STATUS FOR nobody", AN_ERROR, "ERR no such subject"},
    {"LIMIT STATUS OF user:u2", AN_ERROR, "ERR syntax error, unexpected 'OF'"},
    {"LIMIT STATUS FOR", AN_ERROR, "ERR syntax error, an argument is missing after 'FOR'"},
    {"LIMIT STATUS FOR a b", AN_ERROR, "ERR syntax error, unexpected 'b'"},
    {"LIMIT EXPLAIN GET k", A_LIST, NULL},
    {"LIMIT EXPLAIN limit funnel k 1/s", A_LIST, NULL},
    {"LIMIT EXPLAIN blpop k 0", A_LIST, NULL},
    {"LIMIT EXPLAIN nonesuch", A_LIST, NULL},
    {"LIMIT EXPLAIN ping", A_LIST, NULL},
    {"LIMIT EXPLAIN quit", A_LIST, NULL},
    {"LIMIT EXPLAIN client id", A_LIST, NULL},
    {"LIMIT EXPLAIN", AN_ERROR, "ERR wrong number of arguments"},
    {"LIMIT NONESUCH x", AN_ERROR, "ERR unknown subcommand 'NONESUCH'. Try LIMIT HELP."},
    {"LIMIT", AN_ERROR, "ERR wrong number of arguments for 'limit' command. Try LIMIT HELP."},
};
#define N_ASKINGS (sizeof askings / sizeof askings[0])

static void say_asking(struct client *client, struct act *act)
{
    say_line(client, act, askings[act->a % N_ASKINGS].line);
}

static const char *judge_asking(struct client *client, const struct act *act,
                                const struct reply *reply)
{
    const struct order_form *asking = &askings[act->a % N_ASKINGS];
    bool is_about_other = act->a % N_ASKINGS < 4;
    if (asking->form == AN_ERROR && !is_about_other)
        return judge_form(client, asking, reply);
    if (is_about_other && !is_operator(client) && strncmp(asking->line, "LIMIT EXPLAIN", 13) != 0)
        return reply_begins(reply, '-',
                            SLICE("NOPERM only operators may use FOR with another subject"))
                   ? NULL
                   : "not for it";
    if (is_about_other && reply_begins(reply, '-', SLICE("ERR no such subject")))
        return NULL;
    return reply->type == (client->session.is_resp3 ? '%' : '*') ? NULL : "it is told nothing";
}

const struct op operator_ops[] = {
    {"order", 6, OP_BLOCKS, 0, say_order, judge_order},
    {"key_rate", 2, OP_BLOCKS, 0, say_key_rate, judge_key_rate},
    {"key_unset", 1, OP_BLOCKS, 0, say_key_unset, judge_key_unset},
    {"gate", 3, OP_BLOCKS, 0, say_gate, judge_gate},
    {"asking", 3, OP_CONTROL, 0, say_asking, judge_asking},
    {0},
};
