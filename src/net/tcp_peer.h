/*
 * Detects whether the host at the other end of a TCP connection has vanished.
 *
 * On an idle connection keepalive detects a vanished host. With data in flight TCP_USER_TIMEOUT
 * detects a vanished host. From Linux 5.11 on TCP_USER_TIMEOUT also ends a connection to a living
 * peer that reads nothing. TCP_USER_TIMEOUT is therefore set only while the peer's window is open
 * and segments are retransmitted. With a closed window unanswered probes show that the host has
 * vanished. Any thread may call.
 */
#ifndef WEIR_NET_TCP_PEER_H
#define WEIR_NET_TCP_PEER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * For tests: divides all times of this file by `times`. Must be called before the first thread
 * starts.
 */
void tcp_peer_hurry(unsigned times);

/* The system closes an idle connection two minutes after its peer has vanished. */
void tcp_peer_keepalive(int fd);

/*
 * True if the peer takes no data and answers no probes. The caller must then close the connection.
 * Must be called every tcp_peer_look_ns (15 s): the caller or the system then ends a connection
 * with data in flight within two minutes. Makes at most two system calls.
 */
bool tcp_peer_has_vanished(int fd);
uint64_t tcp_peer_look_ns(void);

#endif
