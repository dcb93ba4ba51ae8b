#include "front/client/remains.h"

#include <stdlib.h>

#include "front/client/meter.h"
#include "limit/gate.h"

struct remains {
    struct list in_front;       /* in front.remains */
    struct lane_user lane_user; /* the lane user of the calls */
    /* a link without a socket; woken when the last call is answered or the lane is closed */
    struct link link;
    struct front *front;
    struct node *node;           /* the node of the lane; one reference */
    struct rules *rules;         /* the rules of `policy`; one reference */
    const struct policy *policy; /* policy with the limits that are charged; NULL: none */
    struct subject *subject;     /* pays for the calls; one reference */
    uint64_t counted;            /* calls in flight that limits count */
    uint64_t counted_shadow;     /* calls in flight that limits in shadow mode count */
    uint64_t n_unanswered;       /* requests that remains_on_timed has not reported yet */
    uint64_t left_bytes;         /* bytes that this struct has added to the node's left bytes */
};

static struct remains *remains_of(struct lane_user *lane_user)
{
    return container_of(lane_user, struct remains, lane_user);
}

/* ---- the charge target ---- */

/*
 * The charge target. Funnels `per connection` are not part of it, because they ended with the
 * connection.
 */
static struct charge_target remains_charge_target_of(const struct remains *remains)
{
    struct charge_target target = {remains->policy, {[PER_SUBJECT] = remains->subject}};
    if (remains->policy != NULL && remains->policy->of_scope[PER_POLICY] != 0)
        target.holders[PER_POLICY] = remains->policy->policy_state->everybody;
    return target;
}

static void count_calls(const struct remains *remains, bool is_begun)
{
    const struct charge_target target = remains_charge_target_of(remains);
    if (target.policy == NULL)
        return;
    if (is_begun)
        gate_calls_begin(&target, remains->counted, remains->counted_shadow);
    else
        gate_calls_end(&target, remains->counted, remains->counted_shadow);
}

/* The policy with the same counters in the present rules. NULL: none, or out of memory. */
static const struct policy *successor(const struct remains *remains)
{
    const struct rules *rules = remains->front->rules;
    const struct policy_state *policy_state = remains->policy->policy_state;
    const struct policy *policy =
        policies_find(rules->policies, slice_of(policy_state->name, policy_state->name_len));
    policy = exceptions_bind(rules->exceptions, policy, subject_name(remains->subject));
    return policy != NULL && policy->policy_state == policy_state && subject_grow(remains->subject)
               ? policy
               : NULL;
}

/* Moves the remains to the present rules: later bytes are charged at the present rates. */
static void keep_up(struct remains *remains)
{
    struct rules *rules = remains->front->rules;
    if (remains->rules == rules)
        return;
    if (remains->policy != NULL) {
        count_calls(remains, false);
        remains->policy = successor(remains);
        count_calls(remains, true);
    }
    rules_get(rules);
    rules_put(remains->rules);
    remains->rules = rules;
}

/* ---- how much is left ---- */

/*
 * Estimates the bytes that Redis has yet to send: REMAINS_CALL_BYTES for each unanswered request.
 * If a reply is being read and lacks more bytes than REMAINS_CALL_BYTES, the missing bytes count
 * too.
 */
static uint64_t bytes_left(const struct remains *remains)
{
    const struct lane *lane = remains->lane_user.lane;
    uint64_t missing = lane != NULL && lane_is_in_frame(lane) ? lane->scan.bulk_left : 0;
    return remains->n_unanswered * REMAINS_CALL_BYTES +
           (missing > REMAINS_CALL_BYTES ? missing : 0);
}

static void note_left(struct remains *remains, uint64_t bytes)
{
    if (bytes == remains->left_bytes)
        return;
    node_add_left(remains->node, bytes - remains->left_bytes);
    remains->left_bytes = bytes;
}

/* ---- from the lane ---- */

