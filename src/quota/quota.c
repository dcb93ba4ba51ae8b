#include "quota/quota.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "limit/command/keys.h"
#include "limit/policy/rate.h"
#include "quota/request_parse.h"
#include "quota/away.h"
#include "quota/exchange.h"
#include "quota/local.h"
#include "quota/outcome.h"
#include "quota/prefix.h"
#include "quota/question.h"
#include "quota/release_listener.h"

#define RETRY_MOST_MS ((int64_t)(RATE_LONGEST_NS / NS_PER_MS))
#define MS_PER_S 1000
/* chosen: a window that reports room already is not asked in a busy loop */
#define RETRY_LEAST_NS NS_PER_MS

#define RELEASE_LONGEST_NS (30 * NS_PER_S) /* how long a failed release is retried */
#define RELEASE_AGAIN_NS (500 * NS_PER_MS) /* time between two tries of a release */

struct quota {
    struct exchange exchange;
    struct release_listener listener;
    struct alarms *alarms;
    struct list releasing; /* struct decision by in_client: releases for clients that have closed */
    struct quota_settings *settings;
    quota_on_done on_done;
    struct denials *denials;
    struct request_memo memo;
    char channel[PREFIX_CHANNEL_ROOM + 1];
};

static uint64_t quota_now_of(const struct quota *quota)
{
    return quota->alarms->loop->now_ns;
}

static uint64_t quota_hash_of(const struct decision *decision)
{
    return exchange_hash(&decision->quota->exchange, decision->key);
}

/* ---- the end of a call ---- */

static void done(struct decision *decision)
{
    struct quota *quota = decision->quota;
    decision_count(decision, quota->settings, quota_now_of(quota));
    alarm_stop(quota->alarms, &decision->alarm);
    release_listener_remove(&quota->listener, decision);
    decision->is_done = true;
    if (decision->owner != NULL) {
        quota->on_done(decision);
        return;
    }
    list_take(&decision->in_client);
    decision_free(decision);
}

/* `error` is a whole error reply. */
static void build_failure(struct decision *decision, struct slice error)
{
    struct slice text = error.len > 1 ? slice_of(error.at + 1, error.len - 1) : slice_of("", 0);
    while (text.len > 0 && (text.at[text.len - 1] == '\n' || text.at[text.len - 1] == '\r'))
        text.len--;
    build_error(&decision->reply, text.len > 0 ? text : SLICE("ERR"));
    decision->is_failed = true;
}

/* Notes that a part of the call is over. The last part ends the call. */
static void end_part(struct decision *whole)
{
    if (--whole->n_open > 0)
        return;
    whole->is_asking = false;
    if (!whole->is_failed)
        build_int(&whole->reply, whole->n_deleted);
    done(whole);
}

/* Ends the decision with an error. The first error of a call's parts becomes the call's error. */
static void done_with(struct decision *decision, struct slice error)
{
    struct decision *whole = decision->whole;
    if (whole == NULL) {
        build_failure(decision, error);
        done(decision);
        return;
    }
    decision_free(decision);
    if (!whole->is_failed)
        build_failure(whole, error);
    end_part(whole);
}

static void note_outcome(struct decision *decision, const struct quota_outcome *outcome)
{
    decision->is_limited = outcome->is_limited;
    decision->refusing = outcome->refusing;
}

static void reply(struct decision *decision, const struct quota_outcome *outcome)
{
    struct quota_outcome told = *outcome;
    note_outcome(decision, outcome);
    if (decision->n_parts > 0)
        told.refused_by = decision->parts[outcome->part].shown;
    if (decision->is_shadow && outcome->is_limited) {
        told.is_limited = false;
        told.granted = decision->ask.cost;
        told.retry_ns = -1;
    }
    quota_reply(&decision->reply, &decision->ask, &told);
    done(decision);
}

/* ---- waiting ---- */

static void quota_wait_until(struct decision *decision, uint64_t due_ns)
{
    alarm_stop(decision->quota->alarms, &decision->alarm);
    alarm_set(decision->quota->alarms, &decision->alarm, due_ns);
}

static bool quota_can_wait(const struct decision *decision, uint64_t now_ns, int64_t wait_ns)
{
    return wait_ns >= 0 && now_ns + (uint64_t)wait_ns <= decision->until_ns;
}

/*
 * Refuses a call that must not wait until its scheduled time. The call must not pass earlier
 * either.
 */
