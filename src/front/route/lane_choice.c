#include "front/route/lane_choice.h"

#include "base/num.h"
#include "front/client/account.h"
#include "front/cluster/carried.h"
#include "front/route/outage.h"
#include "front/route/fair_share.h"
#include "front/client/read_side.h"
#include "front/client/remains.h"
#include "front/client/session.h"
#include "front/route/target.h"
#include "front/session/wait_coverage.h"
#include "resp/emit.h"
#include "upstream/lane/lend.h"
#include "upstream/lane/own_words.h"
#include "upstream/lane/shared.h"

/*
 * Bytes of requests behind a command that blocks: far more than a library sends in one write. The end of the client is
 * seen only once all before it has been read.
 */
#define BLOCKED_BYTES (1U << 19)
#define UNKNOWN_CALLS 64 /* of a client that is there: of values of 1 MiB as much as REMAINS_MAX_BYTES */

static bool is_strict(const struct client *client)
{
    return client->front->settings->lanes_private;
}

static bool is_heavy(const struct client *client)
{
    return client_extra(client)->heavy_until_ns != 0 &&
           client->front->loop->now_ns < client_extra(client)->heavy_until_ns;
}

/* ---- its own lane ---- */

/*
 * The lanes to the node that a request goes to: to the home node, or to the replica that the client reads from; on a
 * cluster to the node that front/route/target.h has for it.
 */
static struct lanes *lanes_for(const struct client *client, const struct request *request)
{
    (void)request;
    return client_is_on_cluster(client) ? &target_row(client)->lanes : &read_side_row(client)->lanes;
}

/* Redis is there, and one more connection is not to be had: not as good as away. */
static enum err why_not(const struct lanes *lanes)
{
    return lanes->down != ERR_NONE ? lanes->down : ERR_UPSTREAM_BUSY;
}

enum err lane_choice_lack(const struct client *client, const struct request *request)
{
    static const enum err weirs[] = {ERR_UPSTREAM_UNAVAILABLE, ERR_UPSTREAM_TIMEOUT};
    const char *refusal = client_extra(client)->refusal;
    if (refusal == NULL)
        return why_not(lanes_for(client, request));
    for (size_t i = 0; i < sizeof weirs / sizeof weirs[0]; i++)
        if (slice_eq(slice_str(refusal), err_text(weirs[i])))
            return weirs[i];
    return ERR_NONE;
}

struct slice lane_choice_why_none(const struct client *client, const struct request *request)
{
    const char *refusal = client_extra(client)->refusal;
    return refusal != NULL ? slice_str(refusal) : err_text(lanes_why_none(lanes_for(client, request)));
}

bool lane_choice_dress(struct client *client, struct rider *rider, struct lane *lane)
{
    struct slice name = session_name(client);
    bool is_dressed = name.len == 0 && !lane->has_name;
    if (is_dressed || name.len > 4096)
        return true; /* too long a name is not worth it */
    struct call *call = lane_call_special(lane, rider, FLOW_ONE, 1, 0);
    if (call == NULL) {
        client_close_starved(client);
        return false;
    }
    call->flags = CALL_MUTE;
    call->arrived_ns = 0;
    char out[4096 + 5 * EMIT_HEADER_MAX + 32];
    struct slice protocol = lane->key.protocol == 3 ? SLICE("3") : SLICE("2");
    const struct slice words[] = {SLICE(OWN_HELLO), protocol, SLICE("SETNAME"), name};
    lane_send(lane, rider, out, emit_array(out, words, 4));
    lane->has_name = name.len > 0;
    return true;
}

static bool dress(struct client *client, struct lane *lane)
{
    client->is_dressed = true;
    return lane_choice_dress(client, &client->rider, lane);
}

/* A lane that had had another owner was not clean: it is closed, and the next is a new one. */
static void note_unclean(struct client *client)
{
    if (!client_has_own_lane(client) || client->rider.lane != NULL)
        return;
    client->own_lane = OWN_WANTS_NEW;
}

#define HOPES_MAX 5 /* of 20 ms each: what is only kept is given back in one turn of its worker */

static void end_hopes(struct client *client)
{
    if (client->extra != NULL)
        client->extra->hopes = 0;
}

/* True if it has waited for Redis as long as it may. */
static bool is_over(const struct client *client, const struct request *request)
{
    return outage_is_over(client, (request->command->flags & CMD_HANDSHAKE) != 0);
}

