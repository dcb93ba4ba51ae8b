/*
 * The three sentinels of a deployment, in runs with run.plan.has_sentinels. The sentinels answer
 * weir's questions, name a new master after a delay, and publish the switch.
 *
 * One sentinel at a time may be down, hang, lie, or know no master. Law, where nothing else fails:
 * weir asks no sentinel more than ten questions in a second.
 */
#ifndef WEIR_SIM_SENTINEL_MODEL_H
#define WEIR_SIM_SENTINEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/kernel.h"

#define SENTINELS_LINE "sentinel:main@127.0.0.11:26379, 127.0.0.12:26379, 127.0.0.13:26379"

/* True if this is a sentinel's address. *is_taken: the connection is accepted. */
bool sentinel_model_dialled(struct conn *conn, bool *is_taken);

void sentinel_model_start(unsigned master);

/* This server is the master now: each sentinel learns of it within a while. */
void sentinel_model_hear(unsigned master);

/* A fault: one sentinel has trouble for `ns`. */
void sentinel_model_fail(uint64_t ns, uint64_t pick);

/* Ends all trouble; all sentinels know the master. */
void sentinel_model_end(void);
void sentinel_model_stop(void);

#endif
