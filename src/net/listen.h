/*
 * Listening sockets: opening them, and accepting from them, a bounded number of connections for each event. What is
 * accepted has the options that the listening socket was given.
 */
#ifndef WEIR_NET_LISTEN_H
#define WEIR_NET_LISTEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "net/link.h"
#include "net/loop.h"
#include "net/poller.h"

#define ACCEPT_SHARE 64 /* connections accepted in one event, at most: a flood must not starve connected clients */

/* The file of a unix socket: the processes that may connect are those that may write to it. */
struct listen_rights {
    bool has_mode, has_group; /* without either the file is as the umask and the process' group make it */
    mode_t mode;
    gid_t group;
};

/*
 * A bound, listening, non-blocking socket, or -errno. TCP sockets are bound with SO_REUSEPORT, so that every worker
 * has its own and the kernel spreads connections over them. *at is updated with the port the kernel chose for port 0.
 * For a unix socket a stale file is replaced, a live one is -EADDRINUSE. A file with rights of its own is the owner's
 * alone until it has them; as the umask is changed for a moment, no other thread may create files meanwhile.
 */
__attribute__((warn_unused_result)) int listen_open(struct endpoint *at, const struct listen_rights *rights);

/*
 * Give the socket's file at that path these rights, if it has others. Returns 0 or -errno: -ENOTSOCK if the file is no
 * socket, -EPERM if the process may not give it to that group.
 */
__attribute__((warn_unused_result)) int listen_set_rights(const char *path, const struct listen_rights *rights);

/* For good, on a TCP socket: who has not connected yet does not any more; who has waits in the queue to be accepted. */
void listen_refuse(int fd);

struct listener;

/*
 * `fd`: a non-blocking descriptor, the callee's from now on; or -errno when the system is out of descriptors.
 * `peer`: the address that accept() returned, valid during the call; NULL with -errno. It is to be kept: a socket that
 * the peer has reset does not tell it any more.
 */
typedef void accept_fn(struct listener *listener, int fd, const struct link_peer *peer);

struct listener {
    struct watch watch;
    unsigned
        share; /* connections accepted in the next event: about as many as come, so that none is asked for in vain */
    uv_timer_t pause; /* runs after accept failed for lack of descriptors (EMFILE ...) */
    accept_fn *on_accept;
    void *arg;
};

/*
 * Accept from `fd`, which several listeners may share (unix sockets), and which stays the caller's to close. When the
 * system is out of descriptors the listener pauses for a while, and connections wait in the socket's queue. Returns 0
 * or a negative errno.
 */
__attribute__((warn_unused_result)) int listener_start(struct listener *listener, struct loop *loop, int fd,
                                                       accept_fn *on_accept, void *arg);

/* Accept every connection that is in the socket's queue now. */
void listener_accept_rest(struct listener *listener);

/* Asynchronous: the memory may be freed when the loop has ended. */
void listener_close(struct listener *listener);

#endif
