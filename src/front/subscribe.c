#include "front/subscribe.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "front/account.h"
#include "front/answer.h"
#include "front/channels.h"
#include "front/meter.h"
#include "front/outage.h"
#include "front/session.h"
#include "front/tap.h"
#include "front/timing.h"
#include "limit/keys.h"
#include "resp/argv.h"
#include "resp/confirmation.h"
#include "resp/emit.h"
#include "upstream/aside.h"
#include "upstream/own_words.h"
#include "upstream/redirect.h"

#define AGAIN_BYTES 32768   /* of names in one request that subscribes again */
#define REDIRECTS_MAX 5     /* of one request */
#define ERROR_BYTES 4096    /* of an error that is kept: Redis' are shorter */
#define WIDE SLICE("__key") /* what begins so is subscribed to at all masters */

/* How far the client's next request is. */
enum stage {
    STAGE_NONE,     /* there is none, or nothing of it has been done */
    STAGE_BEGUN,    /* it is to be sent */
    STAGE_ASKED,    /* it has been sent */
    STAGE_ANSWERED, /* in full, or with subscriptions.error */
};

/* call.argument: who wants the answer. */
enum asked {
    ASKED_BY_CLIENT,
    ASKED_WIDE,  /* of another master, beside what the client hears of */
    ASKED_AGAIN, /* at a slot's new node */
    ASKED_RESET,
};

struct subscriptions {
    struct client *client;
    struct list taps;
    struct tap *classic;      /* by which the client hears of classic pub/sub; NULL: by none */
    struct channels channels; /* of shards, and what is subscribed to at all masters */
    struct bytes error;       /* Redis' error to the request; empty: none */
    struct rider retry;       /* wakes the client to look again */
    uint64_t redirected_ns;   /* when the request was first redirected; 0: it has not been */
    uint64_t orphaned_ns;     /* since when there have been orphans; 0: there are none */
    uint32_t n_classic;       /* channels and patterns */
    uint8_t stage;            /* enum stage */
    uint8_t n_redirects;
    uint8_t counted;  /* of the request, while no call has it */
    bool is_charged;  /* the gate has let the request pass */
    bool has_asked;   /* SUNSUBSCRIBE of everything: a node has answered */
    bool is_wide_set; /* what the request says of all masters is in channels */
};

static struct subscriptions *subscriptions_of(const struct client *client)
{
    return client_extra(client)->subscriptions;
}

static struct tap *tap_in(struct list *at)
{
    return container_of(at, struct tap, in_taps);
}

static void count(struct subscriptions *subs)
{
    subs->client->extra->n_subscribed = subs->n_classic + subs->channels.n;
}

static void wake_client(struct rider *rider, enum rider_wait what)
{
    (void)what;
    link_wake(&container_of(rider, struct subscriptions, retry)->client->link);
}

static struct link *link_of(struct rider *rider)
{
    return &container_of(rider, struct subscriptions, retry)->client->link;
}

static const struct rider_ops retry_ops = {.on_resume = wake_client, .link = link_of};

/* NULL: out of memory, the client is closed. */
static struct subscriptions *need(struct client *client)
{
    struct extra *extra = client_need_extra(client);
    if (extra == NULL || extra->subscriptions != NULL)
        return extra != NULL ? extra->subscriptions : NULL;
    struct subscriptions *subs = calloc(1, sizeof *subs);
    if (subs == NULL) {
        client_close_starved(client);
        return NULL;
    }
    subs->client = client;
    subs->retry.ops = &retry_ops;
    list_init(&subs->retry.waiting);
    list_init(&subs->taps);
    channels_init(&subs->channels);
    extra->subscriptions = subs;
    return subs;
}

static void look_soon(struct subscriptions *subs)
{
    lanes_wake_soon(&front_home(subs->client->front)->lanes, &subs->retry);
}

static struct nodes *nodes_of(const struct subscriptions *subs)
{
    return &subs->client->front->nodes;
}

static struct upstream *upstream_of(const struct subscriptions *subs)
{
    return subs->client->front->nodes.commons.upstream;
}

/* ---- what a request is ---- */

static bool is_shard(const struct command *command)
{
    return command->keys == KEYS_CHANNELS;
}

