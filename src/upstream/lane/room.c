#include "upstream/lane/room.h"

#include <stddef.h>

/* chosen: percent of the connections that the system and Redis allow; the rest is for other uses */
#define PERCENT 80
#define UNKNOWN_MOST 8000 /* 80 % of the default maxclients of Redis */

static uint32_t read(const _Atomic uint32_t *count)
{
    return atomic_load_explicit(count, memory_order_relaxed);
}

static void room_add(_Atomic uint32_t *count, uint32_t n)
{
    atomic_fetch_add_explicit(count, n, memory_order_relaxed);
}

static uint16_t room_slot_of(uint64_t hash)
{
    return hash == 0 ? 0 : (uint16_t)(1 + hash % ROOM_SLOTS);
}

struct room_share room_share_of(uint64_t subject, uint64_t address)
{
    return (struct room_share){room_slot_of(subject), room_slot_of(address)};
}

uint32_t room_most(const struct room *room)
{
    uint32_t asked = read(&room->asked);
    uint32_t clients = read(&room->maxclients);
    uint32_t files = read(&room->descriptors);
    if (asked != 0)
        return asked;
    if (clients == 0 && files == 0)
        return UNKNOWN_MOST;
    uint32_t least = clients == 0 || (files != 0 && files < clients) ? files : clients;
    return least / 100 * PERCENT + least % 100 * PERCENT / 100;
}

bool room_open(struct room *room)
{
    if (atomic_fetch_add_explicit(&room->open, 1, memory_order_relaxed) < room_most(room))
        return true;
    room_close(room);
    return false;
}

void room_close(struct room *room)
{
    room_add(&room->open, UINT32_MAX);
}

static void count(struct room *room, struct room_share share, uint32_t n)
{
    room_add(&room->used, n);
    if (share.subject != 0)
        room_add(&room->by_subject[share.subject - 1], n);
    if (share.address != 0)
        room_add(&room->by_address[share.address - 1], n);
}

/* The connection to judge has been counted already. */
static bool room_is_within(const struct room *room, struct room_share share)
{
    uint32_t most = room_most(room);
    uint32_t used = read(&room->used);
    uint32_t left = used < most ? most - used : 0;
    if (used <= most / 2)
        return true;
    return (share.subject == 0 || read(&room->by_subject[share.subject - 1]) <= left + 1) &&
           (share.address == 0 || read(&room->by_address[share.address - 1]) <= left + 1);
}

bool room_use(struct room *room, struct room_share share)
{
    count(room, share, 1);
    if (room_is_within(room, share))
        return true;
    room_give_back(room, share);
    return false;
}

void room_give_back(struct room *room, struct room_share share)
{
    count(room, share, UINT32_MAX);
}

bool room_is_full(const struct room *room)
{
    return read(&room->open) >= room_most(room);
}

void room_want(struct room *room)
{
    room_add(&room->wanted, 1);
}

bool room_is_wanted(struct room *room)
{
    uint32_t wanted = read(&room->wanted);
    while (wanted > 0)
        if (atomic_compare_exchange_weak_explicit(&room->wanted, &wanted, wanted - 1,
                                                  memory_order_relaxed, memory_order_relaxed))
            return true;
    return false;
}

void room_unwant(struct room *room)
{
    if (!room_is_wanted(room))
        return; /* an idle connection was closed for the lane user */
}

bool room_is_tight(const struct room *room)
{
    return read(&room->open) > room_most(room) / 4 * 3;
}