static enum finding find_none(struct client *client, const struct request *request)
{
    if (lanes_wait_to_dial(lanes_for(client, request), &client->rider)) {
        client_wait(client, WAIT_LANE);
        return LANE_NOT_YET;
    }
    bool is_hopeless = client_extra(client)->hopes == HOPES_MAX || is_over(client, request);
    if (is_hopeless || !lanes_may_hope(lanes_for(client, request), &client->rider)) {
        end_hopes(client);
        return LANE_NONE;
    }
    struct extra *extra = client_need_extra(client);
    if (extra == NULL)
        return LANE_NONE;
    extra->hopes++;
    client_wait(client, WAIT_LANE);
    return LANE_NOT_YET;
}

static void give_back(struct client *client);
static bool may_give_back(const struct client *client);
static bool must_leave(const struct client *client);
static bool end_on_demoted(struct client *client);

/* NULL: there is none. */
static struct lane *borrow(struct client *client, const struct request *request, const struct lane_key *key)
{
    struct lanes *lanes = lanes_for(client, request);
    if (!coverage_is_wanted(client, request)) {
        /* One that is kept for lending is not for who will not give it back. */
        bool wants_new = client->own_lane == OWN_WANTS_NEW || request->command->pins;
        return lend_private(lanes, key, &client->rider, &client->extra->kept, wants_new);
    }
    char written[COVERAGE_KEY_ROOM];
    return lend_covering(lanes, key, &client->rider, coverage_key(client, written), true);
}

/* Does the lane that it has not speak for what it has written, and does nothing bind it to that? */
static bool must_change(const struct client *client, const struct request *request)
{
    return coverage_is_wanted(client, request) && client_has_own_lane(client) && !is_strict(client) &&
           client->pins == 0 && client->rider.lane != NULL && client->rider.lane->cover == NULL;
}

void lane_choice_keep_user(struct client *client)
{
    struct lanes *lanes = &session_row(client)->lanes;
    const struct lane_key key = session_key(client, lanes_node(lanes));
    (void)shared_get(lanes, &key, &client->rider);
}

static enum finding find_private(struct client *client, const struct request *request, struct lane **found)
{
    struct rider *rider = &client->rider;
    note_unclean(client);
    if (end_on_demoted(client))
        return LANE_NONE;
    if (must_change(client, request) || must_leave(client)) {
        if (rider->in_flight > 0) {
            client_wait_for_replies(client);
            return LANE_NOT_YET;
        }
        if (may_give_back(client))
            give_back(client);
    }
    if (client_is_closed(client))
        return LANE_NONE; /* what its lane still had for it was more than it may hold */
    if (!client_has_own_lane(client)) {
        if (rider->in_flight > 0) {
            client_wait_for_replies(client);
            return LANE_NOT_YET;
        }
        struct lane_key key = session_key(client, lanes_node(lanes_for(client, request)));
        bool is_urgent = request->command->is_urgent && key.database != 0;
        if (is_urgent)
            key.database = 0;
        const struct extra *extra = client_need_extra(client);
        if (extra == NULL)
            return LANE_NONE;
        const struct lease *kept = &extra->kept;
        const struct lane *before = lease_holds(kept) ? kept->lane : NULL;
        const struct lane *lane = borrow(client, request, &key);
        if (lane == NULL)
            return find_none(client, request);
        end_hopes(client);
        client->own_lane = is_urgent ? OWN_URGENT_NEW : OWN_NEW;
        client->is_dressed = client->is_dressed && lane == before && lane_is_ready(lane);
    }
    *found = rider->lane;
    return LANE_FOUND;
}

/* By CLIENT PAUSE ... WRITE: it would hold back what others send on the same lane. */
static bool is_held_back(const struct client *client, const struct request *request)
{
    return request->command->is_pausable &&
           node_is_paused(lanes_node(lanes_for(client, request)), client->front->loop->now_ns);
}

/* No lane that it could be given now would be let in as the one that it shares was. */
static bool is_past(const struct client *client, const struct request *request)
{
    struct lanes *lanes = lanes_for(client, request);
    const struct lane_key key = session_key(client, lanes_node(lanes));
    return lanes_is_past(lanes, &key);
}

static bool must_be_private(const struct client *client, const struct request *request)
{
    return client_has_own_lane(client) || is_strict(client) || !request->command->is_shareable || request->is_large ||
           request->is_carried || transaction_is_open(&client->transaction);
}

