/*
 * A client numbers the requests of its connection. The bytes that a client reads are checked:
 *
 * - no bytes of the other client or of an earlier connection of this client;
 * - numbers never decrease;
 * - one reply for each request, in order, as long as no step has allowed other answers.
 */
#include "tests/fuzz/session_pair.h"

#include <netinet/in.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/list.h"
#include "resp/emit.h"
#include "tests/fuzz/session_mark.h"
#include "tests/fuzz/session_must.h"
#include "tests/sim/kernel.h"
#include "tests/sim/reply.h"
#include "tests/sim/trace.h"

#define PORT 6380
#define MOST (64 << 20) /* bytes in memory */
#define WORDS_MAX 12
#define WORD_ROOM 512

/*
 * A table of requests. In the words:
 *
 * - % is a key that names request and client;
 * - @ is a channel that names the client;
 * - # is the step's bytes;
 * - ^ is one of few numbers.
 *
 * `is_loose`: any number of replies may answer the request, now or later.
 */
static const struct said {
    const char *words;
    bool is_loose;
    bool is_exec;
} table[] = {
    {"GET %", false, false},
    {"SET % #", false, false},
    {"MGET % %", false, false},
    {"INCR %", false, false},
    {"LRANGE % 0 -1", false, false},
    {"DEL %", false, false},
    {"PING %", false, false},
    {"PING", false, false},
    {"ECHO %", false, false},
    {"MULTI", false, false},
    {"EXEC", false, true},
    {"DISCARD", false, false},
    {"WATCH %", false, false},
    {"UNWATCH", false, false},
    {"SELECT ^", false, false},
    {"AUTH u^ pw", false, false},
    {"HELLO 3", false, false},
    {"HELLO 2", false, false},
    {"HELLO 3 AUTH u^ pw", false, false},
    {"RESET", false, false},
    {"EVAL # 1 %", false, false},
    {"EVALSHA # 1 %", false, false},
    {"FCALL # 1 %", false, false},
    {"BLPOP % 0", false, false},
    {"XREAD BLOCK 0 STREAMS % $", false, false},
    {"WAIT 0 0", false, false},
    {"CLIENT ID", false, false},
    {"CLIENT SETNAME @", false, false},
    {"CLIENT GETNAME", false, false},
    {"CLIENT TRACKING ON", false, false},
    {"CLIENT TRACKING ON REDIRECT ^", false, false},
    {"CLIENT TRACKING OFF", false, false},
    {"CLIENT PAUSE 5", false, false},
    {"CLIENT UNPAUSE", false, false},
    {"CLIENT NO-EVICT ON", false, false},
    {"CLIENT KILL ID ^", false, false},
    {"CLIENT INFO", false, false},
    {"PUBLISH @ #", false, false},
    {"SUBSCRIBE @", true, false},
    {"SUBSCRIBE @ @", true, false},
    {"PSUBSCRIBE @", true, false},
    {"SSUBSCRIBE @", true, false},
    {"UNSUBSCRIBE @", true, false},
    {"UNSUBSCRIBE", true, false},
    {"PUNSUBSCRIBE", true, false},
    {"MONITOR", true, false},
    {"CLIENT REPLY OFF", true, false},
    {"CLIENT REPLY SKIP", true, false},
    {"CLIENT REPLY ON", true, false},
    {"QUIT", true, false},
    {"LIMIT FUNNEL % 10/s", false, false},
    {"LIMIT FUNNEL % 1/s MAXWAIT 20ms", false, false},
    {"LIMIT ACQUIRE % 1 TTL 100ms", false, false},
    {"LIMIT STATUS", false, false},
    {"LIMIT RESET %", false, false},
    {"CL.THROTTLE % 15 30 60", false, false},
    {"COMMAND", false, false},
    {"COMMAND DOCS get", false, false},
    {"INFO", false, false},
    {"OBJECT ENCODING %", false, false},
    {"SORT % BY nosort GET #", false, false},
    {"SCRIPT KILL", false, false},
    {"FUNCTION LOAD #", false, false},
    {"ACL WHOAMI", false, false},
    {"NO.SUCH % #", false, false},
    {"DEBUG SLEEP 0", false, false},
};

