#include "upstream/lane/lane.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "limit/command/command.h"
#include "upstream/lane/calls.h"
#include "upstream/lane/own_words.h"

void lane_set_key(struct lane *lane, const struct lane_key *key)
{
    struct login *old = lane->key.login;
    lane->key = *key;
    login_get(lane->key.login);
    login_put(old);
}

void lane_login_set(struct lane_login *in, struct login *by, uint64_t number)
{
    login_get(by);
    login_put(in->by);
    *in = (struct lane_login){by, number};
}

/* Returns the login if it is a client's, else NULL. */
static struct login *clients_login(const struct lane *lane)
{
    struct login *login = lane->key.login;
    bool is_clients = lane->role == LANE_SHARED || lane->role == LANE_PRIVATE;
    return is_clients && login != NULL && !login->is_weirs ? login : NULL;
}

static void count_for_user(struct lane *lane)
{
    struct login *login = clients_login(lane);
    struct auth_user *user =
        login != NULL ? auth_users_get(&lane->base->users, login_user(login)) : NULL;
    if (user != NULL)
        auth_user_open(user, login); /* before the old user is released: both may be one user */
    lane_leave_user(lane, false);
    lane->user = user;
}

void lane_enter_user(struct lane *lane)
{
    struct login *login = clients_login(lane);
    lane_login_set(&lane->let_in, login, login != NULL ? ++lane->base->users.n_logins : 0);
    lane_login_set(&lane->vouched, NULL, 0);
    lane->witness = NULL;
    count_for_user(lane);
}

void lane_leave_user(struct lane *lane, bool is_kicked)
{
    struct auth_user *user = lane->user;
    lane->user = NULL;
    if (user == NULL)
        return;
    auth_user_close(user);
    if (is_kicked)
        auth_user_kicked(user);
    auth_user_put(user);
}

void lane_see_user(struct lane *lane)
{
    if (lane->user == NULL && lane->slow_user == NULL && !lane->is_parted &&
        !lane_is_passthrough(lane) && lane_is_ready(lane) && calls_is_empty(&lane->calls) &&
        !lane_is_in_frame(lane))
        count_for_user(lane);
}

void lane_become(struct lane *lane, enum lane_state state)
{
    assert(lane_state_may_become((enum lane_state)lane->state, state));
    lane->state = (uint8_t)state;
}

static void trust_become(struct lane *lane, enum lane_trust trust)
{
    if (lane->trust == trust)
        return;
    assert(lane_trust_may_become((enum lane_trust)lane->trust, trust));
    lane->trust = (uint8_t)trust;
}

static inline void note_used(struct lane *lane)
{
    if (!lane_is_used(lane))
        trust_become(lane, lane->trust == TRUST_CLEAN ? TRUST_USED : TRUST_UNTRUSTED);
}

void lane_distrust(struct lane *lane)
{
    trust_become(lane, lane_is_asked(lane) ? TRUST_UNSETTLED : TRUST_UNTRUSTED);
}

void lane_end_question(struct lane *lane)
{
    trust_become(lane, lane->trust == TRUST_ASKED ? TRUST_USED : TRUST_UNTRUSTED);
}

void lane_return(struct lane *lane)
{
    trust_become(lane, lane_is_untrusted(lane) ? TRUST_RETURNED : TRUST_CLEAN);
}

void lane_cover(struct lane *lane, struct slice written)
{
    free(lane->cover);
    lane->cover = written.len > 0 ? strndup(written.at, written.len) : NULL;
}

bool lane_take_cover(struct lane *lane)
{
    bool is_covered = lane_is_ready(lane) && lane->greeting.is_covered;
    lane->greeting.is_covered &= !is_covered;
    return is_covered;
}

void lane_end_subscriptions(struct lane *lane)
{
    bool was_subscribed = lane_is_subscribed(lane);
    lane->channels = lane->patterns = lane->shard_channels = 0;
    inflight_subscribe(&lane->base->counts, was_subscribed, false);
    if (lane->beside == BESIDE_MONITOR)
        lane->beside = BESIDE_MESSAGES;
}

void lane_forget_session(struct lane *lane)
{
    lane_end_subscriptions(lane);
    lane->has_name = false;
    lane->beside = BESIDE_NOTHING;
    lane->answer_by_ns = 0;
    trust_become(lane, TRUST_CLEAN);
}

static void free_if_done(struct lane *lane)
{
    if (lane->state == LANE_GONE && lane->n_leases == 0)
        free(lane);
}

