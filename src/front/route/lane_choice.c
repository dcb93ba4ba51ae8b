#include "front/route/lane_choice.h"

#include "base/num.h"
#include "front/client/charge.h"
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
 * Most bytes of requests behind a command that blocks: far more than a library sends in one write
 * (chosen). weir sees the client's half-close only once all requests before it have been read.
 */
#define BLOCKED_BYTES (1U << 19)
/*
 * Most calls in flight of a client with replies of unknown size. This many replies of 1 MiB are
 * REMAINS_MAX_BYTES.
 */
#define UNKNOWN_CALLS 64

static bool is_strict(const struct client *client)
{
    return client->front->settings->lanes_private;
}

static bool is_heavy(const struct client *client)
{
    return client_extra(client)->heavy_until_ns != 0 &&
           client->front->loop->now_ns < client_extra(client)->heavy_until_ns;
}

/* ---- the private lane ---- */

/*
 * Returns the lanes to the node of a request. On a cluster: the node of front/route/target.h.
 * Otherwise the default node, or the replica from which the client reads.
 */
static struct lanes *lanes_for(const struct client *client, const struct request *request)
{
    (void)request;
    return client_is_on_cluster(client) ? &target_row(client)->lanes
                                        : &read_side_row(client)->lanes;
}

/*
 * Returns why no connection can be had. ERR_UPSTREAM_BUSY: Redis answers, but weir may open no more
 * connections.
 */
static enum err lane_choice_why_not(const struct lanes *lanes)
{
    return lanes->down != ERR_NONE ? lanes->down : ERR_UPSTREAM_BUSY;
}

enum err lane_choice_lack(const struct client *client, const struct request *request)
{
    static const enum err weirs[] = {ERR_UPSTREAM_UNAVAILABLE, ERR_UPSTREAM_TIMEOUT};
    const char *refusal = client_extra(client)->refusal;
    if (refusal == NULL)
        return lane_choice_why_not(lanes_for(client, request));
    for (size_t i = 0; i < sizeof weirs / sizeof weirs[0]; i++)
        if (slice_eq(slice_str(refusal), err_text(weirs[i])))
            return weirs[i];
    return ERR_NONE;
}

struct slice lane_choice_why_none(const struct client *client, const struct request *request)
{
    const char *refusal = client_extra(client)->refusal;
    return refusal != NULL ? slice_str(refusal)
                           : err_text(lanes_why_none(lanes_for(client, request)));
}

bool lane_choice_set_name(struct client *client, struct lane_user *lane_user, struct lane *lane)
{
    struct slice name = session_name(client);
    bool is_name_set = name.len == 0 && !lane->has_name;
    if (is_name_set || name.len > 4096)
        return true; /* a name of more than 4096 bytes is not set */
    struct call *call = lane_call_flow(lane, lane_user, FLOW_ONE, 1, 0);
    if (call == NULL) {
        client_close_starved(client);
        return false;
    }
    call->flags = CALL_MUTE;
    call->arrived_ns = 0;
    char out[4096 + 5 * EMIT_HEADER_MAX + 32];
    struct slice protocol = lane->key.protocol == 3 ? SLICE("3") : SLICE("2");
    const struct slice words[] = {SLICE(OWN_HELLO), protocol, SLICE("SETNAME"), name};
    lane_send(lane, lane_user, out, emit_array(out, words, 4));
    lane->has_name = name.len > 0;
    return true;
}

static bool set_name(struct client *client, struct lane *lane)
{
    client->is_name_set = true;
    return lane_choice_set_name(client, &client->lane_user, lane);
}

/* A lane of an earlier owner was not clean and is closed. The next lane must be a new one. */
static void note_unclean(struct client *client)
{
    if (!client_has_own_lane(client) || client->lane_user.lane != NULL)
        return;
    client->own_lane = OWN_WANTS_NEW;
}

/* Most retries, one every 20 ms. A worker gives back idle kept lanes within one iteration. */
#define RETRIES_MAX 5

static void end_retries(struct client *client)
{
    if (client->extra != NULL)
        client->extra->retries = 0;
}

/* True if Redis is away and the client's time to wait is over. */
static bool lane_choice_is_over(const struct client *client, const struct request *request)
{
    return outage_is_over(client, (request->command->flags & CMD_HANDSHAKE) != 0);
}