/* Or for others' sake. */
bool lane_choice_needs_private(const struct client *client, const struct request *request)
{
    return must_be_private(client, request) ||
           (!request->is_again && (is_heavy(client) || is_held_back(client, request)) && !is_past(client, request));
}

/* What Redis would hold back waits here instead, where it can have no lane of its own to wait on. */
static bool must_wait_here(const struct client *client, const struct request *request)
{
    return is_held_back(client, request) && !must_be_private(client, request) &&
           (request->is_again || is_past(client, request));
}

bool lane_choice_is_at_hand(const struct client *client, const struct request *request)
{
    if (client->was_refused)
        return true; /* it is known that there is none */
    return lane_choice_needs_private(client, request) ? client_has_own_lane(client) && client->rider.lane != NULL
                                                      : lease_holds(&client->shared);
}

/* It looks again. */
static void stop_waiting_for_lane(struct client *client)
{
    list_take(&client->rider.waiting);
    if (client_waits_for(client, WAIT_LANE))
        client_resume(client, WAIT_LANE);
}

static void give_back(struct client *client)
{
    struct rider *rider = &client->rider;
    coverage_note_elsewhere(client);
    struct lane *lane = rider->lane;
    lane_catch_up(rider);
    client->own_lane = OWN_NONE;
    read_side_note_left_lane(client);
    rider->lane = NULL;
    stop_waiting_for_lane(client);
    struct lease *kept = &client->extra->kept;
    lend_take_back(lane, kept);
    client->is_dressed &= lease_holds(kept) && kept->lane == lane; /* another that is kept may bear another name */
}

/* True if its own lane leads to a node that is not in the topology any more. */
static bool is_on_retired(const struct client *client)
{
    return client_has_own_lane(client) && client->rider.lane != NULL && !lane_is_closed(client->rider.lane) &&
           lanes_of(client->rider.lane)->is_retired;
}

static bool may_give_back(const struct client *client)
{
    const struct rider *rider = &client->rider;
    return client_has_own_lane(client) && (!is_strict(client) || is_on_retired(client)) && client->pins == 0 &&
           !carry_holds_lane(client) && !transaction_is_open(&client->transaction) &&
           client_extra(client)->passage == NULL && rider->lane != NULL && rider->in_flight == 0 &&
           lane_is_clean(rider->lane);
}

/* True if nothing more may be sent on its own lane, which leads elsewhere than commands go now. */
static bool must_leave(const struct client *client)
{
    if (!is_on_retired(client))
        return false;
    const struct lane *lane = client->rider.lane;
    bool keeps = client->pins != 0 || transaction_is_open(&client->transaction) || lane_is_subscribed(lane) ||
                 lane_is_monitoring(lane) || lane_is_passthrough(lane) || client_extra(client)->passage != NULL;
    return !keeps || node_is_demoted(lane_node(lane));
}

static void leave_own_lane(struct client *client)
{
    if (!client_has_own_lane(client))
        return;
    client->own_lane = OWN_NONE;
    read_side_note_left_lane(client);
}

/* A lane that others use too, and that nothing of its is under way on, may be gone. */
void lane_choice_abandon(struct client *client)
{
    if (client->rider.lane != NULL && (client_has_own_lane(client) || client->rider.in_flight > 0))
        remains_leave(client);
    stop_waiting_for_lane(client);
    client->rider.lane = NULL;
    client->rider.in_flight = 0;
    if (client->rider.wants_idle)
        client_resume(client, WAIT_REPLIES);
    client->rider.wants_idle = false;
    fair_share_forget(client);
    leave_own_lane(client);
    client->is_dressed = false;
    client_keep_nothing(client);
    if (client->extra != NULL && spread_in_flight(client->extra->spread) == 0)
        replies_clear(&client->extra->replies); /* they stood behind answers that will not come */
    coverage_note_elsewhere(client);
    account_calls_lost(client);
}

void lane_choice_leave(struct client *client)
{
    struct lane *lane = client->rider.lane;
    if (lane == NULL) {
        leave_own_lane(client);
        return;
    }
    lane_catch_up(&client->rider);
    stop_waiting_for_lane(client);
    client->rider.lane = NULL;
    leave_own_lane(client);
    client->is_dressed = false;
    coverage_note_elsewhere(client);
    lend_take_back_as_is(lane);
}

void lane_choice_withdraw(struct client *client)
{
    if (client->rider.in_flight > 0)
        lane_withdraw(&client->rider);
}

