#include "upstream/lane.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "limit/command.h"
#include "upstream/greeting.h"
#include "upstream/lanes.h"

static struct lane *lane_of(struct link *link)
{
    return container_of(link, struct lane, link);
}

static bool is_closed(const struct lane *lane)
{
    return lane->state == LANE_CLOSED;
}

/* ---- replies: from the oldest call to its rider ---- */

static struct call *oldest(struct lane *lane)
{
    return calls_is_empty(&lane->calls) ? NULL : calls_oldest(&lane->calls);
}

static void finish_oldest(struct lane *lane)
{
    struct call done = *calls_oldest(&lane->calls);
    calls_pop(&lane->calls);
    if (lane->role == LANE_RETIRED && calls_is_empty(&lane->calls))
        lanes_on_emptied(lane->home, lane);
    if (done.rider == NULL)
        return;
    if (--done.rider->in_flight == 0)
        done.rider->sent_bytes = 0;
    if (done.local_bytes > 0)
        done.rider->ops->on_local(done.rider, done.local_bytes);
    if (done.rider->in_flight == 0 && done.rider->wants_idle) {
        done.rider->wants_idle = false;
        link_wake(done.rider->link);
    }
}

static bool may_push(const struct lane *lane)
{
    return lane->owner != NULL && (lane->key.protocol == 3 || lane->is_unsure);
}

static bool is_plain(struct lane *lane)
{
    const struct call *call = oldest(lane);
    return call != NULL && !lane->is_watching && call->flow == FLOW_ONE && call->flags == 0;
}

static void stall(struct lane *lane, struct rider *rider)
{
    if (lane->stalled != NULL)
        return;
    lane->stalled = rider;
    lane->stalled_pending = 0;
    link_pause(&lane->link);
    lanes_on_stalled(lane->home, lane);
}

/*
 * A huge reply has its lane for itself: no new calls go there. When its reader does not keep up, no more of it is read
 * until it has; but where others wait behind it already, a reply of moderate size is taken in for their sake.
 */
static void check_huge(struct lane *lane, struct rider *rider)
{
    if (lane->frame_bytes + lane->scan.bulk_left < LANE_HUGE || link_is_closed(rider->link))
        return;
    if (lane->role == LANE_SHARED) {
        lanes_retire(lane->home, lane);
        rider->ops->on_heavy(rider);
    }
    if (rider->link->is_congested && !lanes_absorb(lane->home, lane, rider))
        stall(lane, rider);
}

static inline void note_progress(struct lane *lane, enum scan_result result, size_t used)
{
    lane->frame_bytes = result == SCAN_FRAME ? 0 : lane->frame_bytes + used;
    lane->is_absorbing &= result != SCAN_FRAME;
    lane->is_unread &= result != SCAN_FRAME;
}

/* As many plain replies of the oldest call as are here, as one piece. Returns where they end; NULL: the lane is gone. */
static const char *take_plain(struct lane *lane, const char *p, const char *end)
{
    const char *start = p;
    struct call *call = calls_oldest(&lane->calls);
    enum scan_result result;
    do {
        size_t used;
        result = reply_scan(&lane->scan, p, (size_t)(end - p), &used);
        bool is_push = result == SCAN_FRAME && lane->scan.kind == '>';
        if (result == SCAN_BAD || (is_push && !may_push(lane))) {
            lane_fail(lane, "it broke the protocol");
            return NULL;
        }
        p += used;
        call->n -= result == SCAN_FRAME && !is_push;
        note_progress(lane, result, used);
    } while (call->n > 0 && p < end);
    lane->is_in_frame = result == SCAN_MORE;

    bool is_answered = call->n == 0;
    struct rider *rider = call->rider;
    if (rider != NULL)
        rider->ops->on_bytes(rider, start, (size_t)(p - start));
    if (is_closed(lane))
        return NULL;
    if (rider != NULL && lane->is_in_frame)
        check_huge(lane, rider);
    if (is_answered)
        finish_oldest(lane);
    return p;
}

