#include "front/route/hop.h"

#include <stdlib.h>

#include "front/client/read_side.h"
#include "front/client/remains.h"
#include "front/client/timing.h"
#include "front/route/fair_share.h"
#include "front/route/overtaken.h"
#include "limit/command/keys.h"
#include "upstream/node/not_run.h"

#define ASKING "*1\r\n$6\r\nASKING\r\n"
#define GIVEN_UP SLICE("-UPSTREAM moved\r\n")
#define UNSERVED SLICE("-CLUSTERDOWN Hash slot not served\r\n")

/*
 * The wait before a request is sent again doubles from FIRST_NS to MOST_NS. AGAIN: after TRYAGAIN.
 * AWAY: while no node takes the request. Chosen.
 */
#define AGAIN_FIRST_NS (1 * NS_PER_MS)
#define AGAIN_MOST_NS (50 * NS_PER_MS)
#define AWAY_FIRST_NS (10 * NS_PER_MS)
#define AWAY_MOST_NS (100 * NS_PER_MS)
#define DOUBLINGS_MAX 16 /* doublings that are enough to reach each MOST_NS */
/*
 * Nodes that name each other for a slot agree within a few messages between the nodes. After the
 * second redirect the hop waits this long. Each further redirect makes the wait three times as
 * long.
 */
#define REDIRECT_NS (3 * NS_PER_MS)

static struct hop *hop_of(struct lane_user *lane_user)
{
    return container_of(lane_user, struct hop, lane_user);
}

static struct hop *hop_at(struct list *at)
{
    return container_of(at, struct hop, in_spread);
}

static struct spread *spread_of(const struct hop *hop)
{
    return client_extra(hop->client)->spread;
}

static uint64_t hop_now_ns(const struct hop *hop)
{
    return hop->client->front->loop->now_ns;
}

static struct alarms *hop_alarms_of(const struct client *client)
{
    return &client->front->timeouts.alarms;
}

static struct upstream *hop_upstream_of(const struct client *client)
{
    return client->front->nodes.worker_lanes.upstream;
}

/* False if the client is closed or about to be closed. */
static bool is_going(const struct client *client)
{
    return client->state < CLIENT_CLOSING;
}

/* ---- waiting ---- */

/* Stops the client from sending newer requests until the hop is over. */
static void hop_hold(struct hop *hop)
{
    if (hop->is_held)
        return;
    hop->is_held = true;
    spread_of(hop)->n_held++;
    client_wait(hop->client, WAIT_AGAIN);
}

static void hop_end_hold(struct hop *hop)
{
    if (!hop->is_held)
        return;
    hop->is_held = false;
    if (--spread_of(hop)->n_held == 0)
        client_resume(hop->client, WAIT_AGAIN);
}

static void hop_tell(struct hop *hop, enum hop_news news)
{
    hop->news = (uint8_t)news;
    link_wake(&hop->client->link);
}

static bool set_reply(struct hop *hop, struct slice reply)
{
    hop->reply.len = 0;
    return bytes_add(&hop->reply, reply, SIZE_MAX);
}

/* Sets the hop's reply. The hop ends when the client's link is woken. */
static void hop_answer(struct hop *hop, struct slice reply)
{
    if (set_reply(hop, reply))
        hop_tell(hop, HOP_ANSWERED);
    else
        client_close_starved(hop->client);
}

/*
 * Records a refusal by the row hop->from. The hop is handled again once all calls in flight at that
 * row are answered.
 */
static void hop_note_refused(struct hop *hop)
{
    hop->refused.from = hop->from;
    hop->refused.slot = hop->slot;
    hop->refused.request = bytes_slice(&hop->request);
    hop->refused.is_overtaken = false;
    list_push(&spread_of(hop)->refused, &hop->refused.in_spread);
    hop_hold(hop);
    hop_tell(hop, HOP_REFUSED);
}

/* ---- callbacks of the lane ---- */

static void hop_on_bytes(struct lane_user *lane_user, const char *data, size_t n)
{
    struct hop *hop = hop_of(lane_user);
    if (client_is_closed(hop->client))
        return;
    if (!bytes_add(&hop->reply, slice_of(data, n), SIZE_MAX)) {
        client_close_starved(hop->client);
        return;
    }
    hop->n_counted += n;
    client_note_kept(hop->client, n);
    fair_share_note_bytes(hop->client, n);
}

