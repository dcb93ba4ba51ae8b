/*
 * Sends WATCHDOG=1 to the service manager as long as every worker's loop turns: when one hangs, systemd restarts weir.
 */
#ifndef WEIR_RUN_WATCHDOG_H
#define WEIR_RUN_WATCHDOG_H

#include <stdbool.h>
#include <uv.h>

#include "net/loop.h"
#include "run/crew.h"

struct watchdog {
    uv_timer_t timer;
    struct crew *crew;
    bool is_wanted; /* $WATCHDOG_USEC is set */
};

/* Begin, if the service manager asks for it ($WATCHDOG_USEC). */
void watchdog_start(struct watchdog *watchdog, struct loop *loop, struct crew *crew);

/* Asynchronous, as the loop is closed. Safe on a zeroed one. */
void watchdog_close(struct watchdog *watchdog);

#endif