void lane_end_link(struct lane *lane)
{
    lane_become(lane, LANE_GONE);
    free_if_done(lane);
}

void lease_drop(struct lease *lease)
{
    struct lane *lane = lease->lane;
    lease->lane = NULL;
    if (lane == NULL)
        return;
    lane->n_leases--;
    if (lane->state == LANE_GONE)
        free_if_done(lane);
    else if (lane->n_leases == 0)
        lane->base->ops->on_unleased(lane);
}

void lease_take(struct lease *lease, struct lane *lane)
{
    lane->n_leases++;
    lease_drop(lease);
    *lease = (struct lease){lane, lane->generation};
}

void lane_wait(struct lane *lane, struct lane_user *lane_user)
{
    if (list_is_empty(&lane_user->waiting))
        list_push(&lane->waiting, &lane_user->waiting);
}

void lane_wake_waiting(struct lane *lane)
{
    while (!list_is_empty(&lane->waiting)) {
        struct lane_user *lane_user = container_of(lane->waiting.next, struct lane_user, waiting);
        list_take(&lane_user->waiting);
        lane_user_resume(lane_user, LANE_USER_HAS_LANE);
    }
}

static void refuse_waiting(struct lane *lane, struct slice reply)
{
    struct list now;
    list_take_all(&now, &lane->waiting);
    while (!list_is_empty(&now)) {
        struct lane_user *lane_user = container_of(now.next, struct lane_user, waiting);
        list_take(&lane_user->waiting);
        lane_user->ops->on_refused(lane_user, (enum lane_end)lane->end, reply);
        lane_user_resume(lane_user, LANE_USER_HAS_LANE);
    }
}

void lane_catch_up(struct lane_user *lane_user)
{
    struct lane *lane = lane_user->lane;
    if (lane == NULL || lane->slow_user != lane_user)
        return;
    lane->slow_user = NULL;
    link_resume(&lane->link);
}

/* ---- closing ---- */

static void close_quietly(struct lane *lane)
{
    lane_become(lane, LANE_CLOSED);
    lane_end_leases(lane);
    inflight_end_all(&lane->base->counts, &lane->calls);
    /* the lane keeps its subscription counts, because on_lost reads these counts */
    inflight_subscribe(&lane->base->counts, lane_is_subscribed(lane), false);
    lane->base->ops->on_closed(lane);
    link_close(&lane->link);
}

void lane_close(struct lane *lane)
{
    if (!lane_is_closed(lane))
        close_quietly(lane);
}

void lane_end(struct lane *lane)
{
    struct lane_user *owner = lane->owner;
    close_quietly(lane);
    owner->lane = NULL;
    link_wake(lane_user_link(owner));
}

static void tell_owner(struct lane *lane, struct slice reply, bool may_ask_again)
{
    struct lane_user *owner = lane->owner;
    if (owner == NULL)
        return;
    owner->lane = NULL;
    /*
     * An owner that sent nothing has lost nothing. The owner asks for another lane if the failed
     * lane was used before, or if an attempt may succeed.
     */
    if (lane_is_used(lane)) {
        owner->ops->on_lost(owner, lane);
    } else if (lane->use == USE_AGAIN || may_ask_again) {
        lane_user_resume(owner, LANE_USER_HAS_LANE);
    } else {
        owner->ops->on_refused(owner, (enum lane_end)lane->end, reply);
        lane_user_resume(owner, LANE_USER_HAS_LANE);
    }
}

static void tell_lane_users(struct lane *lane, bool was_ready, bool may_ask_again,
                            struct slice reply)
{
    for (uint32_t at = lane->calls.head; at != lane->calls.tail; at++) {
        struct lane_user *lane_user = calls_at(&lane->calls, at)->lane_user;
        if (lane_user != NULL && lane_user != lane->owner)
            lane_user->ops->on_lost(lane_user, lane);
    }
    if (lane->owner != NULL)
        list_take(&lane->owner->waiting);
    if (may_ask_again)
        lane_wake_waiting(lane);
    else
        refuse_waiting(lane, reply);
    tell_owner(lane, reply, may_ask_again && !was_ready);
}

void lane_refuse(struct lane *lane, enum lane_end end, const char *why, struct slice reply)
{
    if (lane_is_closed(lane))
        return;
    bool was_ready = lane_is_ready(lane);
    lane->end = (uint8_t)end;
    close_quietly(lane);
    bool may_ask_again = lane->base->ops->on_failed(lane, was_ready, why);
    tell_lane_users(lane, was_ready, may_ask_again, reply);
}

