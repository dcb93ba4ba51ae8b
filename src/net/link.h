/*
 * A byte stream over TCP or a unix socket, in TLS if wanted: a client's or an upstream's connection.
 *
 * Belongs to one loop's thread. link_write only appends; the loop writes once a turn. link_close is asynchronous: the
 * memory may be freed from on_closed on, and no other callback comes after link_close.
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

#define LINK_READ_SHARE 131072 /* bytes read from one link before others are read from */
#define LINK_PASSING 65536     /* fewer bytes are not worth a way of their own from one link to another */
#define LINK_DIRECT 16384      /* output of at least this size is not copied when nothing is pending before it */

struct link;
struct tls;
struct tls_context;

enum link_state { LINK_CONNECTING, LINK_SHAKING, LINK_OPEN, LINK_ENDED, LINK_CLOSED };

struct link_ops {
    /*
     * Connecting, and the TLS handshake if there is one, is over: 0 or a negative libuv error. NULL: link does neither.
     */
    void (*on_connected)(struct link *link, int status);
    /*
     * Where to read to: returns memory, and its size in *room. Or NULL: the loop's read buffer, of which at most *room
     * bytes are used (before the call: its size). The field may be NULL.
     */
    char *(*on_room)(struct link *link, size_t *room);
    /* `data` is good during the call. */
    void (*on_data)(struct link *link, const char *data, size_t n);
    /*
     * The link that the next bytes go to as they are, at most *most of them; NULL: they are for on_data. Either is asked
     * before each read. The field may be NULL.
     */
    struct link *(*on_passing)(struct link *link, size_t *most);
    /* So many bytes have gone there; on_data hears nothing of them. */
    void (*on_passed)(struct link *link, size_t n);
    /* After link_watch_end: the peer has ended its side behind bytes that the link does not read now. NULL: never asked. */
    void (*on_end_ahead)(struct link *link);
    /* The peer has ended its side (UV_EOF), or the connection is broken (another libuv error). Nothing more is read. */
    void (*on_end)(struct link *link, int status);
    /* After link_wake. */
    void (*on_wake)(struct link *link);
    /* Just before pending output is written. The field may be NULL. */
    void (*on_flush)(struct link *link);
    /*
     * link_part has come too late: the peer of a unix socket had sent something, which is read now, and can send nothing
     * more. The field may be NULL: then the peer goes on sending after link_part.
     */
    void (*on_late)(struct link *link);
    /* Unsent output has fallen to LINK_LOW or below after it had been above LINK_HIGH. The field may be NULL. */
    void (*on_drained)(struct link *link);
    void (*on_closed)(struct link *link);
};

#define LINK_HIGH 262144 /* unsent bytes from which on a link is congested */
#define LINK_LOW 65536

/* An address of a peer; ip has family 0 on a unix socket. */
struct link_peer {
    struct ip ip;
    uint16_t port;
};

struct link {
    struct watch watch; /* its descriptor; may wait for more events than are wanted */
    struct tls *tls;    /* see link_tls */
    const struct link_ops *ops;
    struct chain out;
    struct list dirty; /* in loop.dirty, or once it is closed in loop.closed */
    struct list woken;
    uint64_t n_read; /* bytes so far, as struct traffic counts them */
    uint64_t n_written;
    int16_t error;     /* negative libuv error that on_end reports at the next flush; 0: none */
    uint8_t state : 3; /* enum link_state */
    uint8_t rank : 1;  /* enum rank */
    bool is_unix : 1;
    bool is_paused : 1;
    bool is_eof : 1;
    bool is_full : 1; /* the socket takes no more output until it is writable again */
    bool is_congested : 1;
    bool is_finishing : 1;
    bool is_parting : 1;
    bool is_again : 1;   /* it was link_wake_again that was called last */
    bool wants_end : 1;  /* link_watch_end was called, and has not been answered */
    bool is_patient : 1; /* its owner's: its output is not written before woken links are called (loop.on_turn) */
    /*
     * Of an accepted link: the address that accept() returned, or that its owner has set since (a PROXY header). The
     * socket is never asked: after a reset it has no address.
     */
    struct link_peer peer;
};

