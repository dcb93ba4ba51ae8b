/*
 * The requests of one client in flight on shared lanes, as they were sent, until each is answered.
 * A request that Redis refused without running it can be sent again.
 *
 *   sent      GET a, GET b | SET c       an entry: similar neighbours, or one request
 *   answered  GET a                      n_left counts an entry's unanswered requests;
 *                                        an entry is freed with its last request
 *
 * Invariant: all calls of the client on a lane that keeps requests (lane.keeps) have entries, in
 * the order of the calls. Bytes are kept up to UNANSWERED_MAX. An entry without bytes cannot be
 * sent again. Owner: the client; its worker's thread. Independent of struct client.
 */
#ifndef WEIR_FRONT_UNANSWERED_H
#define WEIR_FRONT_UNANSWERED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/chain.h"
#include "base/slice.h"
#include "limit/command/command.h"

/* bytes; as many as a client may have unanswered on shared lanes (SHARED_BYTES_MAX) */
#define UNANSWERED_MAX 32768

/* How a command that ran may be related to earlier commands that did not run. */
enum kept_kind {
    KEPT_OTHER, /* neither KEPT_READ nor KEPT_WRITE */
    KEPT_READ,  /* may have read keys that the earlier commands change */
    KEPT_WRITE, /* may have changed keys that the earlier commands change */
};

static inline enum kept_kind keep_kind(const struct command *command)
{
    if ((command->flags & CMD_WRITE) != 0)
        return KEPT_WRITE;
    return (command->flags & CMD_READONLY) != 0 ? KEPT_READ : KEPT_OTHER;
}

struct kept {
    struct kept *next;
    uint64_t since_ns; /* when Redis first refused the request; 0: never */
    uint32_t n;        /* requests of the entry */
    uint32_t n_left;   /* unanswered requests, which are the last of the n */
    uint32_t len;      /* bytes of all n requests; 0: not kept */
    uint8_t kind;      /* enum kept_kind */
    char bytes[];
};

/* Zeroed: empty. */
struct unanswered {
    struct kept *first; /* the oldest entry; heap; NULL: none */
    struct kept *last;
    uint64_t bytes; /* bytes of all entries */
};

/*
 * Adds an entry for `n` > 0 requests that are about to be sent. Empty `bytes`: the requests cannot
 * be sent again. NULL: out of memory.
 */
__attribute__((warn_unused_result)) struct kept *unanswered_add(struct unanswered *unanswered,
                                                                struct pool *pool,
                                                                enum kept_kind kind,
                                                                struct slice bytes, uint32_t n);

/* As unanswered_add, but extends the newest entry if the entry is small and of the same kind. */
__attribute__((warn_unused_result)) struct kept *unanswered_add_more(struct unanswered *unanswered,
                                                                     struct pool *pool,
                                                                     enum kept_kind kind,
                                                                     struct slice bytes,
                                                                     uint32_t n);

/* Drops the oldest `n` requests, which are answered or kept elsewhere now. */
void unanswered_drop(struct unanswered *unanswered, struct pool *pool, uint32_t n);

/*
 * Returns the bytes of the oldest request, valid until the request is dropped. Empty: the bytes
 * were not kept. Only while a request is kept.
 */
struct slice unanswered_oldest(const struct unanswered *unanswered);

void unanswered_clear(struct unanswered *unanswered, struct pool *pool);

/*
 * ---- returned calls ----
 *
 * Calls that Redis did not run, in the order of the client's requests, and the replies behind each.
 *
 *   requests   INCR a    PING    GET a     SET b     (a limit refuses one request)
 *   answered   READONLY  +PONG   "7"       READONLY  -THROTTLED
 *   returned   INCR a ---------> GET a --> SET b
 *               behind: +PONG     reply     behind: -THROTTLED
 *                                "7"
 *
 * A read that was answered behind a returned call is sent again with that call, because its answer
 * may depend on the call. The read's reply is kept in case no server accepts the calls. Kept
 * replies count as unread replies.
 */

struct returned_call {
    struct returned_call *next;
    struct bytes reply;  /* sent to the client if the call is not sent again */
    struct bytes behind; /* replies that follow this call's reply */
    uint64_t tag;        /* tag of the call: upstream/lane/tags.h */
    /* when the call arrived; the next five fields are copies from the call, too */
    uint64_t arrived_ns;
    uint32_t waited_us;
    uint32_t argument;
    uint8_t flags;
    uint8_t effect;
    uint8_t counted;
    uint8_t kind;    /* enum kept_kind */
    bool is_refused; /* true: Redis refused the call; false: the call is a read */
    /* when Redis first refused the call; for a read without a refusal: when its reply came */
    uint64_t since_ns;
    uint32_t len; /* bytes of the request */
    char request[];
};

/* Zeroed: empty. */
struct returned {
    struct returned_call *first; /* the oldest; heap; NULL: none */
    struct returned_call *last;
    struct bytes frame; /* bytes so far of the reply being read */
    uint64_t bytes;     /* bytes of replies that are kept */
};

static inline bool returned_is_empty(const struct returned *returned)
{
    return returned->first == NULL;
}

static inline struct slice returned_request(const struct returned_call *call)
{
    return slice_of(call->request, call->len);
}

/* Adds a call as the newest, zeroed except for a copy of its request. NULL: out of memory. */
__attribute__((warn_unused_result)) struct returned_call *returned_add(struct returned *returned,
                                                                       struct pool *pool,
                                                                       struct slice request);

/* Appends a piece to the reply being read. False: out of memory. */
__attribute__((warn_unused_result)) bool returned_read(struct returned *returned, struct pool *pool,
                                                       struct slice piece);

/* The reply being read is whole, and is the reply to the newest call. */
void returned_end_reply(struct returned *returned);

/* The reply being read is whole, and follows the reply to the newest call. False: out of memory. */
__attribute__((warn_unused_result)) bool returned_end_behind(struct returned *returned,
                                                             struct pool *pool);

/*
 * Adds a reply that follows the newest call. Only while a returned call exists. False: out of
 * memory.
 */
__attribute__((warn_unused_result)) bool returned_say(struct returned *returned, struct pool *pool,
                                                      struct slice reply);

/* Removes the oldest call, which the caller frees by returned_free. NULL: none. */
struct returned_call *returned_take(struct returned *returned);
void returned_free(struct returned_call *call, struct pool *pool);

void returned_clear(struct returned *returned, struct pool *pool);

#endif
