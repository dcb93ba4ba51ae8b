#include "quota/quota.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "limit/funnel.h"
#include "quota/away.h"
#include "quota/denials.h"
#include "quota/exchange.h"
#include "quota/local.h"
#include "quota/outcome.h"
#include "quota/outcome_reply.h"
#include "quota/prefix.h"
#include "quota/question.h"
#include "quota/release_listener.h"
#include "quota/renewal.h"

#define RETRY_MOST_MS ((int64_t)(RATE_LONGEST_NS / NS_PER_MS))
#define MS_PER_S 1000
#define RETRY_LEAST_NS NS_PER_MS /* a window that says it has room already is not asked in a circle */

struct quota {
    struct exchange exchange;
    struct release_listener listener;
    struct alarms *alarms;
    struct quota_settings *settings;
    quota_on_done on_done;
    struct denials *denials;
    struct ask_memo memo;
    char channel[PREFIX_CHANNEL_ROOM + 1];
};

static uint64_t now_of(const struct quota *quota)
{
    return script_conn_now_ns(&quota->exchange.conn);
}

static uint64_t hash_of(const struct decision *call)
{
    return exchange_hash(&call->quota->exchange, call->key);
}

/* ---- being done ---- */

/* What has become of the call for one named limit. */
static void count_for(const struct decision *call, struct named_tally *tally, struct slice key, bool is_limited,
                      bool is_shadow)
{
    if (tally == NULL)
        return;
    const struct quota *quota = call->quota;
    uint64_t now_ns = now_of(quota);
    uint64_t ns = call->arrived_ns > 0 && now_ns > call->arrived_ns ? now_ns - call->arrived_ns : 0;
    enum tally_result result = call->is_failed ? TALLY_ERROR
                               : !is_limited   ? TALLY_PASSED
                               : is_shadow     ? TALLY_SHADOWED
                                               : TALLY_LIMITED;
    named_tally_add(tally, result, ns);
    if (is_limited && !call->is_failed)
        top_add(quota->settings->limited, TOP_REFUSED, slice_str(tally->name), key,
                exchange_hash(&quota->exchange, key), 1, now_ns);
}

/* Of several limits each counts what it would have said alone. */
static void count(const struct decision *call)
{
    if (call->ask.is_peek)
        return;
    count_for(call, call->tally, call->key, call->is_limited, call->is_shadow);
    for (unsigned i = 0; i < call->n_parts; i++) {
        const struct quota_ask *part = &call->asks[i];
        if (!part->is_peek)
            count_for(call, call->parts[i].tally, part->key, (call->refusing >> i & 1) != 0, part->is_shadow);
    }
}

static void done(struct decision *call)
{
    struct quota *quota = call->quota;
    count(call);
    alarm_stop(quota->alarms, &call->alarm);
    release_listener_remove(&quota->listener, call);
    call->is_done = true;
    if (call->owner == NULL)
        decision_free(call);
    else
        quota->on_done(call);
}

/* An error reply, whole. */
static void done_with(struct decision *call, struct slice error)
{
    struct slice text = error.len > 1 ? slice_of(error.at + 1, error.len - 1) : slice_of("", 0);
    while (text.len > 0 && (text.at[text.len - 1] == '\n' || text.at[text.len - 1] == '\r'))
        text.len--;
    build_error(&call->reply, text.len > 0 ? text : SLICE("ERR"));
    call->is_failed = true;
    done(call);
}

static void note_outcome(struct decision *call, const struct quota_outcome *outcome)
{
    call->is_limited = outcome->is_limited;
    call->refusing = outcome->refusing;
}

static void reply(struct decision *call, const struct quota_outcome *outcome)
{
    struct quota_outcome told = *outcome;
    note_outcome(call, outcome);
    if (call->n_parts > 0)
        told.refused_by = call->parts[outcome->part].shown;
    if (call->is_shadow && outcome->is_limited) {
        told.is_limited = false;
        told.granted = call->ask.cost;
        told.retry_ns = -1;
    }
    quota_reply(&call->reply, &call->ask, &told);
    done(call);
}

/* ---- waiting ---- */

static void wait_until(struct decision *call, uint64_t due_ns)
{
    alarm_stop(call->quota->alarms, &call->alarm);
    alarm_set(call->quota->alarms, &call->alarm, due_ns);
}

static bool can_wait(const struct decision *call, uint64_t now_ns, int64_t wait_ns)
{
    return wait_ns >= 0 && now_ns + (uint64_t)wait_ns <= call->until_ns;
}