void lane_fail(struct lane *lane, enum lane_end end, const char *why)
{
    lane_refuse(lane, end, why, slice_of("", 0));
}

void lane_forget(struct lane *lane, struct lane_user *lane_user)
{
    list_take(&lane_user->waiting);
    lane_discount(lane, lane_user);
    if (lane_is_closed(lane))
        return;
    lane_catch_up(lane_user);
    if (lane->owner == lane_user) {
        close_quietly(lane);
        return;
    }
    for (uint32_t at = lane->calls.head; at != lane->calls.tail; at++) {
        struct call *call = calls_at(&lane->calls, at);
        if (call->lane_user == lane_user)
            call->lane_user = NULL;
    }
    lane_user->in_flight = 0;
}

void lane_part(struct lane *lane)
{
    if (lane->is_parted || lane_is_closed(lane))
        return;
    lane->is_parted = true;
    lane->moved_ns = link_loop(&lane->link)->now_ns;
    outbox_flush(&lane->base->worker_lanes->outbox);
    link_part(&lane->link);
    lane->base->ops->on_watched(lane);
}

void lane_bequeath(struct lane *lane, struct lane_user *lane_user, struct lane_user *heir)
{
    list_take(&lane_user->waiting);
    lane_discount(lane, lane_user);
    lane_catch_up(lane_user);
    for (uint32_t at = lane->calls.head; at != lane->calls.tail; at++) {
        struct call *call = calls_at(&lane->calls, at);
        if (call->lane_user == lane_user)
            call->lane_user = heir;
    }
    heir->lane = lane;
    heir->in_flight = lane_user->in_flight;
    heir->last_call = lane_user->last_call;
    lane_user->in_flight = 0;
    if (lane->owner != lane_user)
        return;
    lane->owner = heir;
    lane_end_leases(lane);
    lane_part(lane);
}

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
/* Check that the sender owns the lane or may share the lane. */
static void lane_audit(const struct lane *lane, const struct lane_user *lane_user)
{
    bool is_shared = lane->role == LANE_SHARED;
    assert(lane_is_ready(lane));
    assert(is_shared ? lane->owner == NULL : lane->owner == lane_user && lane_user->lane == lane);
    assert(is_shared ? lane->in == LIST_SHARED || lane_user->in_flight > 0 : lane->in != LIST_IDLE);
    assert(is_shared ? !lane_is_subscribed(lane) : true);
    assert(!is_shared ||
           !(lane->beside != BESIDE_NOTHING || lane_is_untrusted(lane) || lane->is_not_reusable));
    if (lane_user->ops->audit != NULL)
        lane_user->ops->audit(lane_user, lane);
}
#else
static inline void lane_audit(const struct lane *lane, const struct lane_user *lane_user)
{
    (void)lane;
    (void)lane_user;
}
#endif

/* Add one entry, with n tags. NULL: out of memory. */
static struct call *lane_push(struct lane *lane, struct lane_user *lane_user, uint64_t tag,
                              uint32_t n)
{
    if (!tags_push(&lane->tags, tag, n))
        return NULL;
    struct call *call = calls_push(&lane->calls);
    if (call == NULL) {
        tags_drop_newest(&lane->tags, n);
        return NULL;
    }
    if (lane->calls.tail - lane->calls.head == 1)
        lane->moved_ns = link_loop(&lane->link)->now_ns;
    call->lane_user = lane_user;
    if (lane_user == NULL)
        return call; /* a call of weir's own */
    call->arrived_ns = lane_user->arrived_ns;
    call->waited_us = lane_user->waited_us;
    lane_user->lane = lane;
    lane_user->in_flight++;
    lane_user->last_call = lane->calls.tail - 1;
    return call;
}

bool lane_call_apart(struct lane *lane, struct lane_user *lane_user, uint64_t tag, uint32_t n)
{
    struct call *call = lane_push(lane, lane_user, tag, n);
    if (call == NULL)
        return false;
    call->n = n;
    call->share_us = lane->base->worker_lanes->share_us;
    return true;
}

struct call *lane_call_flow(struct lane *lane, struct lane_user *lane_user, uint8_t flow,
                            uint32_t replies, uint64_t tag)
{
    struct call *call = lane_push(lane, lane_user, tag, 1);
    if (call == NULL)
        return NULL;
    call->flow = flow;
    call->n = replies;
    if (flow != FLOW_ONE && lane->beside == BESIDE_NOTHING)
        lane->beside = BESIDE_MESSAGES;
    return call;
}

