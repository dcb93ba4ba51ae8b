/*
 * Forms of requests, right and wrong: HELLO with all options, inline commands, unknown commands,
 * too few words, and protocol errors. Each form has its own reply.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/ops.h"
#include "tests/sim/run.h"

#define LINE_TOO_LONG 70000

static bool is_before_7(void)
{
    return run.plan.redis.version < 70000;
}

struct form {
    struct slice said;
    const char *answer; /* start of the error; NULL: no error */
    const char *old;    /* the error before 7.0, where it differs */
};

#define TEXT(text)                                                                                 \
    {                                                                                              \
        text, sizeof text - 1                                                                      \
    }

/* weir's own errors have the words of 7.0 until weir knows the version of Redis. */
static const char *judge_error(const struct form *form, const struct reply *reply)
{
    if ((is_before_7() || !run.is_faultless) && form->old != NULL &&
        reply_begins(reply, '-', slice_str(form->old)))
        return NULL;
    bool may_be_new = !is_before_7() || !run.is_faultless || form->old == NULL ||
                      memchr(form->said.at, '\0', form->said.len) != NULL;
    return may_be_new && reply_begins(reply, '-', slice_str(form->answer))
               ? NULL
               : "not the error that there is for it";
}

/* Sends words separated by blanks; '_' is an empty word. */
static void say_words(struct client *client, struct slice line)
{
    struct slice rest = line;
    unsigned n = 1;
    for (size_t i = 0; i < line.len; i++)
        n += line.at[i] == ' ';
    say_begin(client, n);
    for (unsigned i = 0; i < n; i++) {
        const char *blank = memchr(rest.at, ' ', rest.len);
        size_t len = blank != NULL ? (size_t)(blank - rest.at) : rest.len;
        say_word(client, slice_of(rest.at, len == 1 && rest.at[0] == '_' ? 0 : len));
        rest = slice_of(rest.at + len + (blank != NULL), rest.len - len - (blank != NULL));
    }
}

/* ---- HELLO ---- */

static const struct form hellos[] = {
    {TEXT("HELLO 4"), "NOPROTO unsupported protocol version", NULL},
    {TEXT("HELLO x"), "ERR Protocol version is not an integer or out of range", NULL},
    {TEXT("HELLO 3 AUTH u1"), "ERR Syntax error in HELLO option 'AUTH'", NULL},
    {TEXT("HELLO 3 AUTH u1 pw1 AUTH u2 pw2"), "ERR Syntax error in HELLO option 'AUTH'", NULL},
    {TEXT("HELLO 2 SETNAME"), "ERR Syntax error in HELLO option 'SETNAME'", NULL},
    {TEXT("HELLO 2 nonesuch"), "ERR Syntax error in HELLO option 'nonesuch'", NULL},
    {TEXT("HELLO 2 SETNAME a\nb"),
     "ERR Client names cannot contain spaces, newlines or special characters.", NULL},
    {TEXT("AUTH"), "ERR wrong number of arguments for 'auth' command", NULL},
    {TEXT("AUTH a b c"), "ERR syntax error", NULL},
    {TEXT("AUTH nobody x"), "WRONGPASS ", NULL},
    {TEXT("AUTH u1 _"), "WRONGPASS ", NULL},
    {TEXT("HELLO 3 SETNAME n AUTH nobody x"), "WRONGPASS ", NULL},
};
#define N_HELLOS (sizeof hellos / sizeof hellos[0])

static void say_hello_wrong(struct client *client, struct act *act)
{
    say_words(client, hellos[act->a % N_HELLOS].said);
    expect(client, act);
}

static const char *judge_hello_wrong(struct client *client, const struct act *act,
                                     const struct reply *reply)
{
    (void)client;
    return judge_error(&hellos[act->a % N_HELLOS], reply);
}

/* Without options HELLO changes nothing; SETNAME sets a name. */
static void say_hello_right(struct client *client, struct act *act)
{
    /* older servers set the name of a client without a login, and then refuse */
    bool has_name = act->a % 2 == 0 && client->intent.is_in;
    act->b = has_name ? ++client->numbers : 0;
    say_begin(client, has_name ? 4 : 1);
    say_word(client, SLICE("hello"));
    if (has_name) {
        say_word(client, act->c % 2 == 0 ? SLICE("3") : SLICE("2"));
        say_word(client, SLICE("SetName"));
        say_text(client, "n%u.%u", client->number, act->b);
        client->intent.is_resp3 = act->c % 2 == 0;
    }
    expect(client, act);
}

