/*
 * How clients connect: to which listener of weir, from which address, and with which PROXY protocol
 * header. All three follow from a client's number and count of connections.
 */
#ifndef WEIR_SIM_LISTEN_ADDRESS_H
#define WEIR_SIM_LISTEN_ADDRESS_H

#include <stddef.h>

struct client;
struct conn;

/* Bits of plan.entrances. None: only the first TCP listener. */
#define LISTEN_ADDRESS_SECOND 1U
#define LISTEN_ADDRESS_UNIX 2U
#define LISTEN_ADDRESS_PROXY 4U
#define LISTEN_ADDRESS_ALL 7U

#define ADMIN_PATH "/sim/admin.sock"

/* Values of struct client's `address`: 0 is 10.0.0.1 and so on; these values follow. */
#define ADDRESSES 8
#define ADDRESS_UNIX ADDRESSES /* ip:unix */
/* the balancer's own address, when its header names no client */
#define ADDRESS_BALANCER (ADDRESSES + 1)
#define FREE_ADDRESS (ADDRESSES - 1)
#define FREE_ADDRESS_TEXT "10.0.0.8"

/* Writes the line `listen` of the configuration, and the other lines about listeners. */
void listen_address_config(unsigned entrances, char *out, size_t room);

/* NULL: no listener. Sets the client's address, and sends its PROXY header. */
struct conn *listen_address_dial(struct client *client);

#endif
