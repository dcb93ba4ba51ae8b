/*
 * Tells the service manager (systemd, or whoever listens at $NOTIFY_SOCKET) of changes, as sd_notify(3) does.
 */
#ifndef WEIR_RUN_NOTIFY_H
#define WEIR_RUN_NOTIFY_H

/* Lines NAME=VALUE, in printf's format. Nothing happens where nobody listens. */
__attribute__((format(printf, 1, 2))) void notify(const char *format, ...);

#endif