/* Stops counting the reply's bytes: the owner takes the bytes, or the bytes are discarded. */
static void uncount(struct hop *hop)
{
    client_note_kept_less(hop->client, hop->n_counted);
    hop->n_counted = 0;
}

static void leave_place(struct hop *hop)
{
    if (hop->place == NULL)
        return;
    hop->from = hop->place->row;
    hop->place->n_hops--;
    hop->place = NULL;
}

/* The reply is whole. For a train (hop.h), the reply to the train's next request is whole. */
static void hop_on_run_end(struct lane_user *lane_user)
{
    struct hop *hop = hop_of(lane_user);
    if (hop->place == NULL)
        return;
    fair_share_note_answered(hop->client, 0, 1);
    if (hop->n_train > 0) {
        hop->ops->on_one(hop);
        if (--hop->n_train > 0)
            return;
    } else if (!list_is_empty(&spread_of(hop)->refused)) {
        overtaken_note_run(hop->place, bytes_slice(&hop->request));
    }
    leave_place(hop);
    hop_tell(hop, HOP_ANSWERED);
}

static void hop_on_timed(struct lane_user *lane_user, const struct call *call, uint32_t n)
{
    struct hop *hop = hop_of(lane_user);
    timing_note(hop->client, lane_user->lane, call, n);
    hop->arrived_ns = 0;
}

static bool hop_on_not_run(struct lane_user *lane_user, const struct call *call, enum not_run row,
                           struct slice reply)
{
    struct hop *hop = hop_of(lane_user);
    if ((call->flags & CALL_ENDS_RUN) == 0)
        return false; /* the reply to ASKING */
    fair_share_note_answered(hop->client, call->sent_ns, 1);
    if (hop->n_train > 0) {
        hop->ops->on_not_run(hop, row, reply);
        return true;
    }
    hop->place->lane_user.wants_idle |= hop->place->lane_user.in_flight > 0;
    leave_place(hop);
    hop->why = (uint8_t)row;
    if (!set_reply(hop, reply)) {
        client_close_starved(hop->client);
        return true;
    }
    hop_note_refused(hop);
    return true;
}

static void hop_on_heavy(struct lane_user *lane_user)
{
    client_note_heavy(hop_of(lane_user)->client);
    lane_choice_note_huge(hop_of(lane_user)->client);
}

/*
 * Returns how many bytes of the hop's reply are still to come, if the lane has stopped reading in
 * this reply; else 0.
 */
static uint64_t left_of_reply(const struct hop *hop)
{
    const struct lane_user *lane_user = &hop->lane_user;
    bool is_stopped = lane_user->in_flight > 0 && lane_user->lane->slow_user == lane_user;
    return is_stopped ? lane_user->lane->scan.bulk_left : 0;
}

/*
 * One request may have several hops, and each hop may stop its lane. The bytes of all these hops
 * count together.
 */
static void hop_on_unread(struct lane_user *lane_user, uint64_t bytes)
{
    struct client *client = hop_of(lane_user)->client;
    struct list *hops = &client_extra(client)->spread->hops;
    uint64_t left = 0;
    (void)bytes;
    for (struct list *at = hops->next; at != hops; at = at->next)
        left += left_of_reply(hop_at(at));
    client_limit_unread(client, client->extra->kept_bytes + left);
}

/* The lane calls this function once for each of the hop's calls (one, or two with ASKING). */
static void hop_on_lost(struct lane_user *lane_user, const struct lane *lane)
{
    struct client *client = hop_of(lane_user)->client;
    (void)lane;
    if (lane_user->lane != NULL)
        client->front->client_ops->on_place_lost(client);
}

static void hop_on_resume(struct lane_user *lane_user, enum lane_user_wait what)
{
    (void)what;
    link_wake(&hop_of(lane_user)->client->link);
}

static struct link *hop_link_of(struct lane_user *lane_user)
{
    return &hop_of(lane_user)->client->link;
}

