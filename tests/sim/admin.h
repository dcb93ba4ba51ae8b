/*
 * An administrator, who speaks with Redis itself: what he does there beside weir, and what clients may hear because of
 * it. What he has done holds when Redis has answered him; what he undoes, no longer.
 */
#ifndef WEIR_SIM_ADMIN_H
#define WEIR_SIM_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/client.h"

void admin_start(void);

/* He takes everything back: nothing is amiss any more as soon as Redis answers. */
void admin_rest(void);

/* Redis has started anew: as it was at the very beginning. */
void admin_note_restart(void);

/* As faults: how long it lasts, and which of several. */
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

/* Redis wants a password of everybody, or none any more. */
#define ADMIN_PASSWORD_NS (UINT64_C(30) * 1000000000) /* weir has noticed by then, whatever has befallen it before */
void admin_change_password(void);

/* An error that tells of what was amiss at some moment since the request was read. */
bool admin_excuses(const struct act *act, const struct reply *reply);

/* As redis.h has it: Redis itself tells when. */
void admin_hear_stuck(bool is_killed);

/* A script may have been killed since the request was read. */
bool admin_may_have_killed(const struct act *act);

/* Whether Redis lets everybody in; who comes now gets to know it. */
bool admin_lets_in(void);

/* Nothing is known of whether a password is wanted, or was at some moment since then. */
bool admin_is_changing(uint64_t since_ns);

/*
 * Who has not said who it is may be refused: a password is wanted or was; or none is any more, which weir notices when
 * somebody has tried, and is told here that somebody was refused.
 */
bool admin_may_refuse(const struct act *act);
void admin_note_refused(const struct act *act);

/* A user of the plan: certainly not there, or not at some moment, since the request was read. */
bool admin_has_locked(unsigned user, const struct act *act);
bool admin_may_have_locked(unsigned user, const struct act *act);

/* The same of one of its passwords (proof_laws.h). */
bool admin_has_taken(unsigned user, unsigned token, const struct act *act);
bool admin_may_have_taken(unsigned user, unsigned token, const struct act *act);

#endif