/* It must not wait for its turn any more: refuse it, for it must not pass before its time. */
static void reply_too_late(struct decision *call, const struct quota_outcome *outcome)
{
    struct quota_outcome late = *outcome;
    late.is_limited = true;
    late.remaining = 0;
    late.retry_ns = outcome->wait_ns;
    late.reset_ns += outcome->wait_ns;
    reply(call, &late);
}

/* Finish the call, or let it wait: for its turn, or to ask again when the window has moved. */
static void decide(struct decision *call, const struct quota_outcome *outcome)
{
    uint64_t now_ns = now_of(call->quota);
    if (call->owner == NULL) {
        note_outcome(call, outcome);
        done(call);
        return;
    }
    if (outcome->wait_ns > 0 && call->is_hurried) {
        reply_too_late(call, outcome);
        return;
    }
    if (outcome->wait_ns > 0) {
        call->has_turn = true;
        quota_reply(&call->reply, &call->ask, outcome);
        wait_until(call, now_ns + (uint64_t)outcome->wait_ns);
        return;
    }
    bool has_place = quota_is_funnel(call->ask.rule.kind) && !outcome->is_penalised; /* or cannot have one in time */
    int64_t retry_ns = outcome->retry_ns > (int64_t)RETRY_LEAST_NS ? outcome->retry_ns : (int64_t)RETRY_LEAST_NS;
    if (outcome->is_limited && outcome->retry_ns >= 0 && !has_place && can_wait(call, now_ns, retry_ns)) {
        call->is_waiting = true;
        call->ask.wait_ns = call->until_ns - now_ns - (uint64_t)retry_ns; /* what will be left of it */
        wait_until(call, now_ns + (uint64_t)retry_ns);
    } else {
        reply(call, outcome);
    }
}

/* ---- while Redis is away ---- */

static void done_without(struct decision *call, struct slice error)
{
    const struct quota *quota = call->quota;
    const struct local_time time = {now_of(quota), (int64_t)(clock_unix_ms() * (NS_PER_MS / NS_PER_US))};
    struct quota_outcome outcome;
    switch (away_decide(call, quota->settings, time, &outcome)) {
    case AWAY_ERROR:
        done_with(call, error);
        break;
    case AWAY_UNASKED:
        reply(call, &outcome);
        break;
    case AWAY_COUNTED:
        decide(call, &outcome);
        break;
    }
}

/* ---- asking ---- */

/* Remembered denials may be wrong after this call, also for calls behind it in the same turn. */
static bool makes_room(const struct quota_ask *ask)
{
    return ask->rule.kind == QUOTA_RESET || ask->rule.kind == QUOTA_BAN || ask->rule.kind == QUOTA_UNBAN ||
           ask->mode == QUOTA_CREDIT || (ask->rule.kind == QUOTA_THROTTLE && ask->cost < 0);
}

/* Forget remembered denials of a key, on all workers. */
static void note_pass(struct quota *quota, uint64_t hash)
{
    atomic_fetch_add_explicit(&quota->settings->passes[hash % QUOTA_PASSES], 1, memory_order_acq_rel);
}

/* Forget all remembered denials, on all workers. */
static void forget_denials(struct quota *quota)
{
    atomic_fetch_add_explicit(&quota->settings->resets, 1, memory_order_acq_rel);
}

/* For calendar windows: the time by which they are computed. */
static void note_time(struct decision *call)
{
    bool has_calendar = quota_has_calendar(&call->ask.rule);
    for (unsigned i = 0; i < call->n_parts; i++)
        has_calendar = has_calendar || quota_has_calendar(&call->asks[i].rule);
    if (!has_calendar)
        return;
    call->ask.unix_s = (int64_t)(clock_unix_ms() / MS_PER_S);
    for (unsigned i = 0; i < call->n_parts; i++)
        call->asks[i].unix_s = call->ask.unix_s;
}

static void ask(struct decision *call, uint64_t hash)
{
    struct quota *quota = call->quota;
    char words[QUOTA_WORDS_ROOM + sizeof quota->channel];
    struct exchange_question question = {.algorithm = quota_algorithm(call->ask.rule.kind),
                                         .words = slice_of(words, 0),
                                         .work_us = quota_ask_work_us(&call->ask)};
    note_time(call);
    if (question.algorithm->script != SCRIPT_COUNT)
        question.words.len =
            quota_ask_words(&call->ask, call->database, slice_str(quota->channel), words, &question.n_words);
    if (!exchange_ask(&quota->exchange, call, &question, hash)) {
        done_with(call, err_text(ERR_OUT_OF_MEMORY));
        return;
    }
    if (makes_room(&call->ask))
        forget_denials(quota);
}

