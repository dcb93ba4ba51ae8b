/*
 * The sentinels of a deployment, in runs that have them (run.plan.has_sentinels): three, that answer what weir asks,
 * name the master once they have heard of it, each in its own time, and publish the switch.
 *
 * One of them at a time may be down, hang, lie or know nothing. Law, where nothing else goes wrong: none is asked more
 * than ten questions in a second.
 */
#ifndef WEIR_SIM_SENTINEL_MODEL_H
#define WEIR_SIM_SENTINEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/kernel.h"

#define SENTINELS_LINE "sentinel:main@127.0.0.11:26379, 127.0.0.12:26379, 127.0.0.13:26379"

/* True if this address is of sentinels; whether it answers is in *is_taken. */
bool sentinel_model_dialled(struct conn *conn, bool *is_taken);

void sentinel_model_start(unsigned master);

/* This server is the master now: each hears of it within a while. */
void sentinel_model_hear(unsigned master);

/* A fault: something is amiss with one of them for so long. */
void sentinel_model_fail(uint64_t ns, uint64_t pick);

/* All are well, and know the master. */
void sentinel_model_end(void);
void sentinel_model_stop(void);

#endif