static bool is_list(const struct command *command)
{
    return command->flow == FLOW_SUBSCRIBE || command->flow == FLOW_UNSUBSCRIBE;
}

static enum channel_kind kind_of(const struct command *command)
{
    return command->name[0] == 'p' ? CHANNEL_PATTERN : CHANNEL_EXACT;
}

bool subscribe_takes(const struct client *client, const struct request *request)
{
    if (!client->front->nodes.commons.upstream->is_cluster || transaction_is_open(&client->transaction) ||
        pin_has(client, PIN_PASSTHROUGH))
        return false;
    return is_list(request->command) || session_may_only_subscribe(client);
}

bool subscribe_is_under_way(const struct client *client)
{
    const struct subscriptions *subs = subscriptions_of(client);
    return subs != NULL && subs->stage != STAGE_NONE;
}

/* ---- what nodes say ---- */

/* Does this confirm what the call has asked? */
static bool answers(const struct call *call, bool is_end)
{
    return call != NULL && call->flow == (is_end ? FLOW_UNSUBSCRIBE : FLOW_SUBSCRIBE);
}

/* The client hears it with the number of all its shard channels. */
static void pass_counted(struct tap *tap, struct slice frame, const struct confirmation *said, uint32_t n)
{
    struct bytes out = {0};
    char number[EMIT_HEADER_MAX];
    if (said->count == n) {
        tap_pass(tap, frame);
        return;
    }
    if (bytes_add(&out, slice_of(frame.at, said->count_at), SIZE_MAX) &&
        bytes_add(&out, slice_of(number, emit_header(number, ':', n)), SIZE_MAX))
        tap_pass(tap, bytes_slice(&out));
    else
        client_close_starved(tap->client);
    bytes_fini(&out);
}

static void begin_orphans(struct subscriptions *subs)
{
    upstream_ask_topology(upstream_of(subs));
    link_wake(&subs->client->link);
}

static void on_shard(struct subscriptions *subs, struct tap *tap, const struct call *call, struct slice frame,
                     const struct confirmation *said)
{
    bool is_end = slice_eq(said->word, SLICE("sunsubscribe"));
    struct channel *channel = channels_find(&subs->channels, CHANNEL_SHARD, said->channel);
    if (is_end && !answers(call, true)) {
        if (channel != NULL && channel->tap == tap) {
            channels_move(&subs->channels, channel, NULL);
            begin_orphans(subs);
        }
        return;
    }
    if (is_end && channel != NULL)
        channels_drop(&subs->channels, channel);
    if (!is_end && !channels_add(&subs->channels, CHANNEL_SHARD, said->channel, tap)) {
        client_close_starved(subs->client);
        return;
    }
    count(subs);
    if (call != NULL && call->argument == ASKED_BY_CLIENT)
        pass_counted(tap, frame, said, subs->channels.n);
}

static void on_classic(struct subscriptions *subs, struct tap *tap, const struct call *call, struct slice frame,
                       const struct confirmation *said)
{
    if (call != NULL && call->argument == ASKED_WIDE)
        return;
    subs->n_classic = said->count >= 0 && said->count <= UINT32_MAX ? (uint32_t)said->count : 0;
    subs->classic = subs->n_classic > 0 ? tap : NULL;
    count(subs);
    tap_pass(tap, frame);
}

static void on_error(struct subscriptions *subs, struct slice frame)
{
    struct slice kept = frame.len <= ERROR_BYTES ? frame : SLICE("-ERR the server has answered by a long error\r\n");
    if (subs->error.len == 0 && !bytes_add(&subs->error, kept, ERROR_BYTES))
        client_close_starved(subs->client);
}

static void on_frame(struct tap *tap, const struct call *call, struct slice frame)
{
    struct subscriptions *subs = subscriptions_of(tap->client);
    struct confirmation said;
    if (call != NULL && call->argument == ASKED_RESET)
        return;
    if (frame.at[0] == '-' && call != NULL) {
        on_error(subs, frame);
        return;
    }
    struct slice word = glimpse_first_bulk(&tap->rider.lane->glimpse);
    const uint32_t *counted = aside_confirmed(tap->rider.lane, word);
    if (counted == NULL || !confirmation_read(frame, &said))
        tap_pass(tap, frame);
    else if (counted == &tap->rider.lane->shard_channels)
        on_shard(subs, tap, call, frame, &said);
    else
        on_classic(subs, tap, call, frame, &said);
}

