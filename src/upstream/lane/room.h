/*
 * The bound on connections for clients, to all nodes and on all workers together, and the share of
 * each subject.
 *
 * Up to half of the bound, every subject gets all connections that it asks for. Beyond half, a
 * subject or an address may have at most as many connections as are still free. The largest subject
 * is thus stopped first, and a small subject can still get the last connection. Shares are counted
 * by hash: two subjects may share a count, which matters only beyond half. Any thread. Source:
 * dynamic thresholds, Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory
 * packet switches", 1998.
 */
#ifndef WEIR_UPSTREAM_ROOM_H
#define WEIR_UPSTREAM_ROOM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define ROOM_SLOTS 2048 /* chosen; a power of two */

/*
 * The counts that include a lane: the count of the lane's subject, and that of the lane's address.
 */
struct room_share {
    uint16_t subject; /* 1 + index in by_subject; 0: none */
    uint16_t address; /* 1 + index in by_address; 0: none */
};

struct room {
    _Atomic uint32_t asked;       /* max-lanes; 0: derived from `descriptors` and `maxclients` */
    _Atomic uint32_t descriptors; /* the limit of this process on descriptors */
    /* the smallest maxclients of the nodes, as far as known; 0: unknown */
    _Atomic uint32_t maxclients;
    _Atomic uint32_t open; /* connections for clients */
    _Atomic uint32_t used; /* the part of `open` that counts for a share */
    /*
     * lane users that wait for a connection, and for which no idle connection has been closed yet
     */
    _Atomic uint32_t wanted;
    _Atomic uint32_t by_subject[ROOM_SLOTS];
    _Atomic uint32_t by_address[ROOM_SLOTS];
};

/* The hashes must not be predictable by clients. A hash of 0: no subject, or no address. */
struct room_share room_share_of(uint64_t subject, uint64_t address);

/* The bound on connections. */
uint32_t room_most(const struct room *room);

/* room_open counts one more connection, until room_close. False: the bound is reached. */
__attribute__((warn_unused_result)) bool room_open(struct room *room);
void room_close(struct room *room);

/*
 * room_use counts one more connection for this share, until room_give_back for this share. False:
 * the share is at its bound.
 */
__attribute__((warn_unused_result)) bool room_use(struct room *room, struct room_share share);
void room_give_back(struct room *room, struct room_share share);

/* True if more than three quarters are taken: idle connections should close early. */
bool room_is_tight(const struct room *room);

/* True if the bound is reached. */
bool room_is_full(const struct room *room);

/*
 * room_want: one more lane user waits for a connection, while other workers may keep idle
 * connections. room_is_wanted: true once for each room_want; the caller then closes an idle
 * connection. room_unwant: the lane user no longer waits, with or without a connection.
 */
void room_want(struct room *room);
void room_unwant(struct room *room);
__attribute__((warn_unused_result)) bool room_is_wanted(struct room *room);

#endif
