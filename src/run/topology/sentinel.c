#include "run/topology/sentinel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/link.h"
#include "resp/emit.h"
#include "run/topology/question_pace.h"
#include "run/topology/sentinel_name.h"
#include "upstream/node/backoff.h"

/* time-out of an answer; Redis' guide for clients of sentinels says a few hundred ms */
#define QUESTION_NS (300 * NS_PER_MS)
/* after this silence of an address the next address is tried (RFC 8305) */
#define NEXT_NS (250 * NS_PER_MS)
#define CALM_NS (1 * NS_PER_S)
#define HURRY_NS (250 * NS_PER_MS)
#define LISTS_NS (10 * NS_PER_S) /* interval of questions for other sentinels and replicas */
/* interval of retries if a sentinel does not serve weir (chosen) */
#define AGAIN_NS (2 * NS_PER_S)
#define LOOK_NS (1 * NS_PER_S) /* least time between two lookups of an unresolved name */
#define SWITCH_CHANNEL "+switch-master"
#define MAX_WORDS 3

/* The questions, in the order of sending when several are due. */
enum ask {
    ASK_AUTH,
    ASK_HELLO,
    ASK_ID,
    ASK_SUBSCRIBE,
    ASK_ADDRESS,
    ASK_MASTER,
    ASK_SENTINELS,
    ASK_REPLICAS,
    ASKS
};

#define BIT(ask) (1U << (ask))

struct sentinel {
    struct link link;
    struct loop *loop;
    const struct sentinels_settings *common;
    struct address address;  /* as configured or announced; host: heap */
    char text[ADDRESS_TEXT]; /* of the address */
    const char *password;    /* NULL: none */
    const struct sentinel_ops *ops;
    void *arg;
    struct sentinel_word word;
    struct sentinel_server found; /* the answer to SENTINEL MASTER, while ASK_ADDRESS is asked */
    enum mastership_age told_age; /* the age when on_word was called last */
    struct sentinel_name name;
    struct backoff backoff;
    unsigned failures; /* connections in a row that failed or ended, since a good one */
    /* the connection */
    uv_timer_t timer; /* the next attempt, the end of a question, or the next question */
    bool is_open;     /* the link is in use */
    bool is_connected;
    bool is_closing;
    struct control_inbox inbox;
    unsigned due, shunned; /* bits of enum ask; shunned: questions with answers that are too long */
    enum ask asked;        /* ASKS: no question is under way */
    bool is_resp3;
    uint64_t lists_ns; /* when the lists were asked for last */
    uint64_t polled_ns;
    uint64_t retry_ns; /* fixed wait before the next attempt; 0: the back-off */
    enum mastership_pace pace;
    bool is_twin;
    struct question_budget budget;
};

static void connect_next(struct sentinel *sentinel);
static void sentinel_go_on(struct sentinel *sentinel);

/* ---- reports to the owner ---- */

enum mastership_age sentinel_age(const struct sentinel *sentinel)
{
    return sentinel_word_age(&sentinel->word, clock_ns());
}

static void sentinel_tell(struct sentinel *sentinel)
{
    enum mastership_age age = sentinel_age(sentinel);
    bool is_news = sentinel->word.is_changed || age != sentinel->told_age;
    sentinel->word.is_changed = false;
    sentinel->told_age = age;
    if (is_news)
        sentinel->ops->on_word(sentinel->arg);
}

/* Sets the trouble. Trouble that may pass soon is set only after the second failed attempt. */
static void set_trouble(struct sentinel *sentinel, enum sentinel_trouble trouble, struct slice why)
{
    bool may_pass = trouble == TROUBLE_AWAY || trouble == TROUBLE_SILENT;
    if (!may_pass || sentinel->word.trouble != TROUBLE_NONE || sentinel->failures > 1)
        sentinel_word_set_trouble(&sentinel->word, trouble, why);
}

/* ---- attempts ---- */

static void sentinel_on_retry(uv_timer_t *timer)
{
    connect_next(timer->data);
}

static uint64_t hurried(const struct sentinel *sentinel, uint64_t ns)
{
    return upstream_time(sentinel->common->upstream, ns);
}