/* ---- a slot has another node ---- */

/* True if the reply is a redirect for this slot: the slot has another node from now on, or the topology is asked for. */
static bool obey(struct subscriptions *subs, const struct tap *tap, struct slice reply, int32_t slot)
{
    struct redirect redirect;
    if (!redirect_parse(reply, &redirect) || redirect.is_ask || redirect.slot != slot)
        return false;
    const struct nodes *nodes = nodes_of(subs);
    const struct node *from = tap != NULL && tap->rider.lane != NULL ? lane_node(tap->rider.lane) : NULL;
    const struct nodes_row *row = from != NULL ? redirect_row(&redirect, nodes, from) : NULL;
    for (uint16_t i = 0; row != NULL && i < nodes->topology->n_masters; i++)
        if (nodes->rows[i] == row)
            slot_map_set(nodes->topology->slots, redirect.slot, i);
    upstream_ask_topology(upstream_of(subs));
    return true;
}

static bool is_down(struct slice reply)
{
    static const struct slice words[] = {
        {"-CLUSTERDOWN ", 13}, {"-LOADING ", 9}, {"-MASTERDOWN ", 12}, {"-TRYAGAIN ", 10}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (reply.len > words[i].len && memcmp(reply.at, words[i].at, words[i].len) == 0)
            return true;
    return false;
}

static void close_for_orphans(struct subscriptions *subs)
{
    session_log_closed(subs->client, LOG_SITE_CLIENT_CLOSED, "its channels have moved, and no node takes them");
    client_cut_for(subs->client, CLOSED_UPSTREAM);
}

/* What was to be subscribed to again has its answer. */
static void end_again(struct subscriptions *subs, const struct tap *tap)
{
    struct channel *channel = NULL;
    int32_t slot = KEYS_NO_SLOT;
    while ((channel = channels_next(&subs->channels, CHANNEL_SHARD, channel)) != NULL)
        if (channel->is_asked) {
            channel->is_asked = false;
            slot = channel->slot;
        }
    struct slice error = bytes_slice(&subs->error);
    bool is_hopeless = error.len > 0 && !obey(subs, tap, error, slot) && !is_down(error);
    if (error.len > 0)
        upstream_ask_topology(upstream_of(subs));
    bool is_refused = error.len > 0;
    bytes_fini(&subs->error);
    if (is_hopeless)
        close_for_orphans(subs);
    else if (is_refused)
        look_soon(subs);
    else
        link_wake(&subs->client->link);
}

static void on_answer(struct tap *tap, const struct call *call, const struct glimpse *reply)
{
    struct subscriptions *subs = subscriptions_of(tap->client);
    (void)reply;
    if (call->argument == ASKED_AGAIN) {
        end_again(subs, tap);
        return;
    }
    if (call->argument == ASKED_BY_CLIENT)
        subs->stage = STAGE_ANSWERED;
    if (call->argument == ASKED_WIDE && subs->stage == STAGE_NONE && subs->error.len > 0)
        close_for_orphans(subs);
    client_resume(tap->client, WAIT_ANSWER);
}

static const struct tap_ops tap_ops = {.on_frame = on_frame, .on_answer = on_answer};

/* ---- taps ---- */

static struct tap *find_tap(const struct subscriptions *subs, const struct nodes_row *row, bool is_for_shard)
{
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next)
        if (tap_in(at)->is_shard == is_for_shard && tap_row(tap_in(at)) == row)
            return tap_in(at);
    return NULL;
}

/* The one there, or one without a lane. NULL: out of memory, the client is closed. */
static struct tap *need_tap(struct subscriptions *subs, const struct nodes_row *row, bool is_for_shard)
{
    struct tap *tap = find_tap(subs, row, is_for_shard);
    if (tap == NULL)
        tap = find_tap(subs, NULL, is_for_shard);
    if (tap != NULL)
        return tap;
    tap = tap_new(subs->client, &tap_ops, is_for_shard);
    if (tap != NULL)
        list_push(&subs->taps, &tap->in_taps);
    return tap;
}