static const struct lane_user_ops lane_user_ops = {
    .on_bytes = hop_on_bytes,
    .on_run_end = hop_on_run_end,
    .on_timed = hop_on_timed,
    .on_not_run = hop_on_not_run,
    .on_heavy = hop_on_heavy,
    .on_unread = hop_on_unread,
    .on_lost = hop_on_lost,
    .on_resume = hop_on_resume,
    .holds_replies = true,
    .link = hop_link_of,
};

/* ---- sending ---- */

static void hop_set_alarm(struct hop *hop, uint64_t due_ns)
{
    alarm_stop(hop_alarms_of(hop->client), &hop->alarm);
    if (hop->over_ns != 0 && hop->over_ns < due_ns)
        due_ns = hop->over_ns;
    if (due_ns != UINT64_MAX)
        alarm_set(hop_alarms_of(hop->client), &hop->alarm, due_ns);
}

static void hop_on_due(struct alarm *alarm)
{
    link_wake(&container_of(alarm, struct hop, alarm)->client->link);
}

/*
 * Sends ASKING and the request in one append, because ASKING only affects the connection's next
 * command. False: out of memory.
 */
static bool write_asking(struct hop *hop, struct lane *lane)
{
    struct bytes both = {0};
    struct call *asking = lane_call_flow(lane, &hop->lane_user, FLOW_ONE, 1, 0);
    if (asking == NULL || !bytes_add(&both, SLICE(ASKING), SIZE_MAX) ||
        !bytes_add(&both, bytes_slice(&hop->request), SIZE_MAX)) {
        bytes_fini(&both);
        return false;
    }
    asking->flags = CALL_MUTE;
    asking->arrived_ns = 0;
    struct call *call = lane_call_flow(lane, &hop->lane_user, FLOW_ONE, 1, hop->tag);
    if (call != NULL) {
        call->flags = CALL_ENDS_RUN;
        lane_send(lane, &hop->lane_user, both.at, both.len);
    }
    bytes_fini(&both);
    return call != NULL;
}

static bool write_alone(struct hop *hop, struct lane *lane)
{
    struct call *call = lane_call_flow(lane, &hop->lane_user, FLOW_ONE, 1, hop->tag);
    if (call == NULL)
        return false;
    call->flags = CALL_ENDS_RUN;
    lane_send(lane, &hop->lane_user, hop->request.at, hop->request.len);
    return true;
}

/*
 * Notes and sends the requests of a train. False: out of memory. The lane is closed then, because
 * its noted calls no longer match the bytes that would be sent.
 */
static bool write_train(struct hop *hop, struct lane *lane, struct slice requests)
{
    for (uint32_t i = 0; i < hop->n_train; i++) {
        struct call *call = lane_call_flow(lane, &hop->lane_user, FLOW_ONE, 1, hop->tag);
        if (call == NULL) {
            lane_fail(lane, END_LOST, "out of memory");
            return false;
        }
        call->flags = CALL_ENDS_RUN;
    }
    lane_send(lane, &hop->lane_user, requests.at, requests.len);
    return true;
}

/* Records that the hop is in flight at this place. */
static void note_place(struct hop *hop, struct place *place, struct lane *lane)
{
    hop->place = place;
    place_note_write(place, timing_command(hop->client->front, hop->tag));
    place->n_hops++;
    place->hop_lane = lane;
}

static void send_now(struct hop *hop, struct place *place, struct lane *lane)
{
    struct client *client = hop->client;
    hop->lane_user.arrived_ns = hop->arrived_ns;
    hop->lane_user.waited_us = hop->waited_us;
    uncount(hop);
    hop->reply.len = 0;
    note_place(hop, place, lane);
    alarm_stop(hop_alarms_of(client), &hop->alarm);
    if (!(hop->is_asking ? write_asking(hop, lane) : write_alone(hop, lane))) {
        client_close_starved(client);
        return;
    }
    fair_share_note_call(client, timing_command(client->front, hop->tag), 0, timing_argc(hop->tag));
    if (hop->away_ns != 0 || hop->moving_ns != 0)
        front_count_fate(client->front, FATE_AGAIN);
}