/* Answer from memory; not while a question about the key is under way, which comes first and may charge it. */
static bool recall(const struct decision *call, uint64_t hash, struct quota_outcome *outcome)
{
    const struct quota *quota = call->quota;
    return call->ask.rule.n_rates > 0 &&
           denials_find(quota->denials, call->key, hash, call->database, quota_changes(quota->settings, hash),
                        now_of(quota), &call->ask, outcome) &&
           !exchange_concerns(&quota->exchange, call->key, hash);
}

/* Again, or for the first time. */
static void try(struct decision *call)
{
    struct quota *quota = call->quota;
    struct quota_outcome outcome;
    uint64_t hash = hash_of(call);
    if (call->is_asking) {
        call->is_called = true;
        return;
    }
    call->is_called = false;
    if (call->ask.rule.kind == QUOTA_ACQUIRE && call->until_ns > 0)
        release_listener_add(&quota->listener, call);
    if (recall(call, hash, &outcome))
        decide(call, &outcome);
    else
        ask(call, hash);
}

static void on_alarm(struct alarm *alarm)
{
    struct decision *call = container_of(alarm, struct decision, alarm);
    if (call->has_turn && now_of(call->quota) < alarm->due_ns)
        wait_until(call, alarm->due_ns); /* a turn never comes early, whoever woke the call */
    else if (call->has_turn)
        done(call);
    else
        try(call);
}

/* ---- answers ---- */

/* The client has gone: release what ACQUIRE got for it. */
static void give_place_back(struct decision *call)
{
    call->ask.rule.kind = QUOTA_RELEASE;
    call->ask.token = slice_str(call->token);
    ask(call, hash_of(call));
}

static void decide_holding(struct decision *call, const int64_t *numbers)
{
    uint64_t now_ns = now_of(call->quota);
    bool is_acquire = call->ask.rule.kind == QUOTA_ACQUIRE;
    bool is_granted = numbers[0] > 0;
    uint64_t retry_ms = numbers[2] > 0 && numbers[2] <= RETRY_MOST_MS ? (uint64_t)numbers[2] : 1;
    if (is_acquire && is_granted && call->owner == NULL) {
        give_place_back(call);
    } else if (is_acquire && !is_granted && call->owner != NULL && now_ns < call->until_ns) {
        uint64_t due_ns = call->is_called ? now_ns : now_ns + retry_ms * NS_PER_MS; /* a place came free meanwhile */
        wait_until(call, due_ns < call->until_ns ? due_ns : call->until_ns);
        release_listener_listen(&call->quota->listener, slice_str(call->quota->channel));
    } else {
        quota_reply_holding(&call->reply, &call->ask, numbers, slice_str(call->token));
        done(call);
    }
}

/* Has a penalty begun? So it may have where one is known now. */
static bool may_have_begun(const struct quota_ask *ask, const struct quota_hold *hold)
{
    return hold->left_ns > 0 && ask->penalty.first_ms > 0;
}

/* Has what is known of the keys been written anew? */
static bool has_changed(const struct quota_ask *ask, const int64_t *numbers, const struct quota_hold *holds, uint64_t n)
{
    bool has = ask->counts_all || quota_granted_held(ask, numbers, holds, n) > 0;
    for (unsigned i = 0; i < ask->n_parts; i++)
        has = has || may_have_begun(&ask->parts[i], &holds[i]);
    return has || (ask->n_parts == 0 && may_have_begun(ask, holds));
}

/* Something was charged, or a penalty has begun: what is remembered of its keys is true no longer. */
static void note_charged(struct quota *quota, const struct quota_ask *asked, struct batch_entry *entry)
{
    for (unsigned i = 0; i < asked->n_parts; i++)
        note_pass(quota, exchange_hash(&quota->exchange, asked->parts[i].key));
    if (asked->n_parts > 0)
        return;
    note_pass(quota, entry->hash);
    entry->changes++; /* what is remembered of the others is behind that */
}