static void free_taps(struct subscriptions *subs)
{
    while (!list_is_empty(&subs->taps))
        tap_free(tap_in(subs->taps.next));
    subs->classic = NULL;
}

/* Those that nothing is heard by any more. */
static void free_idle_taps(struct subscriptions *subs)
{
    struct list *next;
    for (struct list *at = subs->taps.next; at != &subs->taps; at = next) {
        struct tap *tap = tap_in(at);
        next = at->next;
        if (!tap_is_done(tap) || (tap->rider.lane != NULL && !lane_is_ready(tap->rider.lane)))
            continue;
        if (subs->classic == tap)
            subs->classic = NULL;
        tap_free(tap);
    }
}

static bool is_anyone_asked(const struct subscriptions *subs)
{
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next)
        if (tap_in(at)->rider.in_flight > 0)
            return true;
    return false;
}

static void tell_nobody(struct subscriptions *subs)
{
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next)
        tap_in(at)->is_told = false;
}

/* ---- carrying a request out ---- */

static void end_request(struct subscriptions *subs)
{
    tell_nobody(subs);
    bytes_fini(&subs->error);
    subs->stage = STAGE_NONE;
    subs->counted = 0;
    subs->n_redirects = 0;
    subs->redirected_ns = 0;
    subs->is_charged = subs->has_asked = subs->is_wide_set = false;
}

static enum route wait_for_answer(struct subscriptions *subs)
{
    client_wait(subs->client, WAIT_ANSWER);
    return ROUTE_WAIT;
}

/* With an error, in the request's place. */
static enum route end_with(struct subscriptions *subs, struct request *request, struct slice error)
{
    struct client *client = subs->client;
    if (subs->counted != 0)
        account_answered(client, subs->counted);
    enum route result = subs->is_charged ? answer_with(client, error) : answer_error(client, NULL, request, error);
    end_request(subs);
    return result;
}

/* All has been confirmed. */
static enum route end_well(struct subscriptions *subs)
{
    struct client *client = subs->client;
    if (subs->counted != 0)
        account_answered(client, subs->counted);
    end_request(subs);
    (void)reply_mode_take(&client->reply_mode);
    return client_is_closed(client) ? ROUTE_STOP : ROUTE_TAKEN;
}

/* ROUTE_GOES_ON: it has passed the gate, now or before. */
static enum route charge(struct subscriptions *subs, struct request *request)
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
    answer_count(client, request, has_waited ? RESULT_DELAYED : verdict.is_shadowed ? RESULT_SHADOW : RESULT_FORWARDED);
    subs->counted = verdict.counted;
    subs->is_charged = true;
    subs->stage = STAGE_BEGUN;
    return ROUTE_GOES_ON;
}

static enum route go_without(struct subscriptions *subs, struct tap *tap, struct nodes_row *row,
                             struct request *request)
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

/* ROUTE_GOES_ON: calls can be sent there, and the request is charged. */
static enum route reach(struct subscriptions *subs, struct tap *tap, struct nodes_row *row, struct request *request)
{
    switch (tap_find_lane(tap, row, request->command)) {
    case LANE_NOT_YET:
        return ROUTE_WAIT;
    case LANE_NONE:
    case LANE_UNPROVEN:
        return client_is_closed(subs->client) ? ROUTE_STOP : go_without(subs, tap, row, request);
    case LANE_FOUND:
        break;
    }
    const struct lane_key key = session_key(subs->client, lane_node(tap->rider.lane));
    if (!login_same_user(key.login, tap->rider.lane->key.login) || key.protocol != tap->rider.lane->key.protocol)
        return end_with(subs, request,
                        SLICE("-ERR this connection has subscribed as another user, or in another "
                              "protocol: it cannot subscribe to more\r\n"));
    return charge(subs, request);
}

static struct tap_request as_it_came(const struct subscriptions *subs, const struct request *request)
{
    bool is_counted = is_list(request->command) && (request->argc > 1 || request->command->flow == FLOW_UNSUBSCRIBE);
    return (struct tap_request){
        .bytes = request->bytes,
        .tag = timing_tag(subs->client, request->command, request->argc),
        .frames = is_counted ? request->argc - 1 : 1,
        .argument = ASKED_BY_CLIENT,
        .flow = is_counted ? (uint8_t)request->command->flow : (uint8_t)FLOW_ONE,
    };
}

