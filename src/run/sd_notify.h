/*
 * Notifies the service manager at $NOTIFY_SOCKET (systemd, mostly) as sd_notify(3) does. Without
 * $NOTIFY_SOCKET nothing is sent. Main thread.
 *
 *   READY=1     once weir listens and its workers run, and after each reload
 *   STATUS=     at each change; until /readyz says ready, the reason why weir is not ready
 *   WATCHDOG=1  while the loop of every worker iterates; systemd restarts a weir that hangs
 */
#ifndef WEIR_RUN_SD_NOTIFY_H
#define WEIR_RUN_SD_NOTIFY_H

#include <stdbool.h>
#include <uv.h>

#include "run/stats_collector.h"

#define SD_NOTIFY_ROOM 640

/* The messages that the service manager has received so far; zero at the start. */
struct sd_notify {
    bool has_begun; /* READY=1 has been sent */
    char last_status[SD_NOTIFY_ROOM];
};

/*
 * Sends READY=1 once, and the status if it differs from the last one. Called after each change of
 * state.
 */
void sd_notify_tell(struct sd_notify *notify, const struct stats_collector *collector);

/* To be called before a reload. */
void sd_notify_reloading(const struct sd_notify *notify);

/* To be called after a reload. */
void sd_notify_reloaded(const struct sd_notify *notify);

/* Sends lines NAME=VALUE; printf's format. */
__attribute__((format(printf, 1, 2))) void sd_notify_send(const char *format, ...);

/*
 * With is_held no message is sent from now on, because another process notifies for the service.
 * Without is_held messages are sent again.
 */
void sd_notify_hold(bool is_held);

struct watchdog {
    uv_timer_t timer;
    struct worker_pool *pool;
    bool is_wanted; /* $WATCHDOG_USEC is set */
};

/* Begins to send WATCHDOG=1, if $WATCHDOG_USEC is set. */
void watchdog_start(struct watchdog *watchdog, struct loop *loop, struct worker_pool *pool);

/* Asynchronous: the struct must stay until the loop is closed. Does nothing on a zeroed struct. */
void watchdog_close(struct watchdog *watchdog);

#endif
