/*
 * How clients come in: through which of weir's addresses, from which address, and with which header of the PROXY protocol.
 * All that follows from a client's number and how often it has come.
 */
#ifndef WEIR_SIM_ENTRANCE_H
#define WEIR_SIM_ENTRANCE_H

#include <stddef.h>

struct client;
struct conn;

/* Bits of plan.entrances; none: only the first address of TCP. */
#define ENTRANCE_SECOND 1U
#define ENTRANCE_UNIX 2U
#define ENTRANCE_PROXY 4U
#define ENTRANCE_ALL 7U

#define ADMIN_PATH "/sim/admin.sock"

/* struct client's `address`: 10.0.0.1 and so on, then these. */
#define ADDRESSES 8
#define ADDRESS_UNIX ADDRESSES           /* ip:unix */
#define ADDRESS_BALANCER (ADDRESSES + 1) /* its own, when it says nothing of anybody */
#define FREE_ADDRESS (ADDRESSES - 1)
#define FREE_ADDRESS_TEXT "10.0.0.8"

/* What weir's configuration says of it, behind "listen = "; lines that belong to it too. */
void entrance_config(unsigned entrances, char *out, size_t room);

/* NULL: nobody listens. The client knows its address, and has said its header. */
struct conn *entrance_dial(struct client *client);

#endif