static void reply_too_late(struct decision *decision, const struct quota_outcome *outcome)
{
    struct quota_outcome late = *outcome;
    late.is_limited = true;
    late.remaining = 0;
    late.retry_ns = outcome->wait_ns;
    late.reset_ns += outcome->wait_ns;
    reply(decision, &late);
}

/*
 * Finishes the call, or lets it wait: for its scheduled time, or for a retry when the window has
 * moved.
 */
static void quota_decide(struct decision *decision, const struct quota_outcome *outcome)
{
    uint64_t now_ns = quota_now_of(decision->quota);
    if (decision->owner == NULL) {
        note_outcome(decision, outcome);
        done(decision);
        return;
    }
    if (outcome->wait_ns > 0 && decision->is_hurried) {
        reply_too_late(decision, outcome);
        return;
    }
    if (outcome->wait_ns > 0) {
        decision->has_turn = true;
        quota_reply(&decision->reply, &decision->ask, outcome);
        quota_wait_until(decision, now_ns + (uint64_t)outcome->wait_ns);
        return;
    }
    bool has_place =
        /* a funnel has reserved a time, or has none before WAIT ends */
        quota_is_funnel(decision->ask.rule.kind) && !outcome->is_penalised;
    int64_t retry_ns =
        outcome->retry_ns > (int64_t)RETRY_LEAST_NS ? outcome->retry_ns : (int64_t)RETRY_LEAST_NS;
    if (outcome->is_limited && outcome->retry_ns >= 0 && !has_place &&
        quota_can_wait(decision, now_ns, retry_ns)) {
        decision->is_waiting = decision->has_waited = true;
        /* the part of WAIT that remains after the retry */
        decision->ask.wait_ns = decision->until_ns - now_ns - (uint64_t)retry_ns;
        quota_wait_until(decision, now_ns + (uint64_t)retry_ns);
    } else {
        reply(decision, outcome);
    }
}

/* ---- while Redis is unavailable ---- */

static void done_without(struct decision *decision, struct slice error)
{
    const struct quota *quota = decision->quota;
    const struct local_time time = {quota_now_of(quota),
                                    (int64_t)(clock_unix_ms() * (NS_PER_MS / NS_PER_US))};
    struct quota_outcome outcome;
    switch (away_decide(decision, quota->settings, time, &outcome)) {
    case AWAY_ERROR:
        done_with(decision, error);
        break;
    case AWAY_UNASKED:
        reply(decision, &outcome);
        break;
    case AWAY_COUNTED:
        quota_decide(decision, &outcome);
        break;
    }
}

/* ---- sending ---- */

/* Invalidates cached denials of a key, on all workers. */
static void note_pass(struct quota *quota, uint64_t hash)
{
    atomic_fetch_add_explicit(&quota->settings->passes[hash % QUOTA_PASSES], 1,
                              memory_order_acq_rel);
}

/* Invalidates all cached denials, on all workers. */
static void forget_denials(struct quota *quota)
{
    atomic_fetch_add_explicit(&quota->settings->resets, 1, memory_order_acq_rel);
}

/* Sets the time that selects calendar windows. */
static void quota_note_time(struct decision *decision)
{
    bool has_calendar = false;
    for (unsigned i = 0; i < decision_request_count(&decision->ask); i++)
        has_calendar =
            has_calendar || quota_has_calendar(&decision_request_at(&decision->ask, i)->rule);
    if (!has_calendar)
        return;
    decision->ask.unix_s = (int64_t)(clock_unix_ms() / MS_PER_S);
    for (unsigned i = 0; i < decision->n_parts; i++)
        decision->asks[i].unix_s = decision->ask.unix_s;
}

static void ask(struct decision *decision, uint64_t hash)
{
    struct quota *quota = decision->quota;
    char words[QUOTA_WORDS_ROOM + sizeof quota->channel];
    struct batch_question question = {.algorithm = quota_algorithm(decision->ask.rule.kind),
                                      .words = slice_of(words, 0),
                                      .work_us = question_work_us(&decision->ask)};
    quota_note_time(decision);
    if (question.algorithm->script != SCRIPT_COUNT)
        question.words.len = question_words(&decision->ask, decision->database,
                                            slice_str(quota->channel), words, &question.n_words);
    if (!exchange_ask(&quota->exchange, decision, &question, hash)) {
        done_with(decision, err_text(ERR_OUT_OF_MEMORY));
        return;
    }
    if (quota_makes_room(&decision->ask))
        forget_denials(quota);
}