/* A lane in whatever database is for nothing else, not even for its owner. */
static void leave_urgent(struct client *client)
{
    if (may_give_back(client))
        give_back(client);
    else
        lane_choice_abandon(client);
}

bool lane_choice_turn(struct client *client)
{
    const struct rider *rider = &client->rider;
    if (!client_is_on_cluster(client) || !client_has_own_lane(client) || rider->lane == NULL ||
        nodes_row_of(rider->lane) == target_row(client))
        return true;
    if (rider->in_flight > 0) {
        client_wait_for_replies(client);
        return false;
    }
    if (may_give_back(client)) {
        give_back(client);
    } else {
        carried_note_left(client);
        lane_choice_leave(client);
        pins_end(client);
    }
    return !client_is_closed(client);
}

/* It has just been lent, for a request that is still here: it may wait until the lane has got its name. */
static bool is_about_to_use(const struct client *client)
{
    return (client->own_lane == OWN_NEW || client->own_lane == OWN_URGENT_NEW) && client_has_more(client);
}

/* Nothing more is sent to a replica that was a master. True: the client is closed. */
static bool end_on_demoted(struct client *client)
{
    const struct lane *lane = client->rider.lane;
    if (!is_on_retired(client) || !node_is_demoted(lane_node(lane)) || may_give_back(client))
        return false;
    if (carry_survives(client))
        return false;
    if (client->rider.in_flight > 0 && !lane_waits(lane) && !lane_is_subscribed(lane))
        return false; /* its replies are on their way */
    session_log_closed(client, LOG_SITE_CLIENT_CLOSED, "the server of its own connection is a replica now");
    client_close_for(client, CLOSED_UPSTREAM);
    return true;
}

void lane_choice_release(struct client *client)
{
    bool keeps = !is_on_retired(client) && (is_heavy(client) || is_about_to_use(client));
    if (!keeps && may_give_back(client))
        give_back(client);
    else
        (void)end_on_demoted(client);
}

void lane_choice_note_retired(struct client *client)
{
    if (!is_on_retired(client))
        return;
    lane_choice_release(client);
    if (!client_is_closed(client) && client_has_own_lane(client))
        client->rider.wants_idle |= client->rider.in_flight > 0;
}

void lane_choice_note_sent(struct client *client)
{
    if (client->own_lane == OWN_NEW)
        client->own_lane = OWN_USED;
    else if (client->own_lane == OWN_URGENT_NEW)
        client->own_lane = OWN_URGENT;
    client->rider.wants_idle |= client_has_own_lane(client) && client->rider.in_flight > 0 && !is_strict(client);
}

void lane_choice_note_name(struct client *client)
{
    client->is_dressed = client_has_own_lane(client);
}

void lane_choice_note_login(struct client *client)
{
    client->is_dressed = pin_has(client, PIN_SESSION);
}

void lane_choice_note_refused(struct client *client)
{
    client->was_refused = true;
}

void lane_choice_end_refused(struct client *client)
{
    client->was_refused = false;
}

/* ---- lanes that others use too ---- */

void lane_choice_note_huge(struct client *client)
{
    struct extra *extra = client_want_extra(client);
    if (extra != NULL)
        extra->huge_until_ns = client->front->loop->now_ns + HEAVY_NS;
    client->reader = READER_NEW;
}

/* How much it reads is not known yet, and others' calls may come behind it. */
static bool is_first_read(const struct client *client, const struct request *request)
{
    return client->reader == READER_NEW && (request->command->flags & CMD_READONLY) != 0;
}

static struct lane *find_shared(struct client *client, const struct request *request)
{
    struct lanes *lanes = lanes_for(client, request);
    const struct rider *rider = &client->rider;
    if (shared_is_wary(lanes) && is_first_read(client, request)) {
        const struct lane_key key = session_key(client, lanes_node(lanes));
        struct lane *apart = shared_get_apart(lanes, &key, rider);
        if (apart != NULL)
            return apart;
    }
    struct lease *lease = &client->shared;
    if (lease_holds(lease) && lanes_of(lease->lane) == lanes &&
        (rider->in_flight > 0 || !shared_is_sluggish(lease->lane)))
        return lease->lane;
    const struct lane_key key = session_key(client, lanes_node(lanes));
    /* Its own calls are what that lane waits for: to go elsewhere would be to wait for them too. */
    if (rider->in_flight > 0 && rider->lane->in == LIST_SHARED && lanes_of(rider->lane) == lanes &&
        lane_key_eq(&rider->lane->key, &key))
        return rider->lane;
    struct lane *lane = shared_get(lanes, &key, rider);
    if (lane != NULL && (!lane_is_ready(lane) || session_suits(client, lane))) /* one that opens ends its leases */
        lease_take(lease, lane);
    return lane;
}

