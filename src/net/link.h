/*
 * A byte stream over TCP or a unix socket, in TLS if wanted: a client's or an upstream's connection.
 *
 * Owned by one loop's thread. Writing only appends; the loop writes once a turn. Closing is asked once and finished in
 * on_closed, the first moment the memory may go; no other callback comes after link_close.
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
#include "net/loop.h"

#define LINK_READ_SHARE 131072 /* bytes after which a link that still has more lets the others have their turn */
#define LINK_DIRECT 16384      /* output of this size skips the chain when nothing is ahead of it */

struct link;
struct tls;
struct tls_context;

struct link_ops {
    /* Connecting has ended, the handshake of TLS included: 0 or a negative libuv error. NULL without either. */
    void (*on_connected)(struct link *link, int status);
    /*
     * Where the next read goes, *room its size; NULL: into the loop's buffer, but no more than *room, which is that
     * buffer's size before. The field itself may be NULL.
     */
    char *(*on_room)(struct link *link, size_t *room);
    void (*on_data)(struct link *link, const char *data, size_t n);
    /* The peer has ended its side (UV_EOF), or the link is broken. Nothing more will be read. */
    void (*on_end)(struct link *link, int status);
    /* Asked for with link_wake. */
    void (*on_wake)(struct link *link);
    /* What is pending is about to be written. The field may be NULL. */
    void (*on_flush)(struct link *link);
    /* Output has fallen to LINK_LOW or below after link_is_congested was true. The field may be NULL. */
    void (*on_drained)(struct link *link);
    void (*on_closed)(struct link *link);
};

#define LINK_HIGH 262144 /* unsent bytes from which on a link is congested */
#define LINK_LOW 65536

struct link {
    /* No stream of libuv's: that is half as large again, and there are thousands of idle links. data: see link_tls. */
    uv_poll_t poll;
    const struct link_ops *ops;
    struct chain out;
    struct list dirty;
    struct list woken;
    int fd;
    int16_t error;     /* to be reported at the next flush */
    uint8_t state : 3; /* enum link_state */
    uint8_t rank : 1;
    uint8_t polled : 2; /* the events that are polled for; some of them may not be wanted any more */
    bool is_unix : 1;
    bool is_paused : 1;
    bool is_eof : 1;
    bool is_full : 1; /* the socket takes no more output until it says so */
    bool is_congested : 1;
    bool is_finishing : 1;
    bool is_parting : 1;
};

/* NULL: it is plain. */
static inline struct tls *link_tls(const struct link *link)
{
    return link->poll.data;
}

struct endpoint {
    struct sockaddr_storage address;
    socklen_t length;
};

/*
 * Take over an accepted, non-blocking socket; reading starts at once. On an error the socket is closed.
 */
__attribute__((warn_unused_result)) int link_adopt(struct link *link, struct loop *loop, enum rank rank, int fd,
                                                   bool is_unix, const struct link_ops *ops);

/*
 * From now on in TLS: a plain link that is open. `n` bytes of it have been read already. on_connected follows when the
 * handshake is over. False: out of memory; the link is good only to close.
 */
__attribute__((warn_unused_result)) bool link_secure(struct link *link, struct tls_context *tls, const char *data,
                                                     size_t n);

/* Begin to connect; on_connected follows, unless the answer is an error (then the link is as good as unused). */
__attribute__((warn_unused_result)) int link_connect(struct link *link, struct loop *loop, enum rank rank,
                                                     const struct endpoint *to, struct tls_context *tls,
                                                     const struct link_ops *ops);

/* What an error that the link has told means: libuv's words, or TLS' own. */
const char *link_why(const struct link *link, int status);

/* The name in the peer's certificate; empty without one. */
struct slice link_tls_name(const struct link *link);

/* One without a connection, only to be woken: for whoever waits for links and is none. Never closed. */
void link_init_hollow(struct link *link, struct loop *loop, const struct link_ops *ops);

/* Append output. Never fails here: what goes wrong is told by on_end later in the turn. */
void link_write(struct link *link, const char *data, size_t n);

/* Unsent bytes. */
static inline size_t link_pending(const struct link *link)
{
    return link->out.bytes;
}

/* Is something still to be sent, be it only what TLS has made of it? */
static inline bool link_is_sending(const struct link *link)
{
    return link->out.bytes > 0 || link->is_full;
}

void link_pause(struct link *link);  /* stop reading */
void link_resume(struct link *link); /* and go on */
void link_wake(struct link *link);   /* on_wake, later in this turn or at the start of the next */

/* Read nothing more, send what is pending, then on_end(0). */
void link_finish(struct link *link);

/*
 * Send what is pending and, in the same packet where TCP can, that nothing more will come. What the peer still sends is
 * read: closed with bytes unread, a connection would be reset.
 */
void link_part(struct link *link);

/* Has something come that has not been read yet? */
bool link_has_unread(const struct link *link);

/* Close at once; pending output is lost. May be called more than once. */
void link_close(struct link *link);
bool link_is_closed(const struct link *link);

/* The peer's address; family 0 when there is none. */
void link_peer(const struct link *link, struct sockaddr_storage *out);

static inline struct loop *link_loop(const struct link *link)
{
    return (struct loop *)link->poll.loop->data;
}

/* For the loop: read what no event tells of, and write what is pending, once. */
void link_flush(struct link *link);

#endif