static void sentinel_retry_later(struct sentinel *sentinel)
{
    uint64_t now_ns = clock_ns();
    uint64_t wait_ns = sentinel->retry_ns;
    if (wait_ns == 0 && sentinel->name.in_use == 0) { /* all addresses have been tried */
        backoff_fail(&sentinel->backoff, now_ns);
        wait_ns = sentinel->backoff.due_ns - now_ns;
    }
    sentinel->retry_ns = 0;
    uv_timer_start(&sentinel->timer, sentinel_on_retry, ns_to_ms_up(wait_ns), 0);
}

/* Ends the attempt, or the connection. */
static void sentinel_end_attempt(struct sentinel *sentinel, enum sentinel_trouble trouble,
                                 struct slice why)
{
    sentinel->failures++;
    set_trouble(sentinel, trouble, why);
    sentinel->is_connected = false;
    sentinel->due = 0;
    sentinel->asked = ASKS;
    uv_timer_stop(&sentinel->timer);
    if (sentinel->is_open)
        link_close(&sentinel->link); /* sentinel_on_closed goes on */
    else
        sentinel_retry_later(sentinel);
    sentinel_tell(sentinel);
}

static void sentinel_fail(struct sentinel *sentinel, const char *why)
{
    sentinel_name_go_round(&sentinel->name);
    sentinel_end_attempt(sentinel, TROUBLE_AWAY, slice_str(why));
}

/*
 * Ends the connection to a sentinel that is up but does not serve weir. The next attempt follows
 * after AGAIN_NS.
 */
static void sentinel_turn_away(struct sentinel *sentinel, enum sentinel_trouble trouble,
                               struct slice why)
{
    sentinel->retry_ns = hurried(sentinel, AGAIN_NS);
    sentinel_end_attempt(sentinel, trouble, why);
}

static void on_connect_deadline(uv_timer_t *timer)
{
    sentinel_fail(timer->data, "it does not accept connections");
}

static void on_question_deadline(uv_timer_t *timer)
{
    struct sentinel *sentinel = timer->data;
    sentinel_name_go_round(&sentinel->name);
    sentinel_end_attempt(sentinel, TROUBLE_SILENT, slice_str("no answer within 300 ms"));
}

/* ---- questions ---- */

static size_t words_of(const struct sentinel *sentinel, enum ask ask, struct slice words[MAX_WORDS])
{
    static const char *const questions[ASKS][2] = {
        [ASK_AUTH] = {"AUTH"},
        [ASK_HELLO] = {"HELLO", "3"},
        [ASK_ID] = {"SENTINEL", "MYID"},
        [ASK_SUBSCRIBE] = {"SUBSCRIBE", SWITCH_CHANNEL},
        [ASK_MASTER] = {"SENTINEL", "MASTER"},
        [ASK_ADDRESS] = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME"},
        [ASK_SENTINELS] = {"SENTINEL", "SENTINELS"},
        [ASK_REPLICAS] = {"SENTINEL", "REPLICAS"},
    };
    size_t n = 0;
    words[n++] = slice_str(questions[ask][0]);
    if (ask == ASK_AUTH) {
        if (sentinel->common->user != NULL)
            words[n++] = slice_str(sentinel->common->user);
        words[n++] = slice_str(sentinel->password);
        return n;
    }
    words[n++] = slice_str(questions[ask][1]);
    if (ask >= ASK_ADDRESS)
        words[n++] = slice_str(sentinel->common->master_name);
    return n;
}

static void sentinel_send_question(struct sentinel *sentinel, enum ask ask)
{
    struct slice words[MAX_WORDS];
    size_t n = words_of(sentinel, ask, words);
    size_t room = EMIT_HEADER_MAX * (n + 1);
    for (size_t i = 0; i < n; i++)
        room += words[i].len + 2;
    char *request = malloc(room);
    if (request == NULL) {
        sentinel_fail(sentinel, "out of memory");
        return;
    }
    size_t len = emit_array(request, words, n);
    link_write(&sentinel->link, request, len);
    explicit_bzero(request, len);
    free(request);
    sentinel->due &= ~BIT(ask);
    sentinel->asked = ask;
    question_budget_spend(&sentinel->budget, clock_ns());
    uv_timer_start(&sentinel->timer, on_question_deadline, QUESTION_NS / NS_PER_MS, 0);
}

static uint64_t pace_ns(const struct sentinel *sentinel)
{
    return sentinel->pace == PACE_HURRY ? HURRY_NS : CALM_NS;
}