/* HELLO changes nothing on a lane of the protocol it asks for; whom Redis lets in nowhere it does not let in there. */
static struct lane *find_for_hello(struct client *client, const struct request *request)
{
    struct lanes *lanes = lanes_for(client, request);
    struct lane_key key = session_key(client, lanes_node(lanes));
    if (request->hello->protocol == 0 || request->hello->protocol == key.protocol || session_is_anonymous(client))
        return find_shared(client, request);
    key.protocol = request->hello->protocol;
    return shared_get(lanes, &key, &client->rider);
}

/* SELECT changes nothing on a lane of that database. NULL: there is none yet. */
static struct lane *find_for_select(struct client *client, const struct request *request)
{
    struct lanes *lanes = lanes_for(client, request);
    int64_t database;
    if (!num_parse(request->args[0], &database) || database < 0 || database > INT32_MAX)
        return find_shared(client, request);
    struct lane_key key = session_key(client, lanes_node(lanes));
    key.database = (uint32_t)database;
    return shared_find(lanes, &key);
}

/*
 * Whoever reads one huge value gets a lane of its own, but a pipeline of them would be on the shared one before the
 * size of the first is known, and everybody's calls behind it. So the first read of a client is answered before the
 * second goes.
 */
static bool must_ask_first(struct client *client, const struct request *request)
{
    if (client->reader != READER_ASKS || (request->command->flags & CMD_READONLY) == 0)
        return false;
    if (client->rider.in_flight == 0)
        client->reader = READER_KNOWN;
    return client->reader == READER_ASKS;
}

static enum finding find(struct client *client, const struct request *request, struct lane **found)
{
    if (lane_choice_needs_private(client, request))
        return find_private(client, request, found);
    if (must_wait_here(client, request)) {
        lanes_wake_soon(lanes_for(client, request), &client->rider);
        client_wait(client, WAIT_LANE);
        return LANE_NOT_YET;
    }
    switch (request_effect(request)) {
    case EFFECT_HELLO:
        *found = find_for_hello(client, request);
        break;
    case EFFECT_SELECT:
        *found = find_for_select(client, request);
        if (*found == NULL)
            return find_private(client, request, found);
        break;
    default:
        *found = find_shared(client, request);
        break;
    }
    if (*found == NULL)
        return find_none(client, request);
    end_hopes(client);
    bool is_elsewhere = client->rider.in_flight > 0 && client->rider.lane != *found;
    if (is_elsewhere || must_ask_first(client, request)) {
        client_wait_for_replies(client);
        return LANE_NOT_YET;
    }
    return LANE_FOUND;
}

/* It got a lane of its own for others' sake, and hears NOAUTH there, which it would not on the one that it shared. */
static bool is_shut_out(const struct client *client, const struct request *request)
{
    const struct rider *rider = &client->rider;
    return client_has_own_lane(client) && rider->lane != NULL && lanes_is_shut_out(rider->lane) &&
           rider->in_flight == 0 && !is_strict(client) && client->pins == 0 &&
           !transaction_is_open(&client->transaction) && request->command->is_shareable && !request->is_large &&
           is_past(client, request);
}

/* Then it is given back at once, and what else it may be lent for comes later. */
static bool is_for_select_alone(const struct client *client, const struct request *request)
{
    return request_effect(request) == EFFECT_SELECT && !is_strict(client) && !is_heavy(client);
}

/* Memory for what is remembered of the calls on its own lane. */
static uint64_t calls_bytes(const struct lane *lane)
{
    return lane->calls.capacity * sizeof(struct call) + lane->tags.capacity * sizeof *lane->tags.ring;
}

/*
 * Behind a command that blocks, Redis only stores requests: in memory of its own, up to
 * client-query-buffer-limit. Few are sent there; the rest waits with the client. A large request goes there piece by
 * piece: weir keeps nothing of it, and reads the end of the client behind it.
 */
static bool is_far_behind_blocking(const struct client *client)
{
    return lane_sent_bytes(&client->rider) > BLOCKED_BYTES;
}