/* To this node, as it came; what comes back is the client's. */
static enum route ask_at(struct subscriptions *subs, struct nodes_row *row, bool is_for_shard, struct request *request)
{
    struct tap *tap = need_tap(subs, row, is_for_shard);
    enum route result = tap != NULL ? reach(subs, tap, row, request) : ROUTE_STOP;
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

/* ---- channels of shards ---- */

static enum route ask_shard(struct subscriptions *subs, struct request *request)
{
    int32_t slot = keys_slot(request->command, request->bytes, request->argc);
    const struct channel *known = NULL;
    if (request->command->flow == FLOW_UNSUBSCRIBE && request->argc > 1)
        known = channels_find(&subs->channels, CHANNEL_SHARD, request->args[0]);
    struct nodes_row *row = known != NULL && known->tap != NULL ? tap_row(known->tap) : NULL;
    if (row == NULL)
        row = slot >= 0 ? nodes_slot_row(nodes_of(subs), (uint16_t)slot) : front_home(subs->client->front);
    if (row != NULL)
        return ask_at(subs, row, true, request);
    upstream_ask_topology(upstream_of(subs));
    return end_with(subs, request, SLICE("-CLUSTERDOWN Hash slot not served\r\n"));
}

/* SUNSUBSCRIBE without channels: one node after the other. */
static enum route end_all_shards(struct subscriptions *subs, struct request *request)
{
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next) {
        struct tap *tap = tap_in(at);
        if (!tap->is_shard || !tap_is_subscribed(tap) || tap->is_told)
            continue;
        subs->has_asked = true;
        return ask_at(subs, tap_row(tap), true, request);
    }
    if (subs->has_asked)
        return end_well(subs);
    subs->has_asked = true;
    return ask_at(subs, front_home(subs->client->front), true, request);
}

static enum route run_shard(struct subscriptions *subs, struct request *request)
{
    if (request->command->flow != FLOW_UNSUBSCRIBE)
        return ask_shard(subs, request);
    if (subs->channels.n_orphans > 0)
        return wait_for_answer(subs);
    return request->argc > 1 ? ask_shard(subs, request) : end_all_shards(subs, request);
}

/* The node has redirected the request: ROUTE_WAIT; it is sent again. */
static enum route follow(struct subscriptions *subs, struct request *request)
{
    uint64_t now_ns = subs->client->front->loop->now_ns;
    if (subs->redirected_ns == 0)
        subs->redirected_ns = now_ns;
    if (++subs->n_redirects > REDIRECTS_MAX || now_ns - subs->redirected_ns > upstream_of(subs)->redirect_timeout_ns)
        return end_with(subs, request, SLICE("-UPSTREAM moved\r\n"));
    bytes_fini(&subs->error);
    subs->stage = STAGE_BEGUN;
    tell_nobody(subs);
    if (subs->n_redirects == 1)
        return ask_shard(subs, request);
    look_soon(subs);
    return wait_for_answer(subs);
}

/* ---- what is subscribed to at all masters ---- */

static bool is_wide(struct slice name)
{
    return name.len >= WIDE.len && memcmp(name.at, WIDE.at, WIDE.len) == 0;
}

