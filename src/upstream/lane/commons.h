/*
 * What the lanes of one worker have in common, whichever node they lead to: weir's own login, the output that waits,
 * the memory for replies that are taken in, and who waits until there may be more connections.
 *
 * The worker's thread only.
 */
#ifndef WEIR_UPSTREAM_COMMONS_H
#define WEIR_UPSTREAM_COMMONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "net/link.h"
#include "net/loop.h"
#include "upstream/login/login.h"
#include "upstream/upstream.h"

struct rider;

/*
 * Requests on their way to a lane that are not copied before they must be: those that lie next to one another where
 * they were read become one piece, and are copied once. Zeroed: empty.
 *
 * A worker has one such piece, whichever node and lane it is for. outbox_gather adds to it; whatever else is sent, on
 * whatever lane, goes behind it by outbox_send, and nothing else writes to a lane's link: so nothing passes it by. The
 * memory stays the sender's, which calls outbox_flush before it uses the memory for something else.
 */
struct outbox {
    struct link *link; /* where it goes; NULL: nothing waits */
    const char *at;    /* the sender's memory */
    size_t len;        /* bytes */
};

/* What was gathered goes to its link, which copies it; if that has been closed meanwhile, it is dropped. */
void outbox_flush(struct outbox *outbox);

/* Sends these bytes, copied, behind all that was gathered. */
void outbox_send(struct outbox *outbox, struct link *link, const char *data, size_t n);

/* Sends these bytes some time before outbox_flush returns; n > 0. */
void outbox_gather(struct outbox *outbox, struct link *link, const char *data, size_t n);

struct commons {
    struct loop *loop;
    struct upstream *upstream;
    bool is_private; /* each client has a lane of its own: no shared lane is kept open */
    struct outbox outbox;
    struct own_login own; /* weir's own login */
    struct list hoping;   /* riders, by rider.waiting: woken when a lane is given back, or in a moment */
    uint32_t n_wanted;    /* how many riders count in the upstream's room.wanted for this worker */
    uint32_t n_broken;    /* lanes that were ready, and that Redis, or whatever is between, has ended: ever */
    uint32_t absorbed;    /* bytes of replies that were taken in and whose readers have not caught up, see stall.h */
    uint32_t share_us;    /* wait for its share of the client that sends; 0: none */
};

void commons_init(struct commons *commons, struct loop *loop, struct upstream *upstream, bool is_private);
void commons_fini(struct commons *commons);

/*
 * weir's own login with the password that its lanes are opened with now; NULL: it does not log in. Lanes that are open
 * stay when that password changes.
 */
struct login *commons_login(struct commons *commons);

/* The login of clients that do not log in, with whichever password; NULL: none. */
static inline struct login *commons_lent(const struct commons *commons)
{
    return commons->upstream->lends_login ? commons->own.newest : NULL;
}

/* The rider waits until it is woken, or is taken from the list; it counts in the upstream's room if that is full. */
void commons_hope(struct commons *commons, struct rider *rider);

/* The same, but it hopes for nothing: it only wants to look again. */
void commons_wake_soon(struct commons *commons, struct rider *rider);

/* Whoever has hoped for longest is woken. False: nobody does. */
bool commons_wake_hoping(struct commons *commons);

#endif
