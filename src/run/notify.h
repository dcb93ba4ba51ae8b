/*
 * Tells the service manager (systemd, or whoever listens at $NOTIFY_SOCKET) of changes, as sd_notify(3) does.
 */
#ifndef WEIR_RUN_NOTIFY_H
#define WEIR_RUN_NOTIFY_H

#include <stdbool.h>

/* Lines NAME=VALUE, in printf's format. Nothing happens where nobody listens. */
__attribute__((format(printf, 1, 2))) void notify(const char *format, ...);

/* Say nothing from now on, or speak again: another process speaks for the service. */
void notify_hold(bool is_held);

#endif
