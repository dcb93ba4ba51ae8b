#include "front/account.h"

#include <stdlib.h>

#include "base/err.h"
#include "front/session.h"
#include "limit/amount.h"
#include "limit/keys.h"

#define TOP_BYTES_LATEST (1 << 20)
#define GREETING_MAX 4096 /* what a client says before it asks for anything is a few lines */
#define LONG_NS (10 * NS_PER_S)
#define METER_ALARMS 3

static const struct policies *policies_of(const struct client *client)
{
    return client->front->rules->policies;
}

/* A limit delays its command no longer. */
static void on_turn(struct alarm *delay)
{
    link_wake(container_of(delay, struct meter, delay)->link);
}

/* It owes no more than it may. */
static void on_paid_in(struct alarm *payment)
{
    link_wake(container_of(payment, struct meter, payments[0])->link);
}

static void on_paid_out(struct alarm *payment)
{
    link_wake(container_of(payment, struct meter, payments[1])->link);
}

/* With room for its alarms. NULL: out of memory. */
static struct meter *make_meter(struct client *client)
{
    if (client->meter != NULL)
        return client->meter;
    struct meter *meter = calloc(1, sizeof *meter);
    if (meter == NULL || !alarms_reserve(&client->front->alarms, METER_ALARMS)) {
        free(meter);
        return NULL;
    }
    meter->delay.on_due = on_turn;
    meter->payments[0].on_due = on_paid_in;
    meter->payments[1].on_due = on_paid_out;
    meter->link = &client->link;
    client->meter = meter;
    return meter;
}

/* NULL: there was no memory, and the client is closed. */
static struct meter *need_meter(struct client *client)
{
    struct meter *meter = make_meter(client);
    if (meter == NULL)
        client_close_starved(client);
    return meter;
}

static void free_meter(struct client *client)
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

/* What was known when it came, and nothing it says can change. */
static struct facts arrival_facts(const struct client *client)
{
    struct facts facts = {.tls = link_tls_name(&client->link)};
    facts.ip = proxied_address(client).ip;
    facts.listener = slice_str(client_entrance(client)->listener);
    return facts;
}

struct facts account_facts(const struct client *client)
{
    struct facts facts = arrival_facts(client);
    facts.user = session_user(client);
    facts.name = session_name(client);
    return facts;
}

/* ---- whose funnels ---- */

static bool has_own_funnels(const struct policy *policy)
{
    return policy != NULL && policy->of_scope[PER_CONNECTION] != 0;
}

/* The connection's own funnels under that policy. NULL: not made yet. */
static struct subject *own_funnels(const struct client *client, const struct policy *policy)
{
    struct subject *own = client->meter != NULL ? client->meter->owns : NULL;
    while (own != NULL && own->record != policy->record)
        own = own->next;
    return own;
}

/* They are made once, so that going to and fro refills nothing. False: out of memory. */
static bool make_own_funnels(struct client *client, const struct policy *policy)
{
    if (!has_own_funnels(policy))
        return true;
    struct subject *own = own_funnels(client, policy);
    if (own != NULL)
        return subject_grow(own);
    own = make_meter(client) != NULL ? subject_new_detached(policy->record, PER_CONNECTION) : NULL;
    if (own == NULL)
        return false;
    own->next = client->meter->owns;
    client->meter->owns = own;
    return true;
}

static struct account account_with(const struct client *client, const struct policy *policy, struct subject *subject)
{
    struct account account = {policy, {subject, NULL, NULL}};
    if (has_own_funnels(policy))
        account.holders[PER_CONNECTION] = own_funnels(client, policy);
    if (policy != NULL && policy->of_scope[PER_POLICY] != 0)
        account.holders[PER_POLICY] = policy->record->everybody;
    return account;
}

struct account account_of(struct client *client)
{
    return account_with(client, client->bound, client->subject);
}

/* The holders of its places may be let go. What it has been charged is known still. */
static void forget_places(struct client *client)
{
    struct turn *turn = client->meter != NULL ? &client->meter->turn : NULL;
    for (unsigned i = 0; turn != NULL && i < turn->n; i++)
        turn->places[i].holder = NULL;
}

/* Its turn is used, or spent. */
static void forget_turn(struct client *client)
{
    if (client->meter != NULL)
        client->meter->turn.n = 0;
}

