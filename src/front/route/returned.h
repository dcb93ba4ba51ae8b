/*
 * Calls of one client that came back, since Redis did not run them, in the order of the client's requests; and the
 * replies that have their place behind each.
 *
 *   requests   INCR a    PING    GET a     SET b     (a limit refuses one)
 *   answered   READONLY  +PONG   "7"       READONLY  -THROTTLED
 *   returned   INCR a ---------> GET a --> SET b
 *               behind: +PONG     reply     behind: -THROTTLED
 *                                "7"
 *
 * A read that was answered behind a call that came back is sent again with that call: its answer may depend on the
 * call. Its reply is kept for the case that no server takes the calls.
 * Owner: the client; its worker's thread. Knows of no client. Memory is the pool's, and counts as unread replies do.
 */
#ifndef WEIR_FRONT_RETURNED_H
#define WEIR_FRONT_RETURNED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/chain.h"
#include "base/slice.h"

struct returned_call {
    struct returned_call *next;
    struct bytes reply;  /* what the client hears if it is not sent again */
    struct bytes behind; /* what follows its reply */
    uint64_t tag;        /* of its call: upstream/lane/tags.h */
    uint64_t arrived_ns; /* of its call, as the next four */
    uint32_t waited_us;
    uint32_t argument;
    uint8_t flags;
    uint8_t effect;
    uint8_t counted;
    uint8_t kind;      /* enum kept_kind */
    bool is_refused;   /* Redis refused it; else it is a read */
    uint64_t since_ns; /* when Redis first refused it, or the call that it stands behind */
    uint32_t len;      /* bytes of the request */
    char request[];
};

/* Zeroed: empty. */
struct returned {
    struct returned_call *first; /* the oldest; heap; NULL: none */
    struct returned_call *last;
    struct bytes frame; /* of the reply that is being read, what has come */
    uint64_t bytes;     /* kept, of replies */
};

static inline bool returned_is_empty(const struct returned *returned)
{
    return returned->first == NULL;
}

static inline struct slice returned_request(const struct returned_call *call)
{
    return slice_of(call->request, call->len);
}

/* One more call, the newest; zeroed but for a copy of its request. NULL: out of memory. */
__attribute__((warn_unused_result)) struct returned_call *returned_add(struct returned *returned, struct pool *pool,
                                                                       struct slice request);

/* A piece of the reply that is being read has come. False: out of memory. */
__attribute__((warn_unused_result)) bool returned_read(struct returned *returned, struct pool *pool,
                                                       struct slice piece);

/* What has been read is the reply of the newest call; or it follows behind the newest. False: out of memory. */
void returned_end_reply(struct returned *returned);
__attribute__((warn_unused_result)) bool returned_end_behind(struct returned *returned, struct pool *pool);

/* A reply that follows behind the newest call, of which there is one. False: out of memory. */
__attribute__((warn_unused_result)) bool returned_say(struct returned *returned, struct pool *pool, struct slice reply);

/* Takes the oldest out: the caller's, to be given back by returned_free. NULL: there is none. */
struct returned_call *returned_take(struct returned *returned);
void returned_free(struct returned_call *call, struct pool *pool);

void returned_clear(struct returned *returned, struct pool *pool);

#endif
