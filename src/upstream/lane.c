#include "upstream/lane.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "limit/command.h"
#include "upstream/deliver.h"
#include "upstream/lanes.h"
#include "upstream/timers.h"
#include "upstream/inflight.h"

#define GREETED_MAX 4096 /* of one answer to a greeting: HELLO's is the longest */

static struct lane *lane_of(struct link *link)
{
    return container_of(link, struct lane, link);
}

/* ---- greeting ---- */

static void wake_waiting(struct lane *lane)
{
    while (!list_is_empty(&lane->waiting)) {
        struct rider *rider = container_of(lane->waiting.next, struct rider, waiting);
        list_take(&rider->waiting);
        link_wake(rider_link(rider));
    }
}

static void refuse_waiting(struct lane *lane, struct slice reply)
{
    struct list now;
    list_take_all(&now, &lane->waiting);
    while (!list_is_empty(&now)) {
        struct rider *rider = container_of(now.next, struct rider, waiting);
        list_take(&rider->waiting);
        rider->ops->on_refused(rider, reply);
        link_wake(rider_link(rider));
    }
}

static void fail_with(struct lane *lane, enum lane_end end, const char *why, struct slice reply);

static void become_ready(struct lane *lane, bool needs_auth)
{
    lane->state = LANE_READY;
    lanes_on_ready(lane->lanes, lane, needs_auth);
    wake_waiting(lane);
}

static void refuse_greeting(struct lane *lane, enum greeting_verdict verdict, struct slice reply)
{
    static const struct {
        enum lane_end end;
        const char *why;
    } ends[] = {
        [GREETING_LOGIN_REFUSED] = {END_LOGIN_REFUSED, "it does not accept a user's password any more"},
        [GREETING_TURNED_AWAY] = {END_TURNED_AWAY, "it turns new connections away"},
        [GREETING_NO_RESET] = {END_NO_RESET, "its user may not RESET it, so nobody else may have it"},
        [GREETING_UNCLEAN] = {END_UNCLEAN, "it was not clean when its owner had gone"},
        [GREETING_NONSENSE] = {END_NONSENSE, "it does not answer as Redis does"},
        [GREETING_REFUSED] = {END_REFUSED, "it refuses what the connection needs"},
    };
    fail_with(lane, ends[verdict].end, ends[verdict].why, verdict == GREETING_REFUSED ? reply : slice_of("", 0));
}

void lanes_flush(struct lanes *lanes)
{
    struct outbox *outbox = &lanes->outbox;
    struct lane *lane = outbox->lane;
    outbox->lane = NULL;
    if (lane != NULL && !lane_is_closed(lane))
        link_write(&lane->link, outbox->at, outbox->len);
}

/* Behind all that was sent before. */
static void write_to(struct lane *lane, const char *data, size_t n)
{
    lanes_flush(lane->lanes);
    link_write(&lane->link, data, n);
}

static bool say_more(struct lane *lane)
{
    size_t n;
    char *words = greeting_say(&lane->greeting, &lane->key, &lane->nonce, &n);
    if (words == NULL)
        return false;
    write_to(lane, words, n);
    explicit_bzero(words, n);
    free(words);
    return true;
}

/* A whole answer has come. False: the lane is gone. */
static bool end_answer(struct lane *lane)
{
    struct slice reply = bytes_slice(&lane->greeted);
    enum greeting_verdict verdict = greeting_judge(&lane->greeting, &lane->nonce, &lane->glimpse);
    if (verdict == GREETING_TELLS_ID) {
        lane->id = greeting_id(reply);
    } else if (verdict != GREETING_GOOD) {
        refuse_greeting(lane, verdict, reply);
        return false;
    }
    lane->greeted.len = 0;
    glimpse_reset(&lane->glimpse);
    if (greeting_goes_on(&lane->greeting) && !say_more(lane)) {
        lane_fail(lane, END_LOST, "out of memory");
        return false;
    }
    if (greeting_is_over(&lane->greeting)) {
        lane->is_covered = lane->greeting.is_covered;
        become_ready(lane, lane->greeting.needs_auth);
    }
    return !lane_is_closed(lane);
}