/* The words of the request that go to other masters; heap, freed by the caller; *n: 0: none, or out of memory. */
static struct slice *wide_words(const struct subscriptions *subs, const struct request *request, size_t *n)
{
    struct argv_walk walk;
    struct slice word;
    bool is_all = request->command->flow == FLOW_UNSUBSCRIBE && request->argc == 1 && subs->channels.n_wide > 0;
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

static bool send_words(struct tap *tap, const struct slice *words, size_t n, struct tap_request request)
{
    size_t room = EMIT_HEADER_MAX;
    for (size_t i = 0; i < n; i++)
        room += EMIT_HEADER_MAX + words[i].len + 2;
    char *out = malloc(room);
    if (out == NULL) {
        client_close_starved(tap->client);
        return false;
    }
    request.frames = (uint32_t)n - 1;
    request.bytes = slice_of(out, emit_array(out, words, n));
    bool is_sent = tap_send(tap, &request);
    free(out);
    return is_sent;
}

/* What new masters are told of later on. */
static bool note_wide(struct subscriptions *subs, const struct request *request, const struct slice *words, size_t n)
{
    enum channel_kind kind = kind_of(request->command);
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

/* ROUTE_GOES_ON: all other masters have been told. */
static enum route tell_others(struct subscriptions *subs, struct request *request, const struct slice *words, size_t n)
{
    const struct nodes *nodes = nodes_of(subs);
    for (size_t i = 0; i < nodes->topology->n_masters; i++) {
        struct nodes_row *row = nodes->rows[i];
        bool is_end = request->command->flow == FLOW_UNSUBSCRIBE;
        struct tap *tap = is_end ? find_tap(subs, row, false) : need_tap(subs, row, false);
        if (tap == NULL && !is_end)
            return ROUTE_STOP;
        if (row == nodes_pubsub_row(nodes) || tap == NULL || (tap->is_told && tap_row(tap) == row))
            continue;
        enum route result = reach(subs, tap, row, request);
        if (result != ROUTE_GOES_ON)
            return result;
        tap->is_told = true;
        const struct tap_request sent = {.argument = ASKED_WIDE, .flow = request->command->flow};
        if (!send_words(tap, words, n, sent))
            return ROUTE_STOP;
    }
    return is_anyone_asked(subs) ? wait_for_answer(subs) : ROUTE_GOES_ON;
}

static enum route ask_others(struct subscriptions *subs, struct request *request)
{
    size_t n;
    struct slice *words = wide_words(subs, request, &n);
    enum route result = n > 0 ? tell_others(subs, request, words, n) : ROUTE_GOES_ON;
    if (result == ROUTE_GOES_ON && n > 0 && subs->error.len == 0 && !note_wide(subs, request, words, n))
        on_error(subs, SLICE("-ERR too many channels are subscribed to at all nodes\r\n"));
    free(words);
    return result;
}

static enum route run_classic(struct subscriptions *subs, struct request *request)
{
    if (!subs->is_wide_set && is_list(request->command)) {
        enum route result = ask_others(subs, request);
        if (result != ROUTE_GOES_ON)
            return result;
        subs->is_wide_set = true;
    }
    if (subs->error.len > 0)
        return end_with(subs, request, bytes_slice(&subs->error));
    return ask_at(subs, nodes_pubsub_row(nodes_of(subs)), false, request);
}

/* ---- the whole way ---- */

/* PING of a subscriber in RESP2, which Redis answers in another way there. */
static enum route ping(struct subscriptions *subs, struct request *request)
{
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next)
        if (tap_is_subscribed(tap_in(at)))
            return ask_at(subs, tap_row(tap_in(at)), tap_in(at)->is_shard, request);
    return run_classic(subs, request);
}

static enum route run(struct subscriptions *subs, struct request *request)
{
    if (!is_list(request->command))
        return ping(subs, request);
    return is_shard(request->command) ? run_shard(subs, request) : run_classic(subs, request);
}

static enum route go_on(struct subscriptions *subs, struct request *request)
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
        return end_well(subs);
    int32_t slot = keys_slot(request->command, request->bytes, request->argc);
    struct tap *told = NULL;
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next)
        told = tap_in(at)->is_told && tap_in(at)->is_shard ? tap_in(at) : told;
    if (is_shard(request->command) && slot >= 0 && obey(subs, told, bytes_slice(&subs->error), slot))
        return follow(subs, request);
    return end_with(subs, request, bytes_slice(&subs->error));
}

enum route subscribe_run(struct client *client, struct request *request)
{
    const struct spread *spread = client_spread(client);
    struct subscriptions *subs = need(client);
    if (subs == NULL)
        return ROUTE_STOP;
    if (subs->stage != STAGE_NONE)
        return go_on(subs, request);
    if (client->rider.in_flight > 0 || spread_in_flight(spread) > 0) {
        client_wait_for_replies(client);
        return ROUTE_WAIT;
    }
    if (request->is_large)
        return answer_error(client, NULL, request,
                            SLICE("-ERR more than 64 KiB of channels: subscribe in several commands\r\n"));
    if (!is_list(request->command) && !slice_is_word(request->name, SLICE("ping")))
        return answer_subscribed(client, request);
    return go_on(subs, request);
}

