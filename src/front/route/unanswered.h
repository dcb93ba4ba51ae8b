/*
 * The requests of one client that are under way on shared lanes, as they were sent, until each is answered: what Redis
 * refuses without having run it can be sent again.
 *
 *   sent      GET a, GET b | SET c       an entry is what was sent at a time: neighbours that are alike, or one request
 *   answered  GET a                      n_left says how many of them are unanswered; bytes go with the last of them
 *
 * Invariant: entries for all calls of the client on a lane that keeps (lane.keeps), in the order of the calls. Bytes
 * are kept while no more than UNANSWERED_MAX are; an entry without bytes cannot be sent again. Owner: the client; its
 * worker's thread. Knows of no client.
 */
#ifndef WEIR_FRONT_UNANSWERED_H
#define WEIR_FRONT_UNANSWERED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/chain.h"
#include "base/slice.h"

#define UNANSWERED_MAX 32768 /* bytes: as many as a client may have unanswered on shared lanes (SHARED_BYTES_MAX) */

/* What a request that was run means for those before it that were not. */
enum kept_kind {
    KEPT_OTHER, /* neither of these */
    KEPT_READ,  /* may have read what those change */
    KEPT_WRITE, /* may have changed what those change */
};

struct kept {
    struct kept *next;
    uint64_t since_ns; /* when Redis first refused it; 0: it has not */
    uint32_t n;        /* requests */
    uint32_t n_left;   /* of them, the last, that are unanswered */
    uint32_t len;      /* bytes of all n; 0: they are not kept */
    uint8_t kind;      /* enum kept_kind */
    char bytes[];
};

/* Zeroed: empty. */
struct unanswered {
    struct kept *first; /* the oldest; heap; NULL: none */
    struct kept *last;
    uint64_t bytes; /* of all entries */
};

/* `n` > 0 requests are about to be sent. Empty `bytes`: they cannot be sent again. NULL: out of memory. */
__attribute__((warn_unused_result)) struct kept *unanswered_add(struct unanswered *unanswered, struct pool *pool,
                                                                enum kept_kind kind, struct slice bytes, uint32_t n);

/* The same, with the newest entry where that is small, and alike. */
__attribute__((warn_unused_result)) struct kept *unanswered_add_more(struct unanswered *unanswered, struct pool *pool,
                                                                     enum kept_kind kind, struct slice bytes,
                                                                     uint32_t n);

/* The oldest `n` requests are answered, or are kept elsewhere now. */
void unanswered_drop(struct unanswered *unanswered, struct pool *pool, uint32_t n);

/* The bytes of the oldest request, until it is dropped; empty: they are not kept. There is one. */
struct slice unanswered_oldest(const struct unanswered *unanswered);

void unanswered_clear(struct unanswered *unanswered, struct pool *pool);

#endif
