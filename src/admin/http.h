/*
 * The HTTP server for operators: the page at /, /metrics, /healthz, /readyz, /api/v1/stats, on one thread of its own.
 *
 * It shows the snapshot that was published last, so that requests cost the workers nothing. One request for each
 * connection; a connection may last ten seconds, one second when many are open, so that slow ones block nobody. All
 * functions are for the main thread.
 */
#ifndef WEIR_ADMIN_HTTP_H
#define WEIR_ADMIN_HTTP_H

#include "admin/snapshot.h"

#define HTTP_GUESTS 64 /* connections at a time */

struct http;

/*
 * Serve on the listening socket `fd`, which it takes over. `hosts`: see admin/host.h; NULL: no names. NULL: it cannot
 * be started; the socket is closed.
 */
struct http *http_start(int fd, const char *hosts);

/*
 * Show this snapshot from now on; takes over the reference. To be called once a second: also closes slow connections.
 */
void http_publish(struct http *http, struct snapshot *snapshot);

/* Accept no more connections: another process accepts on the same socket. */
void http_quiesce(struct http *http);

/* Ends the thread and frees. NULL is allowed. */
void http_stop(struct http *http);

#endif