/* It will not go: nor does it need its turn. */
static void leave_queue(struct client *client)
{
    if (client->meter != NULL)
        gate_leave(&client->meter->turn, client->front->tallies);
    forget_turn(client);
}

static void let_keyed_go(struct client *client)
{
    if (client->meter == NULL || client->meter->keyed == NULL)
        return;
    forget_places(client);
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
    return slice_eq(subject_name(keyed), name) || (account_is_waiting(client) && subject_is_overflow(keyed));
}

/* What the key says about whom the command is for: the one held last, mostly. Out of memory it is closed. */
static struct account account_by_key(struct client *client, struct slice key)
{
    struct front *front = client->front;
    struct facts facts = account_facts(client);
    char name[SUBJECT_NAME_MAX];
    facts.key = key;
    const struct policy *policy = policies_match(policies_of(client), &facts);
    bool is_named = identity_needs_key(&front->rules->identity, &facts);
    if (policy == NULL)
        return (struct account){0};
    if (!is_named && policy == client->bound)
        return account_of(client);
    struct meter *meter = make_meter(client);
    if (meter == NULL || !make_own_funnels(client, policy)) {
        client_close_starved(client);
        return (struct account){0};
    }
    struct slice subject = slice_of(name, identity_subject(&front->rules->identity, &facts, name));
    if (!is_held_for(client, policy, subject)) {
        let_keyed_go(client);
        meter->keyed = subject_get(front->settings->key_subjects, policy->record, subject, front->loop->now_ns);
    }
    return account_with(client, policy, meter->keyed);
}

struct account account_for(struct client *client, const struct request *request)
{
    struct slice key;
    if (client->is_keyed && keys_first(request->command, request->bytes, request->argc, &key))
        return account_by_key(client, key);
    return account_of(client);
}

bool account_is_hidden(const struct client *client, const struct request *request)
{
    return client->is_keyed && request->is_large && keys_are_hidden(request->command, request->bytes, request->argc);
}

/* ---- coming, changing, going ---- */

static bool counts_connections(const struct policy *policy)
{
    return policy != NULL && (policy->of_unit[UNIT_CONNECTIONS] | policy->of_unit[UNIT_CONNECTS]) != 0;
}

/* Who it is to be from now on; the old one is still held. False: out of memory, and it is who it was. */
static bool find_subject(struct client *client)
{
    struct front *front = client->front;
    const struct rules *rules = front->rules;
    struct facts facts = account_facts(client);
    char name[SUBJECT_NAME_MAX];
    size_t len = identity_subject(&rules->identity, &facts, name);
    const struct policy *policy = client_entrance(client)->is_admin ? NULL : policies_match(rules->policies, &facts);
    struct record *record = policy != NULL ? policy->record : front->settings->unlimited;
    bool is_keyed = !client_entrance(client)->is_admin &&
                    (identity_needs_key(&rules->identity, &facts) || policies_match_keys(rules->policies));
    if (!make_own_funnels(client, policy) || (counts_connections(policy) && make_meter(client) == NULL))
        return false;
    const struct subject *old = client->subject;
    client->bound = policy;
    client->subject = subject_get(front->settings->subjects, record, slice_of(name, len), front->loop->now_ns);
    if (client->subject != old)
        forget_places(client);
    client->overflows = subject_is_overflow(client->subject);
    client->is_keyed = is_keyed;
    client->counts_bytes_out = policy != NULL && policy->of_unit[UNIT_BYTES_OUT] != 0;
    client->counts_calls = policy != NULL && policy->of_unit[UNIT_INFLIGHT] != 0;
    return true;
}

/* The connection and its calls in flight count for nobody any more. */
static void detach(struct client *client, const struct account *account)
{
    struct meter *meter = client->meter;
    if (meter == NULL || account->policy == NULL)
        return;
    gate_disconnect(account, meter->connected);
    gate_calls_end(account, meter->counted, meter->counted_shadow);
    meter->connected = 0;
}

static void attach_calls(struct client *client, const struct account *account)
{
    if (client->meter != NULL && account->policy != NULL)
        gate_calls_begin(account, client->meter->counted, client->meter->counted_shadow);
}

