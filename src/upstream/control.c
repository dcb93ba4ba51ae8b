#include "upstream/control.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "resp/emit.h"
#include "upstream/control_reply.h"
#include "upstream/lane/lack.h"
#include "upstream/lane/own_words.h"
#include "upstream/node/backoff.h"
#include "upstream/node/heartbeat.h"

#define MAX_WORDS 3
#define ASKED_MAX 8 /* the probe, and a few commands of the owner */
/* bytes; a table of commands needs less, even with the commands of many modules */
#define TABLE_BYTES (4 << 20)
#define WHY_ROOM 160
/* chosen: retry interval for a server that cannot be used, and for missing answers */
#define AGAIN_NS (10 * NS_PER_S)

/* A command that is sent, and not answered yet. on_answer is NULL for weir's own probe. */
struct asked {
    struct control_question question;
    uint64_t asked_ns;
};

struct control {
    struct link link;
    struct loop *loop;
    struct node *node;
    const char *user; /* NULL: only a password */
    char *password;   /* heap; NULL: none */
    /* the previous password, tried if `password` is refused; heap; NULL: none */
    char *before;
    uint32_t number;    /* number of `password` */
    bool uses_before;   /* this connection logs in with `before` */
    bool is_step_again; /* repeat the present step */
    const struct control_ops *ops;
    void *arg;
    /*
     * due at the next attempt, or at the deadline of the present step; while up, at the next probe
     */
    uv_timer_t timer;
    struct control_inbox inbox;
    struct backoff backoff;
    struct heartbeat heartbeat;
    struct asked asked[ASKED_MAX]; /* the oldest first; used only while up */
    size_t n_asked;
    uint8_t step;
    uint64_t step_ns;   /* when the command of `step` was sent */
    struct nonce nonce; /* of the present step */
    bool has_form;      /* the node answers a nonce form */
    uint32_t missing;   /* steps without a usable answer, as bits: repeated later */
    uint64_t again_ns;  /* when the missing steps are repeated */
    /* the reason when the node was last found unfit or barred; "": no reason */
    char why[WHY_ROOM];
    bool is_open;      /* the link is in use */
    bool has_answered; /* HELLO was answered on this connection, possibly by NOAUTH */
    bool is_greeting;  /* connected, and nothing answered yet */
    bool is_settled;
    bool is_up;   /* all steps are done, possibly without success */
    bool is_lost; /* the loss is logged */
    bool was_up;  /* is_up was set at any time before */
    bool is_turned_away;
    bool is_trial;   /* failures are not retried or logged: the owner handles them */
    bool knows_role; /* the node has reported its role on this connection */
    bool asks_role;  /* ask for the role once no other command is in flight */
    bool is_closing;
};

static void connect_now(struct control *control);
static void next_step(struct control *control);

static const char *password_now(const struct control *control)
{
    return control->uses_before ? control->before : control->password;
}

static struct control *control_of(struct link *link)
{
    return container_of(link, struct control, link);
}

/* ---- failures and retries ---- */

static void control_on_retry(uv_timer_t *timer)
{
    connect_now(timer->data);
}

static void control_settle(struct control *control)
{
    if (control->is_settled)
        return;
    control->is_settled = true;
    control->ops->on_settled(control->arg);
}

static void control_retry_later(struct control *control)
{
    if (control->is_trial)
        return;
    uint64_t now_ns = clock_ns();
    backoff_fail(&control->backoff, now_ns);
    uint64_t wait_ns = control->backoff.due_ns - now_ns;
    if (node_is_barred(control->node))
        wait_ns = upstream_time(control->node->upstream, AGAIN_NS);
    uv_timer_start(&control->timer, control_on_retry, wait_ns / NS_PER_MS, 0);
}

static void control_end_attempt(struct control *control, const char *why)
{
    control->is_up = control->is_turned_away = false;
    atomic_store_explicit(&control->node->answers, false, memory_order_relaxed);
    heartbeat_end(&control->heartbeat);
    reach_doubt(&control->node->reach);
    control->n_asked = 0;
    control->is_lost = true;
    uv_timer_stop(&control->timer);
    if (control->is_open)
        link_close(&control->link); /* control_on_closed continues */
    else
        control_retry_later(control);
    control_settle(control);
    control->ops->on_failed(control->arg, why);
}

