#include "front/client/binding.h"

#include "base/err.h"
#include "front/client/session.h"
#include "front/cluster/gather.h"
#include "front/client/meter.h"
#include "front/route/fair_share.h"
#include "front/front.h"
#include "front/client/timeouts.h"
#include "front/client/unbound.h"

/* for this long after an outage a connection of a known address is not charged to `connects` */
#define AGAIN_NS (10 * NS_PER_S)

/*
 * Turns away a client that is one connection too many. The client gets an error, and leaves.
 * Replies that are being gathered are dropped. A client in its handshake is closed without an
 * error.
 */
static void binding_turn_away(struct client *client, enum rejection why)
{
    if (client_is_closed(client))
        return;
    count_add(&client->front->counts.listeners[client_listen_address(client)->index].rejected[why],
              1);
    if (client_is_shaking(client)) {
        client_close_for(client, CLOSED_LIMIT);
        return;
    }
    gather_drop(client);
    client_answer(client, err_text(ERR_MAX_CLIENTS));
    client_leave_for(client, CLOSED_LIMIT);
}

static bool counts_connections(const struct policy *policy)
{
    return policy != NULL &&
           (policy->of_unit[UNIT_CONNECTIONS] | policy->of_unit[UNIT_CONNECTS]) != 0;
}

/*
 * True if a term of the client's policy holds for its address, its listener or its TLS name. Limits
 * on connects are then charged at accept. A variant (limit/policy/variant.h) has no terms, so the
 * terms of its policy count.
 */
static bool binding_is_named(const struct client *client)
{
    const struct policy *policy = policies_at(client->front->rules->policies, client->bound->index);
    const struct facts facts = facts_on_arrival(client);
    return policy->policy_state == client->bound->policy_state && policy_matches(policy, &facts);
}

/*
 * The policy that matches these facts, or its variant for the subject of this name. NULL:
 * unlimited.
 */
static const struct policy *find_policy(const struct client *client, const struct facts *facts,
                                        struct slice name)
{
    const struct rules *rules = client->front->rules;
    if (client_listen_address(client)->is_admin)
        return NULL;
    return exceptions_bind(rules->exceptions, policies_match(rules->policies, facts), name);
}

/* Allocates the memory that limits of the policy need for one connection. False: out of memory. */
static bool binding_prepare(struct client *client, const struct policy *policy)
{
    return meter_make_funnels(client, policy) &&
           (!counts_connections(policy) || meter_make(client) != NULL);
}

/*
 * Sets the client's policy and subject by the present facts. The caller keeps its reference to the
 * old subject. False: out of memory, and nothing has changed.
 */
static bool find_subject(struct client *client)
{
    struct front *front = client->front;
    const struct rules *rules = front->rules;
    struct facts facts = facts_of(client);
    char name[SUBJECT_NAME_MAX];
    size_t len = identity_subject(&rules->identity, &facts, name);
    const struct policy *policy = find_policy(client, &facts, slice_of(name, len));
    struct policy_state *policy_state =
        policy != NULL ? policy->policy_state : front->settings->unlimited;
    bool is_keyed =
        !client_listen_address(client)->is_admin &&
        (identity_needs_key(&rules->identity, &facts) || policies_match_keys(rules->policies));
    struct subject *subject = subject_get(front->settings->subjects, policy_state,
                                          slice_of(name, len), front->loop->now_ns);
    policy = exceptions_bind_on(policy, subject);
    if (!binding_prepare(client, policy)) {
        subject_put(front->settings->subjects, subject);
        return false;
    }
    const struct subject *old = client->subject;
    bool is_same = old != NULL && client->bound == policy;
    client->bound = policy;
    client->subject = subject;
    if (client->subject != old)
        meter_forget_positions(client);
    if (!is_same || client->subject != old)
        fair_share_leave(client);
    client->generation = front->generation;
    client->is_keyed = is_keyed;
    return true;
}

/* Ends the charges of the connection and of its calls in flight. */
static void detach(struct client *client, const struct charge_target *target)
{
    struct meter *meter = client->meter;
    if (meter == NULL || target->policy == NULL)
        return;
    gate_disconnect(target, meter->connected);
    gate_calls_end(target, meter->counted, meter->counted_shadow);
    meter->connected = 0;
}

