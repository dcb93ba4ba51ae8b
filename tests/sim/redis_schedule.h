/*
 * Who has his turn.
 */
#ifndef WEIR_SIM_REDIS_SCHEDULE_H
#define WEIR_SIM_REDIS_SCHEDULE_H

#include "tests/sim/redis_state.h"

/* It may have something to carry out: it gets its turn behind the others. */
void schedule_ready(struct redis_conn *conn);

/* Its request is carried out, as the waiting is over that it was for. */
void schedule_done(struct redis_conn *conn);

#endif