static const char *take_greeting(struct lane *lane, const char *p, const char *end)
{
    size_t used;
    enum scan_result result = reply_scan(&lane->scan, p, (size_t)(end - p), &used);
    if (result == SCAN_BAD || lane->greeted.len + used > GREETED_MAX) {
        lane_fail(lane, END_NONSENSE, "it does not speak RESP");
        return NULL;
    }
    if (!bytes_add(&lane->greeted, slice_of(p, used), GREETED_MAX)) {
        lane_fail(lane, END_LOST, "out of memory");
        return NULL;
    }
    glimpse_feed(&lane->glimpse, p, used);
    lane->is_in_frame = result == SCAN_MORE;
    if (result == SCAN_FRAME && !end_answer(lane))
        return NULL;
    return p + used;
}

/* ---- the connection ---- */

static void on_data(struct link *link, const char *data, size_t n)
{
    struct lane *lane = lane_of(link);
    const char *p = data;
    const char *end = data + n;
    lane->moved_ns = link_loop(link)->now_ns;
    while (p != NULL && p < end) {
        if (lane->state == LANE_GREETING)
            p = take_greeting(lane, p, end);
        else
            p = deliver(lane, p, end);
    }
}

/* False: out of memory. */
static bool greet(struct lane *lane, enum greeting_kind kind)
{
    struct lane_key key = lane->key;
    if (key.login != NULL && key.login->is_weirs && lane->lanes->login != NULL) {
        key.login = lane->lanes->login; /* the password may be another by now */
        lane_set_key(lane, &key);
    }
    lane->state = LANE_GREETING;
    glimpse_reset(&lane->glimpse);
    memset(&lane->scan, 0, sizeof lane->scan);
    if (kind == GREETING_AGAIN && !nonce_draw(&lane->nonce))
        return false;
    const struct greeting_cover cover = {lane->cover, lane->lanes->login};
    greeting_init(&lane->greeting, &lane->key, kind, kind == GREETING_AGAIN ? NULL : &cover);
    if (greeting_is_over(&lane->greeting)) {
        become_ready(lane, false);
        return true;
    }
    lanes_on_connected(lane->lanes, lane);
    return say_more(lane);
}

static void on_connected(struct link *link, int status)
{
    struct lane *lane = lane_of(link);
    if (status != 0)
        lane_fail(lane, END_LOST, link_why(link, status));
    else if (!greet(lane, lane->role == LANE_PRIVATE ? GREETING_OWNED : GREETING_FRESH))
        lane_fail(lane, END_LOST, "out of memory");
}

static void on_end(struct link *link, int status)
{
    lane_fail(lane_of(link), END_LOST, status == UV_EOF ? "it closed the connection" : link_why(link, status));
}

/* What has been noted since the last time goes now. */
static void on_flush(struct link *link)
{
    inflight_send(lane_of(link), link_loop(link)->writing_ns);
}

static void on_drained(struct link *link)
{
    wake_waiting(lane_of(link));
}

static void on_wake(struct link *link)
{
    (void)link;
}

static void free_if_done(struct lane *lane)
{
    if (!lane->is_gone || lane->n_leases > 0)
        return;
    free(lane);
}

static void on_closed(struct link *link)
{
    struct lane *lane = lane_of(link);
    calls_fini(&lane->calls);
    tags_fini(&lane->tags);
    bytes_fini(&lane->greeted);
    free(lane->cover);
    login_put(lane->key.login);
    login_put(lane->last_login);
    lane->is_gone = true;
    free_if_done(lane);
}

void lease_drop(struct lease *lease)
{
    struct lane *lane = lease->lane;
    lease->lane = NULL;
    if (lane == NULL)
        return;
    lane->n_leases--;
    if (lane->is_gone)
        free_if_done(lane);
    else if (lane->n_leases == 0)
        lanes_on_unleased(lane->lanes, lane);
}

void lease_take(struct lease *lease, struct lane *lane)
{
    lane->n_leases++;
    lease_drop(lease);
    *lease = (struct lease){lane, lane->generation};
}