static void control_lose(struct control *control, const char *why)
{
    if (!control->is_lost && !control->is_trial)
        log_at(LOG_SITE_CONTROL, LOG_WARN, "upstream %s: the control connection failed: %s",
               control->node->text, why);
    control->why[0] = '\0';
    /* clients' connections are lost, too; these clients will reconnect (limit/reconnects.h) */
    if (control->is_up)
        atomic_store_explicit(&control->node->upstream->away_ns, clock_ns(), memory_order_relaxed);
    control_end_attempt(control, why);
}

/* Ends the connection to a node that answers, but cannot be used. Logs a reason once. */
static void reject(struct control *control, enum control_verdict verdict, const char *why)
{
    bool is_news = strncmp(control->why, why, WHY_ROOM - 1) != 0;
    atomic_store_explicit(&control->node->is_barred, verdict == CONTROL_BARRED,
                          memory_order_relaxed);
    snprintf(control->why, sizeof control->why, "%s", why);
    control_end_attempt(control, control->why);
    if (is_news && !control->is_trial)
        control->ops->on_rejected(control->arg, control->why);
}

/*
 * A node that accepts connections but answers nothing is up: clients' requests wait, as for a node
 * that hangs later.
 */
static void control_on_deadline(uv_timer_t *timer)
{
    struct control *control = timer->data;
    control_lose(control, "it does not answer within connect-timeout");
    heartbeat_note_mute(&control->heartbeat, control->is_greeting);
}

/* ---- the steps: one command each, and the meaning of its answer ---- */

enum step {
    STEP_HELLO,
    STEP_AUTH,
    STEP_ROLE,
    STEP_INFO,
    STEP_PING,
    STEP_CLIENTS,
    /* one step for each nonce form, in the order of enum nonce_form, until a form is answered */
    STEP_NONCE,
    STEP_NONCE_HELLO,
    STEP_NONCE_ECHO,
    STEP_COMMAND, /* the last step: CLIENT LIST shows COMMAND for this connection */
    STEP_COUNT
};

static bool is_nonce(enum step step)
{
    return step >= STEP_NONCE && step <= STEP_NONCE_ECHO;
}

static void miss(struct control *control, enum step step)
{
    control->missing |= 1U << step;
}

static bool is_missing(const struct control *control, enum step step)
{
    return (control->missing >> step & 1) != 0;
}

/* Note `lack` if the node denies this step, and clear `lack` after a good answer. */
static void control_note_lack(struct control *control, enum step step, enum control_verdict verdict,
                              enum lack lack)
{
    if (verdict == CONTROL_GOOD) {
        node_lacks_no_more(control->node, lack);
        return;
    }
    miss(control, step);
    if (verdict == CONTROL_DENIED)
        node_lacks(control->node, lack);
    if (verdict != CONTROL_NOAUTH || control->password != NULL)
        return;               /* a refused password has its own lack */
    miss(control, STEP_AUTH); /* a reload may add a password */
    node_lacks(control->node, LACK_USER);
}

/*
 * True if the node serves clients in spite of this error: for example -MISCONF to PING, while the
 * node takes no writes.
 */
static bool is_minor(const struct control *control, enum control_verdict verdict,
                     const struct redisReply *reply)
{
    return control->has_answered && verdict == CONTROL_UNFIT && reply->type == REDIS_REPLY_ERROR &&
           !control_is_shut(reply);
}

static void note_role(struct control *control, const struct redisReply *reply)
{
    enum node_role role = control_read_role(reply);
    if (role == ROLE_UNKNOWN)
        return;
    control->missing &= ~(1U << STEP_ROLE);
    control->asks_role = false;
    control->knows_role = true;
    node_note_role(control->node, role);
    control->ops->on_role(control->arg);
}

static enum control_form control_form_of(const struct control *control)
{
    return control->node->upstream->is_cluster ? CONTROL_OF_CLUSTER : CONTROL_OF_SERVER;
}

static enum control_verdict judge_hello(struct control *control, const struct redisReply *reply,
                                        const char **why)
{
    enum control_verdict verdict = control_judge_hello(reply, control_form_of(control), why);
    control->has_answered = verdict == CONTROL_GOOD || verdict == CONTROL_NOAUTH;
    if (verdict == CONTROL_GOOD || verdict == CONTROL_NOAUTH || verdict == CONTROL_BARRED)
        node_note_auth(control->node, verdict == CONTROL_NOAUTH);
    if (verdict == CONTROL_NOAUTH && control->password != NULL)
        miss(control, STEP_ROLE);
    note_role(control, reply);
    return verdict;
}

