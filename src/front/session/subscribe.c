#include "front/session/subscribe.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "front/client/charge.h"
#include "front/client/answer.h"
#include "front/client/meter.h"
#include "front/client/session.h"
#include "front/client/timing.h"
#include "front/route/outage.h"
#include "front/session/subscriptions.h"
#include "limit/command/keys.h"
#include "resp/argv.h"
#include "upstream/lane/own_words.h"
#include "upstream/node/not_run.h"

#define WIDE SLICE("__key") /* prefix of names that are subscribed at all masters */
#define MOVED SLICE("-UPSTREAM moved\r\n")
#define UNSERVED SLICE("-CLUSTERDOWN Hash slot not served\r\n")

/* ---- kinds of requests ---- */

static bool is_shard(const struct command *command)
{
    return command->keys == KEYS_CHANNELS;
}

static bool subscribe_is_list(const struct command *command)
{
    return command->flow == FLOW_SUBSCRIBE || command->flow == FLOW_UNSUBSCRIBE;
}

static enum channel_kind subscribe_kind_of(const struct command *command)
{
    return command->name[0] == 'p' ? CHANNEL_PATTERN : CHANNEL_EXACT;
}

bool subscribe_takes(const struct client *client, const struct request *request)
{
    if (!client->front->nodes.worker_lanes.upstream->is_cluster ||
        transaction_is_open(&client->transaction) || pin_has(client, PIN_PASSTHROUGH))
        return false;
    return subscribe_is_list(request->command) || session_may_only_subscribe(client);
}

bool subscribe_is_under_way(const struct client *client)
{
    const struct subscriptions *subs = subscriptions_of(client);
    return subs != NULL && subs->stage != STAGE_NONE;
}

/* ---- carrying out a request ---- */

static void tell_nobody(struct subscriptions *subs)
{
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next)
        subscriptions_tap(at)->is_told = false;
}

static void end_request(struct subscriptions *subs)
{
    tell_nobody(subs);
    bytes_fini(&subs->error);
    subs->stage = STAGE_NONE;
    subs->counted = 0;
    subs->redirected_ns = 0;
    subs->is_charged = subs->has_asked = subs->is_wide_set = false;
}

static enum route wait_for_answer(struct subscriptions *subs)
{
    client_wait(subs->client, WAIT_ANSWER);
    return ROUTE_WAIT;
}

/* Times the request as a whole: several nodes may have answered, and one node several times. */
static void subscribe_note_answered(struct subscriptions *subs, const struct request *request)
{
    struct client *client = subs->client;
    if (subs->counted != 0)
        charge_answered(client, subs->counted);
    if (subs->is_charged)
        timing_not_sent(client, timing_tag(client, request->command, request->argc),
                        client->lane_user.arrived_ns, client->lane_user.waited_us);
}

/* Ends the request with an error. */
static enum route end_with(struct subscriptions *subs, struct request *request, struct slice error)
{
    struct client *client = subs->client;
    subscribe_note_answered(subs, request);
    enum route result =
        subs->is_charged ? answer_with(client, error) : answer_error(client, NULL, request, error);
    end_request(subs);
    return result;
}

/* Ends the request after all confirmations. */
static enum route end_well(struct subscriptions *subs, const struct request *request)
{
    struct client *client = subs->client;
    subscribe_note_answered(subs, request);
    end_request(subs);
    (void)reply_mode_take(&client->reply_mode);
    return client_is_closed(client) ? ROUTE_STOP : ROUTE_TAKEN;
}

/*
 * Charges the request, unless it is charged already. ROUTE_GOES_ON: the gate has let the request
 * pass.
 */
static enum route subscribe_charge(struct subscriptions *subs, struct request *request)
{
    struct client *client = subs->client;
    struct verdict verdict;
    if (subs->is_charged)
        return ROUTE_GOES_ON;
    bool has_waited = meter_is_waiting(client);
    enum route result = answer_unless_passed(client, NULL, request, &verdict);
    if (result != ROUTE_GOES_ON) {
        if (result != ROUTE_WAIT)
            end_request(subs);
        return result;
    }
    answer_count(client, request,
                 has_waited            ? RESULT_DELAYED
                 : verdict.is_shadowed ? RESULT_SHADOW
                                       : RESULT_FORWARDED);
    subs->counted = verdict.counted;
    subs->is_charged = true;
    subs->stage = STAGE_BEGUN;
    return ROUTE_GOES_ON;
}

