/*
 * Beats for the service manager's watchdog, for as long as every worker's loop turns: one that hangs makes systemd start
 * weir again.
 */
#ifndef WEIR_RUN_HEART_H
#define WEIR_RUN_HEART_H

#include <stdbool.h>
#include <uv.h>

#include "net/loop.h"
#include "run/crew.h"

struct heart {
    uv_timer_t timer;
    struct crew *crew;
    bool is_wanted;
};

/* Begin, if a watchdog is there ($WATCHDOG_USEC). */
void heart_start(struct heart *heart, struct loop *loop, struct crew *crew);

/* Asynchronous, as the loop is closed. Safe on a zeroed one. */
void heart_close(struct heart *heart);

#endif
