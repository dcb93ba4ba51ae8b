#include "front/client/charge.h"

#include <stdlib.h>

#include "front/client/binding.h"
#include "front/client/meter.h"
#include "front/front.h"
#include "limit/policy/policy.h"

#define TOP_BYTES_LATEST (1 << 20)
#define GREETING_MAX 4096 /* request bytes of a handshake, which is a few lines */
/* reply bytes of a handshake: INFO and HELLO of a server with modules fit */
#define GREETING_OUT_MAX 16384
#define LONG_NS (10 * NS_PER_S)

/* ---- asking ---- */

/* False for a subscribed or a passthrough client: push messages would wait with the command. */
static bool charge_may_wait(const struct client *client)
{
    return !pin_has(client, PIN_PASSTHROUGH) && !client_is_subscribed(client);
}

bool charge_waits_long(const struct client *client)
{
    return meter_is_waiting(client) &&
           client->meter->delay.due_ns > client->front->loop->now_ns + LONG_NS;
}

/*
 * Returns 1 + the id of the limit that is not asked again after the wait; 0: all limits are asked.
 * If the limit's queue had no position for the command, the limit is asked again.
 */
static uint32_t waits_for(const struct verdict *verdict)
{
    return verdict->positions.n > 0 || !limit_has_positions(verdict->limit)
               ? verdict->limit->id + 1U
               : 0;
}

/*
 * Makes the client wait. Returns GATE_WAIT, or GATE_CLOSE: out of memory, and the client is closed.
 */
static enum gate charge_wait(struct client *client, const struct charge_target *stopped,
                             uint64_t headed_ns, const struct verdict *verdict)
{
    struct meter *meter = meter_make(client);
    if (meter == NULL) {
        gate_leave(&verdict->positions, client->front->limit_counters);
        client_close_starved(client);
        return GATE_CLOSE;
    }
    front_note_stopped(client->front, stopped, verdict->limit, OFFENDER_DELAYED);
    meter->headed_ns = headed_ns;
    meter->waited_for = waits_for(verdict);
    meter->positions = verdict->positions;
    alarm_set(&client->front->alarms, &meter->delay,
              client->front->loop->now_ns + (uint64_t)verdict->wait_ns);
    client_wait(client, WAIT_DELAY);
    return GATE_WAIT;
}

/*
 * True if new rules woke a waiting command before its due time, and a limit still delays it. The
 * command's positions then stay valid.
 */
static bool is_early(const struct client *client, const struct charge_target *own,
                     const struct charge_target *target, const struct command *command)
{
    return meter_is_waiting(client) && client->front->loop->now_ns < client->meter->delay.due_ns &&
           ((own->policy != NULL && gate_delays(own->policy, command, PART_ALL)) ||
            (target->policy != NULL && gate_delays(target->policy, command, PART_ALL)));
}

static void settle_target(const struct client *client, const struct charge_target *target)
{
    if (target->policy != NULL)
        gate_settle(target, client->front->loop->now_ns);
}

/*
 * Makes the command wait on, until its positions are due at the present rates. GATE_PASS: the
 * command has no position, and the gate decides anew. A command that has just lost its positions
 * keeps its due time.
 */
static enum gate charge_wait_on(struct client *client, const struct charge_target *own,
                                const struct charge_target *target)
{
    struct meter *meter = client->meter;
    settle_target(client, own);
    settle_target(client, target);
    if (meter->positions.n == 0) {
        meter->waited_for = 0;
        return GATE_PASS;
    }
    uint64_t due_ns = gate_positions_due(&meter->positions);
    alarm_set(&client->front->alarms, &meter->delay, due_ns != 0 ? due_ns : meter->delay.due_ns);
    client_wait(client, WAIT_DELAY);
    return GATE_WAIT;
}

static void charge_end_wait(struct client *client)
{
    if (!meter_is_waiting(client))
        return;
    uint64_t waited_ns = client->front->loop->now_ns - client->meter->headed_ns;
    uint64_t waited_us = waited_ns / NS_PER_US;
    histo_add(&client->front->counts.times.delay, waited_ns, 1);
    client->lane_user.waited_us = waited_us < UINT32_MAX ? (uint32_t)waited_us : UINT32_MAX;
    client->meter->headed_ns = 0;
    meter_drop_positions(client);
}