static enum route subscribe_go_without(struct subscriptions *subs, struct tap *tap,
                                       struct nodes_row *row, struct request *request)
{
    struct client *client = subs->client;
    enum err lack = tap_lack(tap, row);
    enum outage_step step = lack != ERR_NONE ? outage_meet(client, lack, false) : OUTAGE_ERROR;
    enum route result = ROUTE_STOP;
    switch (step) {
    case OUTAGE_WAITS:
        result = ROUTE_WAIT;
        break;
    case OUTAGE_ERROR:
        result = end_with(subs, request, tap_why_none(tap, row));
        break;
    case OUTAGE_CLOSES:
        outage_close(client);
        break;
    case OUTAGE_STARVED:
        break;
    }
    if (!client_is_closed(client))
        tap_forget_refusal(tap, row);
    return result;
}

/* Finds a lane to the row, and charges the request. ROUTE_GOES_ON: calls can be sent to the row. */
static enum route subscribe_reach(struct subscriptions *subs, struct tap *tap,
                                  struct nodes_row *row, struct request *request)
{
    switch (tap_find_lane(tap, row, request->command)) {
    case LANE_NOT_YET:
        return ROUTE_WAIT;
    case LANE_NONE:
    case LANE_UNPROVEN:
        return client_is_closed(subs->client) ? ROUTE_STOP
                                              : subscribe_go_without(subs, tap, row, request);
    case LANE_FOUND:
        break;
    }
    const struct lane_key key = session_key(subs->client, lane_node(tap->lane_user.lane));
    if (!login_same_user(key.login, tap->lane_user.lane->key.login) ||
        key.protocol != tap->lane_user.lane->key.protocol)
        return end_with(
            subs, request,
            SLICE(
                "-ERR this connection subscribed as another user or in another protocol: unsubscribe "
                "first\r\n"));
    return subscribe_charge(subs, request);
}

static struct tap_request as_it_came(const struct subscriptions *subs,
                                     const struct request *request)
{
    bool is_counted = subscribe_is_list(request->command) &&
                      (request->argc > 1 || request->command->flow == FLOW_UNSUBSCRIBE);
    return (struct tap_request){
        .bytes = request->bytes,
        .tag = timing_tag(subs->client, request->command, request->argc),
        .frames = is_counted ? request->argc - 1 : 1,
        .argument = ASKED_BY_CLIENT,
        .flow = is_counted ? (uint8_t)request->command->flow : (uint8_t)FLOW_ONE,
    };
}

/* Sends the request unchanged to the node of `row`. The client gets the answer. */
static enum route subscribe_ask_at(struct subscriptions *subs, struct nodes_row *row,
                                   bool is_for_shard, struct request *request)
{
    struct tap *tap = subscriptions_need_tap(subs, row, is_for_shard);
    enum route result = tap != NULL ? subscribe_reach(subs, tap, row, request) : ROUTE_STOP;
    if (result != ROUTE_GOES_ON)
        return result;
    struct tap_request sent = as_it_came(subs, request);
    sent.counted = subs->counted;
    subs->counted = 0;
    subs->stage = STAGE_ASKED;
    tap->is_told = true;
    if (!tap_send(tap, &sent))
        return ROUTE_STOP;
    return wait_for_answer(subs);
}

/* ---- shard channels ---- */

/*
 * Called when Redis has not run the request. Sends the request again within 20 ms, until `most_ns`
 * have passed; then the client gets `error`.
 */
static enum route subscribe_ask_again(struct subscriptions *subs, struct request *request,
                                      uint64_t most_ns, struct slice error)
{
    uint64_t now_ns = subs->client->front->loop->now_ns;
    if (subs->redirected_ns == 0)
        subs->redirected_ns = now_ns;
    if (now_ns - subs->redirected_ns > most_ns)
        return end_with(subs, request, error);
    bytes_fini(&subs->error);
    subs->stage = STAGE_BEGUN;
    tell_nobody(subs);
    subscriptions_look_soon(subs);
    return wait_for_answer(subs);
}