/*
 * HELLO, which needs no permission, asks for the role: after the login, and for control_ask_role.
 */
static enum control_verdict judge_role(struct control *control, const struct redisReply *reply,
                                       const char **why)
{
    note_role(control, reply);
    return control_judge_hello(reply, control_form_of(control), why);
}

/* True if the previous password can be tried. */
static bool try_before(struct control *control)
{
    upstream_note_refusal(control->node->upstream);
    if (control->before == NULL || control->uses_before)
        return false;
    control->uses_before = control->is_step_again = true;
    miss(control, STEP_AUTH);
    return true;
}

/*
 * After a login with the previous password the newest password is tried again later, with the
 * missing steps.
 */
static void note_accepted(struct control *control)
{
    node_lacks_no_more(control->node, LACK_USER);
    if (control->uses_before)
        miss(control, STEP_AUTH);
    else
        atomic_store_explicit(&control->node->proven_number, control->number, memory_order_relaxed);
}

/*
 * If clients use weir's login (lends_login), a node that refuses this login cannot be used. A
 * connection that is up keeps its login when a new login is refused.
 */
static enum control_verdict judge_auth(struct control *control, const struct redisReply *reply,
                                       const char **why)
{
    enum control_verdict verdict = control_judge_auth(reply, why);
    if (verdict == CONTROL_UNFIT)
        return verdict;
    if (verdict == CONTROL_DENIED && try_before(control))
        return CONTROL_GOOD;
    control_note_lack(control, STEP_AUTH, verdict, node_login_lack(control->node));
    node_note_login(control->node, verdict == CONTROL_GOOD);
    if (verdict == CONTROL_GOOD)
        note_accepted(control);
    if (verdict == CONTROL_GOOD || control->is_up || !control->node->upstream->lends_login)
        return verdict;
    *why = control->node->upstream->has_user
               ? "it does not accept upstream-user and upstream-password-file"
               : "it does not accept the password in upstream-password-file";
    return CONTROL_UNFIT;
}

static enum control_verdict judge_info(struct control *control, const struct redisReply *reply,
                                       const char **why)
{
    enum control_verdict verdict = control_judge_info(reply, control_form_of(control), why);
    if (is_minor(control, verdict, reply))
        verdict = CONTROL_DENIED;
    if (verdict == CONTROL_UNFIT || verdict == CONTROL_BARRED)
        return verdict;
    control_note_lack(control, STEP_INFO, verdict, LACK_INFO);
    if (verdict != CONTROL_NOAUTH && control->password == NULL)
        node_lacks_no_more(control->node, LACK_USER);
    return verdict;
}

static enum control_verdict judge_clients(struct control *control, const struct redisReply *reply,
                                          const char **why)
{
    (void)why;
    atomic_store_explicit(&control->node->maxclients, control_read_maxclients(reply),
                          memory_order_relaxed);
    control->ops->on_maxclients(control->arg);
    if (is_missing(control, STEP_INFO))
        miss(control, STEP_CLIENTS);
    return CONTROL_GOOD;
}

static enum control_verdict judge_command(struct control *control, const struct redisReply *reply,
                                          const char **why)
{
    if (control->is_settled && !mem_would_give(TABLE_BYTES)) {
        log_at(LOG_SITE_CONTROL, LOG_WARN,
               "upstream %s: out of memory: weir keeps the last known commands of this "
               "server",
               control->node->text);
        return CONTROL_GOOD;
    }
    struct command_table *table = control_read_commands(reply);
    if (table != NULL) {
        node_lacks_no_more(control->node, LACK_COMMAND);
        control->ops->on_table(control->arg, table);
        return CONTROL_GOOD;
    }
    enum control_verdict verdict = control_judge_command(reply, why);
    if (verdict != CONTROL_UNFIT)
        control_note_lack(control, STEP_COMMAND, verdict, LACK_COMMAND);
    return verdict;
}