bool account_identify(struct client *client)
{
    struct front *front = client->front;
    struct subject *old = client->subject;
    struct account before = {0};
    struct verdict verdict = {0};
    account_tell_top(client);
    if (old != NULL)
        before = account_of(client);
    const struct policy *old_policy = client->bound;
    if (!find_subject(client)) {
        client_close_starved(client);
        return false;
    }
    bool is_same = old != NULL && client->subject == old && client->bound == old_policy;
    bool is_welcome = true;
    if (!is_same) {
        detach(client, &before);
        struct account now = account_of(client);
        if (counts_connections(now.policy)) {
            is_welcome = gate_connect(&now, front->loop->now_ns, front->tallies, &verdict) == GATE_PASS;
            client->meter->connected = verdict.counted;
        }
        attach_calls(client, &now);
    }
    if (old != NULL)
        subject_put(front->settings->subjects, old);
    return is_welcome;
}

void account_unmoor(struct client *client)
{
    if (client->subject == NULL)
        return; /* it is not admitted yet */
    account_tell_top(client);
    struct account before = account_of(client);
    detach(client, &before);
    let_keyed_go(client);
}

void account_moor(struct client *client)
{
    struct subject *old = client->subject;
    if (old == NULL)
        return;
    if (!find_subject(client)) {
        client->bound = NULL; /* the old rules may be gone, and it counts nothing any more */
        client_close_starved(client);
        return;
    }
    struct account now = account_of(client);
    if (now.policy != NULL && now.policy->of_unit[UNIT_CONNECTIONS] != 0)
        client->meter->connected = gate_reconnect(&now);
    attach_calls(client, &now);
    subject_put(client->front->settings->subjects, old);
}

/*
 * Whoever shares a subject for want of room has its own as soon as there is one, which another connection may have had
 * made: else it had two to spend from. Its connection and its calls go with it, counted, not asked.
 */
static void leave_overflow(struct client *client)
{
    struct front *front = client->front;
    struct subject *shared = client->subject;
    struct facts facts = account_facts(client);
    char name[SUBJECT_NAME_MAX];
    size_t len = identity_subject(&front->rules->identity, &facts, name);
    struct subject *own =
        subject_try_get(front->settings->subjects, shared->record, slice_of(name, len), front->loop->now_ns);
    if (own == NULL)
        return;
    account_tell_top(client);
    const struct account before = account_of(client);
    detach(client, &before);
    client->subject = own;
    client->overflows = false;
    const struct account now = account_of(client);
    if (now.policy != NULL && now.policy->of_unit[UNIT_CONNECTIONS] != 0)
        client->meter->connected = gate_reconnect(&now);
    attach_calls(client, &now);
    subject_put(front->settings->subjects, shared);
}

void account_leave(struct client *client)
{
    if (client->subject == NULL) {
        free_meter(client); /* it was to be admitted */
        return;
    }
    leave_queue(client);
    account_unmoor(client);
    subject_put(client->front->settings->subjects, client->subject);
    client->subject = NULL;
    client->bound = NULL; /* whatever of it is still under way is charged to nobody */
    client->is_keyed = client->counts_bytes_out = client->counts_calls = false;
    free_meter(client);
}

/* ---- asking ---- */

/* While frames can come to it unasked, or it is to hear what ends that, a client cannot be held. */
static bool may_wait(const struct client *client)
{
    return !client->is_raw &&
           !(client->has_private_lane && client->rider.lane != NULL && lane_is_subscribed(client->rider.lane));
}

bool account_is_waiting(const struct client *client)
{
    return client->meter != NULL && client->meter->headed_ns != 0;
}

bool account_waits_long(const struct client *client)
{
    return account_is_waiting(client) && client->meter->delay.due_ns > client->front->loop->now_ns + LONG_NS;
}

/* GATE_WAIT; or out of memory it is closed. */
static enum gate wait(struct client *client, uint64_t headed_ns, const struct verdict *verdict)
{
    struct meter *meter = make_meter(client);
    if (meter == NULL) {
        gate_leave(&verdict->turn, client->front->tallies);
        client_close_starved(client);
        return GATE_CLOSE;
    }
    meter->headed_ns = headed_ns;
    meter->waited_for = verdict->limit->id + 1U;
    meter->turn = verdict->turn;
    alarm_set(&client->front->alarms, &meter->delay, client->front->loop->now_ns + (uint64_t)verdict->wait_ns);
    return GATE_WAIT;
}

/* Other rules have come while it waited. Its place is still good if something delays the command under them too. */
static bool is_early(const struct client *client, const struct account *own, const struct account *account,
                     const struct command *command)
{
    return account_is_waiting(client) && client->front->loop->now_ns < client->meter->delay.due_ns &&
           ((own->policy != NULL && gate_delays(own->policy, command, PART_ALL)) ||
            (account->policy != NULL && gate_delays(account->policy, command, PART_ALL)));
}

