/*
 * A byte stream over TCP or a unix socket, optionally in TLS: the connection of a client or an
 * upstream.
 *
 * A link belongs to one loop's thread. link_write only appends output, which the loop writes once
 * in each iteration. link_close is asynchronous: on_closed follows, and no other callback. The
 * link's memory may be freed in on_closed or later.
 */
#ifndef WEIR_NET_LINK_H
#define WEIR_NET_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <uv.h>

#include "base/chain.h"
#include "base/list.h"
#include "base/slice.h"
#include "limit/policy/ip.h"
#include "net/loop.h"

#define LINK_READ_SHARE 131072 /* bytes read from one link before other links are read (chosen) */
/* least number of bytes worth splicing from one link to another (chosen) */
#define LINK_PASSING 65536
/* output of at least this size is not copied if no output is waiting (chosen) */
#define LINK_DIRECT 16384

struct link;
struct tls;
struct tls_context;

enum link_state { LINK_CONNECTING, LINK_SHAKING, LINK_OPEN, LINK_ENDED, LINK_CLOSED };

struct link_ops {
    /*
     * Called when connecting and the TLS handshake, if any, have ended. `status` is 0 or a negative
     * libuv error. The field may be NULL if the link neither connects nor uses TLS.
     */
    void (*on_connected)(struct link *link, int status);
    /*
     * Returns the memory to read to, and the size of that memory in *room. If the result is NULL,
     * the link reads at most *room bytes to the loop's read buffer. Before the call *room is the
     * size of the read buffer. The field may be NULL.
     */
    char *(*on_room)(struct link *link, size_t *room);
    /* `data` is valid during the call. */
    void (*on_data)(struct link *link, const char *data, size_t n);
    /*
     * Returns the link to which at most *most of the next bytes are spliced. NULL: the next bytes
     * go to on_data. Called before each read. The field may be NULL.
     */
    struct link *(*on_passing)(struct link *link, size_t *most);
    /* Called when `n` bytes have been spliced. on_data does not receive these bytes. */
    void (*on_passed)(struct link *link, size_t n);
    /*
     * Called after link_watch_end, when the peer has half-closed behind bytes that the paused link
     * has not read. The field may be NULL if link_watch_end is never called.
     */
    void (*on_end_ahead)(struct link *link);
    /*
     * Called when the peer has half-closed (UV_EOF), or the connection is broken (another libuv
     * error). on_data is not called afterwards.
     */
    void (*on_end)(struct link *link, int status);
    /* Called after link_wake. */
    void (*on_wake)(struct link *link);
    /* Called just before waiting output is written. The field may be NULL. */
    void (*on_flush)(struct link *link);
    /*
     * Called when link_part was too late: the peer of a unix socket has sent more bytes. The link
     * reads these bytes, and the peer can send no more. NULL: the peer may go on sending after
     * link_part.
     */
    void (*on_late)(struct link *link);
    /*
     * Called when unsent output has fallen from above LINK_HIGH to LINK_LOW or below. The field may
     * be NULL.
     */
    void (*on_drained)(struct link *link);
    void (*on_closed)(struct link *link);
};

#define LINK_HIGH 262144 /* high watermark: a link with more unsent bytes is congested (chosen) */
#define LINK_LOW 65536

/* A peer's address; ip.family is 0 for a unix socket. */
struct link_peer {
    struct ip ip;
    uint16_t port;
};

struct link {
    /* watch of the socket; may still report events that the link no longer wants */
    struct watch watch;
    struct tls *tls; /* NULL: plain; read by link_tls */
    const struct link_ops *ops;
    struct chain out;
    struct list dirty; /* in loop.dirty; after closing in loop.closed */
    struct list woken;
    uint64_t n_read; /* bytes read so far, as struct traffic counts them */
    uint64_t n_written;
    int16_t error;     /* negative libuv error for on_end at the next flush; 0: none */
    uint8_t state : 3; /* enum link_state */
    uint8_t rank : 1;  /* enum rank */
    bool is_unix : 1;
    bool is_paused : 1;
    bool is_eof : 1;
    bool is_full : 1; /* the socket takes no more output until it is writable again */
    bool is_congested : 1;
    bool is_finishing : 1;
    bool is_parting : 1;
    bool is_again : 1;  /* the last call was link_wake_again */
    bool wants_end : 1; /* link_watch_end was called, and on_end_ahead has not followed yet */
    /*
     * set by the owner: even if loop.on_iteration returns true, output is written after on_wake of
     * woken links
     */
    bool is_patient : 1;
    /*
     * For an accepted link: the address from accept(), or from a PROXY header once the owner has
     * set that address. The address is not read from the socket later, because a socket has no
     * address after a reset.
     */
    struct link_peer peer;
};

