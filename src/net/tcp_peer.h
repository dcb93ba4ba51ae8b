/*
 * Whether the host at the other end of a TCP connection is still there.
 *
 * While nothing is under way keepalive tells. While something is, TCP_USER_TIMEOUT would, but it also ends a connection
 * with a living peer that takes nothing (Linux 5.11 and later): so it is set only while the peer's window is open and
 * segments are sent again. Beside a shut window unanswered probes tell. Any thread.
 */
#ifndef WEIR_NET_TCP_PEER_H
#define WEIR_NET_TCP_PEER_H

#include <stdbool.h>
#include <stdint.h>

/* Tests only, before the first thread starts: all times here are so many times shorter. */
void tcp_peer_hurry(unsigned times);

/* Have the system end the connection two minutes after its peer has vanished, if nothing is under way. */
void tcp_peer_keepalive(int fd);

/*
 * True if the peer takes nothing and answers nothing: to be closed. To be asked every tcp_peer_look_ns (15 s): then the
 * connection ends within two minutes, here or by the system, if something is under way. Two system calls at most.
 */
bool tcp_peer_has_vanished(int fd);
uint64_t tcp_peer_look_ns(void);

#endif