/* Lanes use the first nonce form that the node answers. */
static enum control_verdict judge_nonce(struct control *control, const struct redisReply *reply,
                                        const char **why)
{
    (void)why;
    struct node *node = control->node;
    enum nonce_form form = (enum nonce_form)(control->step - STEP_NONCE + NONCE_UNKNOWN);
    control->has_form = control_repeats(reply, slice_of(control->nonce.text, NONCE_LEN));
    if (control->has_form) {
        atomic_store_explicit(&node->nonce_form, (uint8_t)form, memory_order_relaxed);
        node_lacks_no_more(node, LACK_PROOF);
    } else if (form == NONCE_ECHO) {
        atomic_store_explicit(&node->nonce_form, NONCE_NONE, memory_order_relaxed);
        node_lacks(node, LACK_PROOF);
        for (int step = STEP_NONCE; step <= STEP_NONCE_ECHO; step++)
            miss(control, (enum step)step);
    }
    return CONTROL_GOOD;
}

static enum control_verdict judge_ping(struct control *control, const struct redisReply *reply,
                                       const char **why)
{
    enum control_verdict verdict = control_judge_ping(reply, why);
    if (is_minor(control, verdict, reply))
        return CONTROL_GOOD;
    control->heartbeat.may_not_ping = verdict == CONTROL_DENIED;
    return verdict;
}

static const struct {
    const char *request;
    const char *word; /* argument; NULL: none */
    enum control_verdict (*judge)(struct control *control, const struct redisReply *reply,
                                  const char **why);
} steps[STEP_COUNT] = {
    /* sent before the login: the answer shows whether the server accepts weir at all */
    [STEP_HELLO] = {OWN_HELLO, NULL, judge_hello},
    [STEP_AUTH] = {"AUTH", NULL, judge_auth},
    [STEP_ROLE] = {OWN_HELLO, NULL, judge_role},
    [STEP_INFO] = {"INFO", "server", judge_info},
    /* only PING shows whether the server serves clients */
    [STEP_PING] = {OWN_PING, NULL, judge_ping},
    [STEP_CLIENTS] = {"INFO", "clients", judge_clients},
    [STEP_NONCE] = {NULL, NULL, judge_nonce}, /* nonce_request makes the request */
    [STEP_NONCE_HELLO] = {NULL, NULL, judge_nonce},
    [STEP_NONCE_ECHO] = {NULL, NULL, judge_nonce},
    [STEP_COMMAND] = {"COMMAND", NULL, judge_command},
};

static void send_words(struct control *control, const struct slice *words, size_t n)
{
    size_t room = EMIT_HEADER_MAX * (n + 1);
    for (size_t i = 0; i < n; i++)
        room += words[i].len + 2;
    char *request = malloc(room);
    if (request == NULL) {
        control_lose(control, "out of memory");
        return;
    }
    size_t len = emit_array(request, words, n);
    link_write(&control->link, request, len);
    explicit_bzero(request, len);
    free(request);
}

static void send_nonce(struct control *control, enum nonce_form form)
{
    char request[NONCE_REQUEST_ROOM];
    if (nonce_draw(&control->nonce, form))
        link_write(&control->link, request, nonce_request(&control->nonce, request));
    else
        control_lose(control, "the system has no random numbers");
}

/* ---- the probe, once up ---- */

static void ask(struct control *control, const struct slice *words, size_t n,
                const struct control_question *question)
{
    control->asked[control->n_asked++] = (struct asked){*question, clock_ns()};
    send_words(control, words, n);
}

static void control_on_ask(void *arg, struct slice beat)
{
    ask(arg, &beat, 1, &(struct control_question){.on_answer = NULL, .name = "PING"});
}

static void control_on_news(void *arg, enum log_level level, const char *line)
{
    struct control *control = arg;
    control->ops->on_pulse(control->arg, level, line);
}

static const struct heartbeat_ops heartbeat_ops = {.on_ask = control_on_ask,
                                                   .on_news = control_on_news};

/* True if missing steps should be repeated now, on this connection, between two probes. */
static bool is_again(const struct control *control, uint64_t now_ns)
{
    return control->missing != 0 && now_ns >= control->again_ns && control->n_asked == 0;
}

static void ask_role_if_free(struct control *control)
{
    if (!control->asks_role || !control->is_up || control->step < STEP_COUNT ||
        control->n_asked > 0)
        return;
    control->asks_role = false;
    miss(control, STEP_ROLE);
    control->step = STEP_ROLE;
    next_step(control);
}

void control_ask_role(struct control *control)
{
    control->asks_role = true;
    ask_role_if_free(control);
}