static enum finding lane_choice_find_none(struct client *client, const struct request *request)
{
    if (lanes_wait_to_dial(lanes_for(client, request), &client->lane_user)) {
        client_wait(client, WAIT_LANE);
        return LANE_NOT_YET;
    }
    bool is_given_up =
        client_extra(client)->retries == RETRIES_MAX || lane_choice_is_over(client, request);
    if (is_given_up || !lanes_may_retry(lanes_for(client, request), &client->lane_user)) {
        end_retries(client);
        return LANE_NONE;
    }
    struct extra *extra = client_need_extra(client);
    if (extra == NULL)
        return LANE_NONE;
    extra->retries++;
    client_wait(client, WAIT_LANE);
    return LANE_NOT_YET;
}

static void lane_choice_give_back(struct client *client);
static bool may_give_back(const struct client *client);
static bool must_leave(const struct client *client);
static bool end_on_demoted(struct client *client);

/* Returns the lent lane; NULL: none. */
static struct lane *lane_choice_borrow(struct client *client, const struct request *request,
                                       const struct lane_key *key)
{
    struct lanes *lanes = lanes_for(client, request);
    if (!coverage_is_wanted(client, request)) {
        /* a client that will not give its lane back gets a new lane, not one kept for lending */
        bool wants_new = client->own_lane == OWN_WANTS_NEW || request->command->pins;
        return lend_private(lanes, key, &client->lane_user, &client->extra->kept, wants_new);
    }
    char written[COVERAGE_KEY_ROOM];
    return lend_covering(lanes, key, &client->lane_user, coverage_key(client, written), true);
}

/*
 * True if WAIT must cover the client's writes, the present private lane has none of them, and the
 * client may leave that lane.
 */
static bool must_change(const struct client *client, const struct request *request)
{
    return coverage_is_wanted(client, request) && client_has_own_lane(client) &&
           !is_strict(client) && client->pins == 0 && client->lane_user.lane != NULL &&
           client->lane_user.lane->cover == NULL;
}

void lane_choice_keep_user(struct client *client)
{
    struct lanes *lanes = &session_row(client)->lanes;
    const struct lane_key key = session_key(client, lanes_node(lanes));
    (void)shared_get(lanes, &key, &client->lane_user);
}

