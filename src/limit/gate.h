/*
 * The gate decides whether a command goes now, waits or is refused, and by which limit. The gate
 * decides likewise about connections and logins, and charges costs that are known only later.
 *
 * In a policy with one limit the word of the funnel decides alone. Where several limits can apply
 * to one command, each decision is made under the lock of the subject: all limits are checked, then
 * all are charged. Limits in shadow mode are checked after the enforced ones. Each shadow limit is
 * treated as enforced, and charged as if shadow limits alone decided. `limit_counters` are always
 * the counters of the caller's worker, by limit id.
 */
#ifndef WEIR_LIMIT_GATE_H
#define WEIR_LIMIT_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "limit/gate_request.h"
#include "limit/command/command.h"
#include "limit/figures/registry.h"
#include "limit/policy/policy.h"
#include "limit/subject.h"

/*
 * Decides about one command. A limit that refuses the command now outweighs all limits that would
 * delay it.
 *
 * GATE_PASS: every limit that applies to the command is charged. GATE_WAIT: the command has a
 * position in the queue of the limit that delays it longest. Ask again after verdict->wait_ns, with
 * waited_for and the positions of that verdict. The command then gets the head of the other limits'
 * queues. Even then the command may have to wait a little more, as may a command that is asked
 * again too late.
 *
 * Any other result: nothing is charged, and *verdict holds the reason. After GATE_CLOSE the caller
 * closes the connection. Any thread.
 */
__attribute__((warn_unused_result)) enum gate gate_ask(const struct charge_target *target,
                                                       const struct gate_request *ask,
                                                       struct limit_counters *limit_counters,
                                                       struct verdict *verdict);

/*
 * Checks only whether the command would be refused now. A refusal is counted and returned as
 * gate_ask does. GATE_PASS: the command would pass or wait; nothing is charged or counted.
 */
__attribute__((warn_unused_result)) enum gate gate_ask_refusal(
    const struct charge_target *target, const struct gate_request *ask,
    struct limit_counters *limit_counters, struct verdict *verdict);

/*
 * gate_ask in fewer steps, for a policy with is_plain. Decides n > 0 commands of this row, one
 * after the other at now_ns. Returns how many commands pass, always the first ones. Each remaining
 * command gets GATE_REFUSE with *verdict.
 */
__attribute__((warn_unused_result)) uint32_t gate_ask_plainly(
    const struct policy *policy, struct subject *subject, const struct command *command, uint32_t n,
    uint64_t now_ns, struct limit_counters *limit_counters, struct verdict *verdict);

/*
 * gate_ask_refusal in fewer steps. True if all n commands are refused. False: nothing is charged or
 * counted.
 */
__attribute__((warn_unused_result)) bool gate_refuse_plainly(
    const struct policy *policy, struct subject *subject, const struct command *command, uint32_t n,
    uint64_t now_ns, struct limit_counters *limit_counters, struct verdict *verdict);

/*
 * For a command of class control: gate_ask does not stop commands of this class for limits on
 * bytes. GATE_WAIT: the connection owes bytes. The command waits for verdict->wait_ns and then goes
 * without another check. GATE_PASS: nothing is owed. If counters is NULL nothing is counted.
 */
__attribute__((warn_unused_result)) enum gate gate_ask_debtor(const struct charge_target *target,
                                                              uint64_t now_ns,
                                                              struct limit_counters *limit_counters,
                                                              struct verdict *verdict);

/*
 * gate_ask_debtor for a command that has waited. GATE_WAIT: the debt of bytes exceeds one burst.
 * Counts nothing.
 */
__attribute__((warn_unused_result)) enum gate gate_ask_overdrawn(const struct charge_target *target,
                                                                 uint64_t now_ns,
                                                                 struct verdict *verdict);

/*
 * Updates the positions of a command that waits. Returns when the command may go, in ns; 0: the
 * command has no position.
 */
uint64_t gate_positions_due(struct queue_positions *positions);

/*
 * Gives back the positions of a command that waited and will not go. A position with commands
 * behind it stays charged, since the times of these commands are already fixed.
 */
void gate_leave(const struct queue_positions *positions, struct limit_counters *limit_counters);

/*
 * Clears the holders of the positions: the caller may then release these subjects. The charges of
 * the command stay.
 */