bool lane_key_eq(const struct lane_key *a, const struct lane_key *b)
{
    return a->protocol == b->protocol && a->database == b->database && login_eq(a->login, b->login) &&
           (a->login != NULL || a->epoch == b->epoch);
}

void lane_set_key(struct lane *lane, const struct lane_key *key)
{
    struct login *old = lane->key.login;
    lane->key = *key;
    login_get(lane->key.login);
    login_put(old);
}

static const struct link_ops link_ops = {
    .on_connected = on_connected,
    .on_data = on_data,
    .on_end = on_end,
    .on_wake = on_wake,
    .on_flush = on_flush,
    .on_drained = on_drained,
    .on_closed = on_closed,
};

struct lane *lane_open(struct lanes *lanes, const struct lane_key *key, enum lane_role role, struct rider *owner,
                       int *error)
{
    *error = UV_ENOMEM;
    struct lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL)
        return NULL;
    lane->lanes = lanes;
    lane->calls.pool = lane->tags.pool = &lanes->loop->pool;
    lane->owner = owner;
    lane->role = (uint8_t)role;
    lane->state = LANE_CONNECTING;
    list_init(&lane->in_list);
    list_init(&lane->waiting);
    *error = node_connect(lanes->node, &lane->link, lanes->loop, &link_ops);
    if (*error != 0) {
        free(lane);
        return NULL;
    }
    assert(owner == NULL || !link_is_closed(rider_link(owner)));
    lane_set_key(lane, key);
    if (owner != NULL)
        owner->lane = lane;
    return lane;
}

/* Of what its last owner did there RESET leaves nothing. */
static void forget_owner(struct lane *lane)
{
    bool was_subscribed = lane_is_subscribed(lane);
    lane->channels = lane->patterns = lane->shard_channels = 0;
    inflight_subscribe(lane, was_subscribed);
    lane->has_name = lane->is_watching = lane->is_monitoring = lane->is_used = false;
    lane->is_suspect = lane->is_unsure = lane->is_asked = lane->is_telling = false;
    lane->answer_by_ns = 0;
}

bool lane_renew(struct lane *lane, const struct lane_key *key, struct rider *owner)
{
    assert(owner == NULL || !link_is_closed(rider_link(owner)));
    login_put(lane->last_login);
    lane->last_login = login_get(lane->key.login);
    lane_set_key(lane, key);
    lane_end_leases(lane);
    lane->owner = owner;
    lane->is_lent = true;
    forget_owner(lane);
    if (owner != NULL)
        owner->lane = lane;
    return greet(lane, GREETING_AGAIN);
}

static void close_quietly(struct lane *lane)
{
    lane->state = LANE_CLOSED;
    lane_end_leases(lane);
    inflight_close(lane);
    lanes_take(lane);
    link_close(&lane->link);
}

void lane_close(struct lane *lane)
{
    if (!lane_is_closed(lane))
        close_quietly(lane);
}

static void tell_owner(struct lane *lane, struct slice reply, bool may_ask_again)
{
    struct rider *owner = lane->owner;
    if (owner == NULL)
        return;
    owner->lane = NULL;
    /* Who never used it has lost nothing, and gets another in place of one that is no fault of Redis'. */
    if (lane->is_used) {
        owner->ops->on_lost(owner);
    } else if (lane->is_lent || may_ask_again) {
        link_wake(rider_link(owner));
    } else {
        owner->ops->on_refused(owner, reply);
        link_wake(rider_link(owner));
    }
}

static void tell_riders(struct lane *lane, bool was_ready, bool may_ask_again, struct slice reply)
{
    for (uint32_t at = lane->calls.head; at != lane->calls.tail; at++) {
        struct rider *rider = calls_at(&lane->calls, at)->rider;
        if (rider != NULL && rider != lane->owner)
            rider->ops->on_lost(rider);
    }
    if (lane->owner != NULL)
        list_take(&lane->owner->waiting);
    if (may_ask_again)
        wake_waiting(lane);
    else
        refuse_waiting(lane, reply);
    tell_owner(lane, reply, may_ask_again && !was_ready);
}

