#include "front/client/payer.h"

#include "front/client/facts.h"
#include "front/client/meter.h"
#include "limit/command/keys.h"

static struct account charge(const struct client *client, const struct policy *policy, struct subject *subject)
{
    struct account account = {policy, {subject, NULL, NULL}};
    if (meter_has_funnels(policy))
        account.holders[PER_CONNECTION] = meter_funnels(client, policy);
    if (policy != NULL && policy->of_scope[PER_POLICY] != 0)
        account.holders[PER_POLICY] = policy->record->everybody;
    return account;
}

struct account payer_of(struct client *client)
{
    return charge(client, client->bound, client->subject);
}

void payer_let_keyed_go(struct client *client)
{
    if (client->meter == NULL || client->meter->keyed == NULL)
        return;
    meter_forget_places(client);
    subject_put(client->front->settings->key_subjects, client->meter->keyed);
    client->meter->keyed = NULL;
}

/*
 * Is the subject that is held the one of that name? Who waits in the queue of the subject that those without room share
 * stays there until it goes, like any other: its place is there, and paid for.
 */
static bool is_held_for(const struct client *client, const struct policy *policy, struct slice name)
{
    const struct subject *keyed = client->meter->keyed;
    if (keyed == NULL || keyed->record != policy->record)
        return false;
    return slice_eq(subject_name(keyed), name) || (meter_is_waiting(client) && subject_is_overflow(keyed));
}

/* What the key says about whom the command is for: the one held last, mostly. Out of memory it is closed. */
static struct account account_by_key(struct client *client, struct slice key)
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
        return (struct account){0};
    if (!is_named && policy == client->bound)
        return payer_of(client);
    struct meter *meter = meter_make(client);
    if (meter == NULL) {
        client_close_starved(client);
        return (struct account){0};
    }
    if (subject.len == 0)
        subject.len = identity_subject(&rules->identity, &facts, name);
    if (!is_held_for(client, policy, subject)) {
        payer_let_keyed_go(client);
        meter->keyed = subject_get(front->settings->key_subjects, policy->record, subject, front->loop->now_ns);
    }
    policy = exceptions_bind_on(policy, meter->keyed);
    if (!meter_make_funnels(client, policy)) {
        client_close_starved(client);
        return (struct account){0};
    }
    return charge(client, policy, meter->keyed);
}

struct account payer_for(struct client *client, const struct request *request)
{
    struct slice key;
    if (client->is_keyed && keys_first(request->command, request->bytes, request->argc, &key))
        return account_by_key(client, key);
    return payer_of(client);
}

bool payer_is_hidden(const struct client *client, const struct request *request)
{
    return client->is_keyed && request->is_large && keys_are_hidden(request->command, request->bytes, request->argc);
}
