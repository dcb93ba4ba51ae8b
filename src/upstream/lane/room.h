/*
 * How many connections there may be for clients, to all nodes and on all workers together, and whose they are.
 *
 * Up to half of the most, every subject gets what it asks for. Beyond, a subject and an address may have no more of
 * them than are still free: the one that has most is stopped first, and one that has few gets one until the last.
 * (Dynamic thresholds: Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches", 1998.)
 * Shares are counted by hash: two subjects may share a count, which matters only beyond half. Any thread.
 */
#ifndef WEIR_UPSTREAM_ROOM_H
#define WEIR_UPSTREAM_ROOM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define ROOM_SLOTS 2048 /* a power of two */

/* The counts that a lane is in: its subject's and its address's. */
struct room_share {
    uint16_t subject; /* 1 + index in by_subject; 0: none */
    uint16_t address; /* 1 + index in by_address; 0: none */
};

struct room {
    _Atomic uint32_t asked;       /* max-lanes; 0: by the next two */
    _Atomic uint32_t descriptors; /* that this process may have */
    _Atomic uint32_t maxclients;  /* the least of the nodes', as far as is known; 0: it is not */
    _Atomic uint32_t open;        /* connections for clients */
    _Atomic uint32_t used;        /* of them those in a share */
    _Atomic uint32_t wanted;      /* connections that are waited for, and that nobody has given up yet */
    _Atomic uint32_t by_subject[ROOM_SLOTS];
    _Atomic uint32_t by_address[ROOM_SLOTS];
};

/* By hashes that no client can choose; 0: it has none. */
struct room_share room_share_of(uint64_t subject, uint64_t address);

/* How many there may be. */
uint32_t room_most(const struct room *room);

/* May one more be opened? Then it counts; room_close it later. */
__attribute__((warn_unused_result)) bool room_open(struct room *room);
void room_close(struct room *room);

/* May one more be of this share? Then it counts there; room_give_back it later, with the same share. */
__attribute__((warn_unused_result)) bool room_use(struct room *room, struct room_share share);
void room_give_back(struct room *room, struct room_share share);

/* Is so much of it taken that no connection should be kept for long without use? */
bool room_is_tight(const struct room *room);

/* Are there as many as there may be? */
bool room_is_full(const struct room *room);

/*
 * room_want: one more rider waits for a connection, and workers may keep some without use. room_is_wanted, before one
 * is given up for that: true once for each. room_unwant: the rider waits no longer, whether it has got one or not.
 */
void room_want(struct room *room);
void room_unwant(struct room *room);
__attribute__((warn_unused_result)) bool room_is_wanted(struct room *room);

#endif