static void fail_with(struct lane *lane, enum lane_end end, const char *why, struct slice reply)
{
    if (lane_is_closed(lane))
        return;
    bool was_ready = lane_is_ready(lane);
    lane->end = (uint8_t)end;
    close_quietly(lane);
    bool may_ask_again = lanes_on_failed(lane->lanes, lane, was_ready, why);
    tell_riders(lane, was_ready, may_ask_again, reply);
}

void lane_fail(struct lane *lane, enum lane_end end, const char *why)
{
    fail_with(lane, end, why, slice_of("", 0));
}

/* ---- requests ---- */

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
/* What is sent on a lane is its owner's, or of somebody who may share it: held against what our own code has done. */
static void audit(const struct lane *lane, const struct rider *rider)
{
    bool is_shared = lane->role == LANE_SHARED;
    assert(lane_is_ready(lane));
    assert(is_shared ? lane->owner == NULL : lane->owner == rider && rider->lane == lane);
    assert(is_shared ? lane->in == LIST_SHARED || rider->in_flight > 0 : lane->in != LIST_IDLE);
    assert(is_shared ? !lane_is_subscribed(lane) : true);
    assert(!is_shared || !(lane->is_watching || lane->is_suspect || lane->is_spent));
    if (rider->ops->audit != NULL)
        rider->ops->audit(rider, lane);
}
#else
static inline void audit(const struct lane *lane, const struct rider *rider)
{
    (void)lane;
    (void)rider;
}
#endif

static struct call *push(struct lane *lane, struct rider *rider, uint32_t tag)
{
    if (!tags_push(&lane->tags, tag))
        return NULL;
    struct call *call = calls_push(&lane->calls);
    if (call == NULL) {
        tags_drop_newest(&lane->tags);
        return NULL;
    }
    if (lane->calls.tail - lane->calls.head == 1)
        lane->moved_ns = lane->lanes->loop->now_ns;
    call->rider = rider;
    call->arrived_ns = rider->arrived_ns;
    call->waited_us = rider->waited_us;
    rider->lane = lane;
    rider->in_flight++;
    rider->last_call = lane->calls.tail - 1;
    return call;
}

bool lane_call_apart(struct lane *lane, struct rider *rider, uint32_t tag)
{
    struct call *call = push(lane, rider, tag);
    if (call == NULL)
        return false;
    call->n = 1;
    return true;
}

struct call *lane_call_special(struct lane *lane, struct rider *rider, uint8_t flow, uint32_t replies, uint32_t tag)
{
    struct call *call = push(lane, rider, tag);
    if (call == NULL)
        return NULL;
    call->flow = flow;
    call->n = replies;
    if (flow != FLOW_ONE)
        lane->is_watching = true; /* frames that answer no call may come */
    return call;
}

void lane_send(struct lane *lane, const struct rider *rider, const char *data, size_t n)
{
    if (lane_is_closed(lane))
        return;
    audit(lane, rider);
    lane->is_used = true;
    write_to(lane, data, n);
}

void lane_gather(struct lane *lane, const struct rider *rider, const char *data, size_t n)
{
    struct outbox *outbox = &lane->lanes->outbox;
    if (n == 0 || lane_is_closed(lane))
        return;
    audit(lane, rider);
    lane->is_used = true;
    if (outbox->lane == lane && outbox->at + outbox->len == data) {
        outbox->len += n;
        return;
    }
    lanes_flush(lane->lanes);
    *outbox = (struct outbox){lane, data, n};
}

bool lane_vouch(struct lane *lane, struct rider *rider)
{
    char request[NONCE_REQUEST_ROOM];
    if (!lane->is_suspect)
        return true;
    assert(!lane->is_asked);
    struct call *call = nonce_draw(&lane->nonce) ? lane_call_special(lane, rider, FLOW_ONE, 1, 0) : NULL;
    if (call == NULL)
        return false;
    call->flags = CALL_MUTE | CALL_NONCE;
    call->arrived_ns = 0;
    lane->is_asked = true;
    lane->is_suspect = false;
    timers_sweep(lane->lanes);
    lane_send(lane, rider, request, nonce_request(&lane->nonce, request));
    return true;
}