/* ---- why the request was not run ---- */

/* Returns the time at which redirects or TRYAGAIN of this hop have lasted too long. */
static uint64_t moving_until_ns(struct hop *hop)
{
    if (hop->moving_ns == 0)
        hop->moving_ns = hop_now_ns(hop);
    return hop->moving_ns + hop_upstream_of(hop->client)->redirect_timeout_ns;
}

static uint64_t next_pause_ns(struct hop *hop, uint64_t first_ns, uint64_t most_ns)
{
    uint64_t pause_ns = first_ns << hop->n_tries;
    if (hop->n_tries < DOUBLINGS_MAX)
        hop->n_tries++;
    return pause_ns < most_ns ? pause_ns : most_ns;
}

static void hop_wait_for_topology(struct hop *hop)
{
    upstream_ask_topology(hop_upstream_of(hop->client));
    if (hop->away_ns == 0)
        hop->away_ns = hop_now_ns(hop);
    hop->moving_ns = 0;
    hop->n_redirects = 0;
    hop->over_ns = hop->away_ns + hop->client->front->rules->failover_wait_ns;
    hop->look_ns = hop_now_ns(hop) + next_pause_ns(hop, AWAY_FIRST_NS, AWAY_MOST_NS);
}

static void forget_target(struct hop *hop)
{
    hop->is_asking = false;
    if (!hop->is_fixed)
        hop->row = NULL;
}

static size_t hop_number_of(const struct nodes *nodes, const struct nodes_row *row)
{
    for (size_t i = 0; i < nodes->n; i++)
        if (nodes->rows[i] == row)
            return i;
    return SLOT_UNSERVED;
}

/*
 * Returns the row that refused the hop. If that row has left the topology, returns the default
 * node's row.
 */
static struct nodes_row *row_of_refusal(const struct hop *hop)
{
    const struct nodes *nodes = &hop->client->front->nodes;
    return hop_number_of(nodes, hop->from) != SLOT_UNSERVED ? hop->from : nodes_default_row(nodes);
}

static struct nodes_row *target_of(const struct hop *hop, const struct redirect *redirect)
{
    return nodes_row_named(&hop->client->front->nodes, redirect,
                           lanes_node(&row_of_refusal(hop)->lanes));
}

/* Ends the hop without following another redirect. */
static void answer_given_up(struct hop *hop)
{
    count_add(&row_of_refusal(hop)->lanes.base.counts.redirects[REDIRECT_GIVEN_UP], 1);
    hop_answer(hop, GIVEN_UP);
}

static void redirect(struct hop *hop)
{
    struct redirect to;
    struct client *client = hop->client;
    const struct nodes *nodes = &client->front->nodes;
    bool is_whole = redirect_parse(bytes_slice(&hop->reply), &to);
    bool is_own = is_whole && hop->slot >= 0 && to.slot == hop->slot;
    if (!is_whole)
        node_note_bad_redirect(lanes_node(&row_of_refusal(hop)->lanes));
    struct nodes_row *row = is_own ? target_of(hop, &to) : NULL;
    if (row != NULL)
        hop->n_redirects++;
    if (!is_own || hop->n_redirects > HOPS_MAX || hop_now_ns(hop) >= moving_until_ns(hop)) {
        answer_given_up(hop);
        return;
    }
    forget_target(hop);
    upstream_note_redirected(hop_upstream_of(client), to.slot, hop_now_ns(hop));
    if (!to.is_ask || row == NULL)
        upstream_ask_topology(hop_upstream_of(client));
    uint64_t pause_ns = 0;
    for (uint8_t i = 1; i < hop->n_redirects; i++)
        pause_ns = pause_ns == 0 ? REDIRECT_NS : 3 * pause_ns;
    hop->over_ns = 0; /* no end while the hop is on its way to the redirect's node */
    hop->look_ns = hop_now_ns(hop) + pause_ns;
    if (row == NULL)
        hop_wait_for_topology(hop);
    else if (!to.is_ask)
        slot_map_set(nodes->topology->slots, to.slot, (uint16_t)hop_number_of(nodes, row));
    else if (!hop->is_fixed)
        hop->row = row;
    hop->is_asking = to.is_ask && row != NULL && !hop->is_fixed;
}

