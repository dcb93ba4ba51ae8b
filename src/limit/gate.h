/*
 * The gate: decides whether a command goes now, waits, or is refused, and by which limit; the same for connections and
 * logins; and charges what is known only later.
 *
 * In a policy with one limit the funnel's word decides alone; where several can bind together every decision is made
 * under the subject's lock: all are asked, then all are charged. Limits in shadow mode are asked after the others, as
 * if they were enforced, and charged as if they alone decided. `tallies` are always the caller's worker's, by limit id.
 */
#ifndef WEIR_LIMIT_GATE_H
#define WEIR_LIMIT_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "limit/ask.h"
#include "limit/command/command.h"
#include "limit/figures/ledger.h"
#include "limit/policy/policy.h"
#include "limit/subject.h"

/*
 * May the command go? If one limit refuses it now it is refused, whatever others would delay.
 *
 * GATE_PASS: it was charged to every limit that binds it. GATE_WAIT: it has a place in the queue of the limit that
 * delays it longest. Ask again after verdict->wait_ns, with waited_for and the turn of that verdict: then it is put at
 * the head of the other limits' queues, and may have to wait a little more, as it may when the caller is late.
 * Otherwise nothing was charged, and *verdict says why; after GATE_CLOSE the connection is to be closed. Any thread.
 */
__attribute__((warn_unused_result)) enum gate gate_ask(const struct account *account, const struct ask *ask,
                                                       struct tally *tallies, struct verdict *verdict);

/*
 * Would it be refused now? Then the refusal is counted, and the result is that of gate_ask. GATE_PASS: it would pass or
 * wait; nothing was charged or counted.
 */
__attribute__((warn_unused_result)) enum gate gate_ask_refusal(const struct account *account, const struct ask *ask,
                                                               struct tally *tallies, struct verdict *verdict);

/*
 * gate_ask in fewer steps, for a policy with is_plain, and for n > 0 commands of this row one after the other at the
 * same time: returns how many are GATE_PASS, which are the first ones. The others are GATE_REFUSE, each with *verdict.
 */
__attribute__((warn_unused_result)) uint32_t gate_ask_plainly(const struct policy *policy, struct subject *subject,
                                                              const struct command *command, uint32_t n,
                                                              uint64_t now_ns, struct tally *tallies,
                                                              struct verdict *verdict);

/* And gate_ask_refusal: true if they are refused, all n. Else nothing was charged or counted. */
__attribute__((warn_unused_result)) bool gate_refuse_plainly(const struct policy *policy, struct subject *subject,
                                                             const struct command *command, uint32_t n, uint64_t now_ns,
                                                             struct tally *tallies, struct verdict *verdict);

/*
 * For a command of class control, which gate_ask does not stop for limits on bytes: does its connection owe bytes?
 * GATE_WAIT: it waits for verdict->wait_ns, and then goes without asking again. GATE_PASS: nothing is owed. With
 * tallies NULL nothing is counted.
 */
__attribute__((warn_unused_result)) enum gate gate_ask_debtor(const struct account *account, uint64_t now_ns,
                                                              struct tally *tallies, struct verdict *verdict);

/* The same for one that has waited: is more than one burst owed? Nothing is counted. */
__attribute__((warn_unused_result)) enum gate gate_ask_overdrawn(const struct account *account, uint64_t now_ns,
                                                                 struct verdict *verdict);

/* When a command that waits may go, as its places stand now; they are brought up to date. 0: it has none. */
uint64_t gate_turn_due(struct turn *turn);

/*
 * A command that was waiting will not go. A place at the end of its queue is given back; one with others behind it
 * stays charged, since their times are already fixed.
 */
void gate_leave(const struct turn *turn, struct tally *tallies);

/* The holders of its places may be let go; what it has been charged is known still. */
void gate_forget_places(struct turn *turn);

/*
 * Have the debts of the account's holders run out at the rates of its policy, or newer ones, from now on: what every
 * decision does first. And of one holder that no account has now.
 */
void gate_settle(const struct account *account, uint64_t now_ns);
void gate_settle_holder(const struct policy *policy, struct subject *holder, enum scope scope, uint64_t now_ns);

/*
 * How long until the debt of bytes is no more than one burst beyond the limit; 0: it is not more. For that long no more
 * is to be read of a large request or reply, or of messages.
 */
uint64_t gate_overdraft_ns(const struct account *account, enum unit unit, uint64_t now_ns);

/* Charge `n` bytes that have passed. `counted`: the flags of their call's verdict; 0: they belong to no call. */
void gate_owe_bytes(const struct account *account, enum unit unit, uint64_t n, uint8_t counted, uint64_t now_ns,
                    struct tally *tallies);

/*
 * The same where limits in shadow mode would delay: to them the bytes have passed when the connection's virtual clock
 * (struct ask) says so.
 */
void gate_owe_bytes_then(const struct account *account, enum unit unit, uint64_t n, uint8_t counted, uint64_t now_ns,
                         uint64_t virtual_ns, struct tally *tallies);

/*
 * So many calls with COUNTED, and with COUNTED_SHADOW, are no longer in flight under this account; or are from now on
 * (when a client changes its account).
 */
void gate_calls_end(const struct account *account, uint64_t counted, uint64_t counted_shadow);
void gate_calls_begin(const struct account *account, uint64_t counted, uint64_t counted_shadow);

/* Undo the gate's counting for a call with these flags that was not sent after all. */
void gate_calls_revoke(const struct account *account, uint8_t counted, struct tally *tallies);

/*
 * One more connection, for the limits on connections and connects. GATE_PASS: charged; pass verdict->counted to
 * gate_disconnect when it ends. GATE_CLOSE: too many; nothing was charged, and verdict->limit says so.
 */
__attribute__((warn_unused_result)) enum gate gate_connect(const struct account *account, uint64_t now_ns,
                                                           struct tally *tallies, struct verdict *verdict);

/* The same for a part of these limits: `units` is 1U << UNIT_CONNECTS, or 1U << UNIT_CONNECTIONS, or both. */
__attribute__((warn_unused_result)) enum gate gate_connect_units(const struct account *account, unsigned units,
                                                                 uint64_t now_ns, struct tally *tallies,
                                                                 struct verdict *verdict);
void gate_disconnect(const struct account *account, uint8_t counted);

/* An existing connection changes to this account: count it without asking. Returns COUNTED*. */
uint8_t gate_reconnect(const struct account *account);

/*
 * Failed logins: may one more login be tried? And: one has failed. The account's holder PER_SUBJECT is the subject of
 * the client's address. With tallies NULL nothing is counted.
 */
__attribute__((warn_unused_result)) bool gate_may_login(const struct account *account, uint64_t now_ns,
                                                        struct tally *tallies);

/* How many logins may fail now before the next is refused; UINT64_MAX: no enforced limit counts failures. */
uint64_t gate_logins_left(const struct account *account, uint64_t now_ns);
void gate_login_failed(const struct account *account, uint64_t now_ns, struct tally *tallies);

/* The state of one limit for its holder. */
struct standing {
    uint64_t remaining;      /* units that would pass now */
    int64_t retry_after_ns;  /* until one more unit passes; -1 when it would pass now */
    uint64_t reset_after_ns; /* until the funnel is empty */
};

struct standing gate_standing(const struct account *account, unsigned index, uint64_t now_ns);

/* Can an enforced limit of this part delay the command? */
bool gate_delays(const struct policy *policy, const struct command *command, enum part part);

/* Does limit `index` of the policy bind the command? */
bool gate_binds(const struct policy *policy, unsigned index, const struct command *command);

#endif
