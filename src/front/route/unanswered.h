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

#include "base/bytes.h"
#include "base/chain.h"
#include "base/slice.h"
#include "limit/command/command.h"

#define UNANSWERED_MAX 32768 /* bytes: as many as a client may have unanswered on shared lanes (SHARED_BYTES_MAX) */

/* What a request of a command that was run means for those before it that were not. */
enum kept_kind {
    KEPT_OTHER, /* neither of these */
    KEPT_READ,  /* may have read what those change */
    KEPT_WRITE, /* may have changed what those change */
};

static inline enum kept_kind keep_kind(const struct command *command)
{
    if ((command->flags & CMD_WRITE) != 0)
        return KEPT_WRITE;
    return (command->flags & CMD_READONLY) != 0 ? KEPT_READ : KEPT_OTHER;
}

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

/*
 * ---- calls that came back, since Redis did not run them, in the order of the client's requests;
 * and the replies that have their place behind each ----
 *
 *   requests   INCR a    PING    GET a     SET b     (a limit refuses one)
 *   answered   READONLY  +PONG   "7"       READONLY  -THROTTLED
 *   returned   INCR a ---------> GET a --> SET b
 *               behind: +PONG     reply     behind: -THROTTLED
 *                                "7"
 *
 * A read that was answered behind a call that came back is sent again with that call: its answer
 * may depend on the call. Its reply is kept for the case that no server takes the calls. Memory
 * counts as unread replies do.
 */

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
