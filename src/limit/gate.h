/*
 * The gate: the one function that decides whether a command goes now, waits, or is refused, and by which limit; and the
 * same for connections, and for what is charged when it has passed.
 *
 * Where only one limit binds in the whole policy the funnel's word decides alone; where several can bind together,
 * every decision for that subject is made under its lock: all are asked, then all are charged. Limits that are only
 * counted (shadow) are asked after the others, as if they were enforced, and then charged or not as that says.
 */
#ifndef WEIR_LIMIT_GATE_H
#define WEIR_LIMIT_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "limit/ask.h"
#include "limit/command.h"
#include "limit/ledger.h"
#include "limit/policy.h"
#include "limit/subject.h"

/*
 * May the command go? What one limit refuses now is refused, whatever others would delay.
 *
 * GATE_PASS: it was charged to every limit that binds it. GATE_WAIT: it has a place in the queue of the limit that
 * delays it longest. Ask again after verdict->wait_ns, with waited_for and the turn of the newest verdict: then it is
 * put at the head of the other limits' queues, where it may have to wait a little again, as it may if the caller is
 * late. Else nothing was charged, and *verdict tells why; after GATE_CLOSE the connection is to be closed. `tallies`
 * are the caller's own, by limit id. Any thread.
 */
__attribute__((warn_unused_result)) enum gate gate_ask(const struct account *account, const struct ask *ask,
                                                       struct tally *tallies, struct verdict *verdict);

/*
 * Would it be refused now? Then that is counted, and the answer is gate_ask's. GATE_PASS: it would not, it may have to
 * wait, and nothing was charged or counted.
 */
__attribute__((warn_unused_result)) enum gate gate_ask_refusal(const struct account *account, const struct ask *ask,
                                                               struct tally *tallies, struct verdict *verdict);

/*
 * gate_ask in fewer steps, for a policy that is_plain: true is GATE_PASS, false GATE_REFUSE.
 */
__attribute__((warn_unused_result)) bool gate_ask_plainly(const struct policy *policy, struct subject *subject,
                                                          const struct command *command, uint64_t now_ns,
                                                          struct tally *tallies, struct verdict *verdict);

/*
 * What is never refused (class control) is not held up by limits on bytes in gate_ask; it waits here for as long as its
 * connection is in debt. GATE_WAIT: for verdict->wait_ns, and then it may go, whatever others owe by then. GATE_PASS:
 * nothing is owed. Without `tallies` nothing is counted.
 */
__attribute__((warn_unused_result)) enum gate gate_ask_debtor(const struct account *account, uint64_t now_ns,
                                                              struct tally *tallies, struct verdict *verdict);

/*
 * The command that had this turn leaves its queues. A place with none behind it is given back; one with others behind
 * it stays charged, for they have been told when to go.
 */
void gate_leave(const struct turn *turn, struct tally *tallies);

/*
 * How long until no more than one burst is owed beyond the limit on bytes; 0: no more is. For so long nothing more that
 * can be stopped is to pass: the rest of a large request or reply, messages.
 */
uint64_t gate_overdraft_ns(const struct account *account, enum unit unit, uint64_t now_ns);

/* `n` bytes have passed, of a call that was let through with these flags, or of none (0). */
void gate_owe_bytes(const struct account *account, enum unit unit, uint64_t n, uint8_t counted, uint64_t now_ns,
                    struct tally *tallies);

/*
 * Calls that were COUNTED, and COUNTED_SHADOW, are answered; or, with other numbers, are somebody else's from now on.
 */
void gate_calls_end(const struct account *account, uint64_t counted, uint64_t counted_shadow);
void gate_calls_begin(const struct account *account, uint64_t counted, uint64_t counted_shadow);

/* As if a call that was COUNTED*, and has gone nowhere, had never been asked about. */
void gate_calls_revoke(const struct account *account, uint8_t counted, struct tally *tallies);

/*
 * One more connection of this subject, to the limits on connections and connects. GATE_PASS: charged, and
 * verdict->counted says what gate_disconnect is to take away again. GATE_CLOSE: too many; nothing was charged.
 */
__attribute__((warn_unused_result)) enum gate gate_connect(const struct account *account, uint64_t now_ns,
                                                           struct tally *tallies, struct verdict *verdict);
void gate_disconnect(const struct account *account, uint8_t counted);

/* A connection that is here already comes under this account: it is counted, not asked. Returns COUNTED*. */
uint8_t gate_reconnect(const struct account *account);

/*
 * Failed logins. gate_may_login: may one more be tried? gate_login_failed: it failed. The holder PER_SUBJECT is that of
 * the client's address. Without tallies nothing is counted.
 */
__attribute__((warn_unused_result)) bool gate_may_login(const struct account *account, uint64_t now_ns,
                                                        struct tally *tallies);
void gate_login_failed(const struct account *account, uint64_t now_ns, struct tally *tallies);

/* How one limit stands for its holder. */
struct standing {
    uint64_t remaining;      /* units that would pass now */
    int64_t retry_after_ns;  /* until one more unit passes; -1 when it would pass now */
    uint64_t reset_after_ns; /* until the funnel is empty */
};

struct standing gate_standing(const struct account *account, unsigned index, uint64_t now_ns);

/* Can a limit of this part that is enforced make the command wait? */
bool gate_delays(const struct policy *policy, const struct command *command, enum part part);

/* Does limit `index` bind the command when it wants to pass, or make it wait? */
bool gate_binds(const struct policy *policy, unsigned index, const struct command *command);

#endif