/* The address of its own side: where the peer connected. family 0: a unix socket, or closed. */
struct link_peer link_local(const struct link *link);

/* NULL: not in TLS. */
static inline struct tls *link_tls(const struct link *link)
{
    return link->tls;
}

struct endpoint {
    struct sockaddr_storage address;
    socklen_t length;
};

/*
 * The options of a TCP connection: what is written leaves at once, and a peer that is gone without a word is noticed.
 * Of a listening socket: every connection that is accepted from then on has them (Linux' inet_csk_clone_lock copies
 * them).
 */
void link_set_options(int fd);

/* As tcp_peer_has_vanished; false for one that is closed, or no TCP connection. */
bool link_has_vanished(const struct link *link);

/* Take over an accepted, non-blocking socket; reading starts at once. Where the system refuses that, on_end follows. */
void link_adopt(struct link *link, struct loop *loop, enum rank rank, int fd, const struct link_peer *peer,
                const struct link_ops *ops);

/*
 * Begin TLS on a plain link that is open. `data`: bytes of the handshake that have been read already. on_connected
 * follows when the handshake is over. False: out of memory; then only link_close may follow.
 */
__attribute__((warn_unused_result)) bool link_secure(struct link *link, struct tls_context *tls, const char *data,
                                                     size_t n);

/* Where a link connects to. */
struct link_target {
    const struct endpoint *endpoint;
    struct tls_context *tls; /* NULL: plain */
    const char *server_name; /* the certificate must bear it, where `tls` says nothing; NULL without TLS */
};

/*
 * Begin to connect; on_connected follows. Returns 0, or a libuv error: then nothing follows and nothing is to be
 * closed.
 */
__attribute__((warn_unused_result)) int link_connect(struct link *link, struct loop *loop, enum rank rank,
                                                     const struct link_target *target, const struct link_ops *ops);

/* The text for a `status` that a callback got: libuv's, or the reason why TLS failed. Valid as long as the link. */
const char *link_why(const struct link *link, int status);

/* The name in the peer's certificate; empty without one. */
struct slice link_tls_name(const struct link *link);

/* A link without a connection that only supports link_wake: a way to be called later in the turn. Never closed. */
void link_init_hollow(struct link *link, struct loop *loop, const struct link_ops *ops);

/* Append output (copied). Errors, out of memory included, are reported by on_end later in the turn. */
void link_write(struct link *link, const char *data, size_t n);

/* Unsent bytes. */
static inline size_t link_pending(const struct link *link)
{
    return link->out.bytes;
}

/* Is anything still unsent, encrypted output included? */
static inline bool link_is_sending(const struct link *link)
{
    return link->out.bytes > 0 || link->is_full;
}

void link_pause(struct link *link); /* stop reading */
void link_resume(struct link *link);
void link_wake(struct link *link); /* on_wake follows, later in this turn or at the start of the next */

/* The same, after those for whom link_wake was called, and after others of its kind: LOOP_AGAIN_NS for all of them in a turn. */
void link_wake_again(struct link *link);

/* As link_wake, also where link_wake_again has been called: then it does not wait for the others of that kind. */
void link_wake_now(struct link *link);

/* While the link is paused, on_end_ahead tells once that its peer has ended its side. */
void link_watch_end(struct link *link);

/* Stop reading and send what is pending; then on_end with status 0 follows. */
void link_finish(struct link *link);

/*
 * Send what is pending, then shut down our side (FIN, over TCP in the same packet). What the peer still sends is read
 * and passed on: closing with unread bytes would reset the connection. See on_late.
 */
void link_part(struct link *link);

/* Does the socket hold bytes that have not been read yet? */
bool link_has_unread(const struct link *link);

/* Close at once; pending output is lost. May be called more than once. */
void link_close(struct link *link);
bool link_is_closed(const struct link *link);

static inline struct loop *link_loop(const struct link *link)
{
    return container_of(link->watch.poller, struct loop, poller);
}

/* Only for the loop: read what TLS still holds (no event announces it), and write pending output once. */
void link_flush(struct link *link);

/* Only for the loop: it has been closed, and this turn is over. Calls on_closed. */
void link_bury(struct link *link);

#endif
