/*
 * Listening sockets: opening them, and accepting a bounded number of connections for each event.
 * Accepted connections have the options of the listening socket.
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

/* most connections accepted in one event: a flood must not starve connected clients (chosen) */
#define ACCEPT_SHARE 64

/* Rights of a unix socket's file. Processes that may write to the file may connect. */
struct listen_rights {
    bool has_mode, has_group; /* neither: the umask and the group of the process apply */
    mode_t mode;
    gid_t group;
};

/*
 * Opens a bound, listening, non-blocking socket. Returns the descriptor or -errno. TCP sockets are
 * bound with SO_REUSEPORT: every worker has a socket of its own, and the kernel spreads connections
 * over these sockets. For port 0 *at receives the port that the kernel chose.
 *
 * The stale file of a unix socket is replaced. If a process still listens on the file, the result
 * is -EADDRINUSE. Only the owner may use the file until `rights` are set. The function changes the
 * umask for its duration, so no other thread may create files meanwhile.
 */
__attribute__((warn_unused_result)) int listen_open(struct endpoint *at,
                                                    const struct listen_rights *rights);

/*
 * Sets the rights of the socket file at `path`, if these rights differ. Returns 0 or -errno:
 * -ENOTSOCK if the file is no socket, -EPERM if the process may not set the group.
 */
__attribute__((warn_unused_result)) int listen_set_rights(const char *path,
                                                          const struct listen_rights *rights);

/*
 * Makes a TCP socket refuse new connections until the socket is closed. Established connections
 * stay in the queue, and can be accepted.
 */
void listen_refuse(int fd);

struct listener;

/*
 * Receives an accepted connection. `fd`: a non-blocking descriptor, owned by the callee; or -errno
 * if the system is out of descriptors. `peer`: the address from accept(), valid during the call;
 * NULL with -errno. The callee must copy the address: a socket that the peer has reset has no
 * address any more.
 */
typedef void accept_fn(struct listener *listener, int fd, const struct link_peer *peer);

struct listener {
    struct watch watch;
    /*
     * connections to accept in the next event; follows the number of arriving connections, to avoid
     * accept() without a connection
     */
    unsigned share;
    uv_timer_t pause; /* runs after accept failed for lack of descriptors (EMFILE ...) */
    accept_fn *on_accept;
    void *arg;
};

/*
 * Accepts from `fd`, which several listeners may share (unix sockets). The caller closes `fd`. If
 * the system is out of descriptors, the listener pauses for PAUSE_MS, and connections wait in the
 * socket's queue. Returns 0 or a negative errno.
 */
__attribute__((warn_unused_result)) int listener_start(struct listener *listener, struct loop *loop,
                                                       int fd, accept_fn *on_accept, void *arg);

/* Accepts all connections in the socket's queue. */
void listener_accept_rest(struct listener *listener);

/*
 * Closes the listener asynchronously. The listener's memory may be freed after the loop has ended.
 */
void listener_close(struct listener *listener);

#endif