struct talker {
    struct party party;
    char name;
    struct conn *conn; /* NULL: none */
    struct bytes in, out;
    size_t seen;   /* bytes of `in` that were searched for marks */
    size_t judged; /* bytes of `in` that were split into replies */
    size_t keeps;  /* bytes at the end of `out` that wait for more */
    size_t to_keep;
    unsigned first; /* number of the first request of the connection */
    unsigned asked; /* number of the last request; 0: none */
    unsigned heard; /* highest number that was read */
    unsigned answered;
    unsigned login;      /* number of the last request that logs in; 0: none */
    uint8_t execs[8192]; /* a bit for each request that is EXEC */
    bool is_loose;
    bool is_blind;
    bool has_shut;
    bool is_excused; /* weir may close this connection */
    /* weir has closed the connection, and pair_judge has not checked the reason yet */
    bool is_closed;
};

static struct talker pair[2];
static bool is_trusted;
static bool is_doubtful;  /* see pair_doubt */
static bool is_lane_lost; /* a lane is lost, and weir may not have noticed yet */

static unsigned set_of(const struct talker *talker)
{
    return talker == &pair[0] ? CLIENT_A : CLIENT_B;
}

/* ---- reading ---- */

static void look_for_marks(struct talker *talker)
{
    struct slice rest = slice_of(talker->in.at + talker->seen, talker->in.len - talker->seen);
    const char *at;
    while (rest.len > 0 && (at = memchr(rest.at, MARK_BYTE, rest.len)) != NULL) {
        unsigned number;
        rest = slice_of(at, (size_t)(rest.at + rest.len - at));
        if (rest.len < MARK_LEN)
            break;
        char who = mark_find(slice_of(rest.at, MARK_LEN), &number);
        MUST(who == talker->name);
        MUST(number == 0 ||
             (number >= talker->first && number >= talker->heard && number <= talker->asked));
        talker->heard = number > talker->heard ? number : talker->heard;
        rest = slice_of(rest.at + MARK_LEN, rest.len - MARK_LEN);
    }
    if (rest.len > 0 && memchr(rest.at, MARK_BYTE, rest.len) == NULL)
        rest.len = 0;
    talker->seen = talker->in.len - rest.len;
}

static bool is_counted(const struct talker *talker)
{
    return is_trusted && !talker->is_loose;
}

static bool is_exec(const struct talker *talker, unsigned number)
{
    return (talker->execs[number / 8 % sizeof talker->execs] >> number % 8 & 1) != 0;
}

static bool says(struct slice reply, const char *head)
{
    size_t n = strlen(head);
    return reply.len >= n && memcmp(reply.at, head, n) == 0;
}

static void judge(struct talker *talker, const struct reply *reply)
{
    unsigned number = 0;
    if (reply->type == '>')
        return;
    unsigned expected = talker->first + talker->answered++;
    MUST(expected <= talker->asked);
    /*
     * weir may close a client that Redis has logged in and that gets no lane. After an error alone
     * the client would not know its user.
     */
    talker->is_excused |= expected <= talker->login && says(reply->whole, "-UPSTREAM ");
    if (mark_find(reply->whole, &number) != 0 && number != 0)
        MUST(is_exec(talker, expected) ? number < expected : number == expected);
}

static void take_replies(struct talker *talker)
{
    struct reply reply;
    while (is_counted(talker) && talker->judged < talker->in.len) {
        size_t n = reply_read(
            slice_of(talker->in.at + talker->judged, talker->in.len - talker->judged), &reply);
        MUST(n != REPLY_BAD);
        if (n == REPLY_MORE)
            break;
        judge(talker, &reply);
        talker->judged += n;
    }
    if (!is_counted(talker))
        talker->judged = talker->in.len;
    size_t done = talker->judged < talker->seen ? talker->judged : talker->seen;
    if (done == 0)
        return;
    memmove(talker->in.at, talker->in.at + done, talker->in.len - done);
    talker->in.len -= done;
    talker->seen -= done;
    talker->judged -= done;
}

