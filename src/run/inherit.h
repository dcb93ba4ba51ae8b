/*
 * Listening sockets that were open when this process began: systemd's (sd_listen_fds(3)), or those of a weir that this one
 * takes over from (run/upgrade.h). Connections that wait in them are not lost.
 *
 * A socket is found by the address it is bound to. Which process bound it does not matter: what listens where stands in the
 * configuration.
 */
#ifndef WEIR_RUN_INHERIT_H
#define WEIR_RUN_INHERIT_H

#include <stdbool.h>

#include "net/link.h"

struct inherited;

/* What the environment speaks of, which is removed from it. NULL: something is wrong with it, as the log says. */
struct inherited *inherit_find(void);

/*
 * One of the sockets for this address, non-blocking, now the caller's; -1: there is none left. With port 0 *at is updated
 * with the port that the first one has. *is_systemds: systemd made it, and removes the file of a unix socket itself.
 */
int inherit_take(struct inherited *inherited, struct endpoint *at, bool *is_systemds);

/* Does this process take over from another weir, and where does it answer it? -1: it does not. */
int inherit_predecessor(const struct inherited *inherited);

/* All that were wanted have been taken. False: systemd gave one that nobody wants, as the log says. */
bool inherit_check(const struct inherited *inherited);

/* Closes what has not been taken. NULL may be freed. */
void inherit_free(struct inherited *inherited);

#endif
