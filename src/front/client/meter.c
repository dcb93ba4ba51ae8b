#include "front/client/meter.h"

#include <stdlib.h>

#include "front/client/session.h"
#include "limit/command/keys.h"

#define METER_ALARMS 3

/* The delay of the next command is over. */
static void on_position_due(struct alarm *delay)
{
    client_resume(container_of(delay, struct meter, delay)->client, WAIT_DELAY);
}

/* Returns the present due time. Positions in queues may have moved back since the alarm was set. */
static uint64_t position_by_now(struct alarm *delay)
{
    return gate_positions_due(&container_of(delay, struct meter, delay)->positions);
}

/* The debt of request bytes no longer stops reading. */
static void on_paid_in(struct alarm *payment)
{
    client_resume(container_of(payment, struct meter, payments[0])->client, WAIT_BYTES);
}

static void on_paid_out(struct alarm *payment)
{
    link_wake(&container_of(payment, struct meter, payments[1])->client->link);
}

struct meter *meter_make(struct client *client)
{
    if (client->meter != NULL)
        return client->meter;
    struct meter *meter = calloc(1, sizeof *meter);
    if (meter == NULL || !alarms_reserve(&client->front->alarms, METER_ALARMS)) {
        free(meter);
        return NULL;
    }
    meter->delay.on_due = on_position_due;
    meter->delay.due_by_now = position_by_now;
    meter->payments[0].on_due = on_paid_in;
    meter->payments[1].on_due = on_paid_out;
    meter->client = client;
    client->meter = meter;
    return meter;
}

struct meter *meter_need(struct client *client)
{
    struct meter *meter = meter_make(client);
    if (meter == NULL)
        client_close_starved(client);
    return meter;
}

void meter_free(struct client *client)
{
    struct meter *meter = client->meter;
    client->meter = NULL;
    if (meter == NULL)
        return;
    alarm_stop(&client->front->alarms, &meter->delay);
    for (int i = 0; i < 2; i++)
        alarm_stop(&client->front->alarms, &meter->payments[i]);
    alarms_release(&client->front->alarms, METER_ALARMS);
    while (meter->owns != NULL) {
        struct subject *own = meter->owns;
        meter->owns = own->next;
        subject_free_detached(own);
    }
    free(meter);
}

/* ---- the connection's own funnels ---- */

/* True if the policy has limits `per connection`. */
static bool meter_has_funnels(const struct policy *policy)
{
    return policy != NULL && policy->of_scope[PER_CONNECTION] != 0;
}

/* The connection's own funnels under this policy. NULL: the funnels have not been made yet. */
static struct subject *meter_funnels(const struct client *client, const struct policy *policy)
{
    struct subject *own = client->meter != NULL ? client->meter->owns : NULL;
    while (own != NULL && own->policy_state != policy->policy_state)
        own = own->next;
    return own;
}

bool meter_make_funnels(struct client *client, const struct policy *policy)
{
    if (!meter_has_funnels(policy))
        return true;
    struct subject *own = meter_funnels(client, policy);
    if (own != NULL)
        return subject_grow(own);
    own = meter_make(client) != NULL ? subject_new_detached(policy->policy_state, PER_CONNECTION)
                                     : NULL;
    if (own == NULL)
        return false;
    own->next = client->meter->owns;
    client->meter->owns = own;
    return true;
}

static const struct policy *meter_policy_of(const struct policies *policies,
                                            const struct policy_state *policy_state)
{
    for (size_t i = 0; i < policies_count(policies); i++)
        if (policies_at(policies, i)->policy_state == policy_state)
            return policies_at(policies, i);
    return NULL;
}

void meter_settle(struct client *client, const struct policies *policies)
{
    struct subject *own = client->meter != NULL ? client->meter->owns : NULL;
    for (; own != NULL; own = own->next) {
        bool is_bound = client->bound != NULL && client->bound->policy_state == own->policy_state;
        const struct policy *policy =
            is_bound ? client->bound : meter_policy_of(policies, own->policy_state);
        if (policy != NULL)
            gate_settle_holder(policy, own, PER_CONNECTION, client->front->loop->now_ns);
    }
}

/* ---- waiting in queues ---- */

