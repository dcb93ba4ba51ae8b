/*
 * The fake upstream answers the requests of each of weir's connections (here: a line) in order. The
 * marks in a request's words tell which client sent the request.
 *
 * A line on which the protocol was broken is off. Its answers carry no marks from then on, since
 * weir may match them to any client. The exception is a line that has run a script and that one
 * client alone has used. That client may read any bytes. The other client may read none.
 */
#include "tests/fuzz/session_fake.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/num.h"
#include "tests/fuzz/session_mark.h"
#include "tests/fuzz/session_must.h"
#include "tests/fuzz/session_pair.h"
#include "tests/sim/kernel.h"
#include "tests/sim/trace.h"

#define MOST (64 << 20) /* bytes in memory */
#define WORDS_KEPT 8
#define BIG 70000 /* bytes: more than weir buffers of a reply on a shared lane */
#define SHA "0123456789abcdef0123456789abcdef01234567"

struct question {
    struct list all;
    struct bytes bytes; /* the request */
    struct slice words[WORDS_KEPT];
    size_t n;
    char who; /* the client that sent the request; 0: unknown */
    unsigned number;
    bool is_own; /* a request of weir's own */
};

struct line {
    struct party party;
    struct conn *conn;
    struct list all;
    struct bytes in, out;
    /* number of bytes kept back at the end of `out`: now, and after the next answer */
    size_t holds, to_hold;
    struct list questions; /* unanswered, oldest first */
    struct bytes queued;   /* marks of the replies that EXEC will return */
    unsigned n_queued;
    unsigned channels;
    unsigned users; /* set of clients that may have sent requests here */
    /* last client that sent a request since the line was cleaned for its next owner; 0: none */
    char owner;
    char listener; /* client that receives push messages; 0: none */
    bool is_resp3;
    bool in_multi;
    bool has_script; /* a client has run a script here */
    bool is_private; /* a command that needs a private lane was sent here; never cleared */
    bool is_mixed;   /* several clients have sent requests here without a cleaning between them */
    bool is_reset;   /* weir has begun to clean the line with RESET */
    bool is_weirs;   /* for weir's own requests alone */
    bool is_off;
    bool is_unmarked;
    bool monitors;
};

static struct fake {
    struct list lines;
    unsigned n_to_wait; /* number of weir's own requests that wait for a step */
    unsigned n_asked;   /* COMMAND requests, which only the control connection sends */
    bool is_prompt;     /* clients' requests are answered at once too */
    bool is_away;
} fake;

/* ---- writing ---- */

static void put(struct line *line, struct slice bytes)
{
    MUST(bytes_add(&line->out, bytes, MOST));
}

__attribute__((format(printf, 2, 3))) static void put_text(struct line *line, const char *format,
                                                           ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put(line, slice_of(text, (size_t)n));
}

/* Writes the mark for the answer to `question`. An empty string if the client is unknown. */
static void mark_of(const struct line *line, const struct question *question, char out[MARK_ROOM])
{
    out[0] = '\0';
    if (question->who != 0 && !line->is_unmarked && !line->is_weirs)
        mark_print(out, question->who, line->in_multi ? 0 : question->number);
}

static void put_bulk(struct line *line, struct slice text)
{
    put_text(line, "$%zu\r\n", text.len);
    put(line, text);
    put_text(line, "\r\n");
}

/* A bulk string: the mark and the step's bytes. */
static void put_value(struct line *line, const char *mark, struct slice bytes)
{
    char text[MARK_ROOM + 256];
    size_t n = strlen(mark);
    memcpy(text, mark, n);
    for (size_t i = 0; i < bytes.len; i++)
        text[n++] = bytes.at[i] == MARK_BYTE ? '?' : bytes.at[i];
    put_bulk(line, slice_of(text, n));
}

/* A simple string, without line breaks. */
static void put_line(struct line *line, const char *head, const char *mark, struct slice bytes)
{
    char text[256];
    for (size_t i = 0; i < bytes.len; i++)
        text[i] = memchr("\r\n\x01", bytes.at[i], 3) != NULL ? '?' : bytes.at[i];
    put_text(line, "%s%s", head, mark);
    put(line, slice_of(text, bytes.len));
    put_text(line, "\r\n");
}

