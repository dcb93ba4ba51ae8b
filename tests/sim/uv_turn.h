/* The parts of a loop's iteration, and functions for all kinds of handles. */
#ifndef WEIR_SIM_UV_TURN_H
#define WEIR_SIM_UV_TURN_H

#include "tests/sim/loops.h"

enum { PREPARE, CHECK, IDLE }; /* indices of struct sim_loop's `every` */

enum { ACTIVE = 1, REF = 2, CLOSING = 4, CLOSED = 8 }; /* bits of a handle's flags */

static inline struct sim_loop *loop_of(const uv_loop_t *uv)
{
    return uv->internal_fields;
}

void uv_run_timers(struct sim_loop *loop);
void uv_run_signals(struct sim_loop *loop);
bool uv_is_signalled(const struct sim_loop *loop); /* true if a signal is pending */
void uv_run_asyncs(struct sim_loop *loop);
void uv_run_every(struct sim_loop *loop, int kind);
void uv_run_closing(struct sim_loop *loop);

void uv_begin_handle(uv_loop_t *uv, uv_handle_t *handle, uv_handle_type type);
void uv_go_handle(uv_handle_t *handle);   /* marks the handle active */
void uv_rest_handle(uv_handle_t *handle); /* marks the handle inactive */

/* For a handle that is being closed. */
void uv_end_signal(uv_signal_t *handle);
void uv_forget_sent(struct sim_loop *loop, const uv_handle_t *async);

#endif