static void on_beat(uv_timer_t *timer)
{
    struct control *control = timer->data;
    uint64_t now_ns = clock_ns();
    if (is_again(control, now_ns)) {
        control->uses_before = false;
        control->step = STEP_AUTH;
        next_step(control);
    } else if (control->node->upstream->check_ns > 0 &&
               !heartbeat_tick(&control->heartbeat, now_ns, control->user, password_now(control))) {
        control_lose(control, "it gets no replies, while other connections do");
    }
}

/* Returns the time between two probes in ms; 0: no probes. */
static uint64_t beat_ms(const struct control *control)
{
    const struct upstream *upstream = control->node->upstream;
    uint64_t again_ns = control->missing != 0 ? upstream_time(upstream, AGAIN_NS) : 0;
    return (upstream->check_ns > 0 ? upstream->check_ns : again_ns) / NS_PER_MS;
}

static void settled_well(struct control *control)
{
    const struct upstream *upstream = control->node->upstream;
    uint64_t again_ns = control->missing != 0 ? upstream_time(upstream, AGAIN_NS) : 0;
    uint64_t every_ms = beat_ms(control);
    uv_timer_stop(&control->timer);
    atomic_store_explicit(&control->node->is_barred, false, memory_order_relaxed);
    atomic_store_explicit(&control->node->asks_lanes, !control->knows_role, memory_order_relaxed);
    control->again_ns = clock_ns() + again_ns;
    if (every_ms > 0)
        uv_timer_start(&control->timer, on_beat, every_ms, every_ms);
    backoff_reset(&control->backoff);
    if (control->is_lost && control->why[0] == '\0')
        log_at(LOG_SITE_CONTROL, LOG_INFO, "upstream %s: the control connection is back",
               control->node->text);
    else if (control->is_lost)
        log_at(LOG_SITE_CONTROL, LOG_INFO, "upstream %s can be served", control->node->text);
    control->why[0] = '\0';
    control->is_lost = false;
    control->is_up = control->was_up = true;
    atomic_store_explicit(&control->node->answers, true, memory_order_relaxed);
    control_settle(control);
    ask_role_if_free(control);
}

/*
 * True to skip the step. While a connection comes up, all steps are done, but AUTH only with a
 * password, and ROLE only if the role is missing. On a connection that is up, only steps with a
 * missing answer are done.
 */
static bool is_passed_over(const struct control *control, enum step step)
{
    if ((step == STEP_AUTH && control->password == NULL) ||
        (step > STEP_NONCE && is_nonce(step) && control->has_form) ||
        (step == STEP_ROLE && !is_missing(control, STEP_ROLE)))
        return true;
    return control->is_up && !is_missing(control, step);
}

static void next_step(struct control *control)
{
    while (control->step < STEP_COUNT && is_passed_over(control, (enum step)control->step))
        control->step++;
    if (control->step >= STEP_COUNT) {
        settled_well(control);
        return;
    }
    control->missing &= ~(1U << control->step);
    control->step_ns = clock_ns();
    uv_timer_start(&control->timer, control_on_deadline,
                   control->node->upstream->connect_timeout_ns / NS_PER_MS, 0);
    if (is_nonce((enum step)control->step)) {
        send_nonce(control, (enum nonce_form)(control->step - STEP_NONCE + NONCE_UNKNOWN));
        return;
    }
    struct slice words[MAX_WORDS] = {slice_str(steps[control->step].request)};
    size_t n = 1;
    if (control->step == STEP_AUTH) {
        if (control->user != NULL)
            words[n++] = slice_str(control->user);
        words[n++] = slice_str(password_now(control));
    } else if (steps[control->step].word != NULL) {
        words[n++] = slice_str(steps[control->step].word);
    }
    send_words(control, words, n);
}

/* ---- the connection ---- */

static void control_on_connected(struct link *link, int status)
{
    struct control *control = control_of(link);
    if (status != 0) {
        control_lose(control, link_why(link, status));
        return;
    }
    control->step = STEP_HELLO;
    control->uses_before = control->has_answered = false;
    control->missing = 0;
    control->has_form = false;
    control->knows_role = false;
    control->is_greeting = true;
    control->ops->on_connected(control->arg);
    next_step(control);
}

