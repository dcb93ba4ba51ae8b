#include "front/login_attempt.h"

#include "front/facts.h"
#include "front/stopped.h"
#include "limit/gate.h"
#include "limit/identity.h"

/*
 * Whose failures they are: the address', under the policy that bound it when it came. Whoever it is by now could have
 * logged in as somebody whom that policy does not bind, to guess the others' passwords.
 */
static struct account account_of_address(struct client *client)
{
    const struct facts facts = facts_on_arrival(client);
    const struct policy *policy =
        client_entrance(client)->is_admin ? NULL : policies_match(client->front->rules->policies, &facts);
    char name[SUBJECT_NAME_MAX];
    if (policy == NULL || policy->of_unit[UNIT_AUTH_FAILURES] == 0)
        return (struct account){0};
    size_t len = identity_address(&facts, name);
    struct subject *subject = subject_get(client->front->settings->subjects, policy->record, slice_of(name, len),
                                          client->front->loop->now_ns);
    return (struct account){policy, {subject, NULL, NULL}};
}

static bool may_login(struct client *client, struct tally *tallies)
{
    const struct account account = account_of_address(client);
    if (account.policy == NULL)
        return true;
    bool may = gate_may_login(&account, client->front->loop->now_ns, tallies);
    if (!may)
        stopped_note(client->front, &account,
                     &account.policy->limits[__builtin_ctzll(account.policy->of_unit[UNIT_AUTH_FAILURES])],
                     WHOM_REFUSED);
    subject_put(client->front->settings->subjects, account.holders[PER_SUBJECT]);
    return may;
}

bool login_attempt_may(struct client *client)
{
    return may_login(client, client->front->tallies);
}

bool login_attempt_may_still(struct client *client)
{
    return may_login(client, NULL);
}

void login_attempt_failed(struct client *client)
{
    const struct account account = account_of_address(client);
    if (account.policy == NULL)
        return;
    gate_login_failed(&account, client->front->loop->now_ns, client->front->tallies);
    subject_put(client->front->settings->subjects, account.holders[PER_SUBJECT]);
}