/* The words of (un)subscribe confirmations; which of the lane's counts the kind belongs to. */
static const struct confirmation {
    struct slice word;
    size_t count;
} confirmations[] = {
    {{"subscribe", 9}, offsetof(struct lane, channels)},
    {{"unsubscribe", 11}, offsetof(struct lane, channels)},
    {{"psubscribe", 10}, offsetof(struct lane, patterns)},
    {{"punsubscribe", 12}, offsetof(struct lane, patterns)},
    {{"ssubscribe", 10}, offsetof(struct lane, shard_channels)},
    {{"sunsubscribe", 12}, offsetof(struct lane, shard_channels)},
};

static uint32_t *confirmed_count(struct lane *lane, struct slice word)
{
    for (size_t i = 0; i < sizeof confirmations / sizeof confirmations[0]; i++)
        if (slice_eq(word, confirmations[i].word))
            return (uint32_t *)(void *)((char *)lane + confirmations[i].count);
    return NULL;
}

/* A confirmation ends in the number of subscriptions left: channels and patterns together, shard channels apart. */
static void note_confirmation(struct lane *lane, uint32_t *count)
{
    int64_t total = glimpse_last_integer(&lane->glimpse);
    uint32_t others = count == &lane->channels ? lane->patterns : count == &lane->patterns ? lane->channels : 0;
    if (total >= (int64_t)others && total <= UINT32_MAX)
        *count = (uint32_t)total - others;
}

static bool is_message_word(struct slice word)
{
    return slice_eq(word, SLICE("message")) || slice_eq(word, SLICE("pmessage")) || slice_eq(word, SLICE("smessage"));
}

/* Does the frame just ended answer no call? (a message, an invalidation, a MONITOR line) */
static bool is_aside(const struct lane *lane, struct slice word)
{
    if (lane->scan.kind == '>')
        return true;
    if (lane->scan.kind == '*')
        return lane_is_subscribed(lane) && is_message_word(word);
    return lane->scan.kind == '+' && lane->is_monitoring && lane->glimpse.n_head > 1 &&
           (unsigned char)(lane->glimpse.head[1] - '0') <= 9;
}

static void note_reply(struct lane *lane, const struct call *call)
{
    if (glimpse_type(&lane->glimpse) != '+')
        return;
    if (call->flow == FLOW_MONITOR)
        lane->is_monitoring = true;
    if (call->effect == EFFECT_RESET && glimpse_starts(&lane->glimpse, SLICE("+RESET"))) {
        lane->channels = lane->patterns = lane->shard_channels = 0;
        lane->is_monitoring = false;
    }
}

/* Count the frame that has just ended against the oldest call. False: the lane is gone. */
static bool end_frame(struct lane *lane)
{
    struct call *call = oldest(lane);
    bool is_list = lane->scan.kind == '>' || lane->scan.kind == '*';
    struct slice word = is_list ? glimpse_first_bulk(&lane->glimpse) : slice_of(NULL, 0);
    bool confirms = call != NULL && (call->flow == FLOW_SUBSCRIBE || call->flow == FLOW_UNSUBSCRIBE);
    uint32_t *count = confirms ? confirmed_count(lane, word) : NULL;

    if (count != NULL) {
        if (call->n == 0) /* UNSUBSCRIBE of everything: a frame each, and one if there is nothing */
            call->n = *count > 0 ? *count : 1;
        note_confirmation(lane, count);
        call->n--;
    } else if (is_aside(lane, word)) {
        return true;
    } else if (call == NULL) {
        lane_fail(lane, "it sent a reply that nobody waits for");
        return false;
    } else {
        note_reply(lane, call);
        call->n = confirms ? 0 : call->n - 1;
    }

    if (call->n > 0)
        return true;
    if ((call->flags & CALL_LOOK) != 0 && call->rider != NULL)
        call->rider->ops->on_answer(call->rider, call, &lane->glimpse);
    if (is_closed(lane))
        return false;
    finish_oldest(lane);
    return true;
}

/* In RESP2 a message is an array of three or four, in RESP3 a push; PING's answer among them is an array of two. */
static bool may_be_message(const struct lane *lane, struct slice head)
{
    if (head.at[0] == '>')
        return true;
    bool is_resp2 = lane->key.protocol == 2 || lane->is_unsure;
    return head.at[0] == '*' && is_resp2 && lane_is_subscribed(lane) && !(head.len > 1 && head.at[1] == '2');
}