static void flush(struct line *line)
{
    size_t n = line->out.len - line->holds;
    n = n > 0 ? conn_send(line->conn, line->out.at, n) : 0;
    if (n == 0)
        return;
    trace_note(TRACE_REDIS, line->conn->number, line->out.at, n);
    memmove(line->out.at, line->out.at + n, line->out.len - n);
    line->out.len -= n;
}

/* ---- its end ---- */

static void free_question(struct question *question)
{
    list_take(&question->all);
    bytes_fini(&question->bytes);
    free(question);
}

static struct question *oldest(const struct line *line)
{
    return list_is_empty(&line->questions)
               ? NULL
               : container_of(line->questions.next, struct question, all);
}

static void end(struct line *line, bool with_reset)
{
    pair_excuse(line->users);
    pair_excuse_busy();
    conn_close(line->conn, with_reset);
    world_leave(&line->party);
    while (oldest(line) != NULL)
        free_question(oldest(line));
    bytes_fini(&line->in);
    bytes_fini(&line->out);
    bytes_fini(&line->queued);
    list_take(&line->all);
    free(line);
}

/* From now on the number of frames does not tell which request a frame answers. */
static void break_framing(struct line *line)
{
    bool has_one = line->users == CLIENT_A || line->users == CLIENT_B;
    line->is_off = true;
    line->is_unmarked |= !line->has_script || !has_one;
    pair_excuse(line->users);
    pair_excuse_busy();
    pair_distrust();
}

/* ---- answering ---- */

static bool is_word(const struct question *question, size_t i, const char *word)
{
    return i < question->n && slice_eq_nocase(question->words[i], slice_str(word));
}

static void say_hello(struct line *line, const struct question *question)
{
    if (is_word(question, 1, "3"))
        line->is_resp3 = true;
    if (is_word(question, 1, "2"))
        line->is_resp3 = false;
    put_text(line, line->is_resp3 ? "%%2\r\n" : "*4\r\n");
    put_text(line, "$6\r\nserver\r\n$5\r\nredis\r\n$2\r\nid\r\n:%u\r\n", line->conn->number);
}

static void confirm(struct line *line, const struct question *question, bool is_more)
{
    char head = line->is_resp3 ? '>' : '*';
    size_t n = question->n > 1                  ? question->n
               : !is_more && line->channels > 1 ? line->channels + 1
                                                : 2;
    for (size_t i = 1; i < n; i++) {
        if (is_more)
            line->channels++;
        else if (line->channels > 0)
            line->channels--;
        put_text(line, "%c3\r\n", head);
        put_text(line, "$%zu\r\n", question->words[0].len);
        for (size_t j = 0; j < question->words[0].len; j++)
            put_text(line, "%c", ascii_lower(question->words[0].at[j]));
        put_text(line, "\r\n");
        if (i < question->n)
            put_bulk(line, question->words[i]);
        else
            put_text(line, "$-1\r\n");
        put_text(line, ":%u\r\n", line->channels);
    }
    if (is_more)
        line->listener = question->who;
}

static void execute(struct line *line)
{
    put_text(line, "*%u\r\n", line->n_queued);
    for (unsigned i = 0; i < line->n_queued; i++)
        put_bulk(line, slice_of(line->queued.at + (size_t)i * MARK_LEN, MARK_LEN));
}

static void queue(struct line *line, const struct question *question)
{
    char mark[MARK_ROOM];
    put_text(line, "+QUEUED\r\n");
    mark_print(mark, question->who, question->number);
    if (question->who == 0 || line->is_unmarked)
        return;
    MUST(bytes_add(&line->queued, slice_of(mark, MARK_LEN), MOST));
    line->n_queued++;
}

static void tell_nonce(struct line *line, const struct question *question)
{
    put_text(line, "-ERR unknown command 'WEIR.NONCE', with args beginning with: '%.*s' \r\n",
             question->n > 1 ? (int)question->words[1].len : 0,
             question->n > 1 ? question->words[1].at : "");
}

static void say_simply(struct line *line, const struct question *question)
{
    char mark[MARK_ROOM];
    mark_of(line, question, mark);
    put_value(line, mark, slice_of(NULL, 0));
}

/* On an error or an empty table weir uses its built-in command table. */
static void tell_commands(struct line *line, const struct question *question)
{
    (void)question;
    put_text(line, line->is_weirs ? "-ERR unknown command\r\n" : "*0\r\n");
}

static void tell_info(struct line *line, const struct question *question)
{
    (void)question;
    put_bulk(line, SLICE("redis_version:7.2.0\r\nredis_mode:standalone\r\nmaxclients:10000\r\n"));
}

