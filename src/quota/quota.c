#include "quota/quota.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "quota/answer.h"
#include "quota/batch.h"
#include "quota/denials.h"
#include "quota/line.h"
#include "quota/outcome.h"
#include "quota/question.h"
#include "quota/wakes.h"
#include "resp/emit.h"

#define PREFIX_MAX 128
#define LOOK_BACK_MAX 16 /* batches that a call is compared with: applications have few kinds of calls */
#define DOWN_RETRY_NS ((int64_t)NS_PER_S) /* nobody knows; not never, which -1 would say */
#define RETRY_LEAST_NS NS_PER_MS          /* a window that says it has room already is not asked in a circle */

struct quota {
    struct line line;
    struct wakes wakes;
    struct alarms *alarms;
    struct quota_settings *settings;
    quota_on_done on_done;
    struct hash_key key;
    struct denials *denials;
    struct list open; /* batches that are still being filled */
    struct list sent; /* and those that wait for their answer, oldest first */
    char channel[PREFIX_MAX + 16];
};

static uint32_t resets_of(const struct quota *quota)
{
    return atomic_load_explicit(&quota->settings->resets, memory_order_acquire);
}

/* ---- being done ---- */

static void done(struct quota_call *call)
{
    struct quota *quota = call->quota;
    alarm_stop(quota->alarms, &call->alarm);
    wakes_remove(&quota->wakes, call);
    call->is_done = true;
    if (call->owner == NULL)
        call_free(call);
    else
        quota->on_done(call);
}

/* An error reply, whole. */
static void done_with(struct quota_call *call, struct slice error)
{
    struct slice text = slice_of(error.at + 1, error.len - 1);
    while (text.len > 0 && (text.at[text.len - 1] == '\n' || text.at[text.len - 1] == '\r'))
        text.len--;
    build_error(&call->reply, text);
    done(call);
}

static void reply(struct quota_call *call, const struct quota_outcome *outcome)
{
    quota_reply(&call->reply, &call->ask, outcome);
    done(call);
}

/* Redis is away. Who has set it so is let through, or is not. */
static void done_without(struct quota_call *call, struct slice error)
{
    bool has_rates = call->ask.rule.n_rates > 0;
    if (!has_rates || call->when_down == QUOTA_DOWN_ERROR) {
        done_with(call, error);
        return;
    }
    const struct quota_outcome outcome = {
        .limit = call->ask.rule.rates[0].limit,
        .retry_ns = call->when_down == QUOTA_DOWN_DENY ? DOWN_RETRY_NS : -1,
        .is_limited = call->when_down == QUOTA_DOWN_DENY,
    };
    reply(call, &outcome);
}

/* ---- waiting ---- */

static void wait_until(struct quota_call *call, uint64_t due_ns)
{
    alarm_stop(call->quota->alarms, &call->alarm);
    alarm_set(call->quota->alarms, &call->alarm, due_ns);
}

static bool can_wait(const struct quota_call *call, uint64_t now_ns, int64_t wait_ns)
{
    return wait_ns >= 0 && now_ns + (uint64_t)wait_ns <= call->until_ns;
}

/* Its turn has not come, and its client does not wait for it: never a yes before its time. */
static void reply_too_late(struct quota_call *call, const struct quota_outcome *outcome)
{
    struct quota_outcome late = *outcome;
    late.is_limited = true;
    late.remaining = 0;
    late.retry_ns = outcome->wait_ns;
    late.reset_ns += outcome->wait_ns;
    reply(call, &late);
}

/* Let through, or not: now, or when it is its turn, or tried again when the window has moved on. */
static void decide(struct quota_call *call, const struct quota_outcome *outcome)
{
    uint64_t now_ns = call->quota->line.lanes->loop->now_ns;
    if (call->owner == NULL) {
        done(call);
        return;
    }
    if (outcome->wait_ns > 0 && call->is_hurried) {
        reply_too_late(call, outcome);
        return;
    }
    if (outcome->wait_ns > 0) {
        call->is_placed = true;
        quota_reply(&call->reply, &call->ask, outcome);
        wait_until(call, now_ns + (uint64_t)outcome->wait_ns);
        return;
    }
    bool is_funnel = quota_is_funnel(call->ask.rule.kind);
    int64_t retry_ns = outcome->retry_ns > (int64_t)RETRY_LEAST_NS ? outcome->retry_ns : (int64_t)RETRY_LEAST_NS;
    if (outcome->is_limited && outcome->retry_ns >= 0 && !is_funnel && can_wait(call, now_ns, retry_ns))
        wait_until(call, now_ns + (uint64_t)retry_ns);
    else
        reply(call, outcome);
}