static enum gate wait_on(struct client *client)
{
    alarm_set(&client->front->alarms, &client->meter->delay, client->meter->delay.due_ns);
    return GATE_WAIT;
}

static void end_wait(struct client *client)
{
    if (!account_is_waiting(client))
        return;
    uint64_t waited_ns = client->front->loop->now_ns - client->meter->headed_ns;
    uint64_t waited_us = waited_ns / NS_PER_US;
    histo_add(&client->front->counts.times.delay, waited_ns, 1);
    client->rider.waited_us = waited_us < UINT32_MAX ? (uint32_t)waited_us : UINT32_MAX;
    client->meter->headed_ns = 0;
    forget_turn(client);
}

/* It goes, or is refused: either way the next command is next. */
static enum gate settle(struct client *client, enum gate gate)
{
    if (gate != GATE_PASS && account_is_waiting(client))
        leave_queue(client);
    end_wait(client);
    client->n_commands++;
    return gate;
}

void account_forgo(struct client *client)
{
    if (!account_is_waiting(client))
        return;
    alarm_stop(&client->front->alarms, &client->meter->delay);
    leave_queue(client);
    end_wait(client);
}

/* A handshake is never late, whatever others of its subject owe: what a connection sends before its first command. */
static bool is_greeting(const struct client *client, size_t n)
{
    return client->greeted_bytes + n <= GREETING_MAX;
}

static void count_greeting(struct client *client, uint64_t n)
{
    uint64_t sum = client->greeted_bytes + n;
    client->greeted_bytes = sum < GREETING_MAX ? (uint16_t)sum : GREETING_MAX;
}

/* What is never refused waits once, for what is owed when it comes: whatever others do meanwhile, it arrives. */
static enum gate ask_debtor(struct client *client, const struct account *own, size_t n, struct verdict *verdict)
{
    if (own->policy == NULL || account_is_waiting(client) || is_greeting(client, n))
        return GATE_PASS;
    return gate_ask_debtor(own, client->front->loop->now_ns, client->front->tallies, verdict);
}

enum gate account_ask_idly(struct client *client, size_t n)
{
    struct verdict verdict;
    if (account_is_waiting(client) && alarm_is_set(&client->meter->delay))
        return GATE_WAIT;
    const struct account own = account_of(client);
    if (ask_debtor(client, &own, n, &verdict) == GATE_WAIT)
        return wait(client, client->front->loop->now_ns, &verdict);
    end_wait(client);
    return GATE_PASS;
}

static void count_call(struct client *client, uint8_t counted)
{
    struct meter *meter = client->meter;
    if ((counted & (COUNTED | COUNTED_SHADOW)) == 0)
        return;
    meter->counted += (counted & COUNTED) != 0;
    meter->counted_shadow += (counted & COUNTED_SHADOW) != 0;
}

/* What is counted for the connection is its own subject's affair, the rest that of whom the key names. */
static enum gate ask_both(struct client *client, const struct account *own, const struct account *keyed,
                          struct ask *ask, struct verdict *verdict)
{
    struct tally *tallies = client->front->tallies;
    enum gate gate = GATE_PASS;
    ask->part = PART_COMMAND;
    if (own->policy != NULL && keyed->policy != NULL && gate_delays(own->policy, ask->command, PART_CONNECTION))
        gate = gate_ask_refusal(keyed, ask, tallies, verdict); /* or it would wait first, to be refused then */
    if (gate != GATE_PASS)
        return gate;
    ask->part = PART_CONNECTION;
    if (own->policy != NULL)
        gate = gate_ask(own, ask, tallies, verdict);
    uint8_t counted = verdict->counted;
    if (gate != GATE_PASS || keyed->policy == NULL)
        return gate;
    ask->part = PART_COMMAND;
    gate = gate_ask(keyed, ask, tallies, verdict);
    if (gate != GATE_PASS && counted != 0)
        gate_calls_revoke(own, counted, tallies);
    verdict->counted = gate == GATE_PASS ? counted : 0;
    return gate;
}

static bool has_delays(const struct account *account)
{
    return account->policy != NULL && account->policy->of_action[OVER_DELAY] != 0;
}