/* Adds the questions that are due by time. */
static void note_due(struct sentinel *sentinel, uint64_t now_ns)
{
    uint64_t resolve_ns = hurried(sentinel, sentinel->common->resolve_ns);
    if (resolve_ns > 0 && now_ns - sentinel->name.looked_ns >= resolve_ns)
        sentinel_name_look(&sentinel->name);
    if (sentinel->is_twin || now_ns - sentinel->polled_ns < pace_ns(sentinel))
        return;
    sentinel->polled_ns = now_ns;
    sentinel->due |= BIT(ASK_MASTER);
    if (now_ns - sentinel->lists_ns < hurried(sentinel, LISTS_NS))
        return;
    sentinel->lists_ns = now_ns;
    sentinel->due |= BIT(ASK_SENTINELS);
    if (sentinel->common->asks_replicas)
        sentinel->due |= BIT(ASK_REPLICAS);
}

static void on_go_on(uv_timer_t *timer)
{
    struct sentinel *sentinel = timer->data;
    note_due(sentinel, clock_ns());
    sentinel_go_on(sentinel);
}

/* Sends the next question, or waits until one is due and within the budget. */
static void sentinel_go_on(struct sentinel *sentinel)
{
    uint64_t now_ns = clock_ns();
    if (!sentinel->is_connected || sentinel->asked != ASKS)
        return;
    sentinel->due &= ~sentinel->shunned;
    uint64_t next_ns = sentinel->polled_ns + pace_ns(sentinel);
    uint64_t wait_ns = sentinel->due != 0  ? question_budget_wait(&sentinel->budget, now_ns)
                       : sentinel->is_twin ? CALM_NS
                       : next_ns > now_ns  ? next_ns - now_ns
                                           : 0;
    if (sentinel->due != 0 && wait_ns == 0)
        sentinel_send_question(sentinel, (enum ask)__builtin_ctz(sentinel->due));
    else
        uv_timer_start(&sentinel->timer, on_go_on, ns_to_ms_up(wait_ns), 0);
}

void sentinel_ask(struct sentinel *sentinel)
{
    if (!sentinel->is_connected || sentinel->is_twin)
        return;
    sentinel->due |= BIT(ASK_MASTER);
    sentinel_go_on(sentinel);
}

/* ---- answers ---- */

/* After the login: asks for everything that weir needs. */
static void greeted(struct sentinel *sentinel)
{
    sentinel->polled_ns = sentinel->lists_ns = 0;
    sentinel->due |= BIT(ASK_ID) | (sentinel->is_resp3 ? BIT(ASK_SUBSCRIBE) : 0);
    note_due(sentinel, clock_ns());
}

/* Handles an error that any question may get. True: the connection is over. */
static bool sentinel_is_over(struct sentinel *sentinel, const struct said *said)
{
    if (said->kind != SAID_ERROR)
        return false;
    enum sentinel_refusal refusal = sentinel_judge_error(said->text);
    switch (refusal) {
    case SENTINEL_WANTS_LOGIN:
        sentinel_turn_away(sentinel,
                           sentinel->password != NULL ? TROUBLE_REFUSES_LOGIN : TROUBLE_WANTS_LOGIN,
                           said->text);
        return true;
    case SENTINEL_REFUSES_LOGIN:
        if (memmem(said->text.at, said->text.len, "called without any password", 27) != NULL)
            return false; /* the sentinel needs no login */
        sentinel_turn_away(sentinel, TROUBLE_REFUSES_LOGIN, said->text);
        return true;
    case SENTINEL_FORBIDS:
    case SENTINEL_UNKNOWN: /* weir can do without the answers to questions other than ASK_MASTER */
        if (sentinel->asked == ASK_MASTER)
            sentinel_turn_away(sentinel,
                               refusal == SENTINEL_FORBIDS ? TROUBLE_FORBIDS : TROUBLE_NO_SENTINEL,
                               said->text);
        return sentinel->asked == ASKS;
    default:
        return false;
    }
}

static void take_hello(struct sentinel *sentinel, const struct said *said)
{
    struct slice mode, proto;
    bool is_list = said->kind == SAID_LIST;
    sentinel->is_resp3 =
        is_list && said_field(said, "proto", &proto) && slice_eq(proto, slice_str("3"));
    if (is_list && said_field(said, "mode", &mode) && !slice_eq(mode, slice_str("sentinel")))
        sentinel_turn_away(sentinel, TROUBLE_NO_SENTINEL, mode);
    else
        greeted(sentinel);
}

