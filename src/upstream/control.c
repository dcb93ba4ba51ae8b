#include "upstream/control.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "resp/emit.h"
#include "upstream/backoff.h"

#define MAX_WORDS 3
#define MIN_MAJOR 6
#define MIN_MINOR 2
#define MAX_CATEGORIES 64

struct control {
    struct link link;
    struct loop *loop;
    struct upstream *upstream;
    const char *user; /* NULL: only a password */
    char *password;   /* heap; NULL: none */
    const struct control_ops *ops;
    void *arg;
    uv_timer_t timer; /* the next attempt, or the deadline of the current step */
    redisReader *reader;
    struct backoff backoff;
    uint8_t step;
    bool is_open; /* the link is in use */
    bool is_settled;
    bool is_lost; /* said in the log */
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
    if (!control->is_lost)
        log_at(LOG_SITE_CONTROL, LOG_WARN, "upstream %s: the control connection failed: %s", control->upstream->text,
               why);
    control->is_lost = true;
    uv_timer_stop(&control->timer);
    if (control->is_open)
        link_close(&control->link); /* on_closed goes on */
    else
        retry_later(control);
    settle(control);
}

static void on_deadline(uv_timer_t *timer)
{
    lose(timer->data, "it does not answer within connect-timeout");
}

/* ---- the steps: a request each, and what its answer means ---- */

/* The value of "field:value" in INFO's text; empty if there is none. */
static struct slice info_field(const redisReply *info, const char *field)
{
    size_t len = strlen(field);
    const char *end = info->str + info->len;
    for (const char *line = info->str; line < end;) {
        const char *eol = memchr(line, '\n', (size_t)(end - line));
        const char *stop = eol != NULL ? eol : end;
        if ((size_t)(stop - line) > len && line[len] == ':' && memcmp(line, field, len) == 0) {
            const char *value = line + len + 1;
            size_t n = (size_t)(stop - value);
            return slice_of(value, n > 0 && value[n - 1] == '\r' ? n - 1 : n);
        }
        line = stop + 1;
    }
    return slice_of(NULL, 0);
}

static bool is_old(struct slice version)
{
    int64_t major = 0;
    int64_t minor = 0;
    const char *dot = version.len > 0 ? memchr(version.at, '.', version.len) : NULL;
    if (dot == NULL || !num_parse(slice_of(version.at, (size_t)(dot - version.at)), &major))
        return false; /* not for us to judge */
    const char *rest = dot + 1;
    size_t left = version.len - (size_t)(rest - version.at);
    const char *second = memchr(rest, '.', left);
    if (!num_parse(slice_of(rest, second != NULL ? (size_t)(second - rest) : left), &minor))
        return false;
    return major < MIN_MAJOR || (major == MIN_MAJOR && minor < MIN_MINOR);
}

static void judge_ping(struct control *control, const redisReply *reply)
{
    bool is_error = reply->type == REDIS_REPLY_ERROR;
    bool needs_auth = is_error && strncmp(reply->str, "NOAUTH", 6) == 0;
    bool is_turned_away = is_error && (strncmp(reply->str, "ERR max", 7) == 0 || strncmp(reply->str, "DENIED", 6) == 0);
    if (is_turned_away)
        lose(control, reply->str);
    else
        upstream_note_auth(control->upstream, needs_auth);
}

static void judge_auth(struct control *control, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR)
        lose(control, "it does not accept upstream-user and upstream-password-file");
}

static void judge_info(struct control *control, const redisReply *reply)
{
    const char *why = NULL;
    if (reply->type == REDIS_REPLY_ERROR) {
        lose(control, strncmp(reply->str, "NOAUTH", 6) == 0
                          ? "it wants a password: set upstream-user and upstream-password-file"
                          : reply->str);
        return;
    }
    if (reply->type == REDIS_REPLY_STRING) {
        if (slice_eq(info_field(reply, "redis_mode"), SLICE("cluster")))
            why = "it is a node of a cluster, whose redirections would lead clients around weir";
        else if (is_old(info_field(reply, "redis_version")))
            why = "it is older than Redis 6.2";
    }
    atomic_store_explicit(&control->upstream->is_barred, why != NULL, memory_order_relaxed);
    if (why == NULL)
        return;
    control->ops->on_barred(control->arg, why);
    lose(control, why);
}

static struct slice text_of(const redisReply *reply)
{
    bool is_text = reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS;
    return is_text ? slice_of(reply->str, (size_t)reply->len) : slice_of("", 0);
}

static int64_t integer_of(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_INTEGER ? reply->integer : 0;
}

