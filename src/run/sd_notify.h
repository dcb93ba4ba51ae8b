/*
 * Notifies the service manager (systemd, or whoever listens at $NOTIFY_SOCKET) as sd_notify(3) does: READY=1 once, when
 * weir listens and its workers run, and a STATUS= whenever that changes: what is missing until /readyz says ready.
 * And WATCHDOG=1 as long as the loop of every worker turns: when one hangs, systemd restarts weir. Without
 * $NOTIFY_SOCKET it does nothing. Main thread.
 */
#ifndef WEIR_RUN_SD_NOTIFY_H
#define WEIR_RUN_SD_NOTIFY_H

#include <stdbool.h>
#include <uv.h>

#include "run/census.h"

#define SD_NOTIFY_ROOM 640

/* What has been sent so far; zero at the start. */
struct sd_notify {
    bool has_begun; /* READY=1 has been sent */
    char last_status[SD_NOTIFY_ROOM];
};

/* Called after each census: sends READY=1 once, and the status if it differs from the last one sent. */
void sd_notify_tell(struct sd_notify *notify, const struct census *census);

/* Before and after a reload. */
void sd_notify_reloading(const struct sd_notify *notify);
void sd_notify_reloaded(const struct sd_notify *notify);

/* Send lines NAME=VALUE; printf's format. */
__attribute__((format(printf, 1, 2))) void sd_notify_send(const char *format, ...);

/* Send nothing from now on, because another process speaks for the service; or send again. */
void sd_notify_hold(bool is_held);

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