void gate_forget_positions(struct queue_positions *positions);

/*
 * Converts the debts of the holders to the rates of the policy, unless a holder has newer rates.
 * Every decision first settles its charge target. gate_settle_holder converts the debts of one
 * holder outside any charge target.
 */
void gate_settle(const struct charge_target *target, uint64_t now_ns);
void gate_settle_holder(const struct policy *policy, struct subject *holder, enum scope scope,
                        uint64_t now_ns);

/*
 * Time in ns until the debt of bytes is at most one burst beyond the limit; 0: no excess. For this
 * time the caller reads no more of a large request or reply, and no more messages.
 */
uint64_t gate_overdraft_ns(const struct charge_target *target, enum unit unit, uint64_t now_ns);

/*
 * Charges `n` bytes that have passed. `counted`: the flags from the verdict of the call with these
 * bytes; 0: the bytes belong to no call.
 */
void gate_owe_bytes(const struct charge_target *target, enum unit unit, uint64_t n, uint8_t counted,
                    uint64_t now_ns, struct limit_counters *limit_counters);

/*
 * gate_owe_bytes for a policy with limits in shadow mode that would delay. These limits are charged
 * at virtual_ns, the virtual clock of the connection (struct gate_request).
 */
void gate_owe_bytes_then(const struct charge_target *target, enum unit unit, uint64_t n,
                         uint8_t counted, uint64_t now_ns, uint64_t virtual_ns,
                         struct limit_counters *limit_counters);

/*
 * Takes calls off the gauges of calls in flight of this charge target: `counted` calls with
 * COUNTED, `counted_shadow` calls with COUNTED_SHADOW. gate_calls_begin adds calls, when a client
 * changes its charge target.
 */
void gate_calls_end(const struct charge_target *target, uint64_t counted, uint64_t counted_shadow);
void gate_calls_begin(const struct charge_target *target, uint64_t counted,
                      uint64_t counted_shadow);

/*
 * Undoes the counting of a call that was not sent after all; `counted` holds the flags of its
 * verdict.
 */
void gate_calls_revoke(const struct charge_target *target, uint8_t counted,
                       struct limit_counters *limit_counters);

/*
 * Checks one more connection against the limits on `units`: 1U << UNIT_CONNECTS,
 * 1U << UNIT_CONNECTIONS, or both. GATE_PASS: charged; pass verdict->counted to gate_disconnect
 * when the connection ends. GATE_CLOSE: nothing is charged, and verdict->limit is the limit
 * exceeded.
 */
__attribute__((warn_unused_result)) enum gate gate_connect(const struct charge_target *target,
                                                           unsigned units, uint64_t now_ns,
                                                           struct limit_counters *limit_counters,
                                                           struct verdict *verdict);
void gate_disconnect(const struct charge_target *target, uint8_t counted);

/*
 * Counts an existing connection that moves to this charge target, without a check. Returns
 * COUNTED*.
 */
uint8_t gate_reconnect(const struct charge_target *target);

/*
 * Failed logins. gate_may_login: true if one more login may be tried; gate_login_failed charges a
 * failure. The holder PER_SUBJECT is the subject of the client's address. If counters is NULL
 * nothing is counted.
 */
__attribute__((warn_unused_result)) bool gate_may_login(const struct charge_target *target,
                                                        uint64_t now_ns,
                                                        struct limit_counters *limit_counters);

/*
 * How many logins may fail now before the next one is refused. UINT64_MAX: no enforced limit counts
 * failures.
 */
uint64_t gate_logins_left(const struct charge_target *target, uint64_t now_ns);
void gate_login_failed(const struct charge_target *target, uint64_t now_ns,
                       struct limit_counters *limit_counters);

/* The state of one limit for its holder. */
struct standing {
    uint64_t remaining;      /* units that would pass now */
    int64_t retry_after_ns;  /* until one more unit passes; -1: one passes now */
    uint64_t reset_after_ns; /* until the funnel is empty */
};

struct standing gate_standing(const struct charge_target *target, unsigned index, uint64_t now_ns);

/* True if an enforced limit of this part can delay the command. */
bool gate_delays(const struct policy *policy, const struct command *command, enum part part);

/* True if limit `index` of the policy applies to the command. */
bool gate_binds(const struct policy *policy, unsigned index, const struct command *command);

#endif