/* Rows answer by command name. Functions answer commands that change the line. */
static const struct honest {
    const char *word;
    const char *answer;
    void (*say)(struct line *line, const struct question *question);
} honest[] = {
    {"hello", NULL, say_hello},       {"weir.nonce", NULL, tell_nonce},
    {"info", NULL, tell_info},        {"reset", "+RESET\r\n", NULL},
    {"auth", "+OK\r\n", NULL},        {"select", "+OK\r\n", NULL},
    {"discard", "+OK\r\n", NULL},     {"watch", "+OK\r\n", NULL},
    {"unwatch", "+OK\r\n", NULL},     {"monitor", "+OK\r\n", NULL},
    {"client", "+OK\r\n", NULL},      {"publish", ":0\r\n", NULL},
    {"slowlog", ":0\r\n", NULL},      {"wait", ":0\r\n", NULL},
    {"command", NULL, tell_commands}, {"script", "$40\r\n" SHA "\r\n", NULL},
};

static bool is_subscribing(const struct question *question)
{
    return is_word(question, 0, "subscribe") || is_word(question, 0, "psubscribe") ||
           is_word(question, 0, "ssubscribe");
}

static bool is_unsubscribing(const struct question *question)
{
    return is_word(question, 0, "unsubscribe") || is_word(question, 0, "punsubscribe") ||
           is_word(question, 0, "sunsubscribe");
}

/* Answers like Redis. */
static void answer_honestly(struct line *line, const struct question *question)
{
    if (is_word(question, 0, "multi")) {
        line->in_multi = true;
        line->n_queued = 0;
        line->queued.len = 0;
        put_text(line, "+OK\r\n");
        return;
    }
    if (is_word(question, 0, "exec")) {
        if (line->in_multi)
            execute(line);
        else
            put_text(line, "-ERR EXEC without MULTI\r\n");
        return;
    }
    if (line->in_multi && !is_word(question, 0, "discard") && !is_word(question, 0, "reset")) {
        queue(line, question);
        return;
    }
    if (is_subscribing(question) || is_unsubscribing(question)) {
        confirm(line, question, is_subscribing(question));
        return;
    }
    for (size_t i = 0; i < sizeof honest / sizeof honest[0]; i++)
        if (is_word(question, 0, honest[i].word)) {
            if (honest[i].say != NULL)
                honest[i].say(line, question);
            else
                put_text(line, "%s", honest[i].answer);
            return;
        }
    say_simply(line, question);
}

/* Applies the effects that a command has in Redis, whatever the answer was. */
static void carry_out(struct line *line, const struct question *question)
{
    bool is_reset = is_word(question, 0, "reset");
    if (is_reset || is_word(question, 0, "exec") || is_word(question, 0, "discard"))
        line->in_multi = false;
    if (is_reset) {
        line->listener = 0;
        line->channels = 0;
        line->is_resp3 = line->monitors = false;
    }
    line->monitors |= is_word(question, 0, "monitor");
    if (is_word(question, 0, "client") && is_word(question, 1, "tracking"))
        line->listener = question->who;
}

