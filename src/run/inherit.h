/*
 * Listening sockets that this process inherited: from systemd (sd_listen_fds(3)), or from a weir that it replaces
 * (run/upgrade.h). Connections that wait in them are not lost.
 *
 * A socket is used for the configured address that it is bound to, whoever bound it.
 */
#ifndef WEIR_RUN_INHERIT_H
#define WEIR_RUN_INHERIT_H

#include <stdbool.h>

#include "net/link.h"

struct inherited;

/* The sockets named in the environment, whose variables are removed. NULL: something is wrong with them; logged. */
struct inherited *inherit_find(void);

/*
 * Take one of the sockets for this address: non-blocking, the caller closes it; -1: none left. With port 0 *at is
 * updated with the port of the first one. *is_systemds: systemd made it, and removes the file of a unix socket itself.
 */
int inherit_take(struct inherited *inherited, struct endpoint *at, bool *is_systemds);

/* The descriptor on which to answer the weir that this process replaces; -1: it replaces none. */
int inherit_predecessor(const struct inherited *inherited);

/* True if that one answers an offer (succession_offer). */
bool inherit_has_answers(const struct inherited *inherited);

/* What operators have ordered of the weir that this process replaces, as text (run/commands/handover.h). NULL: it hands none over. */
const char *inherit_orders(const struct inherited *inherited);

/* The nodes that the weir knows which this process replaces (controls_list_nodes). NULL: it tells none. */
const char *inherit_nodes(const struct inherited *inherited);

/* After all takes. False: systemd passed a socket that no address is configured for; logged. */
bool inherit_check(const struct inherited *inherited);

/* Closes what has not been taken. NULL is allowed. */
void inherit_free(struct inherited *inherited);

#endif