/* True if the lane user has left its private lane to an heir while sending. */
static inline bool is_left(const struct lane *lane, const struct lane_user *lane_user)
{
    return lane->is_parted && lane->owner != lane_user;
}

void lane_send(struct lane *lane, const struct lane_user *lane_user, const char *data, size_t n)
{
    if (lane_is_closed(lane) || is_left(lane, lane_user))
        return;
    lane_audit(lane, lane_user);
    note_used(lane);
    outbox_send(&lane->base->worker_lanes->outbox, &lane->link, data, n);
}

void lane_gather(struct lane *lane, const struct lane_user *lane_user, const char *data, size_t n)
{
    if (n == 0 || lane_is_closed(lane) || is_left(lane, lane_user))
        return;
    lane_audit(lane, lane_user);
    note_used(lane);
    outbox_gather(&lane->base->worker_lanes->outbox, &lane->link, data, n);
}

/*
 * Nothing may be in flight before the AUTH. From Redis 7.2 on, a failed AUTH behind unsent replies
 * gets no answer. The reply to the next command would be taken for the answer to AUTH.
 */
bool lane_prolong(struct lane *lane, struct login *login)
{
    assert(lane_is_ready(lane) && calls_is_empty(&lane->calls));
    char *request = malloc(login_room(login));
    struct call *call = request != NULL ? lane_push(lane, lane->owner, 0, 1) : NULL;
    if (call != NULL) {
        call->flow = FLOW_ONE;
        call->n = 1;
        call->flags = CALL_MUTE;
        call->arrived_ns = 0;
        size_t n = login_emit(login, SLICE(OWN_AUTH), false, request);
        outbox_send(&lane->base->worker_lanes->outbox, &lane->link, request, n);
        explicit_bzero(request, n);
        struct lane_key key = lane->key;
        key.login = login;
        lane_set_key(lane, &key);
    }
    free(request);
    return call != NULL;
}

bool lane_ask(struct lane *lane, uint32_t *position)
{
    static const char request[] = "*1\r\n$5\r\n" OWN_HELLO "\r\n"; /* HELLO needs no rights */
    struct call *call = lane_push(lane, NULL, 0, 1);
    if (call == NULL)
        return false;
    call->flow = FLOW_ONE;
    call->n = 1;
    call->flags = CALL_MUTE | CALL_VOUCHES;
    call->arrived_ns = 0;
    *position = lane->calls.tail - 1;
    outbox_send(&lane->base->worker_lanes->outbox, &lane->link, request, sizeof request - 1);
    return true;
}

bool lane_vouch(struct lane *lane, struct lane_user *lane_user)
{
    char request[NONCE_REQUEST_ROOM];
    enum nonce_form form = node_nonce_form(lane_node(lane));
    if (!lane_is_untrusted(lane) || form == NONCE_NONE)
        return true;
    assert(!lane_is_asked(lane));
    bool is_drawn = nonce_draw(&lane->nonce, form);
    struct call *call = is_drawn ? lane_call_flow(lane, lane_user, FLOW_ONE, 1, 0) : NULL;
    if (call == NULL)
        return false;
    call->flags = CALL_MUTE | CALL_NONCE;
    call->arrived_ns = 0;
    trust_become(lane, TRUST_ASKED);
    lane->base->ops->on_watched(lane);
    lane_send(lane, lane_user, request, nonce_request(&lane->nonce, request));
    return true;
}

void lane_must_answer(struct lane *lane, uint64_t within_ns)
{
    lane->answer_by_ns = clock_ns() + within_ns;
    lane->base->ops->on_watched(lane);
}

void lane_send_more(struct lane_user *lane_user, const char *data, size_t n, bool is_last)
{
    lane_send(lane_user->lane, lane_user, data, n);
    lane_passed(lane_user, n);
    lane_user->is_sending = !is_last;
}

struct link *lane_passing(struct lane_user *lane_user)
{
    struct lane *lane = lane_user->lane;
    if (lane_is_closed(lane))
        return NULL;
    lane_audit(lane, lane_user);
    outbox_flush(&lane->base->worker_lanes->outbox);
    return &lane->link;
}

void lane_passed(struct lane_user *lane_user, size_t n)
{
    struct lane *lane = lane_user->lane;
    lane->moved_ns = link_loop(&lane->link)->now_ns;
    lane_charge_bytes(lane, lane_user, n);
}