static bool must_reset(const struct tap *tap)
{
    return tap_is_subscribed(tap) && !tap->is_told && tap->rider.in_flight == 0;
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
        struct tap *tap = tap_in(at);
        if (!must_reset(tap))
            continue;
        tap->is_told = true;
        if (!tap_send(tap, &reset))
            return ROUTE_STOP;
    }
    if (is_anyone_asked(subs))
        return wait_for_answer(subs);
    end_request(subs);
    channels_fini(&subs->channels);
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next)
        tap_leave(tap_in(at));
    free_idle_taps(subs);
    subs->classic = NULL;
    subs->n_classic = 0;
    subs->orphaned_ns = 0;
    count(subs);
    return ROUTE_GOES_ON;
}

/* ---- what moves ---- */

/* The names of one slot's orphans, behind the command; heap. *n: how many words. */
static struct slice *orphans_of(struct subscriptions *subs, uint16_t slot, size_t *n)
{
    struct slice *words = malloc((subs->channels.n_orphans + 1) * sizeof *words);
    struct channel *channel = NULL;
    size_t bytes = 0;
    *n = 0;
    if (words == NULL)
        return NULL;
    words[(*n)++] = SLICE("SSUBSCRIBE");
    while (bytes < AGAIN_BYTES && (channel = channels_next(&subs->channels, CHANNEL_SHARD, channel)) != NULL) {
        if (channel->tap != NULL || channel->slot != slot)
            continue;
        channel->is_asked = true;
        words[(*n)++] = channel_name(channel);
        bytes += channel->len;
    }
    return words;
}

/* NULL: there is none, or some are being subscribed to. */
static const struct channel *next_orphan(const struct subscriptions *subs)
{
    const struct channel *found = NULL;
    struct channel *channel = NULL;
    while ((channel = channels_next(&subs->channels, CHANNEL_SHARD, channel)) != NULL) {
        if (channel->is_asked)
            return NULL;
        if (channel->tap == NULL && found == NULL)
            found = channel;
    }
    return found;
}

static void place_orphans(struct subscriptions *subs)
{
    const struct channel *orphan = next_orphan(subs);
    struct nodes_row *row = orphan != NULL ? nodes_slot_row(nodes_of(subs), orphan->slot) : NULL;
    if (orphan == NULL)
        return;
    struct tap *tap = row != NULL ? need_tap(subs, row, true) : NULL;
    enum finding finding = tap != NULL ? tap_find_lane(tap, row, NULL) : LANE_NONE;
    if (client_is_closed(subs->client) || finding == LANE_NOT_YET)
        return;
    if (finding != LANE_FOUND) {
        if (tap != NULL)
            tap_forget_refusal(tap, row);
        upstream_ask_topology(upstream_of(subs));
        look_soon(subs);
        return;
    }
    size_t n;
    struct slice *words = orphans_of(subs, orphan->slot, &n);
    if (words == NULL)
        client_close_starved(subs->client);
    else
        (void)send_words(tap, words, n, (struct tap_request){.argument = ASKED_AGAIN, .flow = FLOW_SUBSCRIBE});
    free(words);
}

static void look_at_orphans(struct subscriptions *subs)
{
    struct client *client = subs->client;
    uint64_t now_ns = client->front->loop->now_ns;
    if (subs->channels.n_orphans == 0) {
        if (subs->orphaned_ns != 0 && subs->stage != STAGE_ASKED)
            client_resume(client, WAIT_ANSWER); /* SUNSUBSCRIBE may wait for it */
        subs->orphaned_ns = 0;
        return;
    }
    if (subs->orphaned_ns == 0)
        subs->orphaned_ns = now_ns;
    uint64_t most_ns = upstream_of(subs)->redirect_timeout_ns + client->front->rules->failover_wait_ns;
    if (now_ns - subs->orphaned_ns > most_ns)
        close_for_orphans(subs);
    else
        place_orphans(subs);
}