static bool is_unheard(const struct call *call, char type)
{
    bool is_error = type == '-';
    return (call->flags & CALL_MUTE) != 0 || ((call->flags & CALL_MUTE_UNLESS_ERROR) != 0 && !is_error) ||
           ((call->flags & CALL_MUTE_ERROR) != 0 && is_error);
}

/* False: nothing may come now. */
static bool begin_frame(struct lane *lane, struct slice head)
{
    char type = head.at[0];
    const struct call *call = oldest(lane);
    bool is_expected = type == '>' ? may_push(lane) : call != NULL || (lane->owner != NULL && lane->is_watching);
    if (!is_expected) {
        lane_fail(lane, "it sent a reply that nobody waits for");
        return false;
    }
    glimpse_reset(&lane->glimpse);
    lane->is_muted = call != NULL && !may_be_message(lane, head) && is_unheard(call, type);
    return true;
}

/* One frame, or the piece of it that is here. As take_plain. */
static const char *take_special(struct lane *lane, const char *p, const char *end)
{
    if (!lane->is_in_frame && !begin_frame(lane, slice_of(p, (size_t)(end - p))))
        return NULL;
    size_t used;
    enum scan_result result = reply_scan(&lane->scan, p, (size_t)(end - p), &used);
    if (result == SCAN_BAD) {
        lane_fail(lane, "it broke the protocol");
        return NULL;
    }
    glimpse_feed(&lane->glimpse, p, used);
    lane->is_in_frame = result == SCAN_MORE;
    note_progress(lane, result, used);
    if (!lane->is_muted) {
        struct rider *rider = lane->owner != NULL ? lane->owner : calls_oldest(&lane->calls)->rider;
        if (rider != NULL)
            rider->ops->on_bytes(rider, p, used);
        if (is_closed(lane))
            return NULL;
        if (rider != NULL && lane->is_in_frame)
            check_huge(lane, rider);
    }
    if (result == SCAN_FRAME && !end_frame(lane))
        return NULL;
    return p + used;
}

/* ---- greeting ---- */

static void wake_waiting(struct lane *lane)
{
    while (!list_is_empty(&lane->waiting)) {
        struct rider *rider = container_of(lane->waiting.next, struct rider, waiting);
        list_take(&rider->waiting);
        link_wake(rider->link);
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
        link_wake(rider->link);
    }
}

static void close_for(struct lane *lane, const char *why, struct slice reply);

static void become_ready(struct lane *lane, bool needs_auth)
{
    lane->state = LANE_READY;
    lanes_on_ready(lane->home, lane, needs_auth);
    wake_waiting(lane);
}

static void refuse_greeting(struct lane *lane, enum greeting_verdict verdict, struct slice reply)
{
    static const char *const why[] = {
        [GREETING_LOGIN_REFUSED] = "it does not accept a user's password any more",
        [GREETING_TURNED_AWAY] = "it turns new connections away",
        [GREETING_REFUSED] = "it refuses what the connection needs",
    };
    if (verdict == GREETING_LOGIN_REFUSED)
        lane->greeting_end = GREETING_LOGIN_ENDED;
    else if (verdict == GREETING_REFUSED)
        lane->greeting_end = GREETING_ANSWERED_NO;
    close_for(lane, why[verdict], verdict == GREETING_REFUSED ? reply : slice_of("", 0));
}

static const char *take_greeting(struct lane *lane, const char *p, const char *end)
{
    size_t used;
    enum scan_result result = reply_scan(&lane->scan, p, (size_t)(end - p), &used);
    if (result == SCAN_BAD) {
        lane_fail(lane, "it does not speak RESP");
        return NULL;
    }
    glimpse_feed(&lane->glimpse, p, used);
    /* An error is repeated to those who wait only if it came whole, as errors do. */
    struct slice reply = slice_of(p, lane->is_in_frame ? 0 : used);
    lane->is_in_frame = result == SCAN_MORE;
    if (result == SCAN_MORE)
        return p + used;
    enum greeting_verdict verdict = greeting_judge(&lane->greeting, &lane->glimpse);
    if (verdict != GREETING_GOOD && verdict != GREETING_NEEDS_AUTH) {
        refuse_greeting(lane, verdict, reply);
        return NULL;
    }
    glimpse_reset(&lane->glimpse);
    if (greeting_is_over(&lane->greeting))
        become_ready(lane, verdict == GREETING_NEEDS_AUTH);
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
        if (lane->state == LANE_GREETING) {
            p = take_greeting(lane, p, end);
        } else if (lane->is_raw) {
            lane->owner->ops->on_bytes(lane->owner, p, (size_t)(end - p));
            return;
        } else {
            if (!lane->is_in_frame)
                lane->is_special = !is_plain(lane);
            p = lane->is_special ? take_special(lane, p, end) : take_plain(lane, p, end);
        }
    }
}