/*
 * Has the client been sent nothing yet, or huge values lately? On a shared lane its first read is
 * answered alone.
 */
static bool may_read_huge(const struct client *client)
{
    return client_has_own_lane(client) &&
           (lane_choice_reads_huge(client) || client->link.n_written + link_pending(&client->link) == 0);
}

/*
 * Replies cannot be taken back once they are asked for, and how large they are is known when they
 * come. So of a client that pays for them, or may read huge values, few are asked for at a time.
 * A client that does not read may be writing a whole pipeline first: its requests go on, since a
 * library that writes before it reads would wait for ever.
 */
static bool has_many_replies_coming(const struct client *client, const struct lane *lane)
{
    if (client->link.is_congested)
        return false;
    return (client_counts(client, UNIT_BYTES_OUT) && client->rider.in_flight >= UNKNOWN_CALLS) ||
           (lane_n_requests(lane) >= UNKNOWN_CALLS && may_read_huge(client));
}

static bool is_far_ahead(const struct client *client, const struct lane *lane)
{
    if (client->rider.in_flight == 0)
        return false;
    uint64_t most = atomic_load_explicit(&client->front->settings->memory_pressure.calls_bytes, memory_order_relaxed);
    bool is_own_full = client_has_own_lane(client) && most != 0 && calls_bytes(lane) > most;
    bool is_many = client_has_own_lane(client) && lane_waits(lane) ? is_far_behind_blocking(client)
                                                                   : has_many_replies_coming(client, lane);
    return is_own_full || is_many;
}

/* Its time to wait for Redis is over, and Redis has not taken the connection that is being opened. */
static bool is_out_of_time(const struct client *client, const struct request *request, const struct lane *lane)
{
    return lane->state == LANE_CONNECTING && !lane_is_taken(lane) && is_over(client, request);
}

/* Private lanes are the home node's: at a replica a flood has no more under way than others have on a shared lane. */
static bool must_wait_at_replica(const struct client *client)
{
    return read_side_is_at_replica(client) && client->rider.in_flight > 0 &&
           lane_sent_bytes(&client->rider) > SHARED_BYTES_MAX;
}

enum finding lane_choice_find(struct client *client, const struct request *request, struct lane **found)
{
    if (client->was_refused) {
        if (client->rider.lane == NULL)
            leave_own_lane(client);
        return LANE_NONE;
    }
    if (remains_must_wait(client, lanes_node(lanes_for(client, request)))) {
        lanes_wake_soon(lanes_for(client, request), &client->rider);
        client_wait(client, WAIT_LANE);
        return LANE_NOT_YET;
    }
    /* That lane may be in another database than the client; what it still has to answer comes first. */
    if (client_is_urgent(client) && !request->command->is_urgent) {
        if (client->rider.in_flight > 0) {
            client_wait_for_replies(client);
            return LANE_NOT_YET;
        }
        leave_urgent(client);
    }
    if (is_shut_out(client, request))
        lane_choice_abandon(client);
    if (must_wait_at_replica(client)) {
        client_wait_for_replies(client);
        return LANE_NOT_YET;
    }
    if (lane_sent_bytes(&client->rider) > SHARED_BYTES_MAX && !request->is_again && !client_has_own_lane(client) &&
        !read_side_is_at_replica(client))
        client_note_heavy(client);
    enum finding finding = find(client, request, found);
    if (finding != LANE_FOUND)
        return finding;
    if (!lane_is_ready(*found) || lane_is_congested(*found)) {
        if (is_out_of_time(client, request, *found)) {
            if (client_has_own_lane(client))
                lane_choice_abandon(client);
            return LANE_NONE;
        }
        lane_wait(*found, &client->rider);
        client_wait(client, WAIT_LANE);
        return LANE_NOT_YET;
    }
    if (!session_suits(client, *found)) {
        if (!session_ask_witness(client, *found))
            return LANE_UNPROVEN;
        lane_wait(*found, &client->rider);
        client_wait(client, WAIT_LANE);
        return LANE_NOT_YET;
    }
    if (is_far_ahead(client, *found)) {
        client_wait_for_replies(client);
        return LANE_NOT_YET;
    }
    if (client_has_own_lane(client)) {
        coverage_note_lane(client, *found);
        if (!client->is_dressed && !is_for_select_alone(client, request) && !dress(client, *found))
            return LANE_NONE;
    }
    return LANE_FOUND;
}
