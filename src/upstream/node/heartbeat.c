#include "upstream/node/heartbeat.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "upstream/lane/own_words.h"
#include "upstream/node/second_look.h"

#define NEWS_ROOM 768

void heartbeat_init(struct heartbeat *heartbeat, struct loop *loop, struct node *node, const struct heartbeat_ops *ops,
                    void *arg)
{
    *heartbeat = (struct heartbeat){.loop = loop, .node = node, .ops = ops, .arg = arg};
}

/* ---- what has changed ---- */

static enum pulse_state state_of(const struct heartbeat *heartbeat)
{
    return (enum pulse_state)heartbeat->pulse.state;
}

/* The state was `before`: what is there to say? `news` has NEWS_ROOM bytes. */
static void describe(const struct heartbeat *heartbeat, enum pulse_state before, uint64_t silence_ns, char *news)
{
    double seconds = (double)silence_ns / (double)NS_PER_S;
    const char *name = heartbeat->node->text;
    enum pulse_state state = state_of(heartbeat);
    if (state == PULSE_SILENT)
        snprintf(news, NEWS_ROOM, "upstream %.512s does not answer (for %.1f s): clients wait, and weir is not ready",
                 name, seconds);
    else if (state == PULSE_BUSY)
        snprintf(news, NEWS_ROOM, "upstream %.512s is busy: a script runs", name);
    else if (state == PULSE_HELD)
        snprintf(news, NEWS_ROOM, "upstream %.512s is paused: CLIENT PAUSE holds commands back", name);
    else if (before == PULSE_SILENT)
        snprintf(news, NEWS_ROOM, "upstream %.512s answers again (after %.1f s)", name, seconds);
    else
        snprintf(news, NEWS_ROOM, "upstream %.512s is no longer %s", name, before == PULSE_BUSY ? "busy" : "paused");
}

static void note_silence(struct heartbeat *heartbeat)
{
    bool is_silent = heartbeat->is_mute || state_of(heartbeat) == PULSE_SILENT;
    atomic_store_explicit(&heartbeat->node->is_silent, is_silent, memory_order_relaxed);
}

static void tell(struct heartbeat *heartbeat, enum pulse_state before, uint64_t silence_ns)
{
    char news[NEWS_ROOM];
    if (state_of(heartbeat) == before)
        return;
    note_silence(heartbeat);
    describe(heartbeat, before, silence_ns, news);
    heartbeat->ops->on_news(heartbeat->arg, state_of(heartbeat) == PULSE_WELL ? LOG_INFO : LOG_WARN, news);
}

/* ---- looking from elsewhere ---- */

static void on_there(void *arg)
{
    struct heartbeat *heartbeat = arg;
    enum pulse_state before = state_of(heartbeat);
    heartbeat->has_looked = true;
    pulse_look(&heartbeat->pulse);
    tell(heartbeat, before, 0);
}

/* The answer here may be on its way still: it has until the next period. */
static void on_running(void *arg)
{
    struct heartbeat *heartbeat = arg;
    heartbeat->is_dead = true;
}

static void on_over(void *arg)
{
    struct heartbeat *heartbeat = arg;
    heartbeat->look = NULL;
}

static const struct second_look_ops look_ops = {.on_there = on_there, .on_running = on_running, .on_over = on_over};

static void end_look(struct heartbeat *heartbeat)
{
    second_look_close(heartbeat->look);
    heartbeat->look = NULL;
    heartbeat->has_looked = false;
    heartbeat->is_dead = false;
}

/* One that has found the node there may wait for the rest for as long as that is paused: what is it now? */
static void look(struct heartbeat *heartbeat, const char *user, const char *password)
{
    if (heartbeat->look != NULL && !heartbeat->has_looked)
        return;
    end_look(heartbeat);
    heartbeat->look = second_look_open(heartbeat->loop, heartbeat->node, user, password, &look_ops, heartbeat);
}

/* ---- its life ---- */

bool heartbeat_tick(struct heartbeat *heartbeat, uint64_t now_ns, const char *user, const char *password)
{
    enum pulse_state before = state_of(heartbeat);
    if (heartbeat->is_dead)
        return false;
    enum pulse_act act = pulse_tick(&heartbeat->pulse, now_ns);
    tell(heartbeat, before, pulse_silence_ns(&heartbeat->pulse, now_ns));
    if (act == PULSE_LOOK)
        look(heartbeat, user, password);
    else if (act == PULSE_ASK)
        heartbeat->ops->on_ask(heartbeat->arg, slice_str(heartbeat->may_not_ping ? OWN_HELLO : OWN_PING));
    return true;
}

static bool begins(struct slice frame, struct slice with)
{
    return frame.len >= with.len && memcmp(frame.at, with.at, with.len) == 0;
}

void heartbeat_answer(struct heartbeat *heartbeat, struct slice frame, uint64_t now_ns)
{
    uint64_t silence_ns = pulse_silence_ns(&heartbeat->pulse, now_ns);
    enum pulse_state before = state_of(heartbeat);
    end_look(heartbeat);
    heartbeat->may_not_ping |= begins(frame, SLICE("-NOPERM "));
    pulse_answer(&heartbeat->pulse, begins(frame, SLICE("-BUSY ")));
    tell(heartbeat, before, silence_ns);
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