void lane_withdraw(struct lane_user *lane_user)
{
    struct calls *calls = &lane_user->lane->calls;
    struct call *newest = calls_at(calls, calls->tail - 1);
    assert(newest->lane_user == lane_user && (newest->flags & CALL_ENDS_RUN) == 0);
    tags_drop_newest(&lane_user->lane->tags, 1);
    inflight_end(&lane_user->lane->base->counts, newest, 1);
    lane_discount(lane_user->lane, lane_user);
    if (newest->flow == FLOW_ONE && newest->n > 1) {
        newest->n--; /* the run contains earlier equal requests */
        return;
    }
    if (newest->counted != 0)
        lane_user->ops->on_counted(lane_user, newest->counted);
    calls_drop_newest(calls);
    lane_user->in_flight--;
    lane_user->last_call = calls->tail - 1;
}

bool lane_end_run(const struct lane_user *lane_user)
{
    struct lane *lane = lane_user->lane;
    bool was_said;
    if (lane_user->in_flight > 0) {
        struct call *newest = calls_at(&lane->calls, lane_user->last_call);
        was_said = (newest->flags & CALL_ENDS_RUN) != 0;
        newest->flags |= CALL_ENDS_RUN;
    } else {
        was_said = lane->ends_run != RUN_GOES_ON;
        if (!was_said)
            lane->ends_run = RUN_ENDS_WITH_FRAME;
    }
    return !was_said;
}

void lane_pass_through(struct lane *lane)
{
    lane_become(lane, LANE_PASSTHROUGH);
    lane->frame_bytes = 0;
}

void lane_note_monitor(struct lane *lane)
{
    lane->beside = BESIDE_MONITOR;
}

bool lane_is_clean(const struct lane *lane)
{
    return lane_is_ready(lane) && calls_is_empty(&lane->calls) && !lane_is_subscribed(lane) &&
           !lane_is_monitoring(lane) && !lane_is_passthrough(lane) && !lane_is_in_frame(lane);
}

/* True if the oldest call waits for the rest of its request from the owner. */
static bool is_incomplete(const struct lane *lane)
{
    return lane->owner != NULL && lane->owner->is_sending &&
           lane->calls.tail - lane->calls.head == 1 && !lane_is_congested(lane);
}

/* True if there is a call, and the oldest call may not wait in Redis. */
static bool is_owing(const struct lane *lane)
{
    return !calls_is_empty(&lane->calls) &&
           (calls_oldest(&lane->calls)->flags & CALL_MAY_WAIT) == 0;
}

/*
 * True if only Redis can make progress: the lane is up, not paused by a slow reader, and the
 * request is sent in full.
 */
static bool is_redis_turn(const struct lane *lane)
{
    return lane_is_ready(lane) && lane->slow_user == NULL && !lane->link.is_paused &&
           !is_incomplete(lane);
}

bool lane_is_hung(const struct lane *lane, uint64_t since_ns)
{
    return (lane_is_in_frame(lane) || lane->is_parted || is_owing(lane)) && is_redis_turn(lane) &&
           lane->moved_ns < since_ns;
}

uint64_t lane_owes_ns(const struct lane *lane, uint64_t now_ns)
{
    if (!is_owing(lane) || !is_redis_turn(lane))
        return 0;
    uint64_t sent_ns = calls_oldest(&lane->calls)->sent_ns;
    return sent_ns != 0 && now_ns > sent_ns ? now_ns - sent_ns : 0;
}

bool lane_may_wait(const struct lane *lane)
{
    for (uint32_t at = lane->calls.head; at != lane->calls.tail; at++)
        if ((calls_at(&lane->calls, at)->flags & CALL_MAY_WAIT) != 0)
            return true;
    return false;
}

bool lane_waits(const struct lane *lane)
{
    return !calls_is_empty(&lane->calls) &&
           (calls_oldest(&lane->calls)->flags & CALL_MAY_WAIT) != 0;
}

bool lane_has_others_waiting(const struct lane *lane)
{
    struct lane_user *oldest =
        calls_is_empty(&lane->calls) ? NULL : calls_oldest(&lane->calls)->lane_user;
    for (uint32_t at = lane->calls.head; at != lane->calls.tail; at++) {
        struct lane_user *lane_user = calls_at(&lane->calls, at)->lane_user;
        if (lane_user != NULL && lane_user != oldest &&
            (oldest == NULL || lane_user_link(lane_user) != lane_user_link(oldest)))
            return true;
    }
    return false;
}