/* ---- asking ---- */

static uint64_t hash_of(const struct quota *quota, const struct quota_call *call)
{
    return hash_bytes(quota->key, call->key);
}

/* One that it fits in, unless another one behind that has something about the same key, which it must not overtake. */
static struct batch *find_batch(struct quota *quota, enum script script, struct slice words, unsigned n_words,
                                struct slice key, uint64_t hash)
{
    unsigned left = script == SCRIPT_COUNT ? 0 : LOOK_BACK_MAX;
    for (struct list *at = quota->open.prev; at != &quota->open && left > 0; at = at->prev, left--) {
        struct batch *batch = container_of(at, struct batch, in_quota);
        if (batch_fits(batch, script, words))
            return batch;
        if (batch_concerns(batch, key, hash))
            break;
    }
    struct batch *batch = batch_new(script, words, n_words);
    if (batch != NULL)
        list_push(&quota->open, &batch->in_quota);
    return batch;
}

/* It may let through what has been denied, also what stands behind it in the same turn. */
static bool makes_room(const struct quota_ask *ask)
{
    return ask->rule.kind == QUOTA_RESET || (ask->rule.kind == QUOTA_THROTTLE && ask->cost < 0);
}

/* What is remembered of denials is true no longer, on any worker. */
static void forget_denials(struct quota *quota)
{
    atomic_fetch_add_explicit(&quota->settings->resets, 1, memory_order_acq_rel);
}

static void ask(struct quota_call *call, uint64_t hash)
{
    struct quota *quota = call->quota;
    char words[QUOTA_WORDS_ROOM + sizeof quota->channel];
    unsigned n_words = 0;
    size_t len = 0;
    enum script script = call->ask.rule.kind == QUOTA_RESET ? SCRIPT_COUNT : quota_ask_script(&call->ask);
    if (script != SCRIPT_COUNT)
        len = quota_ask_words(&call->ask, call->database, slice_str(quota->channel), words, &n_words);
    struct batch *batch = find_batch(quota, script, slice_of(words, len), n_words, call->key, hash);
    if (batch == NULL || !batch_add(batch, call, hash)) {
        done_with(call, err_text(ERR_OUT_OF_MEMORY));
        return;
    }
    if (makes_room(&call->ask))
        forget_denials(quota);
    call->is_asking = true;
    line_wake(&quota->line);
}

/* Again, or for the first time. */
static void try(struct quota_call *call)
{
    struct quota *quota = call->quota;
    struct quota_outcome outcome;
    uint64_t hash = hash_of(quota, call);
    if (call->is_asking) {
        call->is_called = true;
        return;
    }
    call->is_called = false;
    if (call->ask.rule.kind == QUOTA_ACQUIRE && call->until_ns > 0)
        wakes_add(&quota->wakes, call);
    if (call->ask.rule.n_rates > 0 && denials_find(quota->denials, call->key, hash, call->database, resets_of(quota),
                                                   quota->line.lanes->loop->now_ns, &call->ask, &outcome))
        decide(call, &outcome);
    else
        ask(call, hash);
}

static void on_alarm(struct alarm *alarm)
{
    struct quota_call *call = container_of(alarm, struct quota_call, alarm);
    if (call->is_placed)
        done(call);
    else
        try(call);
}

/* ---- answers ---- */

static struct quota_call *take_call(struct batch_entry *entry)
{
    struct quota_call *call = container_of(entry->calls.next, struct quota_call, in_entry);
    list_take(&call->in_entry);
    call->is_asking = false;
    return call;
}

static void fail_entry(struct batch_entry *entry, struct slice error, bool is_down)
{
    while (!list_is_empty(&entry->calls)) {
        struct quota_call *call = take_call(entry);
        if (is_down)
            done_without(call, error);
        else
            done_with(call, error);
    }
}

static void fail_batch(struct batch *batch, struct slice error, bool is_down)
{
    for (uint32_t i = 0; i < batch->n; i++)
        fail_entry(&batch->entries[i], error, is_down);
    batch_free(batch);
}