static void say_hello_alone(struct client *client, struct act *act)
{
    act->b = 0;
    say_begin(client, 1);
    say_word(client, SLICE("hello"));
    expect(client, act);
}

static const char *judge_hello_right(struct client *client, const struct act *act,
                                     const struct reply *reply)
{
    struct session *session = &client->session;
    if (!session->is_in && reply_begins(reply, '-', SLICE("NOAUTH ")))
        return NULL;
    if (!session->is_in && !client_is_doubtful(client))
        return "it has not logged in";
    if (reply->type == '-')
        return "HELLO refused";
    if (act->b != 0) {
        session->is_resp3 = act->c % 2 == 0;
        /* while the password changes, HELLO of a client without a login may be refused */
        if (client_is_doubtful(client))
            session->is_resp3 &= reply->type == '%';
        session->name = act->b;
    }
    return reply->type == (session->is_resp3 ? '%' : '*') ? NULL : "not in its protocol";
}

/* ---- unknown commands, wrong numbers of words ---- */

static const struct form wrongs[] = {
    {TEXT("NONESUCH"), "ERR unknown command 'NONESUCH', with args beginning with: ",
     "ERR unknown command `NONESUCH`, "},
    {TEXT("none\r\nsuch a\rb cc"),
     "ERR unknown command 'none  such', with args beginning with: 'a b' 'cc' ",
     "ERR unknown command `none  such`, with args beginning with: `a b`, `cc`, "},
    {TEXT("GET\0x a b"), "ERR unknown command 'GET', with args beginning with: 'a' 'b' ",
     "ERR unknown command `GET`, with args beginning with: `a`, `b`, "},
    {TEXT("_ a"), "ERR unknown command '', with args beginning with: 'a' ",
     "ERR unknown command ``, "},
    {TEXT("GET"), "ERR wrong number of arguments for 'get' command", NULL},
    {TEXT("get a b"), "ERR wrong number of arguments for 'get' command", NULL},
    {TEXT("MGET"), "ERR wrong number of arguments for 'mget' command", NULL},
    {TEXT("CLIENT NONESUCH"), "ERR unknown subcommand 'NONESUCH'. Try CLIENT HELP.",
     "ERR Unknown subcommand or wrong "},
    {TEXT("client id\0x"), "ERR unknown subcommand 'id'. Try CLIENT HELP.",
     "ERR Unknown subcommand or wrong number of arguments for 'id'. Try CLIENT HELP."},
    {TEXT("CLIENT ID x"), "ERR wrong number of arguments for 'client|id' command",
     "ERR Unknown subcommand or wrong "},
    {TEXT("CLIENT"), "ERR wrong number of arguments for 'client' command", NULL},
    {TEXT("SET k"), "ERR wrong number of arguments for 'set' command", NULL},
    {TEXT("SELECT x"), "ERR ", NULL},
    {TEXT("EVAL"), "ERR wrong number of arguments for 'eval' command", NULL},
    {TEXT("SUBSCRIBE"), "ERR wrong number of arguments for 'subscribe' command", NULL},
    {TEXT("WATCH"), "ERR wrong number of arguments for 'watch' command", NULL},
};
#define N_WRONGS (sizeof wrongs / sizeof wrongs[0])

static void say_wrong(struct client *client, struct act *act)
{
    say_words(client, wrongs[act->a % N_WRONGS].said);
    expect(client, act);
}

static const char *judge_wrong(struct client *client, const struct act *act,
                               const struct reply *reply)
{
    (void)client;
    return judge_error(&wrongs[act->a % N_WRONGS], reply);
}

/* Like EXEC this command ends WATCH and the transaction, if there is one. */
static void say_exec_wrong(struct client *client, struct act *act)
{
    say_words(client, SLICE("EXEC now"));
    expect(client, act);
    client->intent.in_multi = false;
    client->intent.n_queued = 0;
}

static const char *judge_exec_wrong(struct client *client, const struct act *act,
                                    const struct reply *reply)
{
    struct session *session = &client->session;
    (void)act;
    session->in_multi = session->is_voided = session->is_watching = session->is_touched = false;
    memset(session->watched, 0, sizeof session->watched);
    return reply_begins(reply, '-', SLICE("EXECABORT Transaction discarded because of"))
               ? NULL
               : "a word too many";
}

/* ---- inline commands ---- */

