/*
 * Beats for the service manager's watchdog, for as long as every worker's loop turns: one that hangs makes systemd start
 * weir again.
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
    bool is_wanted;
};

/* Begin, if a watchdog is there ($WATCHDOG_USEC). */
void watchdog_start(struct watchdog *watchdog, struct loop *loop, struct crew *crew);

/* Asynchronous, as the loop is closed. Safe on a zeroed one. */
void watchdog_close(struct watchdog *watchdog);

#endif