static bool is_taken_over(struct hop *hop);
static void hop_give_up(struct hop *hop);

/*
 * Acts on the hop's refusal. False: the owner continues without the hop, and the hop's memory may
 * be gone.
 */
static bool hop_take_refusal(struct hop *hop)
{
    if (hop->refused.is_overtaken) {
        hop_give_up(hop);
        return true;
    }
    switch (hop->why) {
    case NOT_RUN_MOVED:
    case NOT_RUN_ASK:
        redirect(hop);
        return true;
    case NOT_RUN_TRYAGAIN:
        if (hop->slot >= 0)
            upstream_note_redirected(hop_upstream_of(hop->client), (uint16_t)hop->slot,
                                     hop_now_ns(hop));
        if (hop->ops->on_try_again != NULL && is_taken_over(hop))
            return false;
        hop->n_redirects = 0; /* the node of the last ASK is asked again */
        hop->over_ns = moving_until_ns(hop);
        hop->look_ns = hop_now_ns(hop) + next_pause_ns(hop, AGAIN_FIRST_NS, AGAIN_MOST_NS);
        return true;
    default:
        forget_target(hop);
        hop_wait_for_topology(hop);
        return true;
    }
}

/* ---- looking for a lane ---- */

/*
 * Ends the hop without another sending. The client gets the reason of the refusal, but never a
 * redirect.
 */
static void hop_give_up(struct hop *hop)
{
    bool is_redirect = hop->why == NOT_RUN_MOVED || hop->why == NOT_RUN_ASK;
    front_count_fate(hop->client->front, FATE_REFUSED);
    if (is_redirect)
        answer_given_up(hop);
    else if (hop->reply.len == 0)
        hop_answer(hop, UNSERVED);
    else
        hop_tell(hop, HOP_ANSWERED);
}

/*
 * No lane to the place's node is available. The hop waits, or the client gets the reason as the
 * reply, or the client is closed.
 */
static void hop_go_without(struct hop *hop, struct place *place)
{
    struct client *client = hop->client;
    enum err why = place_lack(place);
    if (why == ERR_NONE) {
        hop_answer(hop, place_why_none(place));
        place_forget_refusal(place);
        return;
    }
    forget_target(hop);
    hop_wait_for_topology(hop);
    lanes_hurry(&place->row->lanes);
    bool is_over = hop_now_ns(hop) >= hop->over_ns;
    if (is_over && !client->front->rules->tells_outage && !client_may_administer(client)) {
        place_forget_refusal(place);
        client->front->client_ops->on_place_lost(client);
        return;
    }
    if (!set_reply(hop, place_why_none(place)))
        client_close_starved(client);
    hop->why = NOT_RUN_ROWS;
    place_forget_refusal(place);
}

/* True if an earlier hop of the slot waits. The later hop must stay behind the earlier hop. */
static bool must_follow(const struct hop *hop)
{
    const struct list *hops = &spread_of(hop)->hops;
    if (hop->slot < 0 || spread_of(hop)->n_held == 0)
        return false;
    for (struct list *at = hops->next; at != &hop->in_spread; at = at->next)
        if (hop_at(at)->slot == hop->slot && hop_at(at)->is_held)
            return true;
    return false;
}

/*
 * True if an older call of the slot may be in flight at another node than `row`. A refused hop has
 * no older call before it. The row must have been read before this call (topology.h).
 */
static bool must_settle(struct hop *hop, const struct nodes_row *row)
{
    struct spread *spread = spread_of(hop);
    if (hop->from != NULL || hop->slot < 0)
        return false;
    for (struct list *at = spread->hops.next; at != &hop->in_spread; at = at->next)
        if ((hop_at(at)->slot == hop->slot || hop_at(at)->n_train > 0) &&
            hop_at(at)->place != NULL && hop_at(at)->place->row != row)
            return true; /* the end of that hop wakes the client */
    if (!spread_is_outdated(spread, &hop->client->front->nodes) ||
        spread_in_flight(spread) == spread->n_hops)
        return false;
    spread_want_idle(spread);
    return true;
}