static void remains_on_bytes(struct lane_user *lane_user, const char *data, size_t n)
{
    struct remains *remains = remains_of(lane_user);
    struct front *front = remains->front;
    (void)data;
    keep_up(remains);
    note_left(remains, bytes_left(remains));
    const struct charge_target target = remains_charge_target_of(remains);
    if (target.policy != NULL)
        gate_owe_bytes(&target, UNIT_BYTES_OUT, n, lane_user->counted, front->loop->now_ns,
                       front->limit_counters);
}

static void remains_on_unheard(struct lane_user *lane_user, size_t n)
{
    remains_on_bytes(lane_user, NULL, n);
}

static void remains_on_counted(struct lane_user *lane_user, uint8_t counted)
{
    struct remains *remains = remains_of(lane_user);
    bool is_counted = (counted & COUNTED) != 0 && remains->counted > 0;
    bool is_shadow = (counted & COUNTED_SHADOW) != 0 && remains->counted_shadow > 0;
    keep_up(remains);
    const struct charge_target target = remains_charge_target_of(remains);
    remains->counted -= is_counted;
    remains->counted_shadow -= is_shadow;
    if (target.policy != NULL)
        gate_calls_end(&target, is_counted, is_shadow);
}

static void remains_on_timed(struct lane_user *lane_user, const struct call *call, uint32_t n)
{
    struct remains *remains = remains_of(lane_user);
    (void)call;
    remains->n_unanswered -= n < remains->n_unanswered ? n : remains->n_unanswered;
    note_left(remains, bytes_left(remains));
}

/* Called for each call on the lost lane. */
static void remains_on_lost(struct lane_user *lane_user, const struct lane *lane)
{
    (void)lane;
    lane_user->lane = NULL;
    link_wake(&remains_of(lane_user)->link);
}

static void remains_on_answer(struct lane_user *lane_user, const struct call *call,
                              const struct glimpse *reply)
{
    (void)lane_user;
    (void)call;
    (void)reply;
}

static void remains_on_refused(struct lane_user *lane_user, enum lane_end why, struct slice reply)
{
    (void)lane_user;
    (void)why;
    (void)reply;
}

static void remains_on_unread(struct lane_user *lane_user, uint64_t bytes)
{
    (void)lane_user;
    (void)bytes;
}

static void remains_ignore(struct lane_user *lane_user)
{
    (void)lane_user;
}

static const struct lane_user_ops lane_user_ops = {
    .on_bytes = remains_on_bytes,
    .on_unheard = remains_on_unheard,
    .on_run_end = remains_ignore,
    .on_counted = remains_on_counted,
    .on_timed = remains_on_timed,
    .on_answer = remains_on_answer,
    .on_refused = remains_on_refused,
    .on_heavy = remains_ignore,
    .on_blocking = remains_ignore,
    .on_unread = remains_on_unread,
    .on_lost = remains_on_lost,
    .to_link =
        (ptrdiff_t)offsetof(struct remains, link) - (ptrdiff_t)offsetof(struct remains, lane_user),
};

/* ---- from the client's close to the last reply ---- */

static void remains_end(struct remains *remains)
{
    struct front *front = remains->front;
    count_calls(remains, false);
    note_left(remains, 0);
    subject_note_left(remains->subject, -1);
    subject_put(front->settings->subjects, remains->subject);
    rules_put(remains->rules);
    node_put(remains->node);
    list_take(&remains->in_front);
    list_take(&remains->link.woken);
    pool_note_less(&front->loop->pool, sizeof *remains);
    free(remains);
}

/* True if the lane is gone, or if the remains neither own the lane nor have calls on it. */
static bool remains_is_over(const struct remains *remains)
{
    const struct lane *lane = remains->lane_user.lane;
    return lane == NULL ||
           (lane->owner != &remains->lane_user && remains->lane_user.in_flight == 0);
}

static void remains_on_wake(struct link *link)
{
    struct remains *remains = container_of(link, struct remains, link);
    if (remains_is_over(remains))
        remains_end(remains);
    else
        remains->lane_user.wants_idle = true;
}

