#include "upstream/control.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "resp/emit.h"
#include "upstream/backoff.h"
#include "upstream/control_reply.h"
#include "upstream/heartbeat.h"
#include "upstream/own_words.h"

#define MAX_WORDS 3
#define TABLE_BYTES (4 << 20) /* more than a server's commands take, with those of many modules */

struct control {
    struct link link;
    struct loop *loop;
    struct node *node;
    const char *user; /* NULL: only a password */
    char *password;   /* heap; NULL: none */
    const struct control_ops *ops;
    void *arg;
    uv_timer_t timer; /* the next attempt, the deadline of the current step, or once it is up the next beat */
    struct control_inbox inbox;
    struct backoff backoff;
    struct heartbeat heartbeat;
    uint8_t step;
    bool is_open;     /* the link is in use */
    bool is_greeting; /* it is connected, and nothing has been answered yet */
    bool is_settled;
    bool is_lost; /* said in the log */
    bool was_up;  /* at any time */
    bool is_turned_away;
    bool is_closing;
};

static void connect_now(struct control *control);
static void next_step(struct control *control);

static struct control *control_of(struct link *link)
{
    return container_of(link, struct control, link);
}

/* ---- failing, and trying again ---- */

static void on_retry(uv_timer_t *timer)
{
    connect_now(timer->data);
}

static void settle(struct control *control)
{
    if (control->is_settled)
        return;
    control->is_settled = true;
    control->ops->on_settled(control->arg);
}

static void retry_later(struct control *control)
{
    uint64_t now_ns = clock_ns();
    backoff_fail(&control->backoff, now_ns);
    uv_timer_start(&control->timer, on_retry, (control->backoff.due_ns - now_ns) / NS_PER_MS, 0);
}

static void lose(struct control *control, const char *why)
{
    control->is_turned_away = false;
    heartbeat_end(&control->heartbeat);
    if (!control->is_lost)
        log_at(LOG_SITE_CONTROL, LOG_WARN, "upstream %s: the control connection failed: %s", control->node->text, why);
    control->is_lost = true;
    uv_timer_stop(&control->timer);
    if (control->is_open)
        link_close(&control->link); /* on_closed goes on */
    else
        retry_later(control);
    settle(control);
}

/* What takes connections and answers nothing is there: clients' requests wait for it as for one that has stopped later. */
static void on_deadline(uv_timer_t *timer)
{
    struct control *control = timer->data;
    lose(control, "it does not answer within connect-timeout");
    heartbeat_note_mute(&control->heartbeat, control->is_greeting);
}

/* ---- the steps: a request each, and what its answer means ---- */

static void judge_hello(struct control *control, const struct redisReply *reply)
{
    bool needs_auth;
    const char *why = control_judge_hello(reply, &needs_auth);
    if (why != NULL)
        lose(control, why);
    else
        node_note_auth(control->node, needs_auth);
}

static void judge_auth(struct control *control, const struct redisReply *reply)
{
    const char *why = control_judge_auth(reply);
    if (why != NULL)
        lose(control, why);
}

static void judge_info(struct control *control, const struct redisReply *reply)
{
    bool is_barred;
    const char *why = control_judge_info(reply, &is_barred);
    bool was_barred = false;
    if (why == NULL || is_barred)
        was_barred = atomic_exchange_explicit(&control->node->is_barred, is_barred, memory_order_relaxed);
    if (is_barred && !was_barred)
        control->ops->on_barred(control->arg, why);
    if (why != NULL)
        lose(control, why);
}

static void judge_clients(struct control *control, const struct redisReply *reply)
{
    atomic_store_explicit(&control->node->maxclients, control_read_maxclients(reply), memory_order_relaxed);
    control->ops->on_maxclients(control->arg);
}

static void judge_command(struct control *control, const struct redisReply *reply)
{
    if (control->is_settled && !mem_would_give(TABLE_BYTES)) {
        log_at(LOG_SITE_CONTROL, LOG_WARN, "upstream %s: out of memory: what it knows of commands stays as it was",
               control->node->text);
        return;
    }
    struct command_table *table = control_read_commands(reply);
    if (table != NULL)
        control->ops->on_table(control->arg, table);
    else
        log_at(LOG_SITE_CONTROL, LOG_WARN, "upstream %s does not answer COMMAND: the built-in command table is used",
               control->node->text);
}

static const struct step {
    const char *request;
    const char *word; /* behind it; NULL: none */
    void (*judge)(struct control *control, const struct redisReply *reply);
} steps[] = {
    {OWN_HELLO, NULL, judge_hello}, /* before logging in: does the server let us in at all? */
    {"AUTH", NULL, judge_auth},         {"INFO", "server", judge_info},
    {"INFO", "clients", judge_clients}, {"COMMAND", NULL, judge_command},
};
#define N_STEPS (sizeof steps / sizeof steps[0])

static void send_words(struct control *control, const struct slice *words, size_t n)
{
    size_t room = EMIT_HEADER_MAX * (n + 1);
    for (size_t i = 0; i < n; i++)
        room += words[i].len + 2;
    char *request = malloc(room);
    if (request == NULL) {
        lose(control, "out of memory");
        return;
    }
    size_t len = emit_array(request, words, n);
    link_write(&control->link, request, len);
    explicit_bzero(request, len);
    free(request);
}

/* ---- once it is up: does its node still answer? ---- */

static void on_ask(void *arg, struct slice question)
{
    send_words(arg, &question, 1);
}

static void on_news(void *arg, enum log_level level, const char *line)
{
    struct control *control = arg;
    control->ops->on_pulse(control->arg, level, line);
}

