/*
 * Whose turn it is to send: a client asks here before its requests are taken, and waits if it has had its share.
 *
 * All nodes of a cluster have one queue, though each could have its own. What a client asks next is not known before its
 * request is taken, and who is asked first would be held up by who is asked next: replies keep their order. The cost of a
 * request is learnt from how fast all nodes answer together, so that the window holds enough work for all of them. What
 * a node does not answer is not counted on after a few ms (SCHEDULE_PATIENCE_NS), so that a node that hangs holds up
 * clients of the others no longer than that.
 *
 * While nobody else sends, or the configuration wants no turns, there is nothing to ask. Else a client takes some
 * requests, asks for the next, and leaves the worker to others after PACING_TURN_NS, or all clients of its subject after
 * PACING_SUBJECT_NS; and what it may send is upstream/schedule.h's to say. What waits has not been
 * taken: no limit has been asked about it, and nothing is charged. It stands in the intake like any other request that
 * cannot go yet, and its link is woken. Between MULTI and EXEC nobody waits: half a transaction helps no one.
 */
#ifndef WEIR_FRONT_PACING_H
#define WEIR_FRONT_PACING_H

#include <stdbool.h>
#include <stdint.h>

#include "front/client.h"

#define PACING_TURN_NS (50 * NS_PER_US)        /* of a worker's time for one client, while others send too */
#define PACING_SUBJECT_NS (4 * PACING_TURN_NS) /* in one turn of the loop for all clients of a subject */
#define PACING_SLICE 64 /* requests taken before the clock is looked at, or fewer where they take long */

enum pace_kind {
    PACE_ALONE,   /* nobody else sends */
    PACE_SAME,    /* others of its subject do */
    PACE_SEVERAL, /* other subjects do */
};

/* For one time that requests of a client are taken. */
struct pace {
    enum pace_kind kind;
    uint32_t left;     /* requests that may be taken before pacing_may_go is to be asked again */
    bool is_used;      /* it has been asked, and some were taken */
    uint64_t began_ns; /* when they began to be taken */
};

void pacing_begin(struct client *client, struct pace *pace);

bool pacing_ask(struct client *client, struct pace *pace);

/* May its next request be taken? False: its link will be woken. */
static inline bool pacing_may_go(struct client *client, struct pace *pace)
{
    return pace->left > 0 || pacing_ask(client, pace);
}

/* No more is taken for now: what it was granted is for others, and if nothing of it is held up it waits for no turn. */
void pacing_end(struct client *client);

/* No more will be taken. */
void pacing_stop(struct client *client);

void pacing_count_sent(struct client *client, uint32_t n);

/* `n` of its requests are on their way, at which Redis works until it has answered them. */
static inline void pacing_note_sent(struct client *client, uint32_t n)
{
    if (client->rider.paced != 0 && n > 0)
        pacing_count_sent(client, n);
}

/*
 * `n` of its requests at places (front/spread.h) are answered, or have come back: these riders have no number of their own in
 * the fair queue.
 */
void pacing_note_answered(struct client *client, const struct call *call, uint32_t n);

/* What it has under way will not be answered. */
void pacing_forget(struct client *client);

/* It has gone, or is to be somebody else's. */
void pacing_leave(struct client *client);

/* True if the client's next request waits for its share. */
static inline bool pacing_is_held_up(const struct client *client)
{
    return client->link.is_patient;
}

/* ---- of a worker ---- */

void pacing_init(struct front *front);
void pacing_close(struct front *front); /* when no client is left */
bool pacing_on_turn(struct loop *loop);
bool pacing_is_unsettled(struct loop *loop);

#endif
