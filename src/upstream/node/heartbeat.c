#include "upstream/node/heartbeat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "net/loop.h"
#include "resp/emit.h"
#include "upstream/control_reply.h"
#include "upstream/lane/own_words.h"
#include "upstream/node/node.h"

#define NEWS_ROOM 768
#define MAX_WORDS 3

void heartbeat_init(struct heartbeat *heartbeat, struct loop *loop, struct node *node,
                    const struct heartbeat_ops *ops, void *arg)
{
    *heartbeat = (struct heartbeat){.loop = loop, .node = node, .ops = ops, .arg = arg};
}

/* ---- changes of state ---- */

static enum pulse_state heartbeat_state_of(const struct heartbeat *heartbeat)
{
    return (enum pulse_state)heartbeat->pulse.state;
}

/*
 * Write the log line for a change from `before` to the present state. `news` has NEWS_ROOM bytes.
 */
static void heartbeat_describe(const struct heartbeat *heartbeat, enum pulse_state before,
                               uint64_t silence_ns, char *news)
{
    double seconds = (double)silence_ns / (double)NS_PER_S;
    const char *name = heartbeat->node->text;
    enum pulse_state state = heartbeat_state_of(heartbeat);
    if (state == PULSE_SILENT)
        snprintf(
            news, NEWS_ROOM,
            "upstream %.512s does not answer (for %.1f s): clients wait, and weir is not ready",
            name, seconds);
    else if (state == PULSE_BUSY)
        snprintf(news, NEWS_ROOM, "upstream %.512s is busy: a script runs", name);
    else if (state == PULSE_HELD)
        snprintf(news, NEWS_ROOM, "upstream %.512s is paused: CLIENT PAUSE suspends commands",
                 name);
    else if (before == PULSE_SILENT)
        snprintf(news, NEWS_ROOM, "upstream %.512s answers again (after %.1f s)", name, seconds);
    else
        snprintf(news, NEWS_ROOM, "upstream %.512s is no longer %s", name,
                 before == PULSE_BUSY ? "busy" : "paused");
}

static void note_silence(struct heartbeat *heartbeat)
{
    bool is_silent = heartbeat->is_mute || heartbeat_state_of(heartbeat) == PULSE_SILENT;
    atomic_store_explicit(&heartbeat->node->is_silent, is_silent, memory_order_relaxed);
}

static void heartbeat_tell(struct heartbeat *heartbeat, enum pulse_state before,
                           uint64_t silence_ns)
{
    char news[NEWS_ROOM];
    if (heartbeat_state_of(heartbeat) == before)
        return;
    note_silence(heartbeat);
    heartbeat_describe(heartbeat, before, silence_ns, news);
    heartbeat->ops->on_news(
        heartbeat->arg, heartbeat_state_of(heartbeat) == PULSE_WELL ? LOG_INFO : LOG_WARN, news);
}

/* ---- the second look ---- */

/*
 * A new connection to a node that does not answer on the existing connection. The second look tells
 * three causes apart: the node hangs, CLIENT PAUSE delays commands, or only the existing connection
 * is dead.
 *
 * Two commands are sent. ECHO without its argument is refused before Redis checks for a pause or
 * for a login. PING, after the login, is answered only where commands run. Each look is one
 * connection.
 */
struct second_look {
    struct link link;
    struct heartbeat *heartbeat; /* NULL: the look is abandoned */
    struct bytes questions;      /* heap; empty once sent */
    struct control_inbox inbox;
    unsigned n_wanted; /* answers still to arrive */
    bool is_there;     /* one answer has arrived */
};

static struct second_look *look_of(struct link *link)
{
    return container_of(link, struct second_look, link);
}

/* False: out of memory. */
static bool heartbeat_add(struct second_look *look, const struct slice *words, size_t n)
{
    size_t room = EMIT_HEADER_MAX * (n + 1);
    for (size_t i = 0; i < n; i++)
        room += words[i].len + 2;
    char *request = malloc(room);
    if (request == NULL)
        return false;
    size_t len = emit_array(request, words, n);
    bool is_added = bytes_add(&look->questions, slice_of(request, len), SIZE_MAX);
    explicit_bzero(request, room);
    free(request);
    look->n_wanted++;
    return is_added;
}

static bool add_login(struct second_look *look, const char *user, const char *password)
{
    struct slice words[MAX_WORDS] = {SLICE(OWN_AUTH)};
    size_t n = 1;
    if (password == NULL)
        return true;
    if (user != NULL)
        words[n++] = slice_str(user);
    words[n++] = slice_str(password);
    return heartbeat_add(look, words, n);
}

static bool heartbeat_prepare(struct second_look *look, const char *user, const char *password)
{
    const struct slice too_few = SLICE(OWN_ECHO), ping = SLICE(OWN_PING);
    return heartbeat_add(look, &too_few, 1) && add_login(look, user, password) &&
           heartbeat_add(look, &ping, 1);
}

static void forget_questions(struct second_look *look)
{
    if (look->questions.len > 0)
        explicit_bzero(look->questions.at, look->questions.len);
    bytes_fini(&look->questions);
}