/* Returns the local address, which the peer connected to. family 0: a unix socket, or closed. */
struct link_peer link_local(const struct link *link);

/* Returns NULL if the link is not in TLS. */
static inline struct tls *link_tls(const struct link *link)
{
    return link->tls;
}

struct endpoint {
    struct sockaddr_storage address;
    socklen_t length;
};

/*
 * Sets the options of a TCP connection: output is sent at once (TCP_NODELAY), and keepalive detects
 * a vanished peer. On a listening socket the options apply to all connections accepted later
 * (Linux' inet_csk_clone_lock copies the options).
 */
void link_set_options(int fd);

/*
 * True if tcp_peer_has_vanished reports that the peer has vanished; false if the link is closed, or
 * not over TCP.
 */
bool link_has_vanished(const struct link *link);

/*
 * Takes over an accepted, non-blocking socket, and starts to read. If the system refuses, on_end
 * follows.
 */
void link_adopt(struct link *link, struct loop *loop, enum rank rank, int fd,
                const struct link_peer *peer, const struct link_ops *ops);

/*
 * Starts TLS on an open plain link. `data`: bytes of the handshake that have been read already.
 * on_connected follows when the handshake has ended. False if out of memory; the caller may then
 * only call link_close.
 */
__attribute__((warn_unused_result)) bool link_secure(struct link *link, struct tls_context *tls,
                                                     const char *data, size_t n);

/* The target of a connection. */
struct link_target {
    const struct endpoint *endpoint;
    struct tls_context *tls; /* NULL: plain */
    /* name that the certificate must have, unless `tls` names one; NULL without TLS */
    const char *server_name;
};

/*
 * Starts to connect; on_connected follows. Returns 0, or a libuv error. After an error no callback
 * follows, and the link need not be closed.
 */
__attribute__((warn_unused_result)) int link_connect(struct link *link, struct loop *loop,
                                                     enum rank rank,
                                                     const struct link_target *target,
                                                     const struct link_ops *ops);

/*
 * Returns the text for the `status` of a callback: libuv's text, or why TLS failed. The text is
 * valid as long as the link.
 */
const char *link_why(const struct link *link, int status);

/* Returns the name in the peer's certificate, empty without a certificate. */
struct slice link_tls_name(const struct link *link);

/*
 * Initialises a link without a connection, which supports only link_wake: on_wake calls the owner
 * later in the iteration. A link without a connection is never closed.
 */
void link_init_hollow(struct link *link, struct loop *loop, const struct link_ops *ops);

/*
 * Appends output (copied). on_end reports errors later in the iteration, including lack of memory.
 */
void link_write(struct link *link, const char *data, size_t n);

/* Returns the number of unsent bytes. */
static inline size_t link_pending(const struct link *link)
{
    return link->out.bytes;
}

/* True if output is unsent, including encrypted output. */
static inline bool link_is_sending(const struct link *link)
{
    return link->out.bytes > 0 || link->is_full;
}

void link_pause(struct link *link); /* stops reading */
void link_resume(struct link *link);
/* Calls on_wake later in this iteration, or at the start of the next iteration. */
void link_wake(struct link *link);

/*
 * Calls on_wake as link_wake does, but after all links woken by link_wake, and after links of
 * earlier calls of link_wake_again. All links of link_wake_again together get LOOP_AGAIN_NS in an
 * iteration.
 */
void link_wake_again(struct link *link);

/*
 * Calls on_wake as link_wake does, also for a link that waits after link_wake_again. The link then
 * no longer waits behind other links of link_wake_again.
 */
void link_wake_now(struct link *link);

/* While the link is paused, on_end_ahead reports once that the peer has half-closed. */
void link_watch_end(struct link *link);

/* Stops reading and sends waiting output. Afterwards calls on_end with status 0. */
void link_finish(struct link *link);

/*
 * Sends waiting output, then half-closes (FIN, over TCP in the same packet). Input is still read
 * and passed on, because closing with unread bytes would reset the connection. See on_late.
 */
void link_part(struct link *link);

/* True if the socket holds unread bytes. */
bool link_has_unread(const struct link *link);

/* Closes at once; waiting output is lost. May be called more than once. */
void link_close(struct link *link);
bool link_is_closed(const struct link *link);

static inline struct loop *link_loop(const struct link *link)
{
    return container_of(link->watch.poller, struct loop, poller);
}

/*
 * For the loop only: reads input that TLS still holds, which no event announces, and writes waiting
 * output once.
 */
void link_flush(struct link *link);

/* For the loop only, at the end of an iteration, after link_close. Calls on_closed. */
void link_bury(struct link *link);

#endif