static const struct {
    const char *line, *answer;
} lines[] = {
    {"PING one\r\n", "one"},           {"ping \"a\\x41b\\n\\\"\"\n", "aAb\n\""},
    {"  ECHO 'it\\'s'  \r\n", "it's"}, {"\r\n\r\necho \"\"\r\n", ""},
    {"*0\r\n*-1\r\nECHO x\r\n", "x"},
};
#define N_LINES (sizeof lines / sizeof lines[0])

static void say_inline(struct client *client, struct act *act)
{
    const char *line = lines[act->a % N_LINES].line;
    run.commands++;
    say_raw(client, line, strlen(line));
    expect(client, act);
}

static const char *judge_inline(struct client *client, const struct act *act,
                                const struct reply *reply)
{
    struct reply word;
    const char *answer = lines[act->a % N_LINES].answer;
    /* also for shard channels */
    bool hears_pong = is_subscriber(&client->session) && !client->session.is_resp3;
    if (hears_pong && reply->type == '*' && reply_at(reply, 1, &word))
        return reply_is(&word, '$', slice_str(answer)) ? NULL : "not what a subscriber is answered";
    return reply_is(reply, '$', slice_str(answer)) ? NULL : "not what it said";
}

/* ---- protocol errors ---- */

#define ERROR(text) "ERR Protocol error: " text, NULL

static const struct form breaches[] = {
    {TEXT("*3x\r\n"), ERROR("invalid multibulk length")},
    {TEXT("*2147483648\r\n"), ERROR("invalid multibulk length")},
    {TEXT("*2\r\n$3\r\nGET\r\n:1\r\n"), ERROR("expected '$', got ':'")},
    {TEXT("*2\r\n$3\r\nGET\r\n$-1\r\n"), ERROR("invalid bulk length")},
    {TEXT("*1\r\n$536870913\r\n"), ERROR("invalid bulk length")},
    {TEXT("*1\r\n$4\r\nPINGxx"), ERROR("expected CRLF")},
    {TEXT("*1\n"), ERROR("expected CRLF")},
    {TEXT("*1\rx"), ERROR("expected CRLF")},
    {TEXT("*1\0"), ERROR("NUL byte in a line")},
    {TEXT("PING\0\r\n"), ERROR("NUL byte in a line")},
    {TEXT("GET \"a\r\n"), ERROR("unbalanced quotes in request")},
    {TEXT("GET 'a'b\r\n"), ERROR("unbalanced quotes in request")},
    {TEXT("*"), ERROR("too big mbulk count string")},
    {TEXT("*1\r\n$"), ERROR("too big bulk count string")},
    {TEXT("PING"), ERROR("too big inline request")},
};
#define N_BREACHES (sizeof breaches / sizeof breaches[0])
#define N_SHORT (N_BREACHES - 3) /* the last three need a line that does not end */

/*
 * Sends a protocol error as the last request. A client that is closed with unread bytes on the way
 * may not get the error.
 */
static void breach(struct client *client, struct act *act)
{
    const struct form *form = &breaches[act->a % N_BREACHES];
    char more[1000];
    run.commands++;
    say_raw(client, form->said.at, form->said.len);
    memset(more, '0', sizeof more);
    client->is_lost |= act->a % N_BREACHES >= N_SHORT;
    for (size_t n = 0; client->is_lost && n < LINE_TOO_LONG; n += sizeof more)
        say_raw(client, more, sizeof more);
    expect(client, act);
    client->may_be_closed = true;
    if (client->is_lost)
        client->n_expected = 0;
    client->intent.is_leaving = true;
}

static const char *judge_breach(struct client *client, const struct act *act,
                                const struct reply *reply)
{
    (void)client;
    return judge_error(&breaches[act->a % N_BREACHES], reply);
}

const struct op forms_ops[] = {
    {"hello_wrong", 2, OP_CONTROL, 0, say_hello_wrong, judge_hello_wrong},
    {"hello_right", 2, OP_CONTROL, 0, say_hello_right, judge_hello_right},
    {"hello_alone", 2, OP_CONTROL | OP_QUEUES, 0, say_hello_alone, judge_hello_right},
    {"wrong", 4, 0, 0, say_wrong, judge_wrong},
    {"exec_wrong", 2, OP_CONTROL | OP_MULTI, 0, say_exec_wrong, judge_exec_wrong},
    {"inline", 3, OP_CONTROL, 0, say_inline, judge_inline},
    {"breach", 1, OP_CONTROL, 0, breach, judge_breach},
    {0},
};
