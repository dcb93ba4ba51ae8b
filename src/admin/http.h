/*
 * The HTTP server for operators, on a thread of its own: the page at /, /metrics, /healthz,
 * /readyz, /api/v1/stats.
 *
 * The server shows the snapshot published last. Requests therefore cost the workers nothing. Each
 * connection serves one request. A connection may last ten seconds, or one second while many
 * connections are open. A slow connection therefore blocks no other connection. Only the main
 * thread calls the functions of this file.
 */
#ifndef WEIR_ADMIN_HTTP_H
#define WEIR_ADMIN_HTTP_H

#include "admin/snapshot.h"

#define HTTP_GUESTS 64 /* connections at a time (chosen) */

struct http;

/*
 * Serves on the listening socket `fd`, which the server owns from now on. `hosts`: the `names` of
 * host_is_known (admin/host.h); NULL: no names. Returns NULL if the server cannot start; `fd` is
 * then closed.
 */
struct http *http_start(int fd, const char *hosts);

/*
 * Replaces the shown snapshot, and closes slow connections. The server takes over the caller's
 * reference. The main thread calls this function once a second.
 */
void http_publish(struct http *http, struct snapshot *snapshot);

/* Stops accepting. Called when another process accepts on the same socket. */
void http_quiesce(struct http *http);

/* Stops the thread and frees the server. Safe on NULL. */
void http_stop(struct http *http);

#endif
