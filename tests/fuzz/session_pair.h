/*
 * The two clients, A and B: what they have said, and whether what they read may reach them.
 */
#ifndef WEIR_FUZZ_SESSION_PAIR_H
#define WEIR_FUZZ_SESSION_PAIR_H

#include <stdbool.h>

#include "tests/fuzz/session_steps.h"

#define CLIENT_A 1U /* in a set of clients */
#define CLIENT_B 2U

void pair_start(void);
void pair_play(const struct step *step);

/* Both read what there is, and send what they have kept. */
void pair_settle(void);

/* Still without an answer that they must have; 0: nobody is. */
char pair_waiting(void);

/* Weir may have closed their connections since: was there a reason? To be asked when nobody has anything to do. */
void pair_judge(void);

void pair_leave(void);
void pair_stop(void);

/* Weir may have a reason to close these from now on; a set. */
void pair_excuse(unsigned who);

/* Weir may have a reason to close anybody's from now on, also of who comes later. */
void pair_doubt(void);

/* The same for those that wait for an answer, or ask before weir has noticed: their questions may be on their way. */
void pair_excuse_busy(void);

/* The upstream has sent what is no reply: how many replies there are no longer says anything. */
void pair_distrust(void);

#endif