/* One element of COMMAND: name, arity, flags, first, last, step, categories, tips, key specs, subcommands. */
static void add_command(struct command_table *table, const redisReply *row)
{
    if (row->type != REDIS_REPLY_ARRAY || row->elements < 7)
        return;
    struct slice categories[MAX_CATEGORIES];
    struct command_info info = {
        .name = text_of(row->element[0]),
        .arity = integer_of(row->element[1]),
        .first_key = integer_of(row->element[3]),
        .last_key = integer_of(row->element[4]),
        .key_step = integer_of(row->element[5]),
        .categories = categories,
    };
    const redisReply *flags = row->element[2];
    for (size_t i = 0; flags->type == REDIS_REPLY_ARRAY && i < flags->elements; i++)
        info.flags |= command_flag(text_of(flags->element[i]));
    const redisReply *listed = row->element[6];
    for (size_t i = 0; listed->type == REDIS_REPLY_ARRAY && i < listed->elements && i < MAX_CATEGORIES; i++) {
        struct slice name = text_of(listed->element[i]);
        if (name.len > 1)
            categories[info.n_categories++] = slice_of(name.at + 1, name.len - 1);
    }
    command_table_add(table, &info);
    if (row->elements < 10 || row->element[9]->type != REDIS_REPLY_ARRAY)
        return;
    for (size_t i = 0; i < row->element[9]->elements; i++)
        add_command(table, row->element[9]->element[i]);
}

static void judge_command(struct control *control, const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY) {
        log_at(LOG_SITE_CONTROL, LOG_WARN, "upstream %s does not answer COMMAND: the built-in command table is used",
               control->upstream->text);
        return;
    }
    struct command_table *table = command_table_new();
    for (size_t i = 0; i < reply->elements; i++)
        add_command(table, reply->element[i]);
    control->ops->on_table(control->arg, table);
}

static const struct step {
    const char *request;
    void (*judge)(struct control *control, const redisReply *reply);
} steps[] = {
    {"PING", judge_ping}, /* before logging in: does the server let us in at all? */
    {"AUTH", judge_auth},
    {"INFO", judge_info},
    {"COMMAND", judge_command},
};
#define N_STEPS (sizeof steps / sizeof steps[0])

static void send_words(struct control *control, const struct slice *words, size_t n)
{
    size_t room = EMIT_HEADER_MAX * (n + 1);
    for (size_t i = 0; i < n; i++)
        room += words[i].len + 2;
    char *request = mem_alloc(room);
    size_t len = emit_array(request, words, n);
    link_write(&control->link, request, len);
    explicit_bzero(request, len);
    free(request);
}

static void settled_well(struct control *control)
{
    uv_timer_stop(&control->timer);
    backoff_reset(&control->backoff);
    if (control->is_lost)
        log_at(LOG_SITE_CONTROL, LOG_INFO, "upstream %s: the control connection is back", control->upstream->text);
    control->is_lost = false;
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
    } else if (step->judge == judge_info) {
        words[n++] = SLICE("server");
    }
    send_words(control, words, n);
    uv_timer_start(&control->timer, on_deadline, control->upstream->connect_timeout_ns / NS_PER_MS, 0);
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
    next_step(control);
}

static void take_reply(struct control *control, const redisReply *reply)
{
    if (control->step >= N_STEPS) {
        lose(control, "it sent a reply that nobody waits for");
        return;
    }
    steps[control->step].judge(control, reply);
    if (link_is_closed(&control->link))
        return;
    control->step++;
    next_step(control);
}

static void on_data(struct link *link, const char *data, size_t n)
{
    struct control *control = control_of(link);
    redisReaderFeed(control->reader, data, n);
    void *reply = NULL;
    while (!link_is_closed(link)) {
        if (redisReaderGetReply(control->reader, &reply) != REDIS_OK) {
            lose(control, "its reply cannot be read");
            return;
        }
        if (reply == NULL)
            return;
        take_reply(control, reply);
        freeReplyObject(reply);
    }
}

static void on_end(struct link *link, int status)
{
    lose(control_of(link), status == UV_EOF ? "it closed the connection" : link_why(link, status));
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
    forget_password(handle->data);
    free(handle->data);
}

static void finish_closing(struct control *control)
{
    uv_close((uv_handle_t *)&control->timer, on_timer_closed);
}

static void on_closed(struct link *link)
{
    struct control *control = control_of(link);
    control->is_open = false;
    redisReaderFree(control->reader);
    control->reader = NULL;
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
    control->reader = redisReaderCreate();
    int status = UV_ENOMEM;
    if (control->reader != NULL)
        status = upstream_connect(control->upstream, &control->link, control->loop, &link_ops);
    if (status != 0) {
        if (control->reader != NULL)
            redisReaderFree(control->reader);
        control->reader = NULL;
        lose(control, uv_strerror(status));
        return;
    }
    control->is_open = true;
    uv_timer_start(&control->timer, on_deadline, control->upstream->connect_timeout_ns / NS_PER_MS, 0);
}

struct control *control_open(struct loop *loop, struct upstream *upstream, const struct credentials *credentials,
                             const struct control_ops *ops, void *arg)
{
    struct control *control = mem_zalloc(1, sizeof *control);
    control->loop = loop;
    control->upstream = upstream;
    control->user = credentials->user;
    control_set_password(control, credentials->password);
    control->ops = ops;
    control->arg = arg;
    uv_timer_init(&loop->uv, &control->timer);
    control->timer.data = control;
    connect_now(control);
    return control;
}

bool control_is_up(const struct control *control)
{
    return control->is_open && !link_is_closed(&control->link) && control->step >= N_STEPS;
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
    uv_timer_stop(&control->timer);
    if (control->is_open)
        link_close(&control->link);
    else
        finish_closing(control);
}
