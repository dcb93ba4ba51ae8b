/*
 * Fair share of a client. Before requests of a client are taken, fair_share_may_go decides whether
 * the client's subject has used up its share of Redis' time. If the share is used up, the client
 * waits.
 *
 * While no other client sends, or with fair-share = off, no request waits. Otherwise a client takes
 * requests for as much of Redis' time as upstream/fair/fair_queue.h grants. In one iteration of the
 * event loop, a client may use FAIR_ITERATION_NS of its worker's time. The clients of one subject
 * together may use FAIR_SUBJECT_NS.
 *
 * A waiting request has not been taken: no limit has decided the request, nothing is charged, and
 * its bytes stay in the intake. When the wait ends, the fair queue wakes the client's link. Between
 * MULTI and EXEC no request waits: half a transaction is of no use.
 *
 * Each worker has one queue for all nodes of a cluster. The node of a request is not known before
 * the request is taken. A queue for each node would gain little. Replies keep their order, so a
 * request at a busy node would hold up the requests behind it.
 */
#ifndef WEIR_FRONT_FAIR_SHARE_H
#define WEIR_FRONT_FAIR_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "front/client/client.h"
#include "front/route/request.h"
#include "limit/command/command.h"

/* Chosen. Time of a worker for one client, while other clients send too. */
#define FAIR_ITERATION_NS (50 * NS_PER_US)
/* Chosen. Time of a worker for all clients of a subject, in one iteration of the event loop. */
#define FAIR_SUBJECT_NS (4 * FAIR_ITERATION_NS)
#define FAIR_WORD_NS 28
#define FAIR_SLICE 256  /* requests between two looks at the clock */
#define FAIR_LONG_WAY 8 /* a request off the fast path counts as this many requests */

enum pace_kind {
    PACE_ALONE,   /* no other client sends */
    PACE_SAME,    /* other clients send, but only clients of the same subject */
    PACE_SEVERAL, /* other subjects send */
};

/* How much of its intake a client may take in one go. */
struct pace {
    enum pace_kind kind;
    uint32_t left;     /* requests until the next look at the clock */
    int64_t left_ns;   /* work until fair_share_ask() is called again */
    bool is_used;      /* requests have been taken since fair_share_ask() */
    uint64_t began_ns; /* when the first of these requests was taken */
};

void fair_share_begin(struct client *client, struct pace *pace);

bool fair_share_ask(struct client *client, struct pace *pace);

/* True if the next request may be taken. False: the client waits, and its link will be woken. */
static inline bool fair_share_may_go(struct client *client, struct pace *pace)
{
    return (pace->left > 0 && pace->left_ns > 0) || fair_share_ask(client, pace);
}

/*
 * Returns how many requests of this cost may be taken now. The last of these requests may exceed
 * the work left.
 */
static inline uint32_t pace_most(const struct pace *pace, uint32_t cost_ns)
{
    int64_t most_ns = (int64_t)pace->left * cost_ns;
    if (most_ns <= pace->left_ns)
        return pace->left;
    return pace->left_ns > 0 ? (uint32_t)((pace->left_ns - 1) / cost_ns) + 1 : 0;
}

/* Subtracts n requests of this cost that have been taken. */
static inline void pace_take(struct pace *pace, uint32_t n, uint32_t cost_ns)
{
    pace->left -= n;
    pace->left_ns -= (int64_t)n * cost_ns;
}

/* Subtracts a request off the fast path. The fair queue is asked before the next request. */
static inline void pace_take_one(struct pace *pace)
{
    pace->left -= pace->left < FAIR_LONG_WAY ? pace->left : FAIR_LONG_WAY;
    if (pace->kind != PACE_ALONE)
        pace->left_ns = 0;
}

/*
 * weir takes no more requests of the client for now. The unused part of the client's grant goes
 * back to the fair queue.
 */
void fair_share_end(struct client *client);

/* As fair_share_end, and the client no longer waits for its share. */
void fair_share_stop(struct client *client);

/* Returns the time that Redis needs for these bytes of requests or replies, in ns. */
static inline uint64_t fair_share_bytes_ns(uint64_t bytes)
{
    return bytes / FAIR_BYTES_PER_NS;
}

/*
 * Returns the time that Redis needs for a request, in ns. Redis copies the bytes, and allocates
 * memory for each word. Measured: 3 ms for 100,000 words; INFO commandstats does not include this
 * time.
 */
static inline uint64_t fair_share_request_ns(const struct command *command, size_t bytes,
                                             uint32_t argc)
{
    return command_cost_ns(command) + fair_share_bytes_ns(bytes) + (uint64_t)argc * FAIR_WORD_NS;
}

void fair_share_count(struct client *client, uint32_t n, uint64_t work_ns);

/* Counts n sent requests with work_ns of work in all. */
static inline void fair_share_note_sent(struct client *client, uint32_t n, uint64_t work_ns)
{
    if (client->lane_user.sender != 0 && n > 0)
        fair_share_count(client, n, work_ns);
}

void fair_share_count_in_transaction(struct client *client, const struct command *command,
                                     uint64_t work_ns);

/* Counts one sent request of `bytes` bytes and argc words. */
static inline void fair_share_note_call(struct client *client, const struct command *command,
                                        size_t bytes, uint32_t argc)
{
    uint64_t work_ns = fair_share_request_ns(command, bytes, argc);
    if (client->lane_user.sender == 0)
        return;
    if (transaction_is_open(&client->transaction) || command_is_bracket(command))
        fair_share_count_in_transaction(client, command, work_ns);
    else
        fair_share_count(client, 1, work_ns);
}

/* Charges work without counting a request in flight. */
void fair_share_charge(struct client *client, uint64_t work_ns);

/* Charges a request that may block: the in-flight window does not wait for the reply. */
static inline void fair_share_note_blocking(struct client *client, const struct command *command,
                                            size_t bytes, uint32_t argc)
{
    fair_share_charge(client, fair_share_request_ns(command, bytes, argc));
}

/* The last byte of a large request has passed. The bytes were charged as they passed. */
static inline void fair_share_note_passed(struct client *client, const struct command *command,
                                          const struct passage *passage)
{
    if (passage->may_block)
        fair_share_note_blocking(client, command, 0, passage->scan.argc);
    else
        fair_share_note_call(client, command, 0, passage->scan.argc);
}

/*
 * Counts a sent request. A large request is counted when its last byte has passed: only then Redis
 * executes the request.
 */
static inline void fair_share_note_request(struct client *client, const struct request *request)
{
    if (!request->is_large)
        fair_share_note_call(client, request->command, request->bytes.len, request->argc);
}

/*
 * n requests at places (front/cluster/spread.h) were answered, or were not run. Lane users of
 * places have no sender of their own in the fair queue, so this function uses the client's sender.
 */
void fair_share_note_answered(struct client *client, uint64_t sent_ns, uint32_t n);

/* `bytes` of a reply have come at a place. */
void fair_share_note_bytes(struct client *client, size_t bytes);

/* The client's requests in flight will not be answered. */
void fair_share_forget(struct client *client);

/* Removes the client from the fair queue: the client closes, or changes its subject. */
void fair_share_leave(struct client *client);

/* True if the client waits for its share before its next request. */
static inline bool fair_share_must_wait(const struct client *client)
{
    return client->link.is_patient;
}

/* ---- of a worker ---- */

void fair_share_init(struct front *front);
void fair_share_close(struct front *front); /* call when no client is left */
bool fair_share_on_iteration(struct loop *loop);
bool fair_share_is_unsettled(struct loop *loop);

#endif