static void attach_calls(struct client *client, const struct charge_target *target)
{
    if (client->meter != NULL && target->policy != NULL)
        gate_calls_begin(target, client->meter->counted, client->meter->counted_shadow);
}

enum step {
    STEP_ARRIVES, /* the address or the TLS name has become known */
    STEP_CHANGES, /* the user or the name has changed, or RESET was called */
    STEP_BINDS,
};

/*
 * Returns the units (connections, connects) to charge to the client's present policy, as a set for
 * gate_connect.
 */
static unsigned units_due(const struct client *client, enum step step, bool is_same)
{
    const unsigned connects = 1U << UNIT_CONNECTS, connections = 1U << UNIT_CONNECTIONS;
    const struct unbound *unbound = client->unbound;
    if (!counts_connections(client->bound))
        return 0;
    if (unbound == NULL)
        return is_same ? 0 : connects | connections;
    unsigned unpaid = unbound->has_paid ? 0 : connects;
    if (step == STEP_BINDS)
        return unpaid | connections;
    return step == STEP_ARRIVES && binding_is_named(client) ? unpaid : 0;
}

/*
 * True if weir has closed a connection of the client's address for an outage, and the client's
 * connection replaces the closed one.
 */
static bool is_excused(const struct client *client)
{
    const struct front *front = client->front;
    struct unbound *unbound = client->unbound;
    const struct upstream *upstream = front->nodes.worker_lanes.upstream;
    if (unbound != NULL && !unbound->is_excused)
        unbound->is_excused =
            reconnects_take(front->settings->reconnects, &client->link.peer.ip, front->loop->now_ns,
                            upstream_time(upstream, AGAIN_NS),
                            atomic_load_explicit(&upstream->away_ns, memory_order_relaxed));
    return unbound != NULL && unbound->is_excused;
}

void binding_note_outage(const struct client *client)
{
    const struct unbound *unbound = client->unbound;
    if (unbound == NULL || unbound->has_paid || unbound->is_excused)
        reconnects_note(client->front->settings->reconnects, &client->link.peer.ip,
                        client->front->loop->now_ns);
}

/* Charges these units of connections. False: the client is one connection too many. */
static bool charge_connection(struct client *client, const struct charge_target *target,
                              unsigned units)
{
    const unsigned connects = 1U << UNIT_CONNECTS;
    struct front *front = client->front;
    struct verdict verdict = {0};
    if ((units & connects) != 0 && target->policy->of_unit[UNIT_CONNECTS] != 0 &&
        is_excused(client))
        units &= ~connects;
    bool is_welcome = gate_connect(target, units, front->loop->now_ns, front->limit_counters,
                                   &verdict) == GATE_PASS;
    if ((units & 1U << UNIT_CONNECTIONS) != 0)
        client->meter->connected = verdict.counted;
    if (client->unbound != NULL)
        client->unbound->has_paid |= is_welcome && (units & 1U << UNIT_CONNECTS) != 0;
    if (!is_welcome || verdict.is_shadowed)
        front_note_stopped(front, target, verdict.limit,
                           is_welcome ? OFFENDER_SHADOWED : OFFENDER_REFUSED);
    return is_welcome;
}

/*
 * Finds the client's policy and subject by the present facts, and charges the units of this step.
 * False: there is one connection too many. Also false if memory is out; the client is then closed.
 */
static bool identify(struct client *client, enum step step)
{
    struct front *front = client->front;
    struct subject *old = client->subject;
    struct charge_target before = {0};
    client_tell_top(client);
    if (old != NULL)
        before = payer_of(client);
    const struct policy *old_policy = client->bound;
    if (!find_subject(client)) {
        client_close_starved(client);
        return false;
    }
    bool is_same = old != NULL && client->subject == old && client->bound == old_policy;
    const struct charge_target now = payer_of(client);
    if (!is_same)
        detach(client, &before);
    if (!is_same && client->unbound != NULL)
        client->unbound->has_paid = false;
    unsigned units = units_due(client, step, is_same);
    bool is_welcome = units == 0 || charge_connection(client, &now, units);
    if (!is_same)
        attach_calls(client, &now);
    if (old != NULL)
        subject_put(front->settings->subjects, old);
    if (step == STEP_BINDS && is_welcome)
        unbound_end(client);
    return is_welcome;
}

static bool take_step(struct client *client, enum step step)
{
    if (client_has_old_rules(client) && !binding_renew(client))
        return false;
    if (identify(client, step))
        return true;
    binding_turn_away(client, REJECTED_RATE);
    return false;
}

