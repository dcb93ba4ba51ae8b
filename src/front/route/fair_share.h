/*
 * Fair share: a client asks here before its requests are taken, and waits if its subject has had its share of Redis.
 *
 * While no other client sends, or fair-share = off, there is nothing to ask. Else a client takes requests for as much
 * of Redis' time as upstream/fair/fair_queue.h allows, and leaves the worker to others after FAIR_TURN_NS, or all
 * clients of its
 * subject after FAIR_SUBJECT_NS. A request that waits has not been taken: no limit has been asked about it, and
 * nothing is
 * charged. It stands in the intake like any other request that cannot go yet, and its link is woken. Between MULTI
 * and EXEC nothing waits: half a transaction helps no one.
 *
 * All nodes of a cluster have one queue for each worker, though each could have its own: what a client asks next is
 * not known
 * before its request is taken, and what is asked first would be held up by what is asked next, since replies keep
 * their order.
 */
#ifndef WEIR_FRONT_FAIR_SHARE_H
#define WEIR_FRONT_FAIR_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "front/client/client.h"
#include "front/route/request.h"
#include "limit/command/command.h"

#define FAIR_TURN_NS (50 * NS_PER_US)      /* of a worker's time for one client, while others send too */
#define FAIR_SUBJECT_NS (4 * FAIR_TURN_NS) /* in one turn of the loop for all clients of a subject */
#define FAIR_SLICE 256                     /* requests taken before the clock is looked at, ... */
#define FAIR_LONG_WAY 8                    /* ... one that goes the long way as so many */

enum pace_kind {
    PACE_ALONE,   /* no other client sends */
    PACE_SAME,    /* others of its subject do */
    PACE_SEVERAL, /* other subjects do */
};

/* For one time that requests of a client are taken. */
struct pace {
    enum pace_kind kind;
    uint32_t left;     /* requests that may be taken before the clock is looked at, ... */
    int64_t left_ns;   /* ... and their work before fair_share_ask is to be called again */
    bool is_used;      /* it has been asked, and some were taken */
    uint64_t began_ns; /* when they began to be taken */
};

void fair_share_begin(struct client *client, struct pace *pace);

bool fair_share_ask(struct client *client, struct pace *pace);

/* May its next request be taken? False: its link will be woken. */
static inline bool fair_share_may_go(struct client *client, struct pace *pace)
{
    return (pace->left > 0 && pace->left_ns > 0) || fair_share_ask(client, pace);
}

/* How many requests of such a cost may be taken now? The last may exceed what is left. */
static inline uint32_t pace_most(const struct pace *pace, uint32_t cost_ns)
{
    int64_t most_ns = (int64_t)pace->left * cost_ns;
    if (most_ns <= pace->left_ns)
        return pace->left;
    return pace->left_ns > 0 ? (uint32_t)((pace->left_ns - 1) / cost_ns) + 1 : 0;
}

/* So many have been taken. */
static inline void pace_take(struct pace *pace, uint32_t n, uint32_t cost_ns)
{
    pace->left -= n;
    pace->left_ns -= (int64_t)n * cost_ns;
}

/* One has been taken the long way: what it cost is the fair queue's to tell. */
static inline void pace_take_one(struct pace *pace)
{
    pace->left -= pace->left < FAIR_LONG_WAY ? pace->left : FAIR_LONG_WAY;
    if (pace->kind != PACE_ALONE)
        pace->left_ns = 0;
}

/* No more is taken for now: what it was granted is for others, and if nothing of it is held up it waits for nothing. */
void fair_share_end(struct client *client);

/* No more will be taken. */
void fair_share_stop(struct client *client);

/* What so many bytes of requests or replies cost Redis, ns. */
static inline uint64_t fair_share_bytes_ns(uint64_t bytes)
{
    return bytes / FAIR_BYTES_PER_NS;
}

void fair_share_count(struct client *client, uint32_t n, uint64_t work_ns);

/* `n` of its requests are on their way: so much work for Redis. */
static inline void fair_share_note_sent(struct client *client, uint32_t n, uint64_t work_ns)
{
    if (client->rider.sender != 0 && n > 0)
        fair_share_count(client, n, work_ns);
}

void fair_share_count_in_transaction(struct client *client, const struct command *command, uint64_t work_ns);

/* The same of one, of so many bytes. */
static inline void fair_share_note_call(struct client *client, const struct command *command, size_t bytes)
{
    uint64_t work_ns = command_cost_ns(command) + fair_share_bytes_ns(bytes);
    if (client->rider.sender == 0)
        return;
    if (transaction_is_open(&client->transaction) || command_is_bracket(command))
        fair_share_count_in_transaction(client, command, work_ns);
    else
        fair_share_count(client, 1, work_ns);
}

/* Of such work nothing is under way. */
void fair_share_charge(struct client *client, uint64_t work_ns);

/* The same of a request with an answer that nothing waits for, as it may block. */
static inline void fair_share_note_blocking(struct client *client, const struct command *command, size_t bytes)
{
    fair_share_charge(client, command_cost_ns(command) + fair_share_bytes_ns(bytes));
}

/* The same of a large request, whose last byte has passed. Its bytes are charged as they pass. */
static inline void fair_share_note_passed(struct client *client, const struct command *command, bool may_block)
{
    if (may_block)
        fair_share_note_blocking(client, command, 0);
    else
        fair_share_note_call(client, command, 0);
}

/* The same of a request. A large request is noted when its last byte has passed: only then Redis executes it. */
static inline void fair_share_note_request(struct client *client, const struct request *request)
{
    if (!request->is_large)
        fair_share_note_call(client, request->command, request->bytes.len);
}

/*
 * `n` of its requests at places (front/cluster/spread.h) are answered, or have come back; so many bytes of replies
 * have come there: these riders have no number of their own in the fair queue.
 */
void fair_share_note_answered(struct client *client, uint64_t sent_ns, uint32_t n);
void fair_share_note_bytes(struct client *client, size_t bytes);

/* What it has under way will not be answered. */
void fair_share_forget(struct client *client);

/* It has gone, or is to be another subject's. */
void fair_share_leave(struct client *client);

/* True if the client's next request waits for its share. */
static inline bool fair_share_is_held_up(const struct client *client)
{
    return client->link.is_patient;
}

/* ---- of a worker ---- */

void fair_share_init(struct front *front);
void fair_share_close(struct front *front); /* when no client is left */
bool fair_share_on_turn(struct loop *loop);
bool fair_share_is_unsettled(struct loop *loop);

#endif
