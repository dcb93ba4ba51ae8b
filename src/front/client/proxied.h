/*
 * Clients of listeners behind a proxy, which says in a header of the PROXY protocol whom it speaks for.
 *
 * Until that header is whole the client is nobody: nothing is charged, and none of its bytes is a request. From then on
 * its address is the one announced. Whoever is not in proxy-protocol-from is not listened to.
 */
#ifndef WEIR_FRONT_PROXIED_H
#define WEIR_FRONT_PROXIED_H

#include <stdbool.h>
#include <stddef.h>

struct client;

/* It has just connected: wait for its header, or close it if it is not to be believed. */
void proxied_begin(struct client *client);

/* Does it wait for the header? */
bool proxied_waits(const struct client *client);

/*
 * While it does. Returns how many of the bytes were the header's. When the header has ended in them the client's
 * address is the announced one, and it is yet to be admitted. It may be closed.
 */
size_t proxied_take(struct client *client, const char *data, size_t n);

#endif