void charge_begin(struct client *client)
{
    struct front *front = client->front;
    const struct policy *policy = client->bound;
    const struct peak_plan *plan =
        policy != NULL ? &policy->peak_rates : policies_unlimited_peak_plan(front->rules->policies);
    peak_rates_begin(&front->peak_rates, client->subject, plan, front->loop->now_ns);
}

/* Counts the request in the peak rates of the subject that pays. */
static void charge_observe(struct client *client, const struct charge_target *target,
                           const struct command *command)
{
    struct subject *subject = target->holders[PER_SUBJECT];
    if (subject == client->subject) {
        charge_begin(client);
        peak_rates_note(&client->front->peak_rates, command, 1);
    } else if (target->policy != NULL) {
        peak_rates_tell(subject, &target->policy->peak_rates, command, client->front->loop->now_ns);
    }
}

/* Ends the wait of a command that is sent or refused, and counts the command. Returns `gate`. */
static enum gate charge_settle(struct client *client, const struct charge_target *target,
                               const struct command *command, enum gate gate)
{
    charge_observe(client, target, command);
    if (meter_is_waiting(client))
        meter_leave_queue(client); /* positions that were not used */
    charge_end_wait(client);
    client->n_commands++;
    return gate;
}

void charge_withdraw(struct client *client)
{
    if (!meter_is_waiting(client))
        return;
    alarm_stop(&client->front->alarms, &client->meter->delay);
    meter_leave_queue(client);
    charge_end_wait(client);
}

/*
 * True if `n` more bytes still belong to the handshake. A handshake is all requests before the
 * first command outside class control, while requests and replies stay small. A debt of the subject
 * never delays a handshake. A reply to COMMAND is too large for a handshake.
 */
static bool is_greeting(const struct client *client, size_t n)
{
    return client->greeted_bytes + n <= GREETING_MAX && !reply_mode_is_deaf(&client->reply_mode) &&
           client->link.n_written + link_pending(&client->link) < GREETING_OUT_MAX;
}

static void end_greeting(struct client *client)
{
    client->greeted_bytes = GREETING_MAX;
}

static void count_greeting(struct client *client, uint64_t n)
{
    uint64_t sum = client->greeted_bytes + n;
    client->greeted_bytes = (sum < GREETING_MAX ? sum : GREETING_MAX) & 8191U;
}

/*
 * Returns when the client's next command became the first of the client's requests. Returns the
 * present time if the command has not waited yet.
 */
static uint64_t headed_ns(const struct client *client)
{
    return meter_is_waiting(client) ? client->meter->headed_ns : client->front->loop->now_ns;
}

/*
 * Decides on a command that is never refused, but waits for a debt of bytes. At first the command
 * waits until the present debt is paid, later only while more than a burst is owed. Other clients
 * of the subject can therefore not delay the command for ever. A handshake waits for replies in
 * flight, since their size is unknown.
 */
static enum gate ask_debtor(struct client *client, const struct charge_target *own, size_t n)
{
    struct front *front = client->front;
    uint64_t now_ns = front->loop->now_ns;
    struct verdict verdict;
    if (own->policy == NULL)
        return GATE_PASS;
    if (meter_is_waiting(client) && client->meter->waited_for != 0) {
        bool must_wait = gate_ask_overdrawn(own, now_ns, &verdict) == GATE_WAIT;
        return must_wait ? charge_wait(client, own, client->meter->headed_ns, &verdict) : GATE_PASS;
    }
    bool is_free = is_greeting(client, n);
    if (gate_ask_debtor(own, now_ns, is_free ? NULL : front->limit_counters, &verdict) == GATE_PASS)
        return GATE_PASS;
    if (!is_free)
        return charge_wait(client, own, headed_ns(client), &verdict);
    if (!client_counts(client, UNIT_BYTES_OUT) || !client_has_calls(client))
        return GATE_PASS;
    client_wait_for_replies(client);
    return GATE_WAIT;
}

enum gate charge_ask_bytes(struct client *client, size_t n)
{
    const struct charge_target own = payer_of(client);
    enum gate gate = ask_debtor(client, &own, n);
    if (gate == GATE_PASS)
        charge_end_wait(client);
    return gate;
}

