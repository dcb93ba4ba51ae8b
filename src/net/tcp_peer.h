/*
 * Detects whether the host at the other end of a TCP connection has vanished.
 *
 * On an idle connection keepalive detects a vanished host. With data in flight TCP_USER_TIMEOUT
 * detects a vanished host, but also ends a connection to a living peer that reads nothing (Linux
 * 5.11 and later). TCP_USER_TIMEOUT is therefore set only while the peer's window is open and
 * segments are retransmitted. With a closed window unanswered probes show that the host has
 * vanished. Any thread.
 */
#ifndef WEIR_NET_TCP_PEER_H
#define WEIR_NET_TCP_PEER_H

#include <stdbool.h>
#include <stdint.h>

/* For tests, before the first thread starts: divides all times of this file by `times`. */
void tcp_peer_hurry(unsigned times);

/* The system closes an idle connection two minutes after its peer has vanished. */
void tcp_peer_keepalive(int fd);

/*
 * True if the peer takes nothing and answers nothing: the caller must close the connection. Called
 * every tcp_peer_look_ns (15 s). The caller or the system thus ends a connection with data in
 * flight within two minutes. At most two system calls.
 */
bool tcp_peer_has_vanished(int fd);
uint64_t tcp_peer_look_ns(void);

#endif