static const struct link_ops link_ops = {.on_wake = remains_on_wake};

/* Counts the requests that remains_on_timed will report. */
static uint64_t count_unanswered(const struct lane *lane, const struct lane_user *lane_user)
{
    uint64_t n = 0;
    for (uint32_t at = lane->calls.head; at != lane->calls.tail; at++) {
        const struct call *call = calls_at(&lane->calls, at);
        if (call->lane_user == lane_user && call->arrived_ns != 0 &&
            (call->flags & CALL_MAY_WAIT) == 0)
            n += call_requests(call);
    }
    return n;
}

/* Moves the counted calls of this lane user from the client's meter. */
static void remains_take_counted(struct remains *remains, struct meter *meter,
                                 const struct lane *lane, const struct lane_user *lane_user)
{
    for (uint32_t at = lane->calls.head; at != lane->calls.tail; at++) {
        const struct call *call = calls_at(&lane->calls, at);
        if (call->lane_user != lane_user)
            continue;
        remains->counted += (call->counted & COUNTED) != 0;
        remains->counted_shadow += (call->counted & COUNTED_SHADOW) != 0;
    }
    meter->counted -= (uint32_t)remains->counted;
    meter->counted_shadow -= (uint32_t)remains->counted_shadow;
}

/* Makes a struct remains for the calls of this lane user. NULL: out of memory. */
static struct remains *remains_make(struct client *client, struct lane *lane,
                                    const struct lane_user *lane_user)
{
    struct front *front = client->front;
    struct meter *meter = client->meter;
    struct remains *remains = calloc(1, sizeof *remains);
    if (remains == NULL)
        return NULL;
    pool_note_more(&front->loop->pool, sizeof *remains);
    remains->front = front;
    remains->node = node_get(lane_node(lane));
    remains->rules = rules_get(client_rules(client));
    remains->policy = client->bound;
    remains->subject = client->subject;
    subject_hold(remains->subject);
    subject_note_left(remains->subject, 1);
    if (meter != NULL && client_extra(client)->spread != NULL) {
        remains_take_counted(remains, meter, lane, lane_user);
    } else if (meter != NULL) {
        remains->counted = meter->counted;
        remains->counted_shadow = meter->counted_shadow;
        meter->counted = meter->counted_shadow = 0;
    }
    remains->lane_user.ops = &lane_user_ops;
    remains->lane_user.wants_idle = true;
    remains->lane_user.is_gone = true;
    list_init(&remains->lane_user.waiting);
    link_init_hollow(&remains->link, front->loop, &link_ops);
    list_push(&front->remains, &remains->in_front);
    remains->n_unanswered = count_unanswered(lane, lane_user);
    return remains;
}

void remains_leave(struct client *client)
{
    remains_leave_lane_user(client, &client->lane_user);
}

void remains_leave_lane_user(struct client *client, struct lane_user *lane_user)
{
    struct lane *lane = lane_user->lane;
    bool is_under_way =
        lane_user->in_flight > 0 || (lane->owner == lane_user && !lane_is_clean(lane));
    bool goes_on = lane_is_ready(lane) && is_under_way && client->subject != NULL;
    struct remains *remains = goes_on ? remains_make(client, lane, lane_user) : NULL;
    if (remains == NULL) {
        lane_forget(lane, lane_user);
        return;
    }
    lane_bequeath(lane, lane_user, &remains->lane_user);
    note_left(remains, bytes_left(remains));
}

void remains_renew(struct front *front)
{
    for (struct list *at = front->remains.next; at != &front->remains; at = at->next)
        keep_up(container_of(at, struct remains, in_front));
}

void remains_close(struct front *front)
{
    while (!list_is_empty(&front->remains)) {
        struct remains *remains = container_of(front->remains.next, struct remains, in_front);
        if (remains->lane_user.lane != NULL)
            lane_forget(remains->lane_user.lane, &remains->lane_user);
        remains_end(remains);
    }
}