/*
 * True if each key gets a deletion of its own. On a cluster one command cannot have keys of several
 * slots, and Redis refuses several keys of one slot while that slot migrates.
 */
static bool quota_has_parts(const struct decision *decision)
{
    return decision->quota->exchange.routes.is_cluster && decision->ask.rule.kind == QUOTA_RESET &&
           decision->n_keys > 1;
}

static void ask_parts(struct decision *whole)
{
    struct slice key;
    struct argv_walk keys = decision_keys(whole);
    const char *begin = keys.at;
    whole->is_asking = true;
    whole->n_open = 1; /* until all parts are sent */
    for (; argv_next(&keys, &key); begin = keys.at) {
        struct decision *part = decision_part(whole, slice_of(begin, (size_t)(keys.at - begin)));
        if (part != NULL)
            ask(part, quota_hash_of(part));
        else if (!whole->is_failed)
            build_failure(whole, err_text(ERR_OUT_OF_MEMORY));
    }
    end_part(whole);
}

/*
 * Answers from the cache, unless a call about the key is in flight: that call is decided first, and
 * may charge the key.
 */
static bool recall(const struct decision *decision, uint64_t hash, struct quota_outcome *outcome)
{
    const struct quota *quota = decision->quota;
    return quota_is_rated(&decision->ask) &&
           denials_find(quota->denials, decision->key, hash, decision->database,
                        quota_changes(quota->settings, hash), quota_now_of(quota), &decision->ask,
                        outcome) &&
           !exchange_concerns(&quota->exchange, decision, hash);
}

/* Runs for the first try of a call, and for each retry. */
static void try(struct decision *decision)
{
    struct quota *quota = decision->quota;
    struct quota_outcome outcome;
    uint64_t hash = quota_hash_of(decision);
    if (decision->is_asking) {
        decision->is_called = true;
        return;
    }
    decision->is_called = false;
    decision->asked_ns = quota_now_of(quota);
    if (quota_takes_permit(&decision->ask) && decision->until_ns > 0)
        release_listener_add(&quota->listener, decision);
    if (recall(decision, hash, &outcome))
        quota_decide(decision, &outcome);
    else if (quota_has_parts(decision))
        ask_parts(decision);
    else
        ask(decision, hash);
}

static void on_alarm(struct alarm *alarm)
{
    struct decision *decision = container_of(alarm, struct decision, alarm);
    if (decision->has_turn && quota_now_of(decision->quota) < alarm->due_ns)
        quota_wait_until(decision, alarm->due_ns); /* the alarm fired early */
    else if (decision->has_turn)
        done(decision);
    else
        try(decision);
}

/* ---- answers ---- */

/* The client has closed: releases the permit that ACQUIRE got for the client. */
static void give_permit_back(struct decision *decision)
{
    decision->ask.rule.kind = QUOTA_RELEASE;
    decision->ask.token = slice_str(decision->token);
    decision->asked_ns = quota_now_of(decision->quota);
    decision->until_ns = decision->asked_ns + RELEASE_LONGEST_NS;
    list_push(&decision->quota->releasing, &decision->in_client);
    ask(decision, quota_hash_of(decision));
}

/* True if a release for a closed client has failed, and is retried later. */
static bool release_again(struct decision *decision)
{
    uint64_t again_ns = quota_now_of(decision->quota) + RELEASE_AGAIN_NS;
    if (decision->owner != NULL || list_is_empty(&decision->in_client) ||
        again_ns > decision->until_ns)
        return false;
    quota_wait_until(decision, again_ns);
    return true;
}

static void decide_holding(struct decision *decision, const int64_t *numbers)
{
    uint64_t now_ns = quota_now_of(decision->quota);
    bool takes_permit = quota_takes_permit(&decision->ask);
    bool is_granted = numbers[0] > 0;
    uint64_t retry_ms = numbers[2] > 0 && numbers[2] <= RETRY_MOST_MS ? (uint64_t)numbers[2] : 1;
    if (takes_permit && is_granted && decision->owner == NULL) {
        give_permit_back(decision);
    } else if (takes_permit && !is_granted && decision->owner != NULL &&
               now_ns < decision->until_ns) {
        decision->has_waited = true;
        /* is_called: a permit was released while the call was in a batch */
        uint64_t due_ns = now_ns + (decision->is_called ? 0 : retry_ms * NS_PER_MS);
        quota_wait_until(decision, due_ns < decision->until_ns ? due_ns : decision->until_ns);
        release_listener_listen(&decision->quota->listener, slice_str(decision->quota->channel));
    } else {
        quota_reply_holding(&decision->reply, &decision->ask, numbers, slice_str(decision->token));
        done(decision);
    }
}