void meter_ring(struct client *client)
{
    struct meter *meter = client->meter;
    struct alarms *alarms = &client->front->alarms;
    if (meter == NULL)
        return;
    struct alarm *set[] = {&meter->delay, &meter->payments[0], &meter->payments[1]};
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++) {
        if (alarm_is_set(set[i]))
            set[i]->on_due(set[i]);
        alarm_stop(alarms, set[i]);
    }
}

bool meter_is_waiting(const struct client *client)
{
    return client->meter != NULL && client->meter->headed_ns != 0;
}

void meter_forget_positions(struct client *client)
{
    if (client->meter != NULL)
        gate_forget_positions(&client->meter->positions);
}

void meter_drop_positions(struct client *client)
{
    if (client->meter != NULL)
        client->meter->positions.n = 0;
}

void meter_leave_queue(struct client *client)
{
    if (client->meter != NULL)
        gate_leave(&client->meter->positions, client->front->limit_counters);
    meter_drop_positions(client);
}

/* ---- which funnels are charged ---- */

static struct charge_target meter_charge(const struct client *client, const struct policy *policy,
                                         struct subject *subject)
{
    struct charge_target target = {policy, {subject, NULL, NULL}};
    if (meter_has_funnels(policy))
        target.holders[PER_CONNECTION] = meter_funnels(client, policy);
    if (policy != NULL && policy->of_scope[PER_POLICY] != 0)
        target.holders[PER_POLICY] = policy->policy_state->everybody;
    return target;
}

struct charge_target payer_of(struct client *client)
{
    return meter_charge(client, client->bound, client->subject);
}

void payer_let_keyed_go(struct client *client)
{
    if (client->meter == NULL || client->meter->keyed == NULL)
        return;
    meter_forget_positions(client);
    subject_put(client->front->settings->key_subjects, client->meter->keyed);
    client->meter->keyed = NULL;
}

/*
 * True if meter.keyed is the subject of this name. True also if a command waits in the queue of the
 * overflow subject: its position there is charged already, so the command keeps that subject.
 */
static bool is_held_for(const struct client *client, const struct policy *policy, struct slice name)
{
    const struct subject *keyed = client->meter->keyed;
    if (keyed == NULL || keyed->policy_state != policy->policy_state)
        return false;
    return slice_eq(subject_name(keyed), name) ||
           (meter_is_waiting(client) && subject_is_overflow(keyed));
}

/*
 * The charge target that the key names. In most cases the meter holds the subject already. Out of
 * memory closes the client.
 */
static struct charge_target target_by_key(struct client *client, struct slice key)
{
    struct front *front = client->front;
    struct facts facts = facts_of(client);
    char name[SUBJECT_NAME_MAX];
    facts.key = key;
    const struct rules *rules = front->rules;
    const struct policy *policy = policies_match(rules->policies, &facts);
    bool is_named = identity_needs_key(&rules->identity, &facts);
    struct slice subject = slice_of(name, 0);
    if (rules->exceptions != NULL) {
        subject.len = identity_subject(&rules->identity, &facts, name);
        policy = exceptions_policy(rules->exceptions, policy, subject);
    }
    if (policy == NULL)
        return (struct charge_target){0};
    if (!is_named && policy == client->bound)
        return payer_of(client);
    struct meter *meter = meter_make(client);
    if (meter == NULL) {
        client_close_starved(client);
        return (struct charge_target){0};
    }
    if (subject.len == 0)
        subject.len = identity_subject(&rules->identity, &facts, name);
    if (!is_held_for(client, policy, subject)) {
        payer_let_keyed_go(client);
        meter->keyed = subject_get(front->settings->key_subjects, policy->policy_state, subject,
                                   front->loop->now_ns);
    }
    policy = exceptions_bind_on(policy, meter->keyed);
    if (!meter_make_funnels(client, policy)) {
        client_close_starved(client);
        return (struct charge_target){0};
    }
    return meter_charge(client, policy, meter->keyed);
}

struct charge_target payer_for(struct client *client, const struct request *request)
{
    struct slice key;
    if (client->is_keyed && keys_first(request->command, request->bytes, request->argc, &key))
        return target_by_key(client, key);
    return payer_of(client);
}

bool payer_is_hidden(const struct client *client, const struct request *request)
{
    return client->is_keyed && request->is_large &&
           keys_are_hidden(request->command, request->bytes, request->argc);
}
