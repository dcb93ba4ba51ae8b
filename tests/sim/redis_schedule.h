/* The choice of the next connection. */
#ifndef WEIR_SIM_REDIS_SCHEDULE_H
#define WEIR_SIM_REDIS_SCHEDULE_H

#include "tests/sim/redis_state.h"

/* The connection may have a command: queues it behind the other connections. */
void schedule_ready(struct redis_conn *conn);

/* The request of a blocked connection is finished, as its wait is over. */
void schedule_done(struct redis_conn *conn);

#endif