/* True if the keys were written. A penalty, where one is configured, may have begun. */
static bool quota_has_changed(const struct decision_request *ask, const int64_t *numbers,
                              const struct quota_hold *holds, uint64_t n)
{
    bool has = ask->counts_all || quota_granted_held(ask, numbers, holds, n) > 0;
    for (unsigned i = 0; i < decision_request_count(ask); i++)
        has = has || (holds[i].left_ns > 0 && decision_request_at(ask, i)->penalty.first_ms > 0);
    return has;
}

/* Invalidates cached denials of the keys: units were charged, or a penalty has begun. */
static void note_charged(struct quota *quota, const struct decision_request *asked,
                         struct batch_entry *entry)
{
    for (unsigned i = 0; i < asked->n_parts; i++)
        note_pass(quota, exchange_hash(&quota->exchange, asked->parts[i].key));
    if (asked->n_parts > 0)
        return;
    note_pass(quota, entry->hash);
    entry->changes++; /* the denial remembered below is newer than this change */
}

static void on_numbers(const struct batch *batch, struct batch_entry *entry, const int64_t *numbers,
                       const struct quota_hold *holds)
{
    const struct decision *first = batch_first_call(entry);
    struct quota *quota = first->quota;
    struct quota_memory memory;
    uint32_t n = entry->n;
    const struct decision_request asked = first->ask; /* a copy: the call may be freed below */
    if (quota_is_decision(&asked) && !asked.is_peek && quota_has_changed(&asked, numbers, holds, n))
        note_charged(quota, &asked, entry);
    if (quota_is_rated(&asked) && holds->left_ns == 0 &&
        quota_remember(&asked, numbers, n, &memory))
        denials_put(quota->denials, first->key, entry->hash, first->database, entry->changes,
                    batch->sent_ns, &memory);
    if (quota_makes_room(&asked))
        forget_denials(quota);
    for (uint32_t k = 0; k < n; k++) {
        struct quota_outcome outcome;
        struct decision *decision = batch_take(entry);
        if (asked.rule.kind == QUOTA_ANEW) {
            decision_renew_next(decision, k == 0 && numbers[0] > 0);
            ask(decision, quota_hash_of(decision));
            continue;
        }
        if (!quota_is_decision(&asked)) {
            decide_holding(decision, numbers);
            continue;
        }
        quota_outcome_held(&decision->ask, numbers, holds, n, k,
                           /*
                            * each call's own request: different costs and steps may give equal
                            * numbers
                            */
                           &outcome);
        quota_decide(decision, &outcome);
    }
}

static void on_deleted(struct decision *decision, int64_t n)
{
    struct decision *whole = decision->whole;
    forget_denials(decision->quota);
    if (whole == NULL) {
        build_int(&decision->reply, n);
        done(decision);
        return;
    }
    whole->n_deleted += n;
    decision_free(decision);
    end_part(whole);
}

static void quota_on_failed(struct decision *decision, struct slice error, bool is_down)
{
    if (release_again(decision))
        return;
    if (decision->ask.rule.kind == QUOTA_ANEW)
        decision_renew_end(decision);
    for (unsigned i = 0; i < decision->n_parts; i++)
        note_pass(decision->quota,
                  exchange_hash(&decision->quota->exchange, decision->asks[i].key));
    note_pass(decision->quota, quota_hash_of(decision)); /* Redis may have charged the key */
    bool is_due = decision_is_outdated(decision, error);
    if (is_due && decision->ask.is_peek) {
        struct quota_outcome outcome;
        decision_look_anew(decision, &outcome);
        quota_decide(decision, &outcome);
    } else if (is_due) {
        decision_renew(decision);
        ask(decision, quota_hash_of(decision));
    } else if (is_down || away_means(decision, error)) {
        done_without(decision, error);
    } else {
        done_with(decision, error);
    }
}

static const struct batch_ops batch_ops = {
    .on_numbers = on_numbers,
    .on_deleted = on_deleted,
    .on_failed = quota_on_failed,
};

/* ---- calls of the owner ---- */