static void count_call(struct client *client, uint8_t counted)
{
    struct meter *meter = client->meter;
    if ((counted & (COUNTED | COUNTED_SHADOW)) == 0)
        return;
    meter->counted += (counted & COUNTED) != 0;
    meter->counted_shadow += (counted & COUNTED_SHADOW) != 0;
}

/* Notes a delay by a limit in shadow mode. Returns the connection's virtual clock, or 0. */
static uint64_t keep_virtual(struct client *client, const struct charge_target *target,
                             const struct verdict *verdict)
{
    uint64_t now_ns = client->front->loop->now_ns;
    struct meter *meter = verdict->virtual_ns > now_ns ? meter_make(client) : client->meter;
    if (verdict->would == GATE_WAIT)
        front_note_stopped(client->front, target, verdict->limit, OFFENDER_DELAYED);
    if (meter == NULL || verdict->virtual_ns == 0)
        return 0;
    meter->virtual_ns = verdict->virtual_ns > now_ns ? verdict->virtual_ns : 0;
    return meter->virtual_ns;
}

/* Keeps the unused positions of a command that the gate has decided on again. */
static void keep_positions(struct client *client, const struct gate_request *ask,
                           const struct verdict *verdict)
{
    if (ask->positions != NULL)
        client->meter->positions = verdict->positions;
}

/*
 * The connection's subject pays for calls in flight and bytes, the keyed subject for all other
 * units.
 */
static enum gate ask_both(struct client *client, const struct charge_target *own,
                          const struct charge_target *keyed, struct gate_request *ask,
                          struct verdict *verdict)
{
    struct limit_counters *limit_counters = client->front->limit_counters;
    enum gate gate = GATE_PASS;
    if (ask->positions != NULL)
        /* the positions stay unless one of the two decisions changes them */
        verdict->positions = *ask->positions;
    ask->part = PART_COMMAND;
    if (own->policy != NULL && keyed->policy != NULL &&
        gate_delays(own->policy, ask->command, PART_CONNECTION))
        /* otherwise a command could wait first and be refused afterwards */
        gate = gate_ask_refusal(keyed, ask, limit_counters, verdict);
    if (gate != GATE_PASS)
        return gate;
    ask->part = PART_CONNECTION;
    if (own->policy != NULL)
        gate = gate_ask(own, ask, limit_counters, verdict);
    uint8_t counted = verdict->counted;
    keep_positions(client, ask, verdict);
    if (gate == GATE_PASS)
        ask->virtual_ns = keep_virtual(client, own, verdict);
    if (gate != GATE_PASS || keyed->policy == NULL)
        return gate;
    ask->part = PART_COMMAND;
    gate = gate_ask(keyed, ask, limit_counters, verdict);
    if (gate != GATE_PASS && counted != 0)
        gate_calls_revoke(own, counted, limit_counters);
    verdict->counted = gate == GATE_PASS ? counted : 0;
    return gate;
}

static bool has_delays(const struct charge_target *target)
{
    return target->policy != NULL && target->policy->of_action[OVER_DELAY] != 0;
}

/* The decision request for one request. `amounts` must live as long as the result. */
static struct gate_request ask_for(const struct client *client, const struct request *request,
                                   const struct charge_target *own,
                                   const struct charge_target *target, struct amounts *amounts)
{
    uint64_t now_ns = client->front->loop->now_ns;
    struct gate_request ask = {.command = request->command,
                               .amount = one_of_each(),
                               .now_ns = now_ns,
                               .headed_ns = now_ns};
    ask.blocks = request_blocks(request);
    if (target->policy != NULL && target->policy->is_measured) {
        amounts_take(amounts, client->front->rules->policies, request->command, request->bytes,
                     request->argc);
        ask.amount = amounts->of;
    }
    if (has_delays(target) || has_delays(own)) {
        ask.may_wait = charge_may_wait(client);
        ask.waited_for = meter_is_waiting(client) ? client->meter->waited_for : 0;
        ask.positions = meter_is_waiting(client) ? &client->meter->positions : NULL;
        ask.headed_ns = headed_ns(client);
        ask.virtual_ns = client->meter != NULL ? client->meter->virtual_ns : 0;
    }
    return ask;
}