/* Takes the claim for this server; port 0: a claim for no server. */
static void take_claim(struct sentinel *sentinel, const struct sentinel_server *server,
                       enum sentinel_trouble trouble, struct slice why)
{
    bool is_first = !sentinel->word.has_named;
    if (sentinel_word_take_claim(&sentinel->word, server, trouble, why, clock_ns()) && !is_first)
        sentinel->lists_ns = 0; /* the replicas have changed */
    sentinel->failures = 0;
    backoff_reset(&sentinel->backoff);
}

static void sentinel_take_master(struct sentinel *sentinel, const struct said *said)
{
    static const struct sentinel_server none;
    bool is_error = said->kind == SAID_ERROR;
    bool is_read = sentinel_read_server(said, &sentinel->found);
    if (is_read && sentinel->found.is_failing_over)
        /* the leader of a failover names the promoted replica first in the answer to ASK_ADDRESS */
        sentinel->due |= BIT(ASK_ADDRESS);
    else if (is_read)
        take_claim(sentinel, &sentinel->found, TROUBLE_NONE, slice_of("", 0));
    else if (is_error && sentinel_judge_error(said->text) == SENTINEL_KNOWS_NO_NAME)
        take_claim(sentinel, &none, TROUBLE_NO_NAME, slice_of("", 0));
    else
        take_claim(sentinel, &none, TROUBLE_NO_SERVER, is_error ? said->text : slice_of("", 0));
}

static void sentinel_take_address(struct sentinel *sentinel, const struct said *said)
{
    struct sentinel_server server = sentinel->found;
    struct slice texts[2];
    if (said->kind == SAID_LIST && said_texts(said, texts, 2) &&
        sentinel_read_address(texts[0], texts[1], &server))
        sentinel->found = server;
    take_claim(sentinel, &sentinel->found, TROUBLE_NONE, slice_of("", 0));
}

static void sentinel_take_answer(struct sentinel *sentinel, const struct said *said)
{
    enum ask asked = sentinel->asked;
    if (sentinel_is_over(sentinel, said))
        return;
    sentinel->asked = ASKS;
    if (asked == ASK_HELLO)
        take_hello(sentinel, said);
    else if (asked == ASK_ID)
        sentinel_word_take_id(&sentinel->word, said);
    else if (asked == ASK_MASTER)
        sentinel_take_master(sentinel, said);
    else if (asked == ASK_ADDRESS)
        sentinel_take_address(sentinel, said);
    else if (asked == ASK_SENTINELS)
        sentinel_word_take_peers(&sentinel->word, said);
    else if (asked == ASK_REPLICAS)
        sentinel_word_take_replicas(&sentinel->word, said);
    sentinel_go_on(sentinel);
}

/* "NAME old-ip old-port ip port" */
static bool is_about(const struct sentinel *sentinel, struct slice payload)
{
    size_t len = strlen(sentinel->common->master_name);
    return payload.len > len && payload.at[len] == ' ' &&
           memcmp(payload.at, sentinel->common->master_name, len) == 0;
}

static void take_push(struct sentinel *sentinel, const struct said *said)
{
    struct slice payload, kind;
    if (sentinel->asked == ASK_SUBSCRIBE && said_texts(said, &kind, 1) &&
        slice_eq(kind, slice_str("subscribe"))) {
        sentinel_take_answer(sentinel, said);
        return;
    }
    if (!sentinel_read_message(said, SWITCH_CHANNEL, &payload) || !is_about(sentinel, payload))
        return;
    sentinel_ask(sentinel);
    sentinel->ops->on_switch(sentinel->arg);
}

/* ---- the connection ---- */

static struct sentinel *sentinel_of(struct link *link)
{
    return container_of(link, struct sentinel, link);
}

static void sentinel_on_connected(struct link *link, int status)
{
    struct sentinel *sentinel = sentinel_of(link);
    if (status != 0) {
        sentinel_fail(sentinel, link_why(link, status));
        return;
    }
    sentinel->is_connected = true;
    sentinel->is_resp3 = false;
    sentinel->asked = ASKS;
    sentinel->due = BIT(ASK_HELLO) | (sentinel->password != NULL ? BIT(ASK_AUTH) : 0);
    sentinel_go_on(sentinel);
}

