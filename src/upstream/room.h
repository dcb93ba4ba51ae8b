/*
 * How many connections to Redis there may be for clients, on all workers together, and whose they are.
 *
 * Up to half of the most, everybody gets what he asks for. Beyond, a subject and an address may have no more of them
 * than are still free: whoever has many is stopped first, and whoever has few gets one until the last. (Dynamic
 * thresholds: Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches", 1998.) Shares
 * are counted by hash: those of two who fall on one count are added, which matters only beyond half. Any thread.
 */
#ifndef WEIR_UPSTREAM_ROOM_H
#define WEIR_UPSTREAM_ROOM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define ROOM_SLOTS 2048 /* a power of two */

/* The counts that somebody's lanes are in; of nobody's lane none. */
struct room_share {
    uint16_t subject; /* 1 + index; 0: none */
    uint16_t address;
};

struct room {
    _Atomic uint32_t asked;       /* max-lanes; 0: by the next two */
    _Atomic uint32_t descriptors; /* that this process may have */
    _Atomic uint32_t maxclients;  /* the least of the nodes', as far as is known; 0: it is not */
    _Atomic uint32_t open;        /* connections for clients */
    _Atomic uint32_t used;        /* of them, those that are somebody's */
    _Atomic uint32_t wanted;      /* connections that are waited for, and that nobody has given up yet */
    _Atomic uint32_t by_subject[ROOM_SLOTS];
    _Atomic uint32_t by_address[ROOM_SLOTS];
};

/* By hashes that nobody can choose; 0: there is none. */
struct room_share room_share_of(uint64_t subject, uint64_t address);

/* How many there may be. */
uint32_t room_most(const struct room *room);

/* May one more be opened? Then it counts; room_close it later. */
__attribute__((warn_unused_result)) bool room_open(struct room *room);
void room_close(struct room *room);

/* May this one be theirs? Then it counts for them; room_give_back it later, with the same share. */
__attribute__((warn_unused_result)) bool room_use(struct room *room, struct room_share share);
void room_give_back(struct room *room, struct room_share share);

/* Is so much of it taken that no connection should be kept for long without use? */
bool room_is_tight(const struct room *room);

/* Are there as many as there may be? */
bool room_is_full(const struct room *room);

/*
 * Somebody waits for a connection, and others may keep some without use: room_want. Who gives one up for that asks
 * room_is_wanted first, which is true once for each. Who waits no longer, whether he has got one or not: room_unwant.
 */
void room_want(struct room *room);
void room_unwant(struct room *room);
__attribute__((warn_unused_result)) bool room_is_wanted(struct room *room);

#endif