static bool is_others(const struct charge_target *target, const struct charge_target *own)
{
    return target->holders[PER_SUBJECT] != own->holders[PER_SUBJECT];
}

/* The charge target of the limit that decided: the keyed subject's, or the connection's own. */
static const struct charge_target *deciding_target(const struct charge_target *target,
                                                   const struct charge_target *own,
                                                   const struct verdict *verdict)
{
    enum unit unit = (enum unit)verdict->limit->unit;
    const struct policy *policy = target->policy;
    bool is_its = policy != NULL && unit != UNIT_INFLIGHT && !unit_is_bytes(unit) &&
                  verdict->limit >= policy->limits &&
                  verdict->limit < policy->limits + policy->n_limits;
    return is_its ? target : own;
}

static const struct charge_target *whose_would(const struct charge_target *target,
                                               const struct charge_target *own,
                                               const struct verdict *verdict)
{
    return verdict->would == GATE_PASS ? own : deciding_target(target, own, verdict);
}

static void charge_note_refused(struct client *client, const struct charge_target *target,
                                const struct verdict *verdict)
{
    charge_count_refused(client, verdict->limit, 1);
    if (client->is_keyed)
        front_note_stopped(client->front, target, verdict->limit, OFFENDER_REFUSED);
}

enum gate charge_ask(struct client *client, const struct request *request, struct verdict *verdict)
{
    struct front *front = client->front;
    verdict->counted = 0;
    verdict->is_shadowed = false;
    verdict->virtual_ns = 0;
    if (subject_is_overflow(client->subject) && !meter_is_waiting(client))
        binding_leave_overflow(client);
    if (client->bound == NULL && !client->is_keyed) {
        const struct charge_target nobodys = {.holders = {[PER_SUBJECT] = client->subject}};
        return charge_settle(client, &nobodys, request->command, GATE_PASS);
    }
    if (client_counts(client, UNIT_INFLIGHT) && meter_need(client) == NULL)
        return GATE_CLOSE;
    const struct charge_target target = payer_for(client, request);
    if (client_is_closed(client))
        return GATE_CLOSE;
    const struct charge_target own = client->is_keyed ? payer_of(client) : target;
    if (target.policy == NULL && own.policy == NULL)
        return charge_settle(client, &own, request->command, GATE_PASS);
    if (is_early(client, &own, &target, request->command) &&
        charge_wait_on(client, &own, &target) == GATE_WAIT)
        return GATE_WAIT;
    if ((request->command->flags & CMD_CONTROL) == 0 || request->command->effect == EFFECT_COMMAND)
        end_greeting(client);
    if ((request->command->flags & CMD_CONTROL) != 0) {
        enum gate debtor = ask_debtor(client, &own, request->bytes.len);
        if (debtor != GATE_PASS)
            return debtor;
    }
    struct amounts amounts;
    struct gate_request ask = ask_for(client, request, &own, &target, &amounts);
    enum gate gate = is_others(&target, &own)
                         ? ask_both(client, &own, &target, &ask, verdict)
                         : gate_ask(&target, &ask, front->limit_counters, verdict);
    keep_positions(client, &ask, verdict);
    if (gate == GATE_WAIT)
        return charge_wait(client, deciding_target(&target, &own, verdict), ask.headed_ns, verdict);
    if (gate != GATE_PASS)
        charge_note_refused(client, deciding_target(&target, &own, verdict), verdict);
    else
        count_call(client, verdict->counted);
    if (gate == GATE_PASS && verdict->virtual_ns != 0)
        (void)keep_virtual(client, whose_would(&target, &own, verdict), verdict);
    if (gate == GATE_PASS && verdict->is_shadowed)
        front_note_stopped(front, deciding_target(&target, &own, verdict), verdict->limit,
                           OFFENDER_SHADOWED);
    return charge_settle(client, &target, request->command, gate);
}

