/*
 * Redis hangs: it accepts connections and bytes, and answers nothing, for longer than weir waits.
 * Meanwhile clients send LIMIT, each question on a new connection.
 *
 * Laws: every reply comes within upstream-timeout and 0.1 s, plus the wait that WAIT grants. The
 * reply is the decision or the error that when-down says. Where Redis has just answered that it is
 * no master, or loads, the time for a reply begins when failover-wait is over.
 */
#ifndef WEIR_SIM_HANGS_H
#define WEIR_SIM_HANGS_H

#include <stdint.h>

#define HANGS_TIMEOUT_MS 200 /* upstream-timeout, where Redis hangs */

/*
 * Sections of each configuration of a run with hangs: the limits in the questions, and the policy
 * of the clients.
 */
#define HANGS_SECTIONS                                                                                               \
    "[limit hang-own]\nfunnel = 1/h burst 3\nwhen-down = local\n[limit hang-yes]\nfixed = 2/1d\nwhen-down = allow\n" \
    "[limit hang-no]\nsliding = 2/1d\nwhen-down = deny\n[policy askers]\nmatch = ip:10.0.4.0/24\nall = 1m/s\n"

void hangs_start(void);

/*
 * Starts a hang, unless weir has not started yet or another fault lasts. `pick` chooses how many
 * clients ask.
 */
void hangs_begin(uint64_t pick);

/* Redis has answered a client that it is no master, or loads. */
void hangs_note_not_run(void);

/* No more questions are sent or judged. */
void hangs_end(void);

void hangs_stop(void);

#endif
