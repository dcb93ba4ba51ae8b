/*
 * Tells the service manager (systemd, or whoever listens at $NOTIFY_SOCKET) how weir stands, as sd_notify(3) does: once that
 * it is ready, in the sense of /readyz, and in words whenever that changes. Where nobody listens nothing happens.
 *
 * The main thread.
 */
#ifndef WEIR_RUN_SD_NOTIFY_H
#define WEIR_RUN_SD_NOTIFY_H

#include <stdbool.h>

#include "run/census.h"

#define SD_NOTIFY_ROOM 640

/* What has been told so far; zero at the start. */
struct sd_notify {
    bool has_been_ready;
    char last_status[SD_NOTIFY_ROOM];
};

/* For every look at how weir stands: readiness once, a status that differs from the last one told. */
void sd_notify_tell(struct sd_notify *notify, const struct census *census);

/* Before and after a reload. */
void sd_notify_reloading(const struct sd_notify *notify);
void sd_notify_reloaded(const struct sd_notify *notify);

/* Lines NAME=VALUE, in printf's format. */
__attribute__((format(printf, 1, 2))) void sd_notify_send(const char *format, ...);

/* Send nothing from now on, or send again: another process speaks for the service. */
void sd_notify_hold(bool is_held);

#endif
