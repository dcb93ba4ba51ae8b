/*
 * The two clients A and B: sends their requests, and checks that the bytes they read may reach
 * them.
 */
#ifndef WEIR_FUZZ_SESSION_PAIR_H
#define WEIR_FUZZ_SESSION_PAIR_H

#include <stdbool.h>

#include "tests/fuzz/session_steps.h"

#define CLIENT_A 1U /* bits of a set of clients */
#define CLIENT_B 2U

void pair_start(void);
void pair_play(const struct step *step);

/* Both clients read all available bytes, and send the bytes they kept back. */
void pair_settle(void);

/* Name of a client that still waits for a required answer; 0: none. */
char pair_waiting(void);

/*
 * Checks that weir had a reason to close the connections closed since the last call. Only to be
 * called when the world is idle.
 */
void pair_judge(void);

void pair_leave(void);
void pair_stop(void);

/* From now on weir may close the connections of this set of clients. */
void pair_excuse(unsigned who);

/* From now on weir may close any connection, also later ones. */
void pair_doubt(void);

/*
 * From now on weir may close clients that wait for an answer, and clients that send a request
 * before weir notices the lost lane. Their requests may be under way.
 */
void pair_excuse_busy(void);

/*
 * The upstream has sent bytes that are no reply. From now on the number of replies is not checked.
 */
void pair_distrust(void);

#endif
