#include "front/client/login_attempt.h"

#include "front/client/facts.h"
#include "front/commands/stopped.h"
#include "limit/gate.h"
#include "limit/policy/identity.h"

/*
 * Failures are charged to the address, under the policy that bound the connection when it came. A client that has
 * logged in could be a user that this policy does not bind, and guess the passwords of others.
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

static void note_barred(struct front *front, const struct account *account)
{
    unsigned first = (unsigned)__builtin_ctzll(account->policy->of_unit[UNIT_AUTH_FAILURES]);
    stopped_note(front, account, &account->policy->limits[first], WHOM_REFUSED);
}

bool login_attempt_may(struct client *client)
{
    struct front *front = client->front;
    const struct account account = account_of_address(client);
    if (account.policy == NULL)
        return true;
    bool may = gate_may_login(&account, front->loop->now_ns, front->tallies);
    if (!may)
        note_barred(front, &account);
    subject_put(front->settings->subjects, account.holders[PER_SUBJECT]);
    return may;
}

enum attempt_state login_attempt_begin(struct client *client, struct login_attempt *attempt)
{
    struct front *front = client->front;
    attempt->account = account_of_address(client);
    if (attempt->account.policy == NULL)
        return ATTEMPT_UNDER_WAY;
    attempt->policies = policies_get(front->rules->policies);
    return attempts_begin(front->settings->attempts, &attempt->base, &attempt->account, front->index,
                          front->loop->now_ns);
}

void login_attempt_note_barred(struct front *front, const struct login_attempt *attempt)
{
    if (!gate_may_login(&attempt->account, front->loop->now_ns, front->tallies))
        note_barred(front, &attempt->account);
}

/* The same subject under the rules that are in force now, which may have another rate, or no such limit. */
static struct account account_now(const struct front *front, const struct login_attempt *attempt)
{
    struct account account = attempt->account;
    if (attempt->policies == front->rules->policies)
        return account;
    struct subject *subject = account.holders[PER_SUBJECT];
    account.policy = policies_find(front->rules->policies, slice_str(subject->record->name));
    if (account.policy != NULL && !subject_grow(subject))
        account.policy = NULL; /* out of memory: its funnel may not be there */
    return account;
}

void login_attempt_end(struct front *front, struct login_attempt *attempt, bool is_failure)
{
    if (!login_attempt_is_counted(attempt))
        return;
    const struct account account = account_now(front, attempt);
    attempts_end(front->settings->attempts, &attempt->base, &account, is_failure, front->loop->now_ns, front->tallies);
    subject_put(front->settings->subjects, attempt->account.holders[PER_SUBJECT]);
    policies_put(attempt->policies);
    attempt->policies = NULL;
}