static bool greet(struct lane *lane, bool is_used)
{
    size_t n;
    char *greeting = greeting_new(&lane->key, is_used, &lane->greeting, &n);
    if (greeting == NULL)
        return false;
    lane->state = LANE_GREETING;
    glimpse_reset(&lane->glimpse);
    lanes_on_connected(lane->home, lane);
    link_write(&lane->link, greeting, n);
    explicit_bzero(greeting, n);
    free(greeting);
    return true;
}

static void on_connected(struct link *link, int status)
{
    struct lane *lane = lane_of(link);
    if (status != 0)
        lane_fail(lane, uv_strerror(status));
    else if (!greet(lane, false))
        lane_fail(lane, "out of memory");
}

static void on_end(struct link *link, int status)
{
    lane_fail(lane_of(link), status == UV_EOF ? "it closed the connection" : uv_strerror(status));
}

static void on_drained(struct link *link)
{
    wake_waiting(lane_of(link));
}

static void on_wake(struct link *link)
{
    (void)link;
}

static void on_closed(struct link *link)
{
    struct lane *lane = lane_of(link);
    calls_fini(&lane->calls);
    login_put(lane->key.login);
    free(lane);
}

bool lane_key_eq(const struct lane_key *a, const struct lane_key *b)
{
    return a->protocol == b->protocol && a->database == b->database && login_eq(a->login, b->login);
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
    .on_drained = on_drained,
    .on_closed = on_closed,
};

struct lane *lane_open(struct lanes *home, const struct lane_key *key, enum lane_role role, struct rider *owner)
{
    struct lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL)
        return NULL;
    lane->home = home;
    lane->owner = owner;
    lane->role = (uint8_t)role;
    lane->state = LANE_CONNECTING;
    list_init(&lane->in_home);
    list_init(&lane->waiting);
    if (link_connect(&lane->link, home->loop, RANK_LANE, &home->upstream->endpoint, &link_ops) != 0) {
        free(lane);
        return NULL;
    }
    lane_set_key(lane, key);
    if (owner != NULL)
        owner->lane = lane;
    return lane;
}

bool lane_renew(struct lane *lane, const struct lane_key *key, struct rider *owner)
{
    lane_set_key(lane, key);
    lane->role = LANE_PRIVATE;
    lane->owner = owner;
    lane->has_name = lane->is_watching = lane->is_used = false;
    owner->lane = lane;
    return greet(lane, true);
}

static void close_quietly(struct lane *lane)
{
    lane->state = LANE_CLOSED;
    list_take(&lane->in_home);
    link_close(&lane->link);
}

static void tell_owner(struct lane *lane, struct slice reply)
{
    struct rider *owner = lane->owner;
    if (owner == NULL)
        return;
    owner->lane = NULL;
    /* Who never used it has lost nothing. */
    if (lane->is_used) {
        owner->ops->on_lost(owner);
    } else {
        owner->ops->on_refused(owner, reply);
        link_wake(owner->link);
    }
}

static void tell_riders(struct lane *lane, bool was_ready, struct slice reply)
{
    for (uint32_t at = lane->calls.head; at != lane->calls.tail; at++) {
        struct rider *rider = calls_at(&lane->calls, at)->rider;
        if (rider != NULL && rider != lane->owner)
            rider->ops->on_lost(rider);
    }
    if (was_ready)
        wake_waiting(lane);
    else
        refuse_waiting(lane, reply);
    tell_owner(lane, reply);
}

static void close_for(struct lane *lane, const char *why, struct slice reply)
{
    if (is_closed(lane))
        return;
    bool was_ready = lane_is_ready(lane);
    close_quietly(lane);
    lanes_on_failed(lane->home, lane, was_ready, why);
    tell_riders(lane, was_ready, reply);
}

void lane_fail(struct lane *lane, const char *why)
{
    close_for(lane, why, slice_of("", 0));
}

