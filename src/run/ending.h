/*
 * Ends what operators have ordered for a time, when that is over. The main thread.
 */
#ifndef WEIR_RUN_ENDING_H
#define WEIR_RUN_ENDING_H

#include <uv.h>

#include "net/loop.h"
#include "run/commands/governor.h"

struct ending {
    struct governor *governor;
    uv_timer_t timer;
};

void ending_open(struct ending *ending, struct loop *loop, struct governor *governor);

/* Wait for what ends next, which another order may have changed. */
void ending_await(struct ending *ending);

/* Asynchronous, as the loop is closed. */
void ending_close(struct ending *ending);

#endif