static enum finding find_private(struct client *client, const struct request *request,
                                 struct lane **found)
{
    struct lane_user *lane_user = &client->lane_user;
    note_unclean(client);
    if (end_on_demoted(client))
        return LANE_NONE;
    if (must_change(client, request) || must_leave(client)) {
        if (lane_user->in_flight > 0) {
            client_wait_for_replies(client);
            return LANE_NOT_YET;
        }
        if (may_give_back(client))
            lane_choice_give_back(client);
    }
    if (client_is_closed(client))
        /* the last bytes of the old lane were more than the client may hold */
        return LANE_NONE;
    if (!client_has_own_lane(client)) {
        if (lane_user->in_flight > 0) {
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
        const struct lane *lane = lane_choice_borrow(client, request, &key);
        if (lane == NULL)
            return lane_choice_find_none(client, request);
        end_retries(client);
        client->own_lane = is_urgent ? OWN_URGENT_NEW : OWN_NEW;
        client->is_name_set = client->is_name_set && lane == before && lane_is_ready(lane);
    }
    *found = lane_user->lane;
    return LANE_FOUND;
}

/*
 * True if CLIENT PAUSE ... WRITE is in effect: on a shared lane Redis would also delay other
 * clients' requests.
 */
static bool is_held_back(const struct client *client, const struct request *request)
{
    return request->command->is_pausable &&
           node_is_paused(lanes_node(lanes_for(client, request)), client->front->loop->now_ns);
}

/*
 * True if Redis would refuse a new lane with the client's session: Redis requires a password now,
 * and required none when the client came.
 */
static bool is_past(const struct client *client, const struct request *request)
{
    struct lanes *lanes = lanes_for(client, request);
    const struct lane_key key = session_key(client, lanes_node(lanes));
    return lanes_is_past(lanes, &key);
}

static bool must_be_private(const struct client *client, const struct request *request)
{
    return client_has_own_lane(client) || is_strict(client) || !request->command->is_shareable ||
           request->is_large || request->is_carried || transaction_is_open(&client->transaction);
}

/* A request also goes to a private lane where a shared lane would delay other clients. */
bool lane_choice_needs_private(const struct client *client, const struct request *request)
{
    return must_be_private(client, request) ||
           (!request->is_again && (is_heavy(client) || is_held_back(client, request)) &&
            !is_past(client, request));
}

/*
 * True if the request waits in weir: Redis would delay it, and the client cannot have a private
 * lane.
 */
static bool must_wait_here(const struct client *client, const struct request *request)
{
    return is_held_back(client, request) && !must_be_private(client, request) &&
           (request->is_again || is_past(client, request));
}

bool lane_choice_is_at_hand(const struct client *client, const struct request *request)
{
    if (client->was_refused)
        return true; /* lane_choice_find would find no lane */
    return lane_choice_needs_private(client, request)
               ? client_has_own_lane(client) && client->lane_user.lane != NULL
               : lease_holds(&client->shared);
}

/* Ends the wait for a lane. The client looks again. */
static void stop_waiting_for_lane(struct client *client)
{
    list_take(&client->lane_user.waiting);
    if (client_waits_for(client, WAIT_LANE))
        client_resume(client, WAIT_LANE);
}

static void lane_choice_give_back(struct client *client)
{
    struct lane_user *lane_user = &client->lane_user;
    coverage_note_elsewhere(client);
    struct lane *lane = lane_user->lane;
    lane_catch_up(lane_user);
    client->own_lane = OWN_NONE;
    read_side_note_left_lane(client);
    lane_user->lane = NULL;
    stop_waiting_for_lane(client);
    struct lease *kept = &client->extra->kept;
    lend_take_back(lane, kept);
    /* another kept lane may have another name */
    client->is_name_set &= lease_holds(kept) && kept->lane == lane;
}

/* True if the private lane leads to a node that has left the topology. */
static bool is_on_retired(const struct client *client)
{
    return client_has_own_lane(client) && client->lane_user.lane != NULL &&
           !lane_is_closed(client->lane_user.lane) && lanes_of(client->lane_user.lane)->is_retired;
}

static bool may_give_back(const struct client *client)
{
    const struct lane_user *lane_user = &client->lane_user;
    return client_has_own_lane(client) && (!is_strict(client) || is_on_retired(client)) &&
           client->pins == 0 && !carry_holds_lane(client) &&
           !transaction_is_open(&client->transaction) && client_extra(client)->passage == NULL &&
           lane_user->lane != NULL && lane_user->in_flight == 0 && lane_is_clean(lane_user->lane);
}

/* True if nothing more may be sent on the private lane, because commands go to another node now. */
static bool must_leave(const struct client *client)
{
    if (!is_on_retired(client))
        return false;
    const struct lane *lane = client->lane_user.lane;
    bool keeps = client->pins != 0 || transaction_is_open(&client->transaction) ||
                 lane_is_subscribed(lane) || lane_is_monitoring(lane) ||
                 lane_is_passthrough(lane) || client_extra(client)->passage != NULL;
    return !keeps || node_is_demoted(lane_node(lane));
}

static void leave_own_lane(struct client *client)
{
    if (!client_has_own_lane(client))
        return;
    client->own_lane = OWN_NONE;
    read_side_note_left_lane(client);
}

/*
 * A shared lane without calls of this client may have been freed already, so the lane is not
 * touched.
 */
void lane_choice_abandon(struct client *client)
{
    if (client->lane_user.lane != NULL &&
        (client_has_own_lane(client) || client->lane_user.in_flight > 0))
        remains_leave(client);
    stop_waiting_for_lane(client);
    client->lane_user.lane = NULL;
    client->lane_user.in_flight = 0;
    if (client->lane_user.wants_idle)
        client_resume(client, WAIT_REPLIES);
    client->lane_user.wants_idle = false;
    fair_share_forget(client);
    leave_own_lane(client);
    client->is_name_set = false;
    client_keep_nothing(client);
    if (client->extra != NULL && spread_in_flight(client->extra->spread) == 0)
        /* these replies wait behind answers that will not come */
        replies_clear(&client->extra->replies);
    coverage_note_elsewhere(client);
    charge_calls_lost(client);
}

void lane_choice_leave(struct client *client)
{
    struct lane *lane = client->lane_user.lane;
    if (lane == NULL) {
        leave_own_lane(client);
        return;
    }
    lane_catch_up(&client->lane_user);
    stop_waiting_for_lane(client);
    client->lane_user.lane = NULL;
    leave_own_lane(client);
    client->is_name_set = false;
    coverage_note_elsewhere(client);
    lend_take_back_as_is(lane);
}

void lane_choice_withdraw(struct client *client)
{
    if (client->lane_user.in_flight > 0)
        lane_withdraw(&client->lane_user);
}

/*
 * Leaves the lane of an urgent command. The lane's database is arbitrary, so no other command may
 * use the lane, not even the owner's.
 */
static void leave_urgent(struct client *client)
{
    if (may_give_back(client))
        lane_choice_give_back(client);
    else
        lane_choice_abandon(client);
}

bool lane_choice_turn(struct client *client)
{
    const struct lane_user *lane_user = &client->lane_user;
    if (!client_is_on_cluster(client) || !client_has_own_lane(client) || lane_user->lane == NULL ||
        nodes_row_of(lane_user->lane) == target_row(client))
        return true;
    if (lane_user->in_flight > 0) {
        client_wait_for_replies(client);
        return false;
    }
    if (may_give_back(client)) {
        lane_choice_give_back(client);
    } else {
        carried_note_left(client);
        lane_choice_leave(client);
        pins_end(client);
    }
    return !client_is_closed(client);
}

/*
 * True if a lane was just lent for a request that is still buffered. The request may be waiting
 * until the lane's name is set.
 */
static bool is_about_to_use(const struct client *client)
{
    return (client->own_lane == OWN_NEW || client->own_lane == OWN_URGENT_NEW) &&
           client_has_more(client);
}

/*
 * Closes a client on a former master that is a replica now: nothing more is sent to the former
 * master. True: the client is closed.
 */
static bool end_on_demoted(struct client *client)
{
    const struct lane *lane = client->lane_user.lane;
    if (!is_on_retired(client) || !node_is_demoted(lane_node(lane)) || may_give_back(client))
        return false;
    if (carry_survives(client))
        return false;
    if (client->lane_user.in_flight > 0 && !lane_waits(lane) && !lane_is_subscribed(lane))
        return false; /* the lane's replies are still coming */
    session_log_closed(client, LOG_SITE_CLIENT_CLOSED,
                       "the server of its private connection is now a replica");
    client_close_for(client, CLOSED_UPSTREAM);
    return true;
}

void lane_choice_release(struct client *client)
{
    bool keeps = !is_on_retired(client) && (is_heavy(client) || is_about_to_use(client));
    if (!keeps && may_give_back(client))
        lane_choice_give_back(client);
    else
        (void)end_on_demoted(client);
}

void lane_choice_note_retired(struct client *client)
{
    if (!is_on_retired(client))
        return;
    lane_choice_release(client);
    if (!client_is_closed(client) && client_has_own_lane(client))
        client->lane_user.wants_idle |= client->lane_user.in_flight > 0;
}

void lane_choice_note_sent(struct client *client)
{
    if (client->own_lane == OWN_NEW)
        client->own_lane = OWN_USED;
    else if (client->own_lane == OWN_URGENT_NEW)
        client->own_lane = OWN_URGENT;
    client->lane_user.wants_idle |=
        client_has_own_lane(client) && client->lane_user.in_flight > 0 && !is_strict(client);
}

void lane_choice_note_name(struct client *client)
{
    client->is_name_set = client_has_own_lane(client);
}

void lane_choice_note_login(struct client *client)
{
    client->is_name_set = pin_has(client, PIN_SESSION);
}

void lane_choice_note_refused(struct client *client)
{
    client->was_refused = true;
}

void lane_choice_end_refused(struct client *client)
{
    client->was_refused = false;
}

/* ---- shared lanes ---- */

void lane_choice_note_huge(struct client *client)
{
    struct extra *extra = client_want_extra(client);
    if (extra != NULL)
        extra->huge_until_ns = client->front->loop->now_ns + HEAVY_NS;
    client->reader = READER_NEW;
}

/*
 * True if the size of the client's reads is unknown. Other clients' calls may be queued behind the
 * client's next read.
 */
static bool lane_choice_is_first_read(const struct client *client, const struct request *request)
{
    return client->reader == READER_NEW && (request->command->flags & CMD_READONLY) != 0;
}

static struct lane *lane_choice_find_shared(struct client *client, const struct request *request)
{
    struct lanes *lanes = lanes_for(client, request);
    const struct lane_user *lane_user = &client->lane_user;
    if (shared_is_wary(lanes) && lane_choice_is_first_read(client, request)) {
        const struct lane_key key = session_key(client, lanes_node(lanes));
        struct lane *apart = shared_get_apart(lanes, &key, lane_user);
        if (apart != NULL)
            return apart;
    }
    struct lease *lease = &client->shared;
    if (lease_holds(lease) && lanes_of(lease->lane) == lanes &&
        (lane_user->in_flight > 0 || !shared_is_sluggish(lease->lane)))
        return lease->lane;
    const struct lane_key key = session_key(client, lanes_node(lanes));
    /*
     * The shared lane is busy with the client's own calls. Moving to another lane would mean
     * waiting for these calls.
     */
    if (lane_user->in_flight > 0 && lane_user->lane->in == LIST_SHARED &&
        lanes_of(lane_user->lane) == lanes && lane_key_eq(&lane_user->lane->key, &key))
        return lane_user->lane;
    struct lane *lane = shared_get(lanes, &key, lane_user);
    /* opening a lane ends its leases */
    if (lane != NULL && (!lane_is_ready(lane) || session_suits(client, lane)))
        lease_take(lease, lane);
    return lane;
}

/*
 * Finds a lane of the protocol that HELLO asks for, where HELLO changes nothing. A client that
 * Redis would answer with -NOAUTH gets a lane of its own protocol.
 */
static struct lane *find_for_hello(struct client *client, const struct request *request)
{
    struct lanes *lanes = lanes_for(client, request);
    struct lane_key key = session_key(client, lanes_node(lanes));
    if (request->hello->protocol == 0 || request->hello->protocol == key.protocol ||
        session_is_anonymous(client))
        return lane_choice_find_shared(client, request);
    key.protocol = request->hello->protocol;
    return shared_get(lanes, &key, &client->lane_user);
}

/*
 * Finds a lane of the database that SELECT names, where SELECT changes nothing. NULL: no lane of
 * that database is ready yet.
 */
static struct lane *find_for_select(struct client *client, const struct request *request)
{
    struct lanes *lanes = lanes_for(client, request);
    int64_t database;
    if (!num_parse(request->args[0], &database) || database < 0 || database > INT32_MAX)
        return lane_choice_find_shared(client, request);
    struct lane_key key = session_key(client, lanes_node(lanes));
    key.database = (uint32_t)database;
    return shared_find(lanes, &key);
}

/*
 * True if the first read of a client must be answered before the second read is sent. A client that
 * reads huge values gets a private lane. A pipeline of huge reads would delay all clients on the
 * shared lane before the first size is known.
 */
static bool lane_choice_must_ask_first(struct client *client, const struct request *request)
{
    if (client->reader != READER_ASKS || (request->command->flags & CMD_READONLY) == 0)
        return false;
    if (client->lane_user.in_flight == 0)
        client->reader = READER_KNOWN;
    return client->reader == READER_ASKS;
}

static enum finding find(struct client *client, const struct request *request, struct lane **found)
{
    if (lane_choice_needs_private(client, request))
        return find_private(client, request, found);
    if (must_wait_here(client, request)) {
        lanes_wake_soon(lanes_for(client, request), &client->lane_user);
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
        *found = lane_choice_find_shared(client, request);
        break;
    }
    if (*found == NULL)
        return lane_choice_find_none(client, request);
    end_retries(client);
    bool is_elsewhere = client->lane_user.in_flight > 0 && client->lane_user.lane != *found;
    if (is_elsewhere || lane_choice_must_ask_first(client, request)) {
        client_wait_for_replies(client);
        return LANE_NOT_YET;
    }
    return LANE_FOUND;
}

/*
 * True if the client's private lane answers only NOAUTH, and the client uses it only to spare other
 * clients. The shared lane of the client still works.
 */
static bool is_shut_out(const struct client *client, const struct request *request)
{
    const struct lane_user *lane_user = &client->lane_user;
    return client_has_own_lane(client) && lane_user->lane != NULL &&
           lanes_is_shut_out(lane_user->lane) && lane_user->in_flight == 0 && !is_strict(client) &&
           client->pins == 0 && !transaction_is_open(&client->transaction) &&
           request->command->is_shareable && !request->is_large && is_past(client, request);
}

/*
 * True if the lane is lent for SELECT only. The lane is given back at once, so its name is not set.
 */
static bool is_for_select_alone(const struct client *client, const struct request *request)
{
    return request_effect(request) == EFFECT_SELECT && !is_strict(client) && !is_heavy(client);
}

/* Bytes of memory for the records of calls on the private lane. */
static uint64_t calls_bytes(const struct lane *lane)
{
    return lane->calls.capacity * sizeof(struct call) +
           lane->tags.capacity * sizeof *lane->tags.ring;
}

/*
 * True if enough bytes are queued behind a command that blocks. Redis stores the queued requests in
 * its own memory, up to client-query-buffer-limit. weir passes on a large request piece by piece
 * without buffering, and can read a half-close behind that request.
 */
static bool is_far_behind_blocking(const struct client *client)
{
    return lane_sent_bytes(&client->lane_user) > BLOCKED_BYTES;
}

/*
 * True if weir has sent the client no byte yet, or huge values lately. On a shared lane the
 * client's first read is answered before the next read is sent.
 */
static bool may_read_huge(const struct client *client)
{
    return client_has_own_lane(client) &&
           (lane_choice_reads_huge(client) ||
            client->link.n_written + link_pending(&client->link) == 0);
}

/*
 * True if the client has as many calls in flight as it may. A reply cannot be cancelled, and its
 * size is known only when it comes. A client with a limit on reply bytes, or one that may read huge
 * values, therefore gets few calls in flight. A slow client is exempt: a library may write a whole
 * pipeline before it reads, and would wait for ever.
 */
static bool has_many_replies_coming(const struct client *client, const struct lane *lane)
{
    if (client->link.is_congested)
        return false;
    return (client_counts(client, UNIT_BYTES_OUT) &&
            client->lane_user.in_flight >= UNKNOWN_CALLS) ||
           (lane_n_requests(lane) >= UNKNOWN_CALLS && may_read_huge(client));
}

static bool lane_choice_is_far_ahead(const struct client *client, const struct lane *lane)
{
    if (client->lane_user.in_flight == 0)
        return false;
    uint64_t most = atomic_load_explicit(&client->front->settings->memory_pressure.calls_bytes,
                                         memory_order_relaxed);
    bool is_own_full = client_has_own_lane(client) && most != 0 && calls_bytes(lane) > most;
    bool is_many = client_has_own_lane(client) && lane_waits(lane)
                       ? is_far_behind_blocking(client)
                       : has_many_replies_coming(client, lane);
    return is_own_full || is_many;
}

/*
 * True if the client's time to wait for Redis is over, and Redis has not accepted the connection
 * that is being opened.
 */
static bool is_out_of_time(const struct client *client, const struct request *request,
                           const struct lane *lane)
{
    return lane->state == LANE_CONNECTING && !lane_is_taken(lane) &&
           lane_choice_is_over(client, request);
}

/*
 * True if the client must wait for replies of the replica. A client has no private lane at a
 * replica, so its bytes in flight there are limited to SHARED_BYTES_MAX.
 */
static bool must_wait_at_replica(const struct client *client)
{
    return read_side_is_at_replica(client) && client->lane_user.in_flight > 0 &&
           lane_sent_bytes(&client->lane_user) > SHARED_BYTES_MAX;
}

enum finding lane_choice_find(struct client *client, const struct request *request,
                              struct lane **found)
{
    if (client->was_refused) {
        if (client->lane_user.lane == NULL)
            leave_own_lane(client);
        return LANE_NONE;
    }
    if (remains_must_wait(client, lanes_node(lanes_for(client, request)))) {
        lanes_wake_soon(lanes_for(client, request), &client->lane_user);
        client_wait(client, WAIT_LANE);
        return LANE_NOT_YET;
    }
    /*
     * The urgent lane may be in another database than the client. The lane's calls are answered
     * first.
     */
    if (client_is_urgent(client) && !request->command->is_urgent) {
        if (client->lane_user.in_flight > 0) {
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
    if (lane_sent_bytes(&client->lane_user) > SHARED_BYTES_MAX && !request->is_again &&
        !client_has_own_lane(client) && !read_side_is_at_replica(client))
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
        lane_wait(*found, &client->lane_user);
        client_wait(client, WAIT_LANE);
        return LANE_NOT_YET;
    }
    if (!session_suits(client, *found)) {
        if (!session_ask_witness(client, *found))
            return LANE_UNPROVEN;
        lane_wait(*found, &client->lane_user);
        client_wait(client, WAIT_LANE);
        return LANE_NOT_YET;
    }
    if (lane_choice_is_far_ahead(client, *found)) {
        client_wait_for_replies(client);
        return LANE_NOT_YET;
    }
    if (client_has_own_lane(client)) {
        coverage_note_lane(client, *found);
        if (!client->is_name_set && !is_for_select_alone(client, request) &&
            !set_name(client, *found))
            return LANE_NONE;
    }
    return LANE_FOUND;
}