/* Sets the channel for releases. A reload may have changed limit-prefix. */
static void name_channel(struct quota *quota, struct slice prefix)
{
    char channel[PREFIX_CHANNEL_ROOM];
    struct slice name = prefix_channel(prefix, channel);
    memcpy(quota->channel, name.at, name.len);
    quota->channel[name.len] = '\0';
}

struct decision *quota_begin(struct quota *quota, const struct quota_context *context,
                             struct slice name, struct slice request, void *owner,
                             struct build *error)
{
    struct decision *decision =
        decision_new(quota, context, &quota->memo, name, request, owner, error);
    if (decision == NULL)
        return NULL;
    const char *why = NULL;
    if (!alarms_reserve(quota->alarms, 1))
        why = "ERR out of memory";
    else
        decision->alarms = quota->alarms;
    if (why == NULL && decision->n_parts > 0 && exchange_is_crossing(&quota->exchange, decision))
        why = "CROSSSLOT Keys in request don't hash to the same slot";
    if (why != NULL) {
        build_error(error, slice_str(why));
        decision_free(decision);
        return NULL;
    }
    decision->alarm.on_due = on_alarm;
    if (decision->ask.wait_ns > 0)
        decision->until_ns = quota_now_of(quota) + decision->ask.wait_ns;
    if (quota_algorithm(decision->ask.rule.kind)->family == FAMILY_HOLDING)
        name_channel(quota, context->prefix);
    return decision;
}

int32_t quota_slot(struct quota *quota, const struct quota_context *context, struct slice name,
                   struct slice request)
{
    struct build error;
    int32_t slot = KEYS_NO_SLOT;
    build_init(&error, false);
    struct decision *decision =
        decision_new(quota, context, &quota->memo, name, request, NULL, &error);
    if (decision != NULL) {
        bool is_crossing = exchange_is_crossing(&quota->exchange, decision);
        slot = is_crossing ? KEYS_CROSSING : exchange_slot(&quota->exchange, decision);
        decision_free(decision);
    }
    build_fini(&error);
    return slot;
}

void quota_start(struct decision *decision)
{
    try(decision);
}

void quota_cancel(struct decision *decision)
{
    decision->owner = NULL;
    list_take(&decision->in_client);
    alarm_stop(decision->quota->alarms, &decision->alarm);
    release_listener_remove(&decision->quota->listener, decision);
    if (!decision->is_asking)
        decision_free(decision);
}

bool quota_hurry(struct decision *decision)
{
    decision->is_hurried = true;
    decision->until_ns = 0;
    return alarm_is_set(&decision->alarm);
}

const struct node *quota_node(const struct decision *decision)
{
    const struct exchange *exchange = &decision->quota->exchange;
    const struct nodes_row *row = routes_row(&exchange->routes, exchange_slot(exchange, decision));
    return row != NULL ? lanes_node(&row->lanes) : NULL;
}

void quota_end(struct decision *decision)
{
    list_take(&decision->in_client);
    decision_free(decision);
}

bool quota_decides(const struct command *command)
{
    return command->flow == FLOW_OWN && command->first_key > 0;
}

/* ---- one worker's quota ---- */

struct quota *quota_new(struct nodes *nodes, struct alarms *alarms, struct quota_settings *settings,
                        quota_on_done on_done)
{
    struct quota *quota = mem_zalloc(1, sizeof *quota);
    quota->alarms = alarms;
    quota->settings = settings;
    quota->on_done = on_done;
    list_init(&quota->releasing);
    quota->denials = denials_new();
    exchange_init(&quota->exchange, nodes, alarms, settings, &batch_ops);
    release_listener_init(&quota->listener, nodes, alarms, try);
    return quota;
}

void quota_adopt(struct quota *quota)
{
    routes_adopt(&quota->exchange.routes);
    release_listener_adopt(&quota->listener);
}

/* Frees the releases that wait for a retry. Releases in a batch are freed with the exchange. */
static void drop_releasing(struct quota *quota)
{
    struct list now;
    list_take_all(&now, &quota->releasing);
    while (!list_is_empty(&now)) {
        struct decision *decision = container_of(now.next, struct decision, in_client);
        list_take(&decision->in_client);
        alarm_stop(quota->alarms, &decision->alarm);
        if (!decision->is_asking)
            decision_free(decision);
    }
}

/* Called when all clients have closed. */
void quota_free(struct quota *quota)
{
    drop_releasing(quota);
    routes_fini(&quota->exchange.routes);
    release_listener_fini(&quota->listener);
    denials_free(quota->denials);
    free(quota);
}