enum gate charge_ask_refusal(struct client *client, const struct request *request,
                             struct verdict *verdict)
{
    struct limit_counters *limit_counters = client->front->limit_counters;
    if (client->bound == NULL && !client->is_keyed)
        return GATE_PASS;
    if (meter_is_waiting(client))
        return GATE_PASS;
    if ((request->command->flags & CMD_CONTROL) != 0)
        return GATE_PASS; /* never refused */
    end_greeting(client);
    const struct charge_target target = payer_for(client, request);
    if (client_is_closed(client))
        return GATE_CLOSE;
    const struct charge_target own = client->is_keyed ? payer_of(client) : target;
    bool is_split = is_others(&target, &own);
    struct amounts amounts;
    struct gate_request ask = ask_for(client, request, &own, &target, &amounts);
    enum gate gate = GATE_PASS;
    if (is_split && own.policy != NULL) {
        ask.part = PART_CONNECTION;
        gate = gate_ask_refusal(&own, &ask, limit_counters, verdict);
    }
    if (gate == GATE_PASS && target.policy != NULL) {
        ask.part = is_split ? PART_COMMAND : PART_ALL;
        gate = gate_ask_refusal(&target, &ask, limit_counters, verdict);
    }
    if (gate == GATE_PASS)
        return GATE_PASS;
    charge_note_refused(client, deciding_target(&target, &own, verdict), verdict);
    return charge_settle(client, &target, request->command, gate);
}

/* ---- what has passed ---- */

/* A client that only listens sends no request, so its bytes are flushed to LIMIT TOP here. */
static void count_bytes(struct client *client, uint64_t n)
{
    uint64_t sum = client->n_bytes + n;
    client->n_bytes = sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
    if (sum > TOP_BYTES_LATEST)
        client_tell_top(client);
}

bool charge_is_in_debt(const struct client *client, enum unit unit)
{
    return client->meter != NULL && alarm_is_set(&client->meter->payments[unit == UNIT_BYTES_OUT]);
}

/*
 * Charges bytes that have passed. A client pays for each piece before the next piece, so it makes
 * progress whatever other clients owe at the same limit.
 */
static void charge_owe(struct client *client, enum unit unit, uint64_t n, uint8_t counted)
{
    struct front *front = client->front;
    uint64_t now_ns = front->loop->now_ns;
    const struct charge_target target = payer_of(client);
    uint64_t virtual_ns = client->meter != NULL ? client->meter->virtual_ns : 0;
    gate_owe_bytes_then(&target, unit, n, counted, now_ns, virtual_ns, front->limit_counters);
    uint64_t over_ns = (counted & GREETING) != 0 ? 0 : gate_overdraft_ns(&target, unit, now_ns);
    if (over_ns == 0 || charge_is_in_debt(client, unit))
        return;
    struct meter *meter = meter_need(client);
    if (meter != NULL)
        alarm_set(&front->alarms, &meter->payments[unit == UNIT_BYTES_OUT], now_ns + over_ns);
}

void charge_bytes_in(struct client *client, uint64_t n, uint8_t counted)
{
    const struct policy *policy = client->bound;
    count_bytes(client, n);
    if (is_greeting(client, n))
        counted |= GREETING;
    count_greeting(client, n);
    if (policy != NULL && policy->of_unit[UNIT_BYTES_IN] != 0)
        charge_owe(client, UNIT_BYTES_IN, n, counted);
}

void charge_bytes_out(struct client *client, uint64_t n, uint8_t counted)
{
    count_bytes(client, n);
    if (!client_counts(client, UNIT_BYTES_OUT))
        return;
    if (client->greeted_bytes < GREETING_MAX && is_greeting(client, 0))
        counted |= GREETING;
    charge_owe(client, UNIT_BYTES_OUT, n, counted);
}

void charge_answered(struct client *client, uint8_t counted)
{
    struct meter *meter = client->meter;
    const struct charge_target target = payer_of(client);
    if (meter == NULL || target.policy == NULL)
        return;
    bool is_counted = (counted & COUNTED) != 0 && meter->counted > 0;
    bool is_shadow = (counted & COUNTED_SHADOW) != 0 && meter->counted_shadow > 0;
    meter->counted -= is_counted;
    meter->counted_shadow -= is_shadow;
    gate_calls_end(&target, is_counted, is_shadow);
}

void charge_calls_lost(struct client *client)
{
    struct meter *meter = client->meter;
    if (meter == NULL)
        return;
    const struct charge_target target = payer_of(client);
    if (target.policy != NULL)
        gate_calls_end(&target, meter->counted, meter->counted_shadow);
    meter->counted = meter->counted_shadow = 0;
}