/* Writes one frame of the kind that the input has chosen. False: there is no such kind. */
static bool answer_otherwise(struct line *line, const struct question *question, unsigned kind,
                             struct slice bytes)
{
    static const char *const constant[] = {
        "-NOAUTH Authentication required.\r\n",
        "-WRONGPASS invalid username-password pair or user is disabled.\r\n",
        "-LOADING Redis is loading the dataset in memory\r\n",
        "-NOSCRIPT No matching script. Please use EVAL.\r\n",
        "-ERR max number of clients reached\r\n",
        "-BUSY Redis is busy running a script.\r\n",
        "-EXECABORT Transaction discarded because of previous errors.\r\n",
        "-MISCONF no\r\n",
        "+OK\r\n",
        "+RESET\r\n",
        "+QUEUED\r\n",
        ":1\r\n",
        "$-1\r\n",
        "*-1\r\n",
        "*0\r\n",
        "_\r\n",
        "*6\r\n:1\r\n:10\r\n:9\r\n:-1\r\n:0\r\n:0\r\n",
    };
    char mark[MARK_ROOM];
    mark_of(line, question, mark);
    if (kind < sizeof constant / sizeof constant[0]) {
        put_text(line, "%s", constant[kind]);
        return true;
    }
    switch (kind - sizeof constant / sizeof constant[0]) {
    case 0:
        put_value(line, mark, bytes);
        return true;
    case 1:
        put_line(line, "+", *mark != '\0' ? mark : "x", bytes);
        return true;
    case 2:
        put_line(line, "-ERR ", mark, bytes);
        return true;
    case 3: /* looks like a message; on a subscribed RESP2 connection it is a message */
        put_text(line, "*3\r\n$%s\r\n", line->channels > 0 ? "3\r\none" : "7\r\nmessage");
        put_value(line, mark, slice_of(NULL, 0));
        put_value(line, mark, bytes);
        return true;
    case 4:
        put_text(line, "%s", line->is_resp3 ? "%1\r\n" : "*2\r\n");
        put_value(line, mark, slice_of(NULL, 0));
        put_text(line, "*2\r\n*1\r\n:7\r\n");
        put_value(line, mark, bytes);
        return true;
    case 5:
        put_text(line, "*2\r\n");
        put_value(line, mark, bytes);
        put_text(line, "$%d\r\n", BIG);
        for (size_t i = 0; i < BIG / 100; i++)
            put_text(line, "%0100d", 0);
        put_text(line, "\r\n");
        return true;
    default:
        return false;
    }
}

#define KINDS 32 /* most numbers have no kind; their answer is honest */

/* Answers the oldest request. */
static void answer(struct line *line, unsigned kind, struct slice bytes)
{
    struct question *question = oldest(line);
    if (kind % KINDS == 0 || !answer_otherwise(line, question, kind % KINDS - 1, bytes))
        answer_honestly(line, question);
    else if (question->is_own || question->who == 0)
        pair_doubt(); /* a wrong answer to weir's own request may affect both clients */
    carry_out(line, question);
    line->holds = line->to_hold < line->out.len ? line->to_hold : line->out.len;
    line->to_hold = 0;
    free_question(question);
    flush(line);
}

/* ---- requests ---- */

/* Reads the number behind a type byte. Returns the bytes read; 0: the line is incomplete. */
static size_t read_number(struct slice rest, char type, int64_t *number)
{
    const char *end_of_line = rest.len > 0 ? memchr(rest.at, '\n', rest.len) : NULL;
    if (end_of_line == NULL)
        return 0;
    size_t len = (size_t)(end_of_line - rest.at);
    MUST(len >= 2 && rest.at[0] == type && rest.at[len - 1] == '\r');
    MUST(num_parse(slice_of(rest.at + 1, len - 2), number));
    return len + 1;
}

/* Reads an array of words. Returns the bytes read; 0: incomplete. weir has checked the syntax. */
static size_t read_array(struct slice in, struct question *question)
{
    int64_t n, len;
    size_t at = read_number(in, '*', &n);
    for (int64_t i = 0; at > 0 && i < n; i++) {
        size_t head = read_number(slice_of(in.at + at, in.len - at), '$', &len);
        if (head == 0)
            return 0;
        MUST(len >= 0);
        at += head;
        if (in.len - at < (size_t)len + 2)
            return 0;
        MUST(memcmp(in.at + at + len, "\r\n", 2) == 0);
        if (i < WORDS_KEPT)
            question->words[question->n++] = slice_of(in.at + at, (size_t)len);
        at += (size_t)len + 2;
    }
    return at;
}

static size_t read_inline(struct slice in, struct question *question)
{
    const char *end_of_line = memchr(in.at, '\n', in.len);
    if (end_of_line == NULL)
        return 0;
    size_t len = (size_t)(end_of_line - in.at);
    for (size_t at = 0; at < len && question->n < WORDS_KEPT;) {
        size_t from = at;
        while (at < len && memchr(" \t\r", in.at[at], 3) == NULL)
            at++;
        if (at > from)
            question->words[question->n++] = slice_of(in.at + from, at - from);
        else
            at++;
    }
    return len + 1;
}

static bool is_weirs_own(const struct line *line, const struct question *question)
{
    static const char *const spelled[] = {"hELLO",  "rESET", "sET",       "cLIENT",
                                          "sELECT", "aUTH",  "WEIR.NONCE"};
    for (size_t i = 0; i < sizeof spelled / sizeof spelled[0]; i++)
        if (slice_eq(question->words[0], slice_str(spelled[i])))
            return true;
    return line->is_weirs;
}

