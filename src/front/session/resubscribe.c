#include "front/session/resubscribe.h"

#include <stdlib.h>

#include "front/client/session.h"
#include "front/session/subscriptions.h"

#define AGAIN_BYTES 32768 /* bytes of names in one request that subscribes again (chosen) */

/* ---- subscribing again ---- */

/*
 * Returns SSUBSCRIBE and the names of one slot's orphans, on the heap. *n is the number of words.
 */
static struct slice *orphans_of(struct subscriptions *subs, uint16_t slot, size_t *n)
{
    struct slice *words = malloc((subs->channels.n_orphans + 1) * sizeof *words);
    struct channel *channel = NULL;
    size_t bytes = 0;
    *n = 0;
    if (words == NULL)
        return NULL;
    words[(*n)++] = SLICE("SSUBSCRIBE");
    while (bytes < AGAIN_BYTES &&
           (channel = channels_next(&subs->channels, CHANNEL_SHARD, channel)) != NULL) {
        if (channel->tap != NULL || channel->slot != slot)
            continue;
        channel->is_asked = true;
        words[(*n)++] = channel_name(channel);
        bytes += channel->len;
    }
    return words;
}

/* Returns the first orphan. NULL: there is no orphan, or some orphans are being subscribed. */
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
    struct nodes_row *row =
        orphan != NULL ? nodes_slot_row(subscriptions_nodes(subs), orphan->slot) : NULL;
    if (orphan == NULL)
        return;
    struct tap *tap = row != NULL ? subscriptions_need_tap(subs, row, true) : NULL;
    enum finding finding = tap != NULL ? tap_find_lane(tap, row, NULL) : LANE_NONE;
    if (client_is_closed(subs->client) || finding == LANE_NOT_YET)
        return;
    if (finding != LANE_FOUND) {
        if (tap != NULL)
            tap_forget_refusal(tap, row);
        upstream_ask_topology(subscriptions_upstream(subs));
        subscriptions_look_soon(subs);
        return;
    }
    size_t n;
    struct slice *words = orphans_of(subs, orphan->slot, &n);
    const struct tap_request again = {.argument = ASKED_AGAIN, .flow = FLOW_SUBSCRIBE};
    if (words == NULL || !subscriptions_send(tap, words, n, again))
        client_close_starved(subs->client);
    free(words);
}

static void look_at_orphans(struct subscriptions *subs)
{
    struct client *client = subs->client;
    uint64_t now_ns = client->front->loop->now_ns;
    if (subs->channels.n_orphans == 0) {
        if (subs->orphaned_ns != 0 && subs->stage != STAGE_ASKED)
            /* the client's SUNSUBSCRIBE may wait until no orphan is left */
            client_resume(client, WAIT_ANSWER);
        subs->orphaned_ns = 0;
        return;
    }
    if (subs->orphaned_ns == 0)
        subs->orphaned_ns = now_ns;
    uint64_t most_ns =
        subscriptions_upstream(subs)->redirect_timeout_ns + client->front->rules->failover_wait_ns;
    if (now_ns - subs->orphaned_ns > most_ns)
        subscriptions_close(subs);
    else
        place_orphans(subs);
}

static bool send_wide(struct subscriptions *subs, struct tap *tap, enum channel_kind kind,
                      struct slice command)
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
    bool is_sent = n == 1 || subscriptions_send(tap, words, n,
                                                (struct tap_request){.argument = ASKED_WIDE,
                                                                     .flow = FLOW_SUBSCRIBE});
    free(words);
    return is_sent;
}

/* Subscribes the names for all masters at masters that have joined. */
static void tell_new_masters(struct subscriptions *subs)
{
    const struct nodes *nodes = subscriptions_nodes(subs);
    for (size_t i = 0; i < nodes->topology->n_masters && subs->channels.n_wide > 0; i++) {
        struct nodes_row *row = nodes->rows[i];
        struct tap *tap = subscriptions_find_tap(subs, row, false);
        if (tap != NULL &&
            (lane_is_subscribed(tap->lane_user.lane) || tap->lane_user.in_flight > 0))
            continue;
        tap = tap != NULL ? tap : subscriptions_need_tap(subs, row, false);
        enum finding finding = tap != NULL ? tap_find_lane(tap, row, NULL) : LANE_NONE;
        if (client_is_closed(subs->client))
            return;
        if (finding == LANE_NONE) {
            tap_forget_refusal(tap, row);
            subscriptions_look_soon(subs);
        }
        if (finding == LANE_FOUND && (!send_wide(subs, tap, CHANNEL_PATTERN, SLICE("PSUBSCRIBE")) ||
                                      !send_wide(subs, tap, CHANNEL_EXACT, SLICE("SUBSCRIBE"))))
            return;
    }
}

void resubscribe_go_on(struct client *client)
{
    struct subscriptions *subs = subscriptions_of(client);
    if (subs == NULL || client->state != CLIENT_OPEN)
        return;
    look_at_orphans(subs);
    if (client_is_closed(client) || subs->stage != STAGE_NONE)
        return;
    tell_new_masters(subs);
    if (!client_is_closed(client))
        subscriptions_free_idle(subs);
}

/*
 * Gives up a tap if its node has left the topology, or closes the client. False: the client is
 * closed.
 */
static bool adopt_tap(struct subscriptions *subs, struct tap *tap)
{
    const struct nodes_row *row = tap_row(tap);
    bool is_retired = row != NULL && row->lanes.is_retired;
    bool is_elsewhere = tap == subs->classic && row != nodes_pubsub_row(subscriptions_nodes(subs));
    bool is_lost =
        is_retired && (tap->lane_user.in_flight > 0 || (!tap->is_shard && tap_is_subscribed(tap)));
    if (is_elsewhere || is_lost) {
        session_log_closed(subs->client, LOG_SITE_CLIENT_CLOSED,
                           "the node of its subscriptions has changed");
        client_cut_for(subs->client, CLOSED_UPSTREAM);
        return false;
    }
    if (!is_retired)
        return true;
    channels_orphan(&subs->channels, tap);
    tap_leave(tap);
    return true;
}

void resubscribe_adopt(struct client *client)
{
    struct subscriptions *subs = subscriptions_of(client);
    if (subs == NULL || client_is_leaving(client))
        return;
    for (struct list *at = subs->taps.next; at != &subs->taps; at = at->next)
        if (!adopt_tap(subs, subscriptions_tap(at)))
            return;
    link_wake(&client->link);
}
