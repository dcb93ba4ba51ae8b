#include "front/session/subscriptions.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "front/client/session.h"
#include "limit/command/keys.h"
#include "front/session/channels.h"
#include "resp/emit.h"
#include "upstream/lane/unsolicited.h"
#include "upstream/node/not_run.h"

#define ERROR_BYTES 4096 /* most bytes of a kept error; Redis' errors are shorter */

void subscriptions_count(struct subscriptions *subs)
{
    subs->client->extra->n_subscribed = subs->n_classic + subs->channels.n;
}

/*
 * Wakes the client's link for another attempt. A client with a request in flight keeps waiting for
 * the answer.
 */
static void wake_client(struct lane_user *lane_user, enum lane_user_wait what)
{
    const struct subscriptions *subs = container_of(lane_user, struct subscriptions, retry);
    (void)what;
    if (subs->stage != STAGE_ASKED)
        client_resume(subs->client, WAIT_ANSWER);
    else
        link_wake(&subs->client->link);
}

static struct link *subscriptions_link_of(struct lane_user *lane_user)
{
    return &container_of(lane_user, struct subscriptions, retry)->client->link;
}

static const struct lane_user_ops retry_ops = {.on_resume = wake_client,
                                               .link = subscriptions_link_of};

struct subscriptions *subscriptions_need(struct client *client)
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

void subscriptions_look_soon(struct subscriptions *subs)
{
    lanes_wake_soon(&front_default_row(subs->client->front)->lanes, &subs->retry);
}

/* ---- answers of nodes ---- */

/* True if the confirmation answers this call. */
static bool answers(const struct call *call, bool is_end)
{
    return call != NULL && call->flow == (is_end ? FLOW_UNSUBSCRIBE : FLOW_SUBSCRIBE);
}

/* Passes a confirmation to the client, with the number of all shard channels of the client. */
static void pass_counted(struct tap *tap, struct slice frame, const struct confirmation *said,
                         uint32_t n)
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
    upstream_ask_topology(subscriptions_upstream(subs));
    link_wake(&subs->client->link);
}

static void on_shard(struct subscriptions *subs, struct tap *tap, const struct call *call,
                     struct slice frame, const struct confirmation *said)
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
    subscriptions_count(subs);
    if (call != NULL && call->argument == ASKED_BY_CLIENT)
        pass_counted(tap, frame, said, subs->channels.n);
}

static void on_classic(struct subscriptions *subs, struct tap *tap, const struct call *call,
                       struct slice frame, const struct confirmation *said)
{
    if (call != NULL && call->argument == ASKED_WIDE)
        return;
    subs->n_classic = said->count >= 0 && said->count <= UINT32_MAX ? (uint32_t)said->count : 0;
    subs->classic = subs->n_classic > 0 ? tap : NULL;
    subscriptions_count(subs);
    tap_pass(tap, frame);
}

void subscriptions_note_error(struct subscriptions *subs, struct slice frame)
{
    struct slice kept = frame.len <= ERROR_BYTES
                            ? frame
                            : SLICE("-ERR the server has answered with too long an "
                                    "error\r\n");
    if (subs->error.len == 0 && !bytes_add(&subs->error, kept, ERROR_BYTES))
        client_close_starved(subs->client);
}

static void note_redirect(const struct tap *tap, struct slice frame)
{
    struct redirect redirect;
    struct lane *lane = tap->lane_user.lane;
    count_add(&lane->base->counts.redirects[frame.at[1] == 'M' ? REDIRECT_MOVED : REDIRECT_ASK], 1);
    if (!redirect_parse(frame, &redirect))
        node_note_bad_redirect(lane_node(lane));
}

static void on_frame(struct tap *tap, const struct call *call, struct slice frame)
{
    struct subscriptions *subs = subscriptions_of(tap->client);
    struct confirmation said;
    if (call != NULL && call->argument == ASKED_RESET)
        return;
    if (frame.at[0] == '-' && call != NULL) {
        if (redirect_is(frame))
            note_redirect(tap, frame);
        subscriptions_note_error(subs, frame);
        return;
    }
    struct slice word = glimpse_first_bulk(&tap->lane_user.lane->glimpse);
    const uint32_t *counted = unsolicited_confirmed(tap->lane_user.lane, word);
    if (counted == NULL || !confirmation_read(frame, &said))
        tap_pass(tap, frame);
    else if (counted == &tap->lane_user.lane->shard_channels)
        on_shard(subs, tap, call, frame, &said);
    else
        on_classic(subs, tap, call, frame, &said);
}

/* ---- a slot has a new node ---- */