static bool is_of_transactions(const struct question *question)
{
    return is_word(question, 0, "multi") || is_word(question, 0, "exec") ||
           is_word(question, 0, "discard") || is_word(question, 0, "unwatch");
}

/* Checks that a private line serves another client only after RESET and nonce. */
static void note_owner(struct line *line, const struct question *question)
{
    static const char *const takes[] = {"blpop",   "xread", "watch",      "eval",
                                        "evalsha", "fcall", "psubscribe", "ssubscribe"};
    if (slice_eq(question->words[0], SLICE("rESET")))
        line->is_reset = true;
    if (is_word(question, 0, "weir.nonce") && line->is_reset) {
        line->is_reset = line->is_mixed = false;
        line->owner = 0;
    }
    if (question->who == 0 || line->is_weirs)
        return;
    line->is_mixed |= line->owner != 0 && line->owner != question->who;
    line->owner = question->who;
    for (size_t i = 0; i < sizeof takes / sizeof takes[0]; i++)
        line->is_private |= is_word(question, 0, takes[i]);
    MUST(!line->is_private || !line->is_mixed);
}

static void note_who(struct line *line, struct question *question)
{
    static const char *const scripts[] = {"eval", "evalsha", "fcall"};
    question->who = mark_find(bytes_slice(&question->bytes), &question->number);
    line->is_weirs |= is_word(question, 0, "slowlog") ||
                      (is_word(question, 0, "script") && is_word(question, 1, "load")) ||
                      (is_word(question, 0, "info") && question->n > 1) ||
                      is_word(question, 1, "limit:weir:written");
    question->is_own = is_weirs_own(line, question);
    if (question->who != 0 && !line->is_weirs)
        line->users |= question->who == 'A' ? CLIENT_A : CLIENT_B;
    else if (line->is_weirs ||
             (!question->is_own && !(is_of_transactions(question) && line->users != 0)))
        line->users = CLIENT_A | CLIENT_B;
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++)
        line->has_script |= is_word(question, 0, scripts[i]);
    note_owner(line, question);
    fake.n_asked += is_word(question, 0, "command");
}

static void take_question(struct line *line, struct question *question, size_t n)
{
    MUST(bytes_add(&question->bytes, slice_of(line->in.at, n), MOST));
    for (size_t i = 0; i < question->n; i++)
        question->words[i].at = question->bytes.at + (question->words[i].at - line->in.at);
    list_push(&line->questions, &question->all);
    note_who(line, question);
}

/* False: the next request is incomplete. */
static bool read_question(struct line *line)
{
    struct slice in = bytes_slice(&line->in);
    if (in.len == 0)
        return false;
    struct question *question = mem_zalloc(1, sizeof *question);
    list_init(&question->all);
    size_t n = in.at[0] == '*' ? read_array(in, question) : read_inline(in, question);
    if (n > 0 && question->n > 0)
        take_question(line, question, n);
    else
        free(question);
    memmove(line->in.at, line->in.at + n, in.len - n);
    line->in.len -= n;
    return n > 0;
}

static bool is_answered_at_once(const struct question *question)
{
    if (question->is_own && fake.n_to_wait > 0) {
        fake.n_to_wait--;
        return false;
    }
    return question->is_own || fake.is_prompt;
}

static void answer_at_once(struct line *line)
{
    while (oldest(line) != NULL && is_answered_at_once(oldest(line)))
        answer(line, 0, slice_of(NULL, 0));
}

static void take_turn(struct party *party)
{
    struct line *line = container_of(party, struct line, party);
    flush(line);
    struct slice here = conn_here(line->conn);
    if (here.len > 0) {
        trace_note(TRACE_TAKE, line->conn->number, here.at, here.len);
        MUST(bytes_add(&line->in, here, MOST));
        conn_take(line->conn, here.len);
    }
    while (read_question(line))
        continue;
    answer_at_once(line);
    if (conn_is_over(line->conn))
        end(line, false);
}

static bool on_dialled(struct conn *conn)
{
    if (fake.is_away) {
        pair_doubt();
        return false;
    }
    struct line *line = mem_zalloc(1, sizeof *line);
    line->party = (struct party){.turn = take_turn, .kind = "upstream", .index = conn->number};
    line->conn = conn;
    list_init(&line->questions);
    list_push(&fake.lines, &line->all);
    conn->host = &line->party;
    conn->owner = line;
    world_wake(&line->party);
    return true;
}