/* Returns the row to which the hop goes. NULL: no node serves the slot. */
static struct nodes_row *hop_row_of(const struct hop *hop)
{
    if (hop->row != NULL)
        return hop->row;
    return hop->slot >= 0 ? nodes_slot_row(&hop->client->front->nodes, (uint16_t)hop->slot)
                          : front_default_row(hop->client->front);
}

/* Sends the hop, or lets it wait. */
static void hop_find_lane(struct hop *hop)
{
    struct client *client = hop->client;
    struct nodes_row *row = hop_row_of(hop);
    struct place *place = row != NULL ? place_get(client, row) : NULL;
    struct lane *lane = NULL;
    if (hop->is_fixed && hop->row == NULL) {
        /* the hop must go to one given node, and that node has left the cluster */
        hop_answer(hop, err_text(ERR_UPSTREAM_UNAVAILABLE));
        return;
    }
    if (row == NULL) {
        hop_wait_for_topology(hop);
        hop->why = NOT_RUN_ROWS;
        if (!set_reply(hop, UNSERVED))
            client_close_starved(client);
    }
    if (place == NULL || must_settle(hop, row))
        return;
    enum finding finding = place_find_lane(place, NULL, &lane);
    if (finding == LANE_FOUND)
        send_now(hop, place, lane);
    else if (finding == LANE_NONE && is_going(client))
        hop_go_without(hop, place);
}

static void hop_look(struct hop *hop)
{
    struct client *client = hop->client;
    if (hop->over_ns != 0 && hop_now_ns(hop) >= hop->over_ns) {
        hop_give_up(hop);
        return;
    }
    if (must_follow(hop) || hop_now_ns(hop) < hop->look_ns) {
        hop_hold(hop);
        hop_set_alarm(hop, hop_now_ns(hop) < hop->look_ns ? hop->look_ns : UINT64_MAX);
        return;
    }
    hop_find_lane(hop);
    if (is_going(client) && hop->place == NULL && hop->news == HOP_NO_NEWS) {
        hop_hold(hop);
        hop_set_alarm(hop, hop->look_ns > hop_now_ns(hop) ? hop->look_ns : UINT64_MAX);
    }
}

/* ---- begin and end ---- */

/*
 * Inserts the hop behind the hops of requests that are as old or older. A hop started by
 * on_try_again takes the order of the hop that it replaces.
 */
static void hop_put_in_order(struct hop *hop)
{
    struct spread *spread = spread_of(hop);
    struct list *at = spread->hops.prev;
    while (spread->heir_next == NULL && at != &spread->hops &&
           (int32_t)(hop_at(at)->order - hop->order) > 0)
        at = at->prev;
    list_push(spread->heir_next != NULL ? spread->heir_next : at->next, &hop->in_spread);
    spread->n_hops++;
}

static bool hop_begin(struct hop *hop, const struct hop_ops *ops, struct client *client,
                      struct slice request, uint32_t order)
{
    struct spread *spread = client_need_spread(client);
    if (spread == NULL)
        return false;
    *hop = (struct hop){.client = client, .ops = ops, .why = NOT_RUN_ROWS, .slot = KEYS_NO_SLOT};
    hop->order = spread->heir_next != NULL ? spread->heir_order : order;
    hop->lane_user.ops = &lane_user_ops;
    hop->alarm.on_due = hop_on_due;
    list_init(&hop->lane_user.waiting);
    list_init(&hop->in_spread);
    list_init(&hop->refused.in_spread);
    bool is_reserved = alarms_reserve(hop_alarms_of(client), 1);
    if (!is_reserved || (request.len > 0 && !bytes_add(&hop->request, request, SIZE_MAX))) {
        if (is_reserved)
            alarms_release(hop_alarms_of(client), 1);
        client_close_starved(client);
        return false;
    }
    hop_put_in_order(hop);
    return true;
}

/* Removes the hop from the spread and the alarms. The request and the reply stay. */
static void hop_end(struct hop *hop)
{
    struct spread *spread = spread_of(hop);
    alarm_stop(hop_alarms_of(hop->client), &hop->alarm);
    list_take(&hop->in_spread);
    spread->n_hops -= spread->n_hops > 0;
    uncount(hop);
    hop_end_hold(hop);
}