/* What the gate is asked for one request. `amounts` is room that lives as long as the result. */
static struct ask ask_for(const struct client *client, const struct request *request, const struct account *own,
                          const struct account *account, struct amounts *amounts)
{
    uint64_t now_ns = client->front->loop->now_ns;
    struct ask ask = {.command = request->command, .amount = one_of_each(), .now_ns = now_ns, .headed_ns = now_ns};
    ask.blocks = request_blocks(request);
    if (account->policy != NULL && account->policy->is_measured) {
        amounts_take(amounts, policies_of(client), request->command, request->bytes, request->argc);
        ask.amount = amounts->of;
    }
    if (has_delays(account) || has_delays(own)) {
        ask.may_wait = may_wait(client);
        ask.waited_for = account_is_waiting(client) ? client->meter->waited_for : 0;
        ask.turn = account_is_waiting(client) ? &client->meter->turn : NULL;
        ask.headed_ns = account_is_waiting(client) ? client->meter->headed_ns : now_ns;
    }
    return ask;
}

static bool is_others(const struct account *account, const struct account *own)
{
    return account->holders[PER_SUBJECT] != own->holders[PER_SUBJECT];
}

enum gate account_ask(struct client *client, const struct request *request, struct verdict *verdict)
{
    struct front *front = client->front;
    verdict->counted = 0;
    verdict->is_shadowed = false;
    if (client->overflows && !account_is_waiting(client))
        leave_overflow(client);
    if (client->bound == NULL && !client->is_keyed)
        return settle(client, GATE_PASS);
    if (account_is_waiting(client) && alarm_is_set(&client->meter->delay))
        return GATE_WAIT; /* woken by something else */
    if (client->counts_calls && need_meter(client) == NULL)
        return GATE_CLOSE;
    const struct account account = account_for(client, request);
    if (client_is_closed(client))
        return GATE_CLOSE;
    const struct account own = client->is_keyed ? account_of(client) : account;
    if (account.policy == NULL && own.policy == NULL)
        return settle(client, GATE_PASS);
    if (is_early(client, &own, &account, request->command))
        return wait_on(client);
    if ((request->command->flags & CMD_CONTROL) == 0)
        client->greeted_bytes = GREETING_MAX;
    else if (ask_debtor(client, &own, request->bytes.len, verdict) == GATE_WAIT)
        return wait(client, front->loop->now_ns, verdict);
    struct amounts amounts;
    struct ask ask = ask_for(client, request, &own, &account, &amounts);
    enum gate gate = is_others(&account, &own) ? ask_both(client, &own, &account, &ask, verdict)
                                               : gate_ask(&account, &ask, front->tallies, verdict);
    if (gate == GATE_WAIT)
        return wait(client, ask.headed_ns, verdict);
    client->n_refused += gate != GATE_PASS;
    if (gate == GATE_PASS)
        count_call(client, verdict->counted);
    return settle(client, gate);
}

enum gate account_ask_refusal(struct client *client, const struct request *request, struct verdict *verdict)
{
    struct tally *tallies = client->front->tallies;
    if (client->bound == NULL && !client->is_keyed)
        return GATE_PASS;
    if (account_is_waiting(client))
        return alarm_is_set(&client->meter->delay) ? GATE_WAIT : GATE_PASS;
    if ((request->command->flags & CMD_CONTROL) != 0)
        return GATE_PASS; /* never refused */
    client->greeted_bytes = GREETING_MAX;
    const struct account account = account_for(client, request);
    if (client_is_closed(client))
        return GATE_CLOSE;
    const struct account own = client->is_keyed ? account_of(client) : account;
    bool is_split = is_others(&account, &own);
    struct amounts amounts;
    struct ask ask = ask_for(client, request, &own, &account, &amounts);
    enum gate gate = GATE_PASS;
    if (is_split && own.policy != NULL) {
        ask.part = PART_CONNECTION;
        gate = gate_ask_refusal(&own, &ask, tallies, verdict);
    }
    if (gate == GATE_PASS && account.policy != NULL) {
        ask.part = is_split ? PART_COMMAND : PART_ALL;
        gate = gate_ask_refusal(&account, &ask, tallies, verdict);
    }
    if (gate == GATE_PASS)
        return GATE_PASS;
    client->n_refused++;
    return settle(client, gate);
}

/* ---- what has passed ---- */