/* ---- its connection ---- */

static void hang_up(struct talker *talker, bool with_reset)
{
    trace_note(with_reset ? TRACE_RESET : TRACE_CLOSE, talker->conn->number, NULL, 0);
    conn_close(talker->conn, with_reset);
    talker->conn = NULL;
}

static void flush(struct talker *talker)
{
    size_t n = talker->out.len - talker->keeps;
    n = n > 0 ? conn_send(talker->conn, talker->out.at, n) : 0;
    if (n == 0)
        return;
    trace_note(TRACE_SEND, talker->conn->number, talker->out.at, n);
    memmove(talker->out.at, talker->out.at + n, talker->out.len - n);
    talker->out.len -= n;
}

static void take_turn(struct party *party)
{
    struct talker *talker = container_of(party, struct talker, party);
    if (talker->conn == NULL)
        return;
    flush(talker);
    struct slice here = conn_here(talker->conn);
    if (here.len > 0 && !talker->is_blind) {
        trace_note(TRACE_TAKE, talker->conn->number, here.at, here.len);
        MUST(bytes_add(&talker->in, here, MOST));
        conn_take(talker->conn, here.len);
        look_for_marks(talker);
        take_replies(talker);
    }
    if (conn_is_over(talker->conn)) {
        talker->is_closed = true;
        hang_up(talker, false);
    }
}

static void dial(struct talker *talker)
{
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_port = htons(20000)};
    from.sin_addr.s_addr = htonl(0x0a000000U + (unsigned)talker->name);
    talker->conn =
        conn_dial(PORT, NULL, (struct sockaddr *)&from, sizeof from, &talker->party, talker);
    MUST(talker->conn != NULL);
    talker->first = talker->asked + 1;
    talker->in.len = talker->out.len = talker->seen = talker->judged = talker->keeps =
        talker->answered = 0;
    talker->is_loose = talker->has_shut = talker->is_blind = false;
    talker->is_excused = is_doubtful;
}

/* ---- requests ---- */

static void send_what_is_said(struct talker *talker)
{
    talker->keeps = talker->to_keep < talker->out.len ? talker->to_keep : talker->out.len;
    talker->to_keep = 0;
    flush(talker);
    world_wake(&talker->party);
}

static size_t put_word(const struct talker *talker, const struct step *step, const char *from,
                       size_t n, char *out)
{
    size_t len = 0;
    char mark[MARK_ROOM];
    for (size_t i = 0; i < n; i++) {
        if (from[i] == '%' || from[i] == '@') {
            mark_print(mark, talker->name, from[i] == '@' ? 0 : talker->asked);
            memcpy(out + len, mark, MARK_LEN);
            len += MARK_LEN;
        } else if (from[i] == '^') {
            out[len++] = (char)('0' + step->b % 4);
        } else if (from[i] == '#') {
            for (size_t j = 0; j < step->bytes.len; j++)
                out[len++] = step->bytes.at[j] == MARK_BYTE ? '?' : step->bytes.at[j];
        } else {
            out[len++] = from[i];
        }
    }
    return len;
}

static void say(struct talker *talker, const struct step *step)
{
    const struct said *said = &table[step->a % (sizeof table / sizeof table[0])];
    char room[WORDS_MAX][WORD_ROOM];
    char request[WORDS_MAX * (WORD_ROOM + EMIT_HEADER_MAX + 2)];
    struct slice words[WORDS_MAX];
    size_t n = 0;
    talker->asked++;
    for (const char *at = said->words; *at != '\0';) {
        size_t len = strcspn(at, " ");
        words[n] = slice_of(room[n], put_word(talker, step, at, len, room[n]));
        n++;
        at += len + (at[len] == ' ');
    }
    talker->is_loose |= said->is_loose;
    if (strstr(said->words, "AUTH") != NULL)
        talker->login = talker->asked;
    uint8_t bit = (uint8_t)(1U << talker->asked % 8);
    uint8_t *execs = &talker->execs[talker->asked / 8 % sizeof talker->execs];
    *execs = said->is_exec ? *execs | bit : *execs & (uint8_t)~bit;
    MUST(bytes_add(&talker->out, slice_of(request, emit_array(request, words, n)), MOST));
}