/* Ends the connection. A list that is too long is not asked for again. */
static void give_up_reading(struct sentinel *sentinel)
{
    if (sentinel->asked == ASK_SENTINELS || sentinel->asked == ASK_REPLICAS) {
        sentinel->shunned |= BIT(sentinel->asked);
        sentinel_fail(sentinel, "its list of servers is too long");
    } else {
        sentinel_turn_away(sentinel, TROUBLE_UNREADABLE, slice_of("", 0));
    }
}

static void sentinel_take_frame(struct sentinel *sentinel, struct slice frame)
{
    struct said said;
    bool is_read = said_next(&frame, &said);
    if (!is_read || (said.kind != SAID_PUSH && sentinel->asked == ASKS))
        give_up_reading(sentinel);
    else if (said.kind == SAID_PUSH)
        take_push(sentinel, &said);
    else
        sentinel_take_answer(sentinel, &said);
}

static void sentinel_on_data(struct link *link, const char *data, size_t n)
{
    struct sentinel *sentinel = sentinel_of(link);
    while (n > 0 && !link_is_closed(link)) {
        size_t used;
        struct slice frame;
        enum scan_result result = control_inbox_take(&sentinel->inbox, data, n, &used, &frame);
        if (result == SCAN_BAD) {
            give_up_reading(sentinel);
            return;
        }
        data += used;
        n -= used;
        if (result == SCAN_FRAME)
            sentinel_take_frame(sentinel, frame);
    }
    if (!link_is_closed(link))
        sentinel_tell(sentinel);
}

static void sentinel_on_end(struct link *link, int status)
{
    struct sentinel *sentinel = sentinel_of(link);
    sentinel_fail(sentinel, status == UV_EOF ? "it closed the connection" : link_why(link, status));
}

static void sentinel_on_timer_closed(uv_handle_t *handle)
{
    struct sentinel *sentinel = handle->data;
    address_fini(&sentinel->address);
    free(sentinel);
}

static void sentinel_finish_closing(struct sentinel *sentinel)
{
    uv_close((uv_handle_t *)&sentinel->timer, sentinel_on_timer_closed);
}

static void sentinel_on_closed(struct link *link)
{
    struct sentinel *sentinel = sentinel_of(link);
    sentinel->is_open = false;
    control_inbox_fini(&sentinel->inbox);
    if (sentinel->is_closing)
        sentinel_finish_closing(sentinel);
    else
        sentinel_retry_later(sentinel);
}

static const struct link_ops link_ops = {
    .on_connected = sentinel_on_connected,
    .on_data = sentinel_on_data,
    .on_end = sentinel_on_end,
    .on_closed = sentinel_on_closed,
};

/* ---- name lookup ---- */

static void on_name(void *arg, enum name_news news, const char *why)
{
    struct sentinel *sentinel = arg;
    if (news == NAME_LOST)
        sentinel_end_attempt(sentinel, TROUBLE_AWAY, slice_str(why));
    else if (news == NAME_FOUND)
        connect_next(sentinel);
    else if (sentinel->is_open)
        sentinel_end_attempt(sentinel, TROUBLE_AWAY,
                             slice_str("its name resolves to another address"));
}

/* The lookup of the name takes longer than connect-timeout. */
static void on_look_late(uv_timer_t *timer)
{
    struct sentinel *sentinel = timer->data;
    set_trouble(sentinel, TROUBLE_AWAY, slice_str("its name has not been resolved yet"));
    sentinel_tell(sentinel);
}

/* Looks the name up if there is no address yet, as far as a lookup is allowed. */
static void sentinel_find_address(struct sentinel *sentinel)
{
    uint64_t connect_ns = sentinel->common->upstream->connect_timeout_ns;
    if (sentinel->name.resolver == NULL) {
        sentinel->retry_ns = hurried(sentinel, AGAIN_NS);
        sentinel_end_attempt(sentinel, TROUBLE_AWAY, slice_str(sentinel->name.refusal));
    } else if (sentinel_name_is_looking(&sentinel->name)) {
        uv_timer_start(&sentinel->timer, on_look_late, ns_to_ms_up(connect_ns), 0);
    } else {
        uv_timer_start(&sentinel->timer, sentinel_on_retry, ns_to_ms_up(hurried(sentinel, LOOK_NS)),
                       0);
    }
}