bool subscriptions_obey(struct subscriptions *subs, const struct tap *tap, struct slice reply,
                        int32_t slot)
{
    struct redirect redirect;
    if (!redirect_parse(reply, &redirect) || redirect.is_ask || redirect.slot != slot)
        return false;
    const struct nodes *nodes = subscriptions_nodes(subs);
    const struct node *from =
        tap != NULL && tap->lane_user.lane != NULL ? lane_node(tap->lane_user.lane) : NULL;
    const struct nodes_row *row = from != NULL ? nodes_row_named(nodes, &redirect, from) : NULL;
    for (uint16_t i = 0; row != NULL && i < nodes->topology->n_masters; i++)
        if (nodes->rows[i] == row)
            slot_map_set(nodes->topology->slots, redirect.slot, i);
    upstream_ask_topology(subscriptions_upstream(subs));
    return true;
}

bool subscriptions_is_down(struct slice reply)
{
    static const struct slice words[] = {
        {"-CLUSTERDOWN ", 13}, {"-LOADING ", 9}, {"-MASTERDOWN ", 12}, {"-TRYAGAIN ", 10}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (reply.len > words[i].len && memcmp(reply.at, words[i].at, words[i].len) == 0)
            return true;
    return false;
}

void subscriptions_close(struct subscriptions *subs)
{
    session_log_closed(subs->client, LOG_SITE_CLIENT_CLOSED,
                       "its shard channels have moved, and no node accepts them");
    client_cut_for(subs->client, CLOSED_UPSTREAM);
}

/* Handles the answer to SSUBSCRIBE at a slot's new node. */
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
    bool is_hopeless = error.len > 0 && !subscriptions_obey(subs, tap, error, slot) &&
                       !subscriptions_is_down(error);
    if (error.len > 0)
        upstream_ask_topology(subscriptions_upstream(subs));
    bool is_refused = error.len > 0;
    bytes_fini(&subs->error);
    if (is_hopeless)
        subscriptions_close(subs);
    else if (is_refused)
        subscriptions_look_soon(subs);
    else
        link_wake(&subs->client->link);
}

static void subscriptions_on_answer(struct tap *tap, const struct call *call,
                                    const struct glimpse *reply)
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
        subscriptions_close(subs);
    client_resume(tap->client, WAIT_ANSWER);
}

static const struct tap_ops tap_ops = {.on_frame = on_frame, .on_answer = subscriptions_on_answer};

/* ---- taps ---- */

struct tap *subscriptions_find_tap(const struct subscriptions *subs, const struct nodes_row *row,
                                   bool is_for_shard)
{
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next)
        if (subscriptions_tap(at)->is_shard == is_for_shard &&
            tap_row(subscriptions_tap(at)) == row)
            return subscriptions_tap(at);
    return NULL;
}

struct tap *subscriptions_need_tap(struct subscriptions *subs, const struct nodes_row *row,
                                   bool is_for_shard)
{
    struct tap *tap = subscriptions_find_tap(subs, row, is_for_shard);
    if (tap == NULL)
        tap = subscriptions_find_tap(subs, NULL, is_for_shard);
    if (tap != NULL)
        return tap;
    tap = tap_new(subs->client, &tap_ops, is_for_shard);
    if (tap != NULL)
        list_push(&subs->taps, &tap->in_taps);
    return tap;
}

void subscriptions_free_idle(struct subscriptions *subs)
{
    struct list *next;
    for (struct list *at = subs->taps.next; at != &subs->taps; at = next) {
        struct tap *tap = subscriptions_tap(at);
        next = at->next;
        if (!tap_is_done(tap) ||
            (tap->lane_user.lane != NULL && !lane_is_ready(tap->lane_user.lane)))
            continue;
        if (subs->classic == tap)
            subs->classic = NULL;
        tap_free(tap);
    }
}

bool subscriptions_in_flight(const struct subscriptions *subs)
{
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next)
        if (subscriptions_tap(at)->lane_user.in_flight > 0)
            return true;
    return false;
}

bool subscriptions_send(struct tap *tap, const struct slice *words, size_t n,
                        struct tap_request request)
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

/* ---- end ---- */

void subscriptions_leave(struct subscriptions *subs)
{
    list_take(&subs->retry.waiting);
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next)
        tap_leave(subscriptions_tap(at));
}

void subscriptions_free(struct subscriptions *subs)
{
    list_take(&subs->retry.waiting);
    while (!list_is_empty(&subs->taps))
        tap_free(subscriptions_tap(subs->taps.next));
    channels_fini(&subs->channels);
    bytes_fini(&subs->error);
    subs->client->extra->subscriptions = NULL;
    free(subs);
}