/* Who only listens sends nothing that would tell LIMIT TOP now and then. */
static void count_bytes(struct client *client, uint64_t n)
{
    uint64_t sum = client->n_bytes + n;
    client->n_bytes = sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
    if (sum > TOP_BYTES_LATEST)
        account_tell_top(client);
}

bool account_is_paying(const struct client *client, enum unit unit)
{
    return client->meter != NULL && alarm_is_set(&client->meter->payments[unit == UNIT_BYTES_OUT]);
}

/* Each piece that has passed is paid for before the next: so it gets on, however many others owe at the same limit. */
static void owe(struct client *client, enum unit unit, uint64_t n, uint8_t counted)
{
    struct front *front = client->front;
    uint64_t now_ns = front->loop->now_ns;
    const struct account account = account_of(client);
    gate_owe_bytes(&account, unit, n, counted, now_ns, front->tallies);
    uint64_t over_ns = gate_overdraft_ns(&account, unit, now_ns);
    if (over_ns == 0 || account_is_paying(client, unit))
        return;
    struct meter *meter = need_meter(client);
    if (meter != NULL)
        alarm_set(&front->alarms, &meter->payments[unit == UNIT_BYTES_OUT], now_ns + over_ns);
}

void account_bytes_in(struct client *client, uint64_t n, uint8_t counted)
{
    const struct policy *policy = client->bound;
    count_bytes(client, n);
    count_greeting(client, n);
    if (policy != NULL && policy->of_unit[UNIT_BYTES_IN] != 0)
        owe(client, UNIT_BYTES_IN, n, counted);
}

void account_bytes_out(struct client *client, uint64_t n, uint8_t counted)
{
    count_bytes(client, n);
    if (client->counts_bytes_out)
        owe(client, UNIT_BYTES_OUT, n, counted);
}

void account_answered(struct client *client, uint8_t counted)
{
    struct meter *meter = client->meter;
    const struct account account = account_of(client);
    if (meter == NULL || account.policy == NULL)
        return;
    bool is_counted = (counted & COUNTED) != 0 && meter->counted > 0;
    bool is_shadow = (counted & COUNTED_SHADOW) != 0 && meter->counted_shadow > 0;
    meter->counted -= is_counted;
    meter->counted_shadow -= is_shadow;
    gate_calls_end(&account, is_counted, is_shadow);
}

void account_calls_lost(struct client *client)
{
    struct meter *meter = client->meter;
    if (meter == NULL)
        return;
    const struct account account = account_of(client);
    if (account.policy != NULL)
        gate_calls_end(&account, meter->counted, meter->counted_shadow);
    meter->counted = meter->counted_shadow = 0;
}

/* ---- logging in ---- */

/*
 * Whose failures they are: the address', under the policy that bound it when it came. Whoever it is by now could have
 * logged in as somebody whom that policy does not bind, to guess the others' passwords.
 */
static struct account account_of_address(struct client *client)
{
    const struct facts facts = arrival_facts(client);
    const struct policy *policy =
        client_entrance(client)->is_admin ? NULL : policies_match(policies_of(client), &facts);
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
    subject_put(client->front->settings->subjects, account.holders[PER_SUBJECT]);
    return may;
}

bool account_may_login(struct client *client)
{
    return may_login(client, client->front->tallies);
}

bool account_may_login_still(struct client *client)
{
    return may_login(client, NULL);
}

void account_login_failed(struct client *client)
{
    const struct account account = account_of_address(client);
    if (account.policy == NULL)
        return;
    gate_login_failed(&account, client->front->loop->now_ns, client->front->tallies);
    subject_put(client->front->settings->subjects, account.holders[PER_SUBJECT]);
}

/* ---- LIMIT TOP ---- */

void account_tell_top(struct client *client)
{
    struct front *front = client->front;
    const struct subject *subject = client->subject;
    if (subject == NULL || client_entrance(client)->is_admin || (client->n_commands == 0 && client->n_bytes == 0))
        return;
    const uint64_t amounts[TOP_BY_COUNT] = {client->n_commands, client->n_refused, client->n_bytes};
    for (unsigned by = 0; by < TOP_BY_COUNT; by++)
        if (amounts[by] > 0)
            top_add(front->top, (enum top_by)by, slice_str(subject->record->name), subject_name(subject), subject->hash,
                    amounts[by], front->loop->now_ns);
    client->n_commands = client->n_refused = client->n_bytes = 0;
}