static const struct heartbeat_ops heartbeat_ops = {.on_ask = on_ask, .on_news = on_news};

static void on_beat(uv_timer_t *timer)
{
    struct control *control = timer->data;
    if (!heartbeat_tick(&control->heartbeat, clock_ns(), control->user, control->password))
        lose(control, "it is not answered, others are");
}

static void settled_well(struct control *control)
{
    uint64_t every_ms = control->node->upstream->check_ns / NS_PER_MS;
    uv_timer_stop(&control->timer);
    heartbeat_begin(&control->heartbeat);
    if (every_ms > 0)
        uv_timer_start(&control->timer, on_beat, every_ms, every_ms);
    backoff_reset(&control->backoff);
    if (control->is_lost)
        log_at(LOG_SITE_CONTROL, LOG_INFO, "upstream %s: the control connection is back", control->node->text);
    control->is_lost = false;
    control->was_up = true;
    settle(control);
}

static void next_step(struct control *control)
{
    if (control->step < N_STEPS && steps[control->step].judge == judge_auth && control->password == NULL)
        control->step++;
    if (control->step >= N_STEPS) {
        settled_well(control);
        return;
    }
    const struct step *step = &steps[control->step];
    struct slice words[MAX_WORDS] = {slice_str(step->request)};
    size_t n = 1;
    if (step->judge == judge_auth) {
        if (control->user != NULL)
            words[n++] = slice_str(control->user);
        words[n++] = slice_str(control->password);
    } else if (step->word != NULL) {
        words[n++] = slice_str(step->word);
    }
    uv_timer_start(&control->timer, on_deadline, control->node->upstream->connect_timeout_ns / NS_PER_MS, 0);
    send_words(control, words, n);
}

/* ---- the connection ---- */

static void on_connected(struct link *link, int status)
{
    struct control *control = control_of(link);
    if (status != 0) {
        lose(control, link_why(link, status));
        return;
    }
    control->step = 0;
    control->is_greeting = true;
    next_step(control);
}

static void take_frame(struct control *control, struct slice frame)
{
    control->is_greeting = false;
    heartbeat_note_mute(&control->heartbeat, false);
    struct redisReply *reply = control_read(frame);
    if (reply == NULL) {
        lose(control, "its reply cannot be read");
        return;
    }
    steps[control->step].judge(control, reply);
    control_reply_free(reply);
    if (link_is_closed(&control->link)) {
        control->is_turned_away = true;
        return;
    }
    control->step++;
    next_step(control);
}

static void on_data(struct link *link, const char *data, size_t n)
{
    struct control *control = control_of(link);
    while (n > 0 && !link_is_closed(link)) {
        size_t used;
        struct slice frame;
        if (control->step >= N_STEPS && !heartbeat_is_waiting(&control->heartbeat)) {
            lose(control, "it sent a reply that nobody waits for");
            return;
        }
        enum scan_result result = control_inbox_take(&control->inbox, data, n, &used, &frame);
        if (result == SCAN_BAD) {
            lose(control, "its reply cannot be read");
            return;
        }
        data += used;
        n -= used;
        if (result != SCAN_FRAME)
            continue;
        if (control->step >= N_STEPS)
            heartbeat_answer(&control->heartbeat, frame, clock_ns());
        else
            take_frame(control, frame);
    }
}

static void on_end(struct link *link, int status)
{
    struct control *control = control_of(link);
    bool is_greeting = control->step < N_STEPS && status != UV_ETIMEDOUT;
    lose(control, status == UV_EOF ? "it closed the connection" : link_why(link, status));
    control->is_turned_away = is_greeting;
}

static void forget_password(struct control *control)
{
    if (control->password != NULL)
        explicit_bzero(control->password, strlen(control->password));
    free(control->password);
    control->password = NULL;
}

void control_set_password(struct control *control, const char *password)
{
    forget_password(control);
    if (password != NULL)
        control->password = mem_strndup(password, strlen(password));
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct control *control = handle->data;
    forget_password(control);
    node_put(control->node);
    free(control);
}

static void finish_closing(struct control *control)
{
    uv_close((uv_handle_t *)&control->timer, on_timer_closed);
}

static void on_closed(struct link *link)
{
    struct control *control = control_of(link);
    control->is_open = false;
    control_inbox_fini(&control->inbox);
    if (control->is_closing)
        finish_closing(control);
    else
        retry_later(control);
}

static const struct link_ops link_ops = {
    .on_connected = on_connected,
    .on_data = on_data,
    .on_end = on_end,
    .on_closed = on_closed,
};

static void connect_now(struct control *control)
{
    control->is_greeting = false;
    int status = node_connect(control->node, &control->link, control->loop, &link_ops);
    if (status != 0) {
        lose(control, uv_strerror(status));
        return;
    }
    control->is_open = true;
    uv_timer_start(&control->timer, on_deadline, control->node->upstream->connect_timeout_ns / NS_PER_MS, 0);
}

struct control *control_open(struct loop *loop, struct node *node, const struct credentials *credentials,
                             const struct control_ops *ops, void *arg)
{
    struct control *control = mem_zalloc(1, sizeof *control);
    control->loop = loop;
    control->node = node_get(node);
    control->user = credentials->user;
    control_set_password(control, credentials->password);
    control->ops = ops;
    control->arg = arg;
    uv_timer_init(&loop->uv, &control->timer);
    control->timer.data = control;
    heartbeat_init(&control->heartbeat, loop, control->node, &heartbeat_ops, control);
    connect_now(control);
    return control;
}

bool control_is_up(const struct control *control)
{
    return control->is_open && !link_is_closed(&control->link) && control->step >= N_STEPS;
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
        finish_closing(control);
}
