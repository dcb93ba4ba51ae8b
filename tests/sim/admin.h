/*
 * An administrator with a direct connection to Redis: the administrator's actions, and the errors
 * that clients may get because of them. An action is in force once Redis has answered. A reversal
 * is in force once it is sent.
 */
#ifndef WEIR_SIM_ADMIN_H
#define WEIR_SIM_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/client.h"

void admin_start(void);

/* Reverses all actions: no fault is left once Redis has answered. */
void admin_rest(void);

/* Redis has restarted: all state is as at the start of the run. */
void admin_note_restart(void);

/* Faults: `ns` is how long the fault lasts, `pick` chooses one of several variants. */
void admin_need_memory(uint64_t ns, uint64_t pick);
void admin_need_replicas(uint64_t ns, uint64_t pick);
void admin_need_disk(uint64_t ns, uint64_t pick);
void admin_need_master(uint64_t ns, uint64_t pick);
void admin_flush(uint64_t ns, uint64_t pick);
void admin_flush_scripts(uint64_t ns, uint64_t pick);
void admin_kill_script(uint64_t ns, uint64_t pick);
void admin_pause(uint64_t ns, uint64_t pick);
void admin_kill(uint64_t ns, uint64_t pick);
void admin_lock_user(uint64_t ns, uint64_t pick);
void admin_take_token(uint64_t ns, uint64_t pick);

/* Sets or removes the password that Redis requires of the default user. */
/* time after which weir has noticed a changed password, even after other faults */
#define ADMIN_PASSWORD_NS (UINT64_C(30) * 1000000000)
void admin_change_password(void);

/* True if Redis had the need that the error reports at some moment since the request was read. */
bool admin_excuses(const struct act *act, const struct reply *reply);

/* Redis reports a stuck script; see redis.h. */
void admin_hear_stuck(bool is_killed);

/* True if a script may have been killed since the request was read. */
bool admin_may_have_killed(const struct act *act);

/* True if Redis requires no password of a new connection. */
bool admin_lets_in(void);

/* True if a change of the password may have been under way at some moment since `since_ns`. */
bool admin_is_changing(uint64_t since_ns);

/*
 * True if a client without a login may be refused: a password is or was required. After the
 * password was removed, clients may be refused until weir notices. weir notices when a client tries
 * to log in. admin_note_refused reports a refused client.
 */
bool admin_may_refuse(const struct act *act);
void admin_note_refused(const struct act *act);

/*
 * has: the user of the plan did not exist for all the time since the request was read. may_have:
 * the user did not exist at some moment since the request was read.
 */
bool admin_has_locked(unsigned user, const struct act *act);
bool admin_may_have_locked(unsigned user, const struct act *act);

/* As admin_has_locked and admin_may_have_locked, for one password of the user (proof_laws.h). */
bool admin_has_taken(unsigned user, unsigned token, const struct act *act);
bool admin_may_have_taken(unsigned user, unsigned token, const struct act *act);

#endif