static void on_numbers(struct exchange *exchange, const struct batch *batch, struct batch_entry *entry,
                       const int64_t *numbers, const struct quota_hold *holds)
{
    struct quota *quota = container_of(exchange, struct quota, exchange);
    const struct decision *first = container_of(entry->calls.next, struct decision, in_entry);
    struct quota_memory memory;
    uint32_t n = entry->n;
    const struct quota_ask asked = first->ask; /* the call may end meanwhile */
    if (quota_is_decision(&asked) && !asked.is_peek && has_changed(&asked, numbers, holds, n))
        note_charged(quota, &asked, entry);
    if (asked.rule.n_rates > 0 && holds->left_ns == 0 && quota_remember(&asked, numbers, n, &memory))
        denials_put(quota->denials, first->key, entry->hash, first->database, entry->changes, batch->sent_ns, &memory);
    if (makes_room(&asked))
        forget_denials(quota);
    for (uint32_t k = 0; k < n; k++) {
        struct quota_outcome outcome;
        struct decision *call = exchange_take(entry);
        if (asked.rule.kind == QUOTA_ANEW) {
            renewal_go_on(call, k == 0 && numbers[0] > 0);
            ask(call, hash_of(call));
            continue;
        }
        if (!quota_is_decision(&asked)) {
            decide_holding(call, numbers);
            continue;
        }
        quota_outcome_held(&call->ask, numbers, holds, n, k,
                           &outcome); /* its own: cost and step may make the same in other ways */
        decide(call, &outcome);
    }
}

static void on_deleted(struct decision *call, int64_t n)
{
    forget_denials(call->quota);
    build_int(&call->reply, n);
    done(call);
}

static void on_failed(struct decision *call, struct slice error, bool is_down)
{
    if (call->ask.rule.kind == QUOTA_ANEW)
        renewal_end(call);
    for (unsigned i = 0; i < call->n_parts; i++)
        note_pass(call->quota, exchange_hash(&call->quota->exchange, call->asks[i].key));
    note_pass(call->quota, hash_of(call)); /* nobody knows */
    bool is_due = renewal_is_due(call, error);
    if (is_due && call->ask.is_peek) {
        struct quota_outcome outcome;
        renewal_look(call, &outcome);
        decide(call, &outcome);
    } else if (is_due) {
        renewal_begin(call);
        ask(call, hash_of(call));
    } else if (is_down) {
        done_without(call, error);
    } else {
        done_with(call, error);
    }
}

static const struct exchange_ops exchange_ops = {
    .on_numbers = on_numbers,
    .on_deleted = on_deleted,
    .on_failed = on_failed,
};

/* ---- calls ---- */

/* The channel for releases; limit-prefix may have changed by a reload. */
static void name_channel(struct quota *quota, struct slice prefix)
{
    char channel[PREFIX_CHANNEL_ROOM];
    struct slice name = prefix_channel(prefix, channel);
    memcpy(quota->channel, name.at, name.len);
    quota->channel[name.len] = '\0';
}

struct decision *quota_begin(struct quota *quota, const struct quota_context *context, struct slice name,
                             struct slice request, void *owner, struct build *error)
{
    struct decision *call = decision_new(quota, context, &quota->memo, name, request, owner, error);
    if (call == NULL)
        return NULL;
    if (!decision_reserve(call, quota->alarms)) {
        build_error(error, SLICE("ERR out of memory"));
        decision_free(call);
        return NULL;
    }
    call->alarm.on_due = on_alarm;
    if (call->ask.wait_ns > 0)
        call->until_ns = now_of(quota) + call->ask.wait_ns;
    if (quota_algorithm(call->ask.rule.kind)->family == FAMILY_HOLDING)
        name_channel(quota, context->prefix);
    return call;
}

struct decision *quota_answered(struct quota *quota, struct slice reply, void *owner)
{
    return decision_answered(quota, reply, owner);
}

void quota_start(struct decision *call)
{
    try(call);
}

void quota_cancel(struct decision *call)
{
    call->owner = NULL;
    list_take(&call->in_client);
    alarm_stop(call->quota->alarms, &call->alarm);
    release_listener_remove(&call->quota->listener, call);
    if (!call->is_asking)
        decision_free(call);
}

bool quota_hurry(struct decision *call)
{
    call->is_hurried = true;
    call->until_ns = 0;
    return alarm_is_set(&call->alarm);
}

void quota_end(struct decision *call)
{
    list_take(&call->in_client);
    decision_free(call);
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
    quota->alarms = alarms;
    quota->settings = settings;
    quota->on_done = on_done;
    quota->denials = denials_new();
    exchange_init(&quota->exchange, lanes, login_get(lanes->base.commons->login), settings, &exchange_ops);
    release_listener_init(&quota->listener, lanes, login_get(lanes->base.commons->login), try);
    return quota;
}

/* All clients have gone: what is left belongs to nobody. */
void quota_free(struct quota *quota)
{
    exchange_fini(&quota->exchange);
    release_listener_fini(&quota->listener);
    denials_free(quota->denials);
    free(quota);
}
