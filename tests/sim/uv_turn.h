/*
 * The parts of a loop's turn.
 */
#ifndef WEIR_SIM_UV_TURN_H
#define WEIR_SIM_UV_TURN_H

#include "tests/sim/loops.h"

enum { PREPARE, CHECK, IDLE }; /* struct sim_loop's `every` */

static inline struct sim_loop *loop_of(const uv_loop_t *uv)
{
    return uv->internal_fields;
}

void uv_run_timers(struct sim_loop *loop);
void uv_run_signals(struct sim_loop *loop);
void uv_run_asyncs(struct sim_loop *loop);
/* All that are ready now, in any order; who still is afterwards is so again in the next turn. */
void uv_run_polls(struct sim_loop *loop);
void uv_run_every(struct sim_loop *loop, int kind);
void uv_run_closing(struct sim_loop *loop);

#endif