static void heartbeat_on_connected(struct link *link, int status)
{
    struct second_look *look = look_of(link);
    if (status != 0) {
        link_close(link);
        return;
    }
    struct slice questions = bytes_slice(&look->questions);
    link_write(link, questions.at, questions.len);
    forget_questions(look);
}

/* An answer has arrived: the node does not hang. */
static void note_there(struct heartbeat *heartbeat)
{
    enum pulse_state before = heartbeat_state_of(heartbeat);
    heartbeat->has_looked = true;
    pulse_look(&heartbeat->pulse);
    heartbeat_tell(heartbeat, before, 0);
}

static void heartbeat_take_frame(struct second_look *look, struct slice frame)
{
    look->n_wanted--;
    if (!look->is_there)
        note_there(look->heartbeat);
    look->is_there = true;
    if (look->n_wanted > 0)
        return;
    if (slice_eq(frame, SLICE("+PONG\r\n")))
        /* the existing connection's answer may be in flight: wait until the next period */
        look->heartbeat->is_dead = true;
    link_close(&look->link);
}

static void heartbeat_on_data(struct link *link, const char *data, size_t n)
{
    struct second_look *look = look_of(link);
    while (n > 0 && !link_is_closed(link)) {
        size_t used;
        struct slice frame;
        enum scan_result result = control_inbox_take(&look->inbox, data, n, &used, &frame);
        if (result == SCAN_BAD) {
            link_close(link);
            return;
        }
        data += used;
        n -= used;
        if (result == SCAN_FRAME)
            heartbeat_take_frame(look, frame);
    }
}

static void heartbeat_on_end(struct link *link, int status)
{
    (void)status;
    link_close(link);
}

static void heartbeat_on_closed(struct link *link)
{
    struct second_look *look = look_of(link);
    if (look->heartbeat != NULL)
        look->heartbeat->look = NULL;
    forget_questions(look);
    control_inbox_fini(&look->inbox);
    free(look);
}

static const struct link_ops look_ops = {
    .on_connected = heartbeat_on_connected,
    .on_data = heartbeat_on_data,
    .on_end = heartbeat_on_end,
    .on_closed = heartbeat_on_closed,
};

/*
 * `user` and `password` as in struct credentials (control.h), valid during the call. NULL: no
 * memory, or no connection.
 */
static struct second_look *open_look(struct heartbeat *heartbeat, const char *user,
                                     const char *password)
{
    struct second_look *look = calloc(1, sizeof *look);
    if (look == NULL)
        return NULL;
    look->heartbeat = heartbeat;
    if (heartbeat_prepare(look, user, password) &&
        node_connect(heartbeat->node, &look->link, heartbeat->loop, &look_ops) == 0)
        return look;
    forget_questions(look);
    free(look);
    return NULL;
}

static void end_look(struct heartbeat *heartbeat)
{
    if (heartbeat->look != NULL) {
        heartbeat->look->heartbeat = NULL;
        link_close(&heartbeat->look->link);
    }
    heartbeat->look = NULL;
    heartbeat->has_looked = false;
    heartbeat->is_dead = false;
}

/*
 * A look that found the node up may wait for PING during a pause. A new look replaces the waiting
 * look, to learn the present state.
 */
static void look(struct heartbeat *heartbeat, const char *user, const char *password)
{
    if (heartbeat->look != NULL && !heartbeat->has_looked)
        return;
    end_look(heartbeat);
    heartbeat->look = open_look(heartbeat, user, password);
}

/* ---- life cycle ---- */

bool heartbeat_tick(struct heartbeat *heartbeat, uint64_t now_ns, const char *user,
                    const char *password)
{
    enum pulse_state before = heartbeat_state_of(heartbeat);
    if (heartbeat->is_dead)
        return false;
    enum pulse_act act = pulse_tick(&heartbeat->pulse, now_ns);
    heartbeat_tell(heartbeat, before, pulse_silence_ns(&heartbeat->pulse, now_ns));
    if (act == PULSE_LOOK)
        look(heartbeat, user, password);
    else if (act == PULSE_ASK)
        heartbeat->ops->on_ask(heartbeat->arg,
                               slice_str(heartbeat->may_not_ping ? OWN_HELLO : OWN_PING));
    return true;
}

static bool heartbeat_begins(struct slice frame, struct slice with)
{
    return frame.len >= with.len && memcmp(frame.at, with.at, with.len) == 0;
}

void heartbeat_answer(struct heartbeat *heartbeat, struct slice frame, uint64_t now_ns)
{
    uint64_t silence_ns = pulse_silence_ns(&heartbeat->pulse, now_ns);
    enum pulse_state before = heartbeat_state_of(heartbeat);
    end_look(heartbeat);
    heartbeat->may_not_ping |= heartbeat_begins(frame, SLICE("-NOPERM "));
    pulse_answer(&heartbeat->pulse, heartbeat_begins(frame, SLICE("-BUSY ")));
    heartbeat_tell(heartbeat, before, silence_ns);
}

void heartbeat_note_mute(struct heartbeat *heartbeat, bool is_mute)
{
    heartbeat->is_mute = is_mute;
    note_silence(heartbeat);
}

void heartbeat_end(struct heartbeat *heartbeat)
{
    end_look(heartbeat);
    heartbeat->pulse = (struct pulse){0};
    heartbeat->is_mute = false;
    note_silence(heartbeat);
}