/* Nobody is there any more to hold what has been acquired. */
static void give_place_back(struct quota_call *call)
{
    call->ask.rule.kind = QUOTA_RELEASE;
    call->ask.token = slice_str(call->token);
    ask(call, hash_of(call->quota, call));
}

static void decide_holding(struct quota_call *call, const int64_t *numbers)
{
    uint64_t now_ns = call->quota->line.lanes->loop->now_ns;
    bool is_acquire = call->ask.rule.kind == QUOTA_ACQUIRE;
    bool is_granted = numbers[0] > 0;
    int64_t retry_ns = numbers[2] > 0 && numbers[2] < INT64_MAX / 1000000 ? numbers[2] * 1000000 : 1000000;
    if (is_acquire && is_granted && call->owner == NULL) {
        give_place_back(call);
    } else if (is_acquire && !is_granted && call->owner != NULL && now_ns < call->until_ns) {
        uint64_t due_ns = call->is_called ? now_ns : now_ns + (uint64_t)retry_ns; /* a place came free meanwhile */
        wait_until(call, due_ns < call->until_ns ? due_ns : call->until_ns);
        wakes_listen(&call->quota->wakes, slice_str(call->quota->channel));
    } else {
        quota_reply_holding(&call->reply, &call->ask, numbers, slice_str(call->token));
        done(call);
    }
}

static void decide_entry(struct quota *quota, const struct batch *batch, struct batch_entry *entry,
                         const int64_t *numbers)
{
    const struct quota_call *first = container_of(entry->calls.next, struct quota_call, in_entry);
    struct quota_memory memory;
    uint32_t n = entry->n;
    const struct quota_ask asked = first->ask; /* the call may end meanwhile */
    if (asked.rule.n_rates > 0 && quota_remember(&asked, numbers, n, &memory))
        denials_put(quota->denials, first->key, entry->hash, first->database, batch->resets, batch->sent_ns, &memory);
    if (makes_room(&asked))
        forget_denials(quota);
    for (uint32_t k = 0; k < n; k++) {
        struct quota_outcome outcome;
        struct quota_call *call = take_call(entry);
        if (asked.rule.n_rates == 0) {
            decide_holding(call, numbers);
            continue;
        }
        quota_outcome(&call->ask, numbers, n, k, &outcome); /* its own: cost and step may make the same in other ways */
        decide(call, &outcome);
    }
}

static bool read_entry(struct answer *answer, const struct batch_entry *entry, int64_t *numbers, struct slice *error)
{
    const struct quota_call *first = container_of(entry->calls.next, struct quota_call, in_entry);
    unsigned n = quota_numbers(&first->ask);
    for (unsigned i = 0; i < n; i++)
        if (!answer_number(answer, &numbers[i], error))
            return false;
    return true;
}

static void answer_batch(struct quota *quota, struct batch *batch, struct slice text)
{
    struct answer answer = {text.at, text.at + text.len};
    char type;
    struct slice header;
    bool is_good = answer_line(&answer, &type, &header) && type == '*';
    for (uint32_t i = 0; i < batch->n; i++) {
        int64_t numbers[QUOTA_NUMBERS_MAX];
        struct slice error = slice_of(NULL, 0);
        char whole[256];
        is_good = is_good && read_entry(&answer, &batch->entries[i], numbers, &error);
        if (is_good && error.at == NULL) {
            decide_entry(quota, batch, &batch->entries[i], numbers);
            continue;
        }
        int len = is_good ? snprintf(whole, sizeof whole, "-%.*s", (int)error.len, error.at)
                          : snprintf(whole, sizeof whole, "-ERR the upstream has answered a script amiss");
        fail_entry(&batch->entries[i], slice_of(whole, (size_t)len < sizeof whole ? (size_t)len : sizeof whole - 1),
                   false);
    }
    batch_free(batch);
}

static void answer_delete(struct quota *quota, struct batch *batch, struct slice text)
{
    struct answer answer = {text.at, text.at + text.len};
    int64_t deleted = 0;
    struct slice error = slice_of(NULL, 0);
    forget_denials(quota);
    bool is_good = answer_number(&answer, &deleted, &error) && error.at == NULL;
    while (!list_is_empty(&batch->entries[0].calls)) {
        struct quota_call *call = take_call(&batch->entries[0]);
        if (is_good)
            build_int(&call->reply, deleted);
        else
            build_error(&call->reply, SLICE("ERR the upstream has answered amiss"));
        done(call);
    }
    batch_free(batch);
}