static void control_take_frame(struct control *control, struct slice frame)
{
    control->is_greeting = false;
    node_note_trip(control->node, clock_ns() - control->step_ns);
    heartbeat_note_mute(&control->heartbeat, false);
    struct redisReply *reply = control_read(frame);
    if (reply == NULL) {
        control_lose(control, "weir cannot parse its reply");
        return;
    }
    const char *why = NULL;
    enum control_verdict verdict = steps[control->step].judge(control, reply, &why);
    bool is_unfit = verdict == CONTROL_UNFIT || verdict == CONTROL_BARRED;
    if (is_unfit) {
        reject(control, verdict, why);
        control->is_turned_away = verdict == CONTROL_UNFIT && !control_is_idle(reply);
    }
    control_reply_free(reply);
    if (is_unfit)
        return;
    if (!control->is_step_again && control->step++ == STEP_HELLO)
        control->ops->on_greeted(control->arg);
    control->is_step_again = false;
    next_step(control);
}

/* ---- commands of the owner ---- */

static bool control_is_asked(const struct control *control, const struct control_question *question)
{
    for (size_t i = 0; i < control->n_asked; i++)
        if (control->asked[i].question.on_answer == question->on_answer)
            return true;
    return false;
}

bool control_ask(struct control *control, const struct slice *words, size_t n,
                 const struct control_question *question)
{
    bool has_room = control->n_asked < ASKED_MAX - 1; /* one entry is reserved for the probe */
    if (!control_is_up(control) || control->step < STEP_COUNT || !has_room ||
        control_is_asked(control, question))
        return false;
    ask(control, words, n, question);
    return true;
}

/* Take an answer to a command or a probe. */
static void control_take_answer(struct control *control, struct slice frame)
{
    const struct asked first = control->asked[0];
    node_note_trip(control->node, clock_ns() - first.asked_ns);
    control->n_asked--;
    memmove(control->asked, control->asked + 1, control->n_asked * sizeof control->asked[0]);
    if (first.question.on_answer != NULL)
        first.question.on_answer(first.question.arg, control->node, frame, first.asked_ns);
    else
        heartbeat_answer(&control->heartbeat, frame, clock_ns());
}

static bool is_idle(struct slice frame)
{
    struct redisReply *reply = frame.at[0] == '-' ? control_read(frame) : NULL;
    bool is = reply != NULL && control_is_idle(reply);
    control_reply_free(reply);
    return is;
}

/*
 * Rejects a node that answers, but serves no client: the node is loading its data, or has lost its
 * master.
 */
static void reject_frame(struct control *control, struct slice frame)
{
    char why[WHY_ROOM];
    snprintf(why, sizeof why, "%.*s", (int)(frame.len - 3), frame.at + 1);
    reject(control, CONTROL_UNFIT, why);
}

static void lose_by_reply(struct control *control)
{
    char why[WHY_ROOM];
    if (control->step < STEP_COUNT || control->n_asked == 0) {
        control_lose(control, "weir cannot parse its reply");
        return;
    }
    snprintf(why, sizeof why, "its reply to %s is too long or malformed",
             control->asked[0].question.name);
    control_lose(control, why);
}

static void control_on_data(struct link *link, const char *data, size_t n)
{
    struct control *control = control_of(link);
    while (n > 0 && !link_is_closed(link)) {
        size_t used;
        struct slice frame;
        if (control->step >= STEP_COUNT && control->n_asked == 0) {
            control_lose(control, "it sent a reply without a request");
            return;
        }
        enum scan_result result = control_inbox_take(&control->inbox, data, n, &used, &frame);
        if (result == SCAN_BAD) {
            lose_by_reply(control);
            return;
        }
        data += used;
        n -= used;
        if (result != SCAN_FRAME)
            continue;
        if (control->step < STEP_COUNT)
            control_take_frame(control, frame);
        else if (is_idle(frame))
            reject_frame(control, frame);
        else
            control_take_answer(control, frame);
        ask_role_if_free(control);
    }
}

static void control_on_end(struct link *link, int status)
{
    struct control *control = control_of(link);
    bool is_greeting = control->step < STEP_COUNT && status != UV_ETIMEDOUT;
    if (is_greeting && control->why[0] != '\0')
        /* the node rejected weir before: if Redis closes at once, the error of Redis may be lost */
        control_end_attempt(control, control->why);
    else
        control_lose(control,
                     status == UV_EOF ? "it closed the connection" : link_why(link, status));
    control->is_turned_away = is_greeting;
}

