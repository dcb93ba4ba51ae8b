/*
 * The HTTP server for operators: the page at /, /metrics, /healthz, /readyz, /api/v1/stats, on one thread of its own.
 *
 * It shows the snapshot that was published last, so that whoever asks costs the workers nothing. One request a
 * connection; a connection lives ten seconds at most, and one when many are open, so that slow ones hold nobody up.
 * All functions are for one thread, the main one.
 */
#ifndef WEIR_ADMIN_HTTP_H
#define WEIR_ADMIN_HTTP_H

#include "admin/snapshot.h"

#define HTTP_GUESTS 64 /* connections at a time */

struct http;

/*
 * Serve at the listening socket `fd`, which it takes over, whoever asks by address or by one of the names in `hosts`
 * (see admin/host.h; NULL: none). NULL: the system refuses; the socket is closed.
 */
struct http *http_start(int fd, const char *hosts);

/* Show this from now on; takes over the reference. To be called once a second: it also ends what takes too long. */
void http_publish(struct http *http, struct snapshot *snapshot);

/* Take no more connections: the socket is another process' too, and those that come are its. */
void http_quiesce(struct http *http);

/* Ends the thread. NULL may be stopped. */
void http_stop(struct http *http);

#endif