static bool is_noscript(struct slice reply)
{
    return reply.len > 9 && memcmp(reply.at, "-NOSCRIPT", 9) == 0;
}

/* Nothing has been decided: it is asked again, with the script, and no third time. */
static bool repair(struct quota *quota, struct batch *batch)
{
    batch->is_repaired = true;
    batch->sent_ns = quota->line.lanes->loop->now_ns;
    if (!batch_send(batch, &quota->line))
        return false;
    list_push(&quota->sent, &batch->in_quota);
    return true;
}

static void on_reply(struct line *line, struct slice reply)
{
    struct quota *quota = container_of(line, struct quota, line);
    struct batch *batch = container_of(quota->sent.next, struct batch, in_quota);
    list_take(&batch->in_quota);
    if (is_noscript(reply) && !batch->is_repaired && batch->script != SCRIPT_COUNT && repair(quota, batch))
        return;
    if (reply.len > 1 && reply.at[0] == '-')
        fail_batch(batch, reply, false);
    else if (batch->script == SCRIPT_COUNT)
        answer_delete(quota, batch, reply);
    else
        answer_batch(quota, batch, reply);
    if (!list_is_empty(&quota->open))
        line_wake(line); /* what had to stay may go */
}

/* ---- the line ---- */

static void fail_all(struct list *batches, struct slice error, bool is_down)
{
    struct list now;
    list_take_all(&now, batches);
    while (!list_is_empty(&now)) {
        struct batch *batch = container_of(now.next, struct batch, in_quota);
        list_take(&batch->in_quota);
        fail_batch(batch, error, is_down);
    }
}

static void on_lost(struct line *line)
{
    struct quota *quota = container_of(line, struct quota, line);
    fail_all(&quota->sent, err_text(ERR_UPSTREAM_UNAVAILABLE), true);
    if (!list_is_empty(&quota->open))
        line_wake(line);
}

/* Does something that has been sent, and that asks another script, concern this key? */
static bool is_asked_about(const struct quota *quota, enum script script, struct slice key, uint64_t hash)
{
    for (const struct list *at = quota->sent.next; at != &quota->sent; at = at->next) {
        const struct batch *batch = container_of(at, struct batch, in_quota);
        if (batch->script != script && batch->script != SCRIPT_COUNT && batch_concerns(batch, key, hash))
            return true;
    }
    return false;
}

static bool asks_only(const struct quota *quota, enum script script)
{
    for (const struct list *at = quota->sent.next; at != &quota->sent; at = at->next)
        if (container_of(at, struct batch, in_quota)->script != script)
            return false;
    return true;
}

/* What has been sent might be missing its script, and be sent again behind this, which does not. */
static bool must_stay(const struct quota *quota, const struct batch *batch)
{
    struct slice key;
    if (asks_only(quota, batch->script)) /* nearly always */
        return false;
    for (uint32_t i = 0; i < batch->n; i++) {
        const struct batch_entry *entry = &batch->entries[i];
        const struct quota_call *call = container_of(entry->calls.next, struct quota_call, in_entry);
        struct argv_walk keys = {call->key.at, call->key.at + call->key.len, call->n_keys};
        while (argv_next(&keys, &key))
            if (is_asked_about(quota, batch->script, key, hash_bytes(quota->key, key)))
                return true;
        if (call->n_keys == 0 && is_asked_about(quota, batch->script, call->key, entry->hash))
            return true;
    }
    return false;
}

static void send_open(struct quota *quota)
{
    while (!list_is_empty(&quota->open)) {
        struct batch *batch = container_of(quota->open.next, struct batch, in_quota);
        if (must_stay(quota, batch))
            return;
        list_take(&batch->in_quota);
        batch->sent_ns = quota->line.lanes->loop->now_ns;
        batch->resets = resets_of(quota);
        if (batch_send(batch, &quota->line))
            list_push(&quota->sent, &batch->in_quota);
        else
            fail_batch(batch, err_text(ERR_OUT_OF_MEMORY), false);
    }
}

/* That it is there but does not let weir in, or does not decide, is no reason to let anybody through. */
static bool is_away(const struct line *line)
{
    return line->refusal == NULL && line->lanes->down != ERR_NONE;
}