/* ---- steps of the input ---- */

/*
 * The line with number `pick` among all lines, or among lines with unanswered requests. NULL: none.
 */
static struct line *picked(uint8_t pick, bool is_asked)
{
    unsigned n = 0;
    struct list *at;
    for (at = fake.lines.next; at != &fake.lines; at = at->next)
        n += !is_asked || oldest(container_of(at, struct line, all)) != NULL;
    if (n == 0)
        return NULL;
    unsigned left = pick % n;
    for (at = fake.lines.next;; at = at->next) {
        struct line *line = container_of(at, struct line, all);
        if ((!is_asked || oldest(line) != NULL) && left-- == 0)
            return line;
    }
}

static void answer_all(const struct step *step)
{
    for (struct list *at = fake.lines.next, *next; at != &fake.lines; at = next) {
        struct line *line = container_of(at, struct line, all);
        next = at->next;
        while (oldest(line) != NULL)
            answer(line, step->b, step->bytes);
    }
}

static void push(struct line *line, unsigned kind)
{
    char mark[MARK_ROOM] = "";
    if (line->listener != 0 && !line->is_unmarked)
        mark_print(mark, line->listener, 0);
    bool is_good = true;
    switch (kind % 4) {
    case 0: /* on a RESP2 connection weir closes the line */
        put_text(line, ">2\r\n$10\r\ninvalidate\r\n*1\r\n");
        put_value(line, mark, slice_of(NULL, 0));
        is_good = line->is_resp3;
        break;
    case 1:
        put_text(line, "%c3\r\n$7\r\nmessage\r\n$1\r\nc\r\n", line->is_resp3 ? '>' : '*');
        put_value(line, mark, slice_of(NULL, 0));
        is_good = line->is_resp3 || line->channels > 0;
        break;
    case 2:
        put_line(line, "+1700000000.000000 [0 127.0.0.1:1] \"get\" ", "", SLICE("\"x\""));
        is_good = line->monitors;
        break;
    default:
        put_text(line, "%c4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$1\r\nc\r\n",
                 line->is_resp3 ? '>' : '*');
        put_value(line, mark, slice_of(NULL, 0));
        is_good = line->is_resp3 || line->channels > 0;
    }
    if (!is_good)
        break_framing(line);
}

static void forge(struct line *line, struct slice bytes)
{
    char text[256];
    for (size_t i = 0; i < bytes.len; i++)
        text[i] = bytes.at[i] == MARK_BYTE ? '?' : bytes.at[i];
    put(line, slice_of(text, bytes.len));
    break_framing(line);
}

void fake_play(const struct step *step)
{
    bool needs_question = step->kind == STEP_ANSWER;
    struct line *line = picked(step->a, needs_question);
    if (step->kind == STEP_ANSWER_ALL) {
        answer_all(step);
    } else if (step->kind == STEP_AWAY) {
        fake.is_away = !fake.is_away;
    } else if (step->kind == STEP_OWN) {
        fake.n_to_wait = step->a % 8;
    } else if (line == NULL) {
        return;
    } else if (step->kind == STEP_ANSWER) {
        answer(line, step->b, step->bytes);
    } else if (step->kind == STEP_HOLD) {
        line->to_hold = step->b;
    } else if (step->kind == STEP_DROP) {
        end(line, step->b % 2 == 1);
    } else {
        line->holds = 0;
        if (step->kind == STEP_PUSH)
            push(line, step->b);
        else
            forge(line, step->bytes);
        flush(line);
    }
}

/* ---- life cycle ---- */

void fake_start(bool is_prompt)
{
    fake = (struct fake){.is_prompt = is_prompt};
    list_init(&fake.lines);
    kernel.on_dialled = on_dialled;
}

bool fake_is_known(void)
{
    return fake.n_asked > 0;
}

void fake_settle(void)
{
    fake.is_away = false;
    fake.is_prompt = true;
    fake.n_to_wait = 0;
    for (struct list *at = fake.lines.next, *next; at != &fake.lines; at = next) {
        struct line *line = container_of(at, struct line, all);
        next = at->next;
        line->holds = line->to_hold = 0;
        if (line->is_off)
            end(line, true);
        else
            world_wake(&line->party);
    }
}

void fake_stop(void)
{
    while (!list_is_empty(&fake.lines))
        end(container_of(fake.lines.next, struct line, all), true);
}