/* ---- requests ---- */

static struct call *push(struct lane *lane, struct rider *rider)
{
    struct call *call = calls_push(&lane->calls);
    if (call == NULL)
        return NULL;
    if (lane->calls.tail - lane->calls.head == 1)
        lane->moved_ns = lane->home->loop->now_ns;
    call->rider = rider;
    rider->lane = lane;
    rider->in_flight++;
    rider->last_call = lane->calls.tail - 1;
    return call;
}

bool lane_call(struct lane *lane, struct rider *rider)
{
    if (!calls_is_empty(&lane->calls)) {
        struct call *last = calls_at(&lane->calls, lane->calls.tail - 1);
        if (last->rider == rider && last->flow == FLOW_ONE && last->flags == 0 && last->local_bytes == 0 &&
            last->n < UINT32_MAX) {
            last->n++;
            return true;
        }
    }
    struct call *call = push(lane, rider);
    if (call == NULL)
        return false;
    call->n = 1;
    return true;
}

struct call *lane_call_special(struct lane *lane, struct rider *rider, uint8_t flow, uint32_t replies)
{
    struct call *call = push(lane, rider);
    if (call == NULL)
        return NULL;
    call->flow = flow;
    call->n = replies;
    if (flow != FLOW_ONE)
        lane->is_watching = true; /* frames that answer no call may come */
    return call;
}

void lane_send(struct lane *lane, const char *data, size_t n)
{
    lane->is_used = true;
    link_write(&lane->link, data, n);
}

bool lane_has_few_calls(const struct rider *rider, uint32_t few)
{
    if (rider->in_flight != 1)
        return rider->in_flight == 0;
    return calls_at(&rider->lane->calls, rider->last_call)->n <= few;
}

void lane_attach_local(const struct rider *rider, uint32_t bytes)
{
    calls_at(&rider->lane->calls, rider->last_call)->local_bytes += bytes;
}

void lane_set_raw(struct lane *lane)
{
    lane->is_raw = true;
}

void lane_wait(struct lane *lane, struct rider *rider)
{
    if (list_is_empty(&rider->waiting))
        list_push(&lane->waiting, &rider->waiting);
}

void lane_stall(struct lane *lane)
{
    stall(lane, lane->owner);
}

bool lane_is_unread(struct lane *lane, uint64_t now_ns, uint64_t since_ns)
{
    if (lane->stalled == NULL)
        return false;
    size_t pending = link_pending(lane->stalled->link);
    if (pending != lane->stalled_pending) {
        lane->stalled_pending = pending;
        lane->stalled_ns = now_ns;
    }
    return lane->stalled_ns <= since_ns;
}

void lane_catch_up(struct rider *rider)
{
    struct lane *lane = rider->lane;
    if (lane == NULL || lane->stalled != rider)
        return;
    lane->stalled = NULL;
    link_resume(&lane->link);
}

bool lane_is_clean(const struct lane *lane)
{
    return lane_is_ready(lane) && calls_is_empty(&lane->calls) && !lane_is_subscribed(lane) && !lane->is_monitoring &&
           !lane->is_raw && !lane->is_in_frame;
}

bool lane_is_hung(const struct lane *lane, uint64_t since_ns)
{
    return lane_is_ready(lane) && !calls_is_empty(&lane->calls) && lane->stalled == NULL && !lane->link.is_paused &&
           (calls_oldest(&lane->calls)->flags & CALL_MAY_WAIT) == 0 && lane->moved_ns < since_ns;
}

bool lane_may_wait(const struct lane *lane)
{
    for (uint32_t at = lane->calls.head; at != lane->calls.tail; at++)
        if ((calls_at(&lane->calls, at)->flags & CALL_MAY_WAIT) != 0)
            return true;
    return false;
}

void lane_forget(struct lane *lane, struct rider *rider)
{
    list_take(&rider->waiting);
    if (is_closed(lane))
        return;
    lane_catch_up(rider);
    if (lane->owner == rider) {
        close_quietly(lane);
        return;
    }
    for (uint32_t at = lane->calls.head; at != lane->calls.tail; at++) {
        struct call *call = calls_at(&lane->calls, at);
        if (call->rider == rider) {
            call->rider = NULL;
            call->local_bytes = 0;
        }
    }
    rider->in_flight = 0;
}