static void connect_next(struct sentinel *sentinel)
{
    struct upstream *upstream = sentinel->common->upstream;
    if (sentinel->name.in_use == 0)
        sentinel_name_look(&sentinel->name);
    const struct endpoint *endpoint = sentinel_name_endpoint(&sentinel->name);
    if (endpoint == NULL) {
        sentinel_find_address(sentinel);
        return;
    }
    struct tls_context *tls = upstream_tls(upstream);
    const struct link_target target = {
        .endpoint = endpoint, .tls = tls, .server_name = sentinel->address.host};
    int status = link_connect(&sentinel->link, sentinel->loop, RANK_LANE, &target, &link_ops);
    tls_context_put(tls);
    if (status != 0) {
        sentinel_fail(sentinel, uv_strerror(status));
        return;
    }
    sentinel->is_open = true;
    uint64_t wait_ns =
        sentinel_name_is_last(&sentinel->name) ? upstream->connect_timeout_ns : NEXT_NS;
    uv_timer_start(&sentinel->timer, on_connect_deadline, ns_to_ms_up(wait_ns), 0);
}

/* ---- the life of a sentinel ---- */

struct sentinel *sentinel_open(struct loop *loop, const struct sentinel_settings *settings,
                               const struct sentinel_ops *ops, void *arg)
{
    struct sentinel *sentinel = mem_zalloc(1, sizeof *sentinel);
    sentinel->inbox.most = SENTINEL_REPLY_MAX;
    sentinel->loop = loop;
    sentinel->common = settings->common;
    sentinel->address =
        (struct address){.host = mem_strdup(settings->host), .port = settings->port};
    address_print(&sentinel->address, sentinel->text, sizeof sentinel->text);
    snprintf(sentinel->word.id, sizeof sentinel->word.id, "%.*s", SENTINEL_ID - 1, sentinel->text);
    sentinel->word.trouble = TROUBLE_UNTRIED;
    sentinel->told_age = CLAIM_OLD;
    sentinel->password = settings->password;
    sentinel->ops = ops;
    sentinel->arg = arg;
    sentinel->asked = ASKS;
    uv_timer_init(&loop->uv, &sentinel->timer);
    sentinel->timer.data = sentinel;
    sentinel->name = (struct sentinel_name){.upstream = settings->common->upstream,
                                            .dialling = settings->common->dialling,
                                            .on_news = on_name,
                                            .arg = sentinel};
    sentinel_name_init(&sentinel->name, loop, &sentinel->address);
    uv_timer_start(&sentinel->timer, sentinel_on_retry, 0, 0);
    return sentinel;
}

const struct sentinel_word *sentinel_word(const struct sentinel *sentinel)
{
    return &sentinel->word;
}

const char *sentinel_text(const struct sentinel *sentinel)
{
    return sentinel->text;
}

void sentinel_set_pace(struct sentinel *sentinel, enum mastership_pace pace)
{
    bool is_faster = pace == PACE_HURRY && sentinel->pace != PACE_HURRY;
    sentinel->pace = pace;
    if (is_faster)
        sentinel_go_on(sentinel);
}

void sentinel_set_twin(struct sentinel *sentinel, bool is_twin)
{
    bool is_news = sentinel->is_twin != is_twin;
    sentinel->is_twin = is_twin;
    if (is_news)
        sentinel_go_on(sentinel);
}

void sentinel_set_password(struct sentinel *sentinel, const char *password)
{
    enum sentinel_trouble trouble = sentinel->word.trouble;
    bool waits = trouble == TROUBLE_WANTS_LOGIN || trouble == TROUBLE_REFUSES_LOGIN;
    sentinel->password = password;
    if (waits && !sentinel->is_open)
        uv_timer_start(&sentinel->timer, sentinel_on_retry, 0, 0);
}

void sentinel_close(struct sentinel *sentinel)
{
    sentinel->is_closing = true;
    uv_timer_stop(&sentinel->timer);
    sentinel_name_fini(&sentinel->name);
    if (sentinel->is_open)
        link_close(&sentinel->link);
    else
        sentinel_finish_closing(sentinel);
}