/* What has gathered in this turn goes out. */
static void on_change(struct line *line)
{
    struct quota *quota = container_of(line, struct quota, line);
    if (list_is_empty(&quota->open))
        return;
    switch (line_find(line)) {
    case LINE_READY:
        send_open(quota);
        break;
    case LINE_NOT_YET:
        break;
    case LINE_NONE:
        fail_all(&quota->open, line_why_none(line), is_away(line));
        break;
    }
}

static void on_unloaded(struct line *line)
{
    struct quota *quota = container_of(line, struct quota, line);
    fail_all(&quota->open, line_why_none(line), is_away(line));
}

static const struct line_ops line_ops = {
    .on_change = on_change,
    .on_reply = on_reply,
    .on_unloaded = on_unloaded,
    .on_lost = on_lost,
};

/* ---- calls ---- */

/* Where releases are told: the prefix may be another since the last reload. */
static void name_channel(struct quota *quota, struct slice prefix)
{
    bool is_named =
        strncmp(quota->channel, prefix.at, prefix.len) == 0 && strcmp(quota->channel + prefix.len, "released") == 0;
    if (!is_named)
        snprintf(quota->channel, sizeof quota->channel, "%.*sreleased", (int)prefix.len, prefix.at);
}

struct quota_call *quota_begin(struct quota *quota, const struct quota_context *context, struct slice name,
                               struct slice request, void *owner, struct build *error)
{
    struct quota_call *call = call_new(quota, context, name, request, owner, error);
    if (call == NULL)
        return NULL;
    call->alarm.on_due = on_alarm;
    if (call->ask.wait_ns > 0)
        call->until_ns = quota->line.lanes->loop->now_ns + call->ask.wait_ns;
    name_channel(quota, context->prefix);
    return call;
}

struct quota_call *quota_answered(struct quota *quota, struct slice reply, void *owner)
{
    return call_answered(quota, reply, owner);
}

void quota_start(struct quota_call *call)
{
    try(call);
}

void quota_cancel(struct quota_call *call)
{
    call->owner = NULL;
    list_take(&call->in_client);
    alarm_stop(call->quota->alarms, &call->alarm);
    wakes_remove(&call->quota->wakes, call);
    if (!call->is_asking)
        call_free(call);
}

bool quota_hurry(struct quota_call *call)
{
    call->is_hurried = true;
    call->until_ns = 0;
    return alarm_is_set(&call->alarm);
}

void quota_end(struct quota_call *call)
{
    list_take(&call->in_client);
    call_free(call);
}

bool quota_decides(const struct command *command)
{
    return command->flow == FLOW_OWN && command->first_key > 0;
}

/* ---- the worker's ---- */

struct quota *quota_new(struct lanes *lanes, struct alarms *alarms, struct quota_settings *settings,
                        quota_on_done on_done)
{
    struct quota *quota = mem_zalloc(1, sizeof *quota);
    struct login *login = NULL;
    if (settings->upstream_password.len > 0)
        login = login_new(settings->upstream_user.len > 0 ? settings->upstream_user : SLICE("default"),
                          settings->upstream_password);
    if (getrandom(&quota->key, sizeof quota->key, 0) != (ssize_t)sizeof quota->key)
        abort();
    quota->alarms = alarms;
    quota->settings = settings;
    quota->on_done = on_done;
    quota->denials = denials_new();
    list_init(&quota->open);
    list_init(&quota->sent);
    line_init(&quota->line, lanes, login_get(login), &line_ops);
    wakes_init(&quota->wakes, lanes, login, try);
    return quota;
}

static void drop_all(struct list *batches)
{
    while (!list_is_empty(batches)) {
        struct batch *batch = container_of(batches->next, struct batch, in_quota);
        list_take(&batch->in_quota);
        for (uint32_t i = 0; i < batch->n; i++)
            while (!list_is_empty(&batch->entries[i].calls))
                call_free(take_call(&batch->entries[i]));
        batch_free(batch);
    }
}

/* All clients have gone: what is left belongs to nobody. */
void quota_free(struct quota *quota)
{
    line_fini(&quota->line);
    wakes_fini(&quota->wakes);
    drop_all(&quota->open);
    drop_all(&quota->sent);
    denials_free(quota->denials);
    free(quota);
}