static void say_raw(struct talker *talker, const struct step *step)
{
    char bytes[WORD_ROOM];
    talker->is_loose = true;
    for (size_t i = 0; i < step->bytes.len; i++)
        bytes[i] = step->bytes.at[i] == MARK_BYTE ? '?' : step->bytes.at[i];
    MUST(bytes_add(&talker->out, slice_of(bytes, step->bytes.len), MOST));
}

void pair_play(const struct step *step)
{
    struct talker *talker = &pair[step->is_b];
    if (talker->conn == NULL)
        dial(talker);
    switch (step->kind) {
    case STEP_SAY:
    case STEP_SAY_RAW:
        if (talker->has_shut)
            return;
        (step->kind == STEP_SAY ? say : say_raw)(talker, step);
        talker->is_excused |= is_lane_lost;
        send_what_is_said(talker);
        break;
    case STEP_CUT:
        talker->to_keep = step->a;
        break;
    case STEP_SHUT:
        talker->is_loose |= talker->out.len > 0; /* half a request */
        if (!talker->has_shut)
            conn_shut(talker->conn);
        talker->has_shut = true;
        break;
    case STEP_LEAVE:
        hang_up(talker, step->a % 2 == 1);
        dial(talker);
        break;
    case STEP_BLIND:
        talker->is_blind = !talker->is_blind;
        talker->is_excused = true;
        world_wake(&talker->party);
        break;
    default:
        break;
    }
}

/* ---- life cycle ---- */

void pair_start(void)
{
    is_trusted = true;
    is_lane_lost = is_doubtful = false;
    for (unsigned i = 0; i < 2; i++) {
        pair[i] = (struct talker){.name = (char)('A' + i), .in = pair[i].in, .out = pair[i].out};
        pair[i].party = (struct party){.turn = take_turn, .kind = "client", .index = i};
        dial(&pair[i]);
    }
}

void pair_settle(void)
{
    for (unsigned i = 0; i < 2; i++) {
        pair[i].keeps = 0;
        pair[i].is_blind = false;
        world_wake(&pair[i].party);
    }
}

char pair_waiting(void)
{
    for (unsigned i = 0; i < 2; i++)
        if (pair[i].conn != NULL && is_counted(&pair[i]) &&
            pair[i].first + pair[i].answered <= pair[i].asked)
            return pair[i].name;
    return 0;
}

void pair_judge(void)
{
    for (unsigned i = 0; i < 2; i++) {
        if (pair[i].is_closed)
            MUST(pair[i].is_excused || pair[i].is_loose || pair[i].has_shut ||
                 (!is_trusted && pair[i].login >= pair[i].first));
        pair[i].is_closed = false;
    }
    is_lane_lost = false;
}

void pair_excuse(unsigned who)
{
    for (unsigned i = 0; i < 2; i++)
        pair[i].is_excused |= (who & set_of(&pair[i])) != 0;
}

void pair_doubt(void)
{
    is_doubtful = true;
    pair_excuse(CLIENT_A | CLIENT_B);
}

void pair_excuse_busy(void)
{
    is_lane_lost = true;
    for (unsigned i = 0; i < 2; i++)
        pair[i].is_excused |= pair[i].first + pair[i].answered <= pair[i].asked;
}

void pair_distrust(void)
{
    is_trusted = false;
}

void pair_leave(void)
{
    for (unsigned i = 0; i < 2; i++)
        if (pair[i].conn != NULL)
            hang_up(&pair[i], i == 1);
}

void pair_stop(void)
{
    for (unsigned i = 0; i < 2; i++) {
        world_leave(&pair[i].party);
        if (pair[i].conn != NULL)
            hang_up(&pair[i], true);
    }
}