static void free_texts(struct hop *hop)
{
    bytes_fini(&hop->request);
    bytes_fini(&hop->reply);
}

/*
 * Calls on_try_again. True: the owner continues without the hop. False: the hop sends the request
 * again.
 */
static bool is_taken_over(struct hop *hop)
{
    struct client *client = hop->client;
    struct spread *spread = spread_of(hop);
    struct bytes request = hop->request, reply = hop->reply;
    hop->request = hop->reply = (struct bytes){0};
    spread->heir_next = hop->in_spread.next;
    spread->heir_order = hop->order;
    hop_end(hop);
    bool is_over = hop->ops->on_try_again(hop, bytes_slice(&request));
    if (is_over) {
        bytes_fini(&request);
        bytes_fini(&reply);
        alarms_release(hop_alarms_of(client), 1);
    } else {
        hop->request = request;
        hop->reply = reply;
        hop_put_in_order(hop);
        hop_hold(hop);
    }
    spread->heir_next = NULL;
    return is_over;
}

/* Wakes the client if the client waits for the end of its calls. */
static void note_over(struct client *client)
{
    if (client_is_closed(client))
        return;
    if (client_waits_for(client, WAIT_REPLIES) && !client_has_calls(client))
        client_resume(client, WAIT_REPLIES);
    else if (client_is_leaving(client))
        link_wake(&client->link);
}

static void hop_over(struct hop *hop)
{
    struct client *client = hop->client;
    struct bytes reply = hop->reply;
    hop->reply = (struct bytes){0};
    hop_end(hop);
    free_texts(hop);
    alarms_release(hop_alarms_of(client), 1);
    read_side_note_answered(hop->client, true);
    if (hop->ops->on_replies != NULL)
        hop->ops->on_replies(hop, &reply);
    else
        hop->ops->on_reply(hop, bytes_slice(&reply));
    bytes_fini(&reply);
    note_over(client);
}

bool hop_start(struct hop *hop, const struct hop_ops *ops, struct client *client,
               const struct hop_request *request)
{
    if (!hop_begin(hop, ops, client, request->bytes, request->order))
        return false;
    hop->slot = request->slot;
    hop->row = request->row;
    hop->is_fixed = request->row != NULL;
    hop->tag = request->tag;
    if (request->is_held)
        hop_hold(hop);
    hop_look(hop);
    return !client_is_closed(client);
}

bool hop_start_train(struct hop *hop, const struct hop_ops *ops, struct place *place,
                     struct lane *lane, const struct hop_request *request, uint32_t n)
{
    struct client *client = place->client;
    if (!hop_begin(hop, ops, client, slice_of("", 0), request->order))
        return false;
    hop->n_train = n;
    hop->tag = request->tag;
    note_place(hop, place, lane);
    if (write_train(hop, lane, request->bytes)) {
        uint32_t cost_ns = command_cost_ns(timing_command(client->front, hop->tag));
        fair_share_note_sent(client, n,
                             (uint64_t)n * cost_ns + fair_share_bytes_ns(request->bytes.len));
    }
    return !client_is_closed(client);
}

bool hop_start_refused(struct hop *hop, const struct hop_ops *ops, struct client *client,
                       const struct hop_request *request, const struct hop_refusal *refusal)
{
    bool is_redirect = refusal->why == NOT_RUN_MOVED || refusal->why == NOT_RUN_ASK;
    if (!hop_begin(hop, ops, client, request->bytes, request->order))
        return false;
    hop->slot = request->slot;
    hop->tag = request->tag;
    hop->from = refusal->place->row;
    hop->why = (uint8_t)refusal->why;
    if (request->bytes.len == 0 && is_redirect)
        answer_given_up(hop);
    else if (request->bytes.len == 0)
        hop_answer(hop, refusal->reply);
    else if (set_reply(hop, refusal->reply))
        hop_note_refused(hop);
    else
        client_close_starved(client);
    hop_hold(hop);
    refusal->place->lane_user.wants_idle = true;
    return true;
}

/* ---- all hops of a client ---- */