/* Sends the request again later, because no node serves the slot for now. */
static enum route wait_for_node(struct subscriptions *subs, struct request *request,
                                struct slice error)
{
    upstream_ask_topology(subscriptions_upstream(subs));
    return subscribe_ask_again(subs, request, subs->client->front->rules->failover_wait_ns, error);
}

static enum route ask_shard(struct subscriptions *subs, struct request *request)
{
    int32_t slot = keys_slot(request->command, request->bytes, request->argc);
    const struct channel *known = NULL;
    if (request->command->flow == FLOW_UNSUBSCRIBE && request->argc > 1)
        known = channels_find(&subs->channels, CHANNEL_SHARD, request->args[0]);
    struct nodes_row *row = known != NULL && known->tap != NULL ? tap_row(known->tap) : NULL;
    if (row == NULL)
        row = slot >= 0 ? nodes_slot_row(subscriptions_nodes(subs), (uint16_t)slot)
                        : front_default_row(subs->client->front);
    return row != NULL ? subscribe_ask_at(subs, row, true, request)
                       : wait_for_node(subs, request, UNSERVED);
}

/*
 * Returns the next node with shard channels of the client. If the client has no shard channels and
 * no node was asked, returns the default node. NULL: all nodes have answered.
 */
static struct nodes_row *next_shard(const struct subscriptions *subs)
{
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next) {
        const struct tap *tap = subscriptions_tap(at);
        if (tap->is_shard && tap_is_subscribed(tap) && !tap->is_told)
            return tap_row(tap);
    }
    return subs->has_asked ? NULL : front_default_row(subs->client->front);
}

/* SUNSUBSCRIBE without channels: asks one node after the other. */
static enum route end_all_shards(struct subscriptions *subs, struct request *request)
{
    struct nodes_row *row = next_shard(subs);
    enum route result =
        row != NULL ? subscribe_ask_at(subs, row, true, request) : end_well(subs, request);
    subs->has_asked |= subs->stage == STAGE_ASKED;
    return result;
}

static enum route run_shard(struct subscriptions *subs, struct request *request)
{
    if (request->command->flow != FLOW_UNSUBSCRIBE)
        return ask_shard(subs, request);
    if (subs->channels.n_orphans > 0)
        return wait_for_answer(subs);
    return request->argc > 1 ? ask_shard(subs, request) : end_all_shards(subs, request);
}

/* Returns the shard tap that was asked last. */
static const struct tap *asked_last(const struct subscriptions *subs)
{
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next)
        if (subscriptions_tap(at)->is_shard && subscriptions_tap(at)->is_told)
            return subscriptions_tap(at);
    return NULL;
}

/* Counts a redirect that is not followed, at a node that got the request. */
static void subscribe_count_given_up(const struct subscriptions *subs)
{
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next) {
        struct nodes_row *row =
            subscriptions_tap(at)->is_told ? tap_row(subscriptions_tap(at)) : NULL;
        if (row != NULL) {
            count_add(&row->lanes.base.counts.redirects[REDIRECT_GIVEN_UP], 1);
            return;
        }
    }
}

/*
 * Redis has answered with an error. The client gets the error, unless the slot has a new node or no
 * node for now.
 */
static enum route end_in_error(struct subscriptions *subs, struct request *request)
{
    struct slice error = bytes_slice(&subs->error);
    int32_t slot = keys_slot(request->command, request->bytes, request->argc);
    bool has_slot = is_shard(request->command) && slot >= 0;
    if (has_slot && subscriptions_obey(subs, asked_last(subs), error, slot))
        return subscribe_ask_again(subs, request, subscriptions_upstream(subs)->redirect_timeout_ns,
                                   MOVED);
    if (redirect_is(error)) {
        subscribe_count_given_up(subs);
        return end_with(subs, request, MOVED);
    }
    return has_slot && subscriptions_is_down(error) ? wait_for_node(subs, request, error)
                                                    : end_with(subs, request, error);
}