bool binding_enter(struct client *client)
{
    if (client_listen_address(client)->is_admin)
        return true;
    if (!unbound_begin(client)) {
        binding_turn_away(client, REJECTED_UNAUTHENTICATED);
        return false;
    }
    timeouts_begin_unbound(client);
    return true;
}

bool binding_move(struct client *client)
{
    if (client_has_old_rules(client) && !binding_renew(client))
        return false;
    if (unbound_move(client))
        return true;
    binding_turn_away(client, REJECTED_UNAUTHENTICATED);
    return false;
}

bool binding_arrive(struct client *client)
{
    return take_step(client, STEP_ARRIVES);
}

bool binding_change(struct client *client)
{
    return take_step(client, STEP_CHANGES);
}

bool binding_bind(struct client *client)
{
    return take_step(client, STEP_BINDS);
}

bool binding_unbind(struct client *client)
{
    if (client_has_old_rules(client) && !binding_renew(client))
        return false;
    return (client->unbound != NULL || binding_enter(client)) && binding_change(client);
}

/* Ends all charges of the connection, and releases the keyed subject. */
static void binding_let_go(struct client *client)
{
    client_tell_top(client);
    struct charge_target before = payer_of(client);
    detach(client, &before);
    /* a waiting command has positions in queues of the keyed subject */
    if (!meter_is_waiting(client))
        payer_let_keyed_go(client);
}

/* Counts the connection for the charge target that binds it now. The gate cannot refuse it. */
static void attach_connection(struct client *client, const struct charge_target *target)
{
    if (client->unbound == NULL && target->policy != NULL &&
        target->policy->of_unit[UNIT_CONNECTIONS] != 0)
        client->meter->connected = gate_reconnect(target);
}

bool binding_renew(struct client *client)
{
    struct subject *old = client->subject;
    unbound_release(client);
    if (old != NULL)
        binding_let_go(client);
    client->generation = client->front->generation;
    client->silent_looks = 0; /* the new idle-timeout sets the time between checks for silence */
    unbound_retake(client);
    if (old == NULL)
        return true; /* the PROXY header is not complete */
    if (!find_subject(client)) {
        client->bound = NULL;
        client_close_starved(client);
        return false;
    }
    if (client->unbound != NULL && client->subject != old)
        client->unbound->has_paid = false;
    meter_settle(client, client->front->rules->policies);
    struct charge_target now = payer_of(client);
    attach_connection(client, &now);
    attach_calls(client, &now);
    subject_put(client->front->settings->subjects, old);
    meter_ring(client);
    return true;
}

/*
 * Moves a client that shares the overflow subject to its own subject, once there is room. The
 * subject may exist already, for another connection of the same party. Without the move the party
 * could spend from both subjects. The charges of the connection and its calls move along without
 * asking the gate.
 */
void binding_leave_overflow(struct client *client)
{
    struct front *front = client->front;
    struct subject *shared = client->subject;
    struct facts facts = facts_of(client);
    char name[SUBJECT_NAME_MAX];
    size_t len = identity_subject(&front->rules->identity, &facts, name);
    struct subject *own = subject_try_get(front->settings->subjects, shared->policy_state,
                                          slice_of(name, len), front->loop->now_ns);
    if (own == NULL)
        return;
    const struct policy *policy = find_policy(client, &facts, slice_of(name, len));
    if (!binding_prepare(client, policy)) {
        subject_put(front->settings->subjects, own);
        return;
    }
    client_tell_top(client);
    const struct charge_target before = payer_of(client);
    detach(client, &before);
    fair_share_leave(client);
    client->bound = policy;
    client->subject = own;
    const struct charge_target now = payer_of(client);
    attach_connection(client, &now);
    attach_calls(client, &now);
    subject_put(front->settings->subjects, shared);
}

void binding_leave(struct client *client)
{
    unbound_end(client);
    if (client->subject == NULL) {
        meter_free(client); /* the client's address was never known */
        return;
    }
    meter_leave_queue(client);
    fair_share_leave(client);
    binding_let_go(client);
    payer_let_keyed_go(client);
    subject_put(client->front->settings->subjects, client->subject);
    client->subject = NULL;
    client->bound = NULL; /* calls still in flight are charged to no limit */
    client->is_keyed = false;
    meter_free(client);
}