/* True if the client has nothing in flight at this row. */
static bool is_idle_at(const struct spread *spread, const struct nodes_row *row)
{
    const struct place *place = spread_place(spread, row);
    if (place != NULL && (place->lane_user.in_flight > 0 || place->n_hops > 0))
        return false;
    for (const struct list *at = spread->retired.next; at != &spread->retired; at = at->next) {
        place = container_of((struct list *)(uintptr_t)at, struct place, in_retired);
        if (place->row == row && (place->lane_user.in_flight > 0 || place->n_hops > 0))
            return false;
    }
    return true;
}

/*
 * Marks refused hops as HOP_RETURNED. Runs before any hop is sent again, because sending makes a
 * row busy.
 */
static void note_returned(struct spread *spread)
{
    struct list *next;
    for (struct list *at = spread->refused.next; at != &spread->refused; at = next) {
        struct hop *hop = container_of(at, struct hop, refused.in_spread);
        next = at->next;
        if (!is_idle_at(spread, hop->from))
            continue;
        list_take(at);
        hop->news = HOP_RETURNED;
    }
}

void hops_go_on(struct client *client)
{
    struct spread *spread = client_extra(client)->spread;
    struct list *next;
    note_returned(spread);
    for (struct list *at = spread->hops.next; at != &spread->hops && is_going(client); at = next) {
        struct hop *hop = hop_at(at);
        enum hop_news news = (enum hop_news)hop->news;
        next = at->next;
        if (news == HOP_REFUSED)
            continue;
        hop->news = HOP_NO_NEWS;
        if (news == HOP_RETURNED && !hop_take_refusal(hop))
            continue;
        if (is_going(client) && news != HOP_ANSWERED && hop->place == NULL &&
            hop->news == HOP_NO_NEWS)
            hop_look(hop);
        if (is_going(client) && (news == HOP_ANSWERED || hop->news == HOP_ANSWERED))
            hop_over(hop);
    }
}

void hops_adopt(struct client *client)
{
    struct spread *spread = client_extra(client)->spread;
    for (struct list *at = spread->hops.next; at != &spread->hops; at = at->next) {
        struct hop *hop = hop_at(at);
        hop->look_ns = 0;
        if (hop->row == NULL || hop_number_of(&client->front->nodes, hop->row) != SLOT_UNSERVED)
            continue;
        hop->row = NULL;
        hop->is_asking = false;
    }
    if (spread->n_hops > 0)
        link_wake(&client->link);
}

void hops_catch_up(struct client *client)
{
    struct spread *spread = client_extra(client)->spread;
    for (struct list *at = spread->hops.next; at != &spread->hops; at = at->next) {
        struct lane_user *lane_user = &hop_at(at)->lane_user;
        if (lane_user->in_flight > 0)
            lane_catch_up(lane_user);
    }
}

static void hop_leave(struct hop *hop)
{
    struct lane_user *lane_user = &hop->lane_user;
    if (lane_user->lane != NULL && lane_user->in_flight > 0)
        remains_leave_lane_user(hop->client, lane_user);
    lane_user->lane = NULL;
    lane_user->in_flight = 0;
    leave_place(hop);
    alarm_stop(hop_alarms_of(hop->client), &hop->alarm);
    list_take(&hop->refused.in_spread);
}

/* A lost lane may still be calling its lane users, so the hops' memory stays until hops_free. */
void hops_leave(struct client *client)
{
    struct spread *spread = client_extra(client)->spread;
    for (struct list *at = spread->hops.next; at != &spread->hops; at = at->next) {
        hop_leave(hop_at(at));
        hop_at(at)->is_held = false;
    }
    spread->n_hops = spread->n_held = 0;
    client_resume_woken(client, WAIT_AGAIN);
}

void hops_free(struct client *client)
{
    struct spread *spread = client_extra(client)->spread;
    while (!list_is_empty(&spread->hops)) {
        struct hop *hop = hop_at(spread->hops.next);
        list_take(&hop->in_spread);
        uncount(hop);
        free_texts(hop);
        alarms_release(hop_alarms_of(client), 1);
        hop->ops->on_lost(hop);
    }
}