static void control_forget(char *password)
{
    if (password != NULL)
        explicit_bzero(password, strlen(password));
    free(password);
}

static void forget_passwords(struct control *control)
{
    control_forget(control->password);
    control_forget(control->before);
    control->password = control->before = NULL;
}

static char *control_copy(const char *password)
{
    return password != NULL ? mem_strndup(password, strlen(password)) : NULL;
}

static void keep_passwords(struct control *control, const struct credentials *credentials)
{
    forget_passwords(control);
    control->password = control_copy(credentials->password);
    control->before = control_copy(credentials->before);
    control->number = credentials->number;
    control->uses_before = false;
}

static bool control_is_same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Skip the wait for the next attempt or the next probe. */
static void control_hasten(struct control *control)
{
    if (!uv_is_active((uv_handle_t *)&control->timer))
        return;
    if (!control->is_open)
        uv_timer_start(&control->timer, control_on_retry, 0, 0);
    else if (control->is_up && control->step >= STEP_COUNT)
        uv_timer_start(&control->timer, on_beat, 0, beat_ms(control));
}

void control_set_password(struct control *control, const struct credentials *credentials)
{
    bool is_news = !control_is_same(control->password, credentials->password);
    keep_passwords(control, credentials);
    control->again_ns = 0; /* a missing login is retried now */
    if (!is_news)
        return;
    miss(control, STEP_AUTH);
    control_hasten(control);
}

static void control_on_timer_closed(uv_handle_t *handle)
{
    struct control *control = handle->data;
    forget_passwords(control);
    node_put(control->node);
    free(control);
}

static void control_finish_closing(struct control *control)
{
    uv_close((uv_handle_t *)&control->timer, control_on_timer_closed);
}

static void control_on_closed(struct link *link)
{
    struct control *control = control_of(link);
    control->is_open = false;
    control_inbox_fini(&control->inbox);
    if (control->is_closing)
        control_finish_closing(control);
    else
        control_retry_later(control);
}

static const struct link_ops link_ops = {
    .on_connected = control_on_connected,
    .on_data = control_on_data,
    .on_end = control_on_end,
    .on_closed = control_on_closed,
};

static void connect_now(struct control *control)
{
    control->is_greeting = false;
    int status = node_connect(control->node, &control->link, control->loop, &link_ops);
    if (status != 0) {
        control_lose(control, uv_strerror(status));
        return;
    }
    control->is_open = true;
    uv_timer_start(&control->timer, control_on_deadline,
                   control->node->upstream->connect_timeout_ns / NS_PER_MS, 0);
}

struct control *control_open(struct loop *loop, struct node *node,
                             const struct credentials *credentials, bool is_trial,
                             const struct control_ops *ops, void *arg)
{
    struct control *control = mem_zalloc(1, sizeof *control);
    control->loop = loop;
    control->node = node_get(node);
    control->is_trial = is_trial;
    control->user = credentials->user;
    keep_passwords(control, credentials);
    control->ops = ops;
    control->arg = arg;
    uv_timer_init(&loop->uv, &control->timer);
    control->timer.data = control;
    heartbeat_init(&control->heartbeat, loop, control->node, &heartbeat_ops, control);
    connect_now(control);
    return control;
}

void control_adopt(struct control *control)
{
    control->is_trial = false;
    if (!control->is_open)
        control_retry_later(control);
}

bool control_is_up(const struct control *control)
{
    return control->is_up && control->is_open && !link_is_closed(&control->link);
}

const char *control_why(const struct control *control)
{
    return control->why;
}

enum pulse_state control_pulse(const struct control *control)
{
    return (enum pulse_state)control->heartbeat.pulse.state;
}

uint64_t control_silence_ns(const struct control *control, uint64_t now_ns)
{
    return pulse_silence_ns(&control->heartbeat.pulse, now_ns);
}

bool control_is_turned_away(const struct control *control)
{
    return control->was_up && control->is_turned_away;
}

#define TEXT_OF(number) #number
#define VERSION_OF(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *control_reader_version(void)
{
    return VERSION_OF(HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
}

void control_close(struct control *control)
{
    control->is_closing = true;
    control->is_settled = true;
    heartbeat_end(&control->heartbeat);
    uv_timer_stop(&control->timer);
    if (control->is_open)
        link_close(&control->link);
    else
        control_finish_closing(control);
}