/* ---- names subscribed at all masters ---- */

static bool is_wide(struct slice name)
{
    return name.len >= WIDE.len && memcmp(name.at, WIDE.at, WIDE.len) == 0;
}

/*
 * Returns the words of the request for the other masters, on the heap, freed by the caller. *n is
 * 0: no words, or out of memory.
 */
static struct slice *wide_words(const struct subscriptions *subs, const struct request *request,
                                size_t *n)
{
    struct argv_walk walk;
    struct slice word;
    bool is_all = request->command->flow == FLOW_UNSUBSCRIBE && request->argc == 1 &&
                  subs->channels.n_wide > 0;
    struct slice *words = malloc(request->argc * sizeof *words);
    *n = 0;
    argv_walk_init(&walk, request->bytes);
    for (bool is_name = true; words != NULL && argv_next(&walk, &word); is_name = false)
        if (is_name || is_wide(word))
            words[(*n)++] = word;
    if (*n == 1 && !is_all)
        *n = 0;
    return words;
}

/* Records the names for masters that join later. */
static bool note_wide(struct subscriptions *subs, const struct request *request,
                      const struct slice *words, size_t n)
{
    enum channel_kind kind = subscribe_kind_of(request->command);
    bool is_end = request->command->flow == FLOW_UNSUBSCRIBE;
    if (is_end && n == 1)
        channels_drop_all(&subs->channels, kind);
    for (size_t i = 1; i < n; i++) {
        struct channel *channel = channels_find(&subs->channels, kind, words[i]);
        if (is_end && channel != NULL)
            channels_drop(&subs->channels, channel);
        else if (!is_end && !channels_add(&subs->channels, kind, words[i], NULL))
            return false;
    }
    return true;
}

/* Sends the words to all other masters. ROUTE_GOES_ON: all other masters have answered. */
static enum route subscribe_tell_others(struct subscriptions *subs, struct request *request,
                                        const struct slice *words, size_t n)
{
    const struct nodes *nodes = subscriptions_nodes(subs);
    for (size_t i = 0; i < nodes->topology->n_masters; i++) {
        struct nodes_row *row = nodes->rows[i];
        bool is_end = request->command->flow == FLOW_UNSUBSCRIBE;
        struct tap *tap = is_end ? subscriptions_find_tap(subs, row, false)
                                 : subscriptions_need_tap(subs, row, false);
        if (tap == NULL && !is_end)
            return ROUTE_STOP;
        if (row == nodes_pubsub_row(nodes) || tap == NULL || (tap->is_told && tap_row(tap) == row))
            continue;
        enum route result = subscribe_reach(subs, tap, row, request);
        if (result != ROUTE_GOES_ON)
            return result;
        tap->is_told = true;
        const struct tap_request sent = {.argument = ASKED_WIDE, .flow = request->command->flow};
        if (!subscriptions_send(tap, words, n, sent))
            return ROUTE_STOP;
    }
    return subscriptions_in_flight(subs) ? wait_for_answer(subs) : ROUTE_GOES_ON;
}

static enum route subscribe_ask_others(struct subscriptions *subs, struct request *request)
{
    size_t n;
    struct slice *words = wide_words(subs, request, &n);
    enum route result = n > 0 ? subscribe_tell_others(subs, request, words, n) : ROUTE_GOES_ON;
    if (result == ROUTE_GOES_ON && n > 0 && subs->error.len == 0 &&
        !note_wide(subs, request, words, n))
        subscriptions_note_error(subs,
                                 SLICE("-ERR too many channels are subscribed at all nodes\r\n"));
    free(words);
    return result;
}

static enum route run_classic(struct subscriptions *subs, struct request *request)
{
    if (!subs->is_wide_set && subscribe_is_list(request->command)) {
        enum route result = subscribe_ask_others(subs, request);
        if (result != ROUTE_GOES_ON)
            return result;
        subs->is_wide_set = true;
    }
    if (subs->error.len > 0)
        return end_in_error(subs, request);
    return subscribe_ask_at(subs, nodes_pubsub_row(subscriptions_nodes(subs)), false, request);
}