static bool send_wide(struct subscriptions *subs, struct tap *tap, enum channel_kind kind, struct slice command)
{
    struct slice *words = malloc((subs->channels.n_wide + 1) * sizeof *words);
    struct channel *channel = NULL;
    size_t n = 0;
    if (words == NULL) {
        client_close_starved(subs->client);
        return false;
    }
    words[n++] = command;
    while ((channel = channels_next(&subs->channels, kind, channel)) != NULL)
        words[n++] = channel_name(channel);
    bool is_sent =
        n == 1 || send_words(tap, words, n, (struct tap_request){.argument = ASKED_WIDE, .flow = FLOW_SUBSCRIBE});
    free(words);
    return is_sent;
}

/* Masters that have come since are told what is subscribed to at all of them. */
static void tell_new_masters(struct subscriptions *subs)
{
    const struct nodes *nodes = nodes_of(subs);
    for (size_t i = 0; i < nodes->topology->n_masters && subs->channels.n_wide > 0; i++) {
        struct nodes_row *row = nodes->rows[i];
        struct tap *tap = find_tap(subs, row, false);
        if (tap != NULL && (lane_is_subscribed(tap->rider.lane) || tap->rider.in_flight > 0))
            continue;
        tap = tap != NULL ? tap : need_tap(subs, row, false);
        enum finding finding = tap != NULL ? tap_find_lane(tap, row, NULL) : LANE_NONE;
        if (client_is_closed(subs->client))
            return;
        if (finding == LANE_NONE) {
            tap_forget_refusal(tap, row);
            look_soon(subs);
        }
        if (finding == LANE_FOUND && (!send_wide(subs, tap, CHANNEL_PATTERN, SLICE("PSUBSCRIBE")) ||
                                      !send_wide(subs, tap, CHANNEL_EXACT, SLICE("SUBSCRIBE"))))
            return;
    }
}

void subscribe_go_on(struct client *client)
{
    struct subscriptions *subs = subscriptions_of(client);
    if (subs == NULL || client->state != CLIENT_OPEN)
        return;
    look_at_orphans(subs);
    if (client_is_closed(client) || subs->stage != STAGE_NONE)
        return;
    tell_new_masters(subs);
    if (!client_is_closed(client))
        free_idle_taps(subs);
}

/* False: the client is closed. */
static bool adopt_tap(struct subscriptions *subs, struct tap *tap)
{
    const struct nodes_row *row = tap_row(tap);
    bool is_retired = row != NULL && row->lanes.is_retired;
    bool is_elsewhere = tap == subs->classic && row != nodes_pubsub_row(nodes_of(subs));
    bool is_lost = is_retired && (tap->rider.in_flight > 0 || (!tap->is_shard && tap_is_subscribed(tap)));
    if (is_elsewhere || is_lost) {
        session_log_closed(subs->client, LOG_SITE_CLIENT_CLOSED, "the node where it has subscribed is another now");
        client_cut_for(subs->client, CLOSED_UPSTREAM);
        return false;
    }
    if (!is_retired)
        return true;
    channels_orphan(&subs->channels, tap);
    tap_leave(tap);
    return true;
}

void subscribe_adopt(struct client *client)
{
    struct subscriptions *subs = subscriptions_of(client);
    if (subs == NULL || client_is_leaving(client))
        return;
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next)
        if (!adopt_tap(subs, tap_in(at)))
            return;
    link_wake(&client->link);
}

void subscribe_catch_up(struct client *client)
{
    struct subscriptions *subs = subscriptions_of(client);
    if (subs == NULL)
        return;
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next)
        tap_catch_up(tap_in(at));
}

void subscribe_leave(struct client *client)
{
    struct subscriptions *subs = subscriptions_of(client);
    if (subs == NULL)
        return;
    list_take(&subs->retry.waiting);
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next)
        tap_leave(tap_in(at));
}

void subscribe_free(struct client *client)
{
    struct subscriptions *subs = subscriptions_of(client);
    if (subs == NULL)
        return;
    list_take(&subs->retry.waiting);
    free_taps(subs);
    channels_fini(&subs->channels);
    bytes_fini(&subs->error);
    free(subs);
    client->extra->subscriptions = NULL;
}