void lane_send_more(struct rider *rider, const char *data, size_t n, bool is_last)
{
    lane_send(rider->lane, rider, data, n);
    rider->lane->moved_ns = rider->lane->lanes->loop->now_ns;
    rider->is_sending = !is_last;
}

void lane_withdraw(struct rider *rider)
{
    struct calls *calls = &rider->lane->calls;
    struct call *newest = calls_at(calls, calls->tail - 1);
    assert(newest->rider == rider && (newest->flags & CALL_ENDS_RUN) == 0);
    tags_drop_newest(&rider->lane->tags);
    inflight_end(rider->lane, newest, 1);
    if (newest->flow == FLOW_ONE && newest->n > 1) {
        newest->n--; /* equal ones before it */
        return;
    }
    if (newest->counted != 0)
        rider->ops->on_counted(rider, newest->counted);
    calls_drop_newest(calls);
    rider->in_flight--;
    rider->last_call = calls->tail - 1;
}

bool lane_end_run(const struct rider *rider)
{
    struct lane *lane = rider->lane;
    bool was_said;
    if (rider->in_flight > 0) {
        struct call *newest = calls_at(&lane->calls, rider->last_call);
        was_said = (newest->flags & CALL_ENDS_RUN) != 0;
        newest->flags |= CALL_ENDS_RUN;
    } else {
        was_said = lane->ends_run;
        lane->ends_run = true;
    }
    return !was_said;
}

void lane_set_raw(struct lane *lane)
{
    lane->is_raw = true;
    lane->is_in_frame = false;
}

void lane_wait(struct lane *lane, struct rider *rider)
{
    if (list_is_empty(&rider->waiting))
        list_push(&lane->waiting, &rider->waiting);
}

bool lane_is_clean(const struct lane *lane)
{
    return lane_is_ready(lane) && calls_is_empty(&lane->calls) && !lane_is_subscribed(lane) && !lane->is_monitoring &&
           !lane->is_raw && !lane->is_in_frame;
}

/* Is it the owner whom the oldest call waits for? */
static bool is_incomplete(const struct lane *lane)
{
    return lane->owner != NULL && lane->owner->is_sending && lane->calls.tail - lane->calls.head == 1 &&
           !lane_is_congested(lane);
}

bool lane_is_hung(const struct lane *lane, uint64_t since_ns)
{
    bool is_owing = lane->is_in_frame ||
                    (!calls_is_empty(&lane->calls) && (calls_oldest(&lane->calls)->flags & CALL_MAY_WAIT) == 0);
    return lane_is_ready(lane) && is_owing && lane->stalled == NULL && !lane->link.is_paused && !is_incomplete(lane) &&
           lane->moved_ns < since_ns;
}

bool lane_may_wait(const struct lane *lane)
{
    for (uint32_t at = lane->calls.head; at != lane->calls.tail; at++)
        if ((calls_at(&lane->calls, at)->flags & CALL_MAY_WAIT) != 0)
            return true;
    return false;
}

bool lane_has_others_waiting(const struct lane *lane)
{
    for (uint32_t at = lane->calls.head; at != lane->calls.tail; at++) {
        const struct rider *rider = calls_at(&lane->calls, at)->rider;
        if (rider != NULL && rider != calls_oldest(&lane->calls)->rider)
            return true;
    }
    return false;
}

void lane_forget(struct lane *lane, struct rider *rider)
{
    list_take(&rider->waiting);
    if (lane_is_closed(lane))
        return;
    lane_catch_up(rider);
    if (lane->owner == rider) {
        close_quietly(lane);
        return;
    }
    for (uint32_t at = lane->calls.head; at != lane->calls.tail; at++) {
        struct call *call = calls_at(&lane->calls, at);
        if (call->rider == rider)
            call->rider = NULL;
    }
    rider->in_flight = 0;
}