/* ---- the whole way ---- */

/* PING of a RESP2 subscriber, which Redis answers in another format. */
static enum route subscribe_ping(struct subscriptions *subs, struct request *request)
{
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next)
        if (tap_is_subscribed(subscriptions_tap(at)))
            return subscribe_ask_at(subs, tap_row(subscriptions_tap(at)),
                                    subscriptions_tap(at)->is_shard, request);
    return run_classic(subs, request);
}

static enum route run(struct subscriptions *subs, struct request *request)
{
    if (!subscribe_is_list(request->command))
        return subscribe_ping(subs, request);
    return is_shard(request->command) ? run_shard(subs, request) : run_classic(subs, request);
}

static enum route subscribe_go_on(struct subscriptions *subs, struct request *request)
{
    switch ((enum stage)subs->stage) {
    case STAGE_ASKED:
        return wait_for_answer(subs);
    case STAGE_ANSWERED:
        break;
    default:
        return run(subs, request);
    }
    if (subs->error.len == 0 && is_shard(request->command) && request->argc == 1 &&
        request->command->flow == FLOW_UNSUBSCRIBE) {
        subs->stage = STAGE_BEGUN;
        return run(subs, request);
    }
    if (subs->error.len == 0)
        return end_well(subs, request);
    return end_in_error(subs, request);
}

enum route subscribe_run(struct client *client, struct request *request)
{
    const struct spread *spread = client_extra(client)->spread;
    struct subscriptions *subs = subscriptions_need(client);
    if (subs == NULL)
        return ROUTE_STOP;
    if (subs->stage != STAGE_NONE)
        return subscribe_go_on(subs, request);
    if (client->lane_user.in_flight > 0 || spread_in_flight(spread) > 0) {
        client_wait_for_replies(client);
        return ROUTE_WAIT;
    }
    if (request->is_large)
        return answer_error(
            client, NULL, request,
            SLICE("-ERR more than 64 KiB of channels: subscribe in several commands\r\n"));
    if (!subscribe_is_list(request->command) && !slice_is_word(request->name, SLICE("ping")))
        return answer_subscribed(client, request);
    return subscribe_go_on(subs, request);
}

static bool must_reset(const struct tap *tap)
{
    return tap_is_subscribed(tap) && !tap->is_told && tap->lane_user.in_flight == 0;
}

enum route subscribe_reset(struct client *client)
{
    static const char request[] = "*1\r\n$5\r\n" OWN_RESET "\r\n";
    const struct tap_request reset = {.bytes = slice_of(request, sizeof request - 1),
                                      .argument = ASKED_RESET,
                                      .frames = 1,
                                      .flow = FLOW_ONE,
                                      .effect = EFFECT_RESET};
    struct subscriptions *subs = subscriptions_of(client);
    if (subs == NULL)
        return ROUTE_GOES_ON;
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next) {
        struct tap *tap = subscriptions_tap(at);
        if (!must_reset(tap))
            continue;
        tap->is_told = true;
        if (!tap_send(tap, &reset))
            return ROUTE_STOP;
    }
    if (subscriptions_in_flight(subs))
        return wait_for_answer(subs);
    end_request(subs);
    channels_fini(&subs->channels);
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next)
        tap_leave(subscriptions_tap(at));
    subscriptions_free_idle(subs);
    subs->classic = NULL;
    subs->n_classic = 0;
    subs->orphaned_ns = 0;
    subscriptions_count(subs);
    return ROUTE_GOES_ON;
}

void subscribe_catch_up(struct client *client)
{
    struct subscriptions *subs = subscriptions_of(client);
    if (subs == NULL)
        return;
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next)
        tap_catch_up(subscriptions_tap(at));
}

void subscribe_leave(struct client *client)
{
    struct subscriptions *subs = subscriptions_of(client);
    if (subs != NULL)
        subscriptions_leave(subs);
}

void subscribe_free(struct client *client)
{
    struct subscriptions *subs = subscriptions_of(client);
    if (subs != NULL)
        subscriptions_free(subs);
}
