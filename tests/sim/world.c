#include "tests/sim/world.h"

#include <stdlib.h>

#include "base/mem.h"
#include "tests/sim/heap.h"

struct world world;

enum { STREAM_ORDER = 1 };

void world_init(uint64_t seed)
{
    world = (struct world){.now_ns = SIM_START_NS};
    random_init(&world.order, seed, STREAM_ORDER);
}

void world_fini(void)
{
    dues_fini(&world.bells);
    free(world.ready);
    world.ready = NULL;
}

static void push(struct party *party)
{
    if (world.n_ready == world.ready_room) {
        world.ready_room = world.ready_room > 0 ? 2 * world.ready_room : 64;
        world.ready = mem_realloc(world.ready, world.ready_room, sizeof(struct party *));
    }
    world.ready[world.n_ready++] = party;
    party->is_ready = true;
}

static void on_bell(struct bell *bell)
{
    world_wake(container_of(bell, struct party, bell));
}

void world_wake(struct party *party)
{
    if (party->is_ready)
        return;
    if (party->asleep_ns > world.now_ns)
        world_wake_at(party, party->asleep_ns);
    else
        push(party);
}

void world_wake_at(struct party *party, uint64_t at_ns)
{
    at_ns = at_ns < party->asleep_ns ? party->asleep_ns : at_ns;
    if (party->bell.due.place != 0 && party->bell.due.at <= at_ns)
        return;
    party->bell.ring = on_bell;
    world_ring_at(&party->bell, at_ns);
}

void world_sleep(struct party *party, uint64_t ns)
{
    party->asleep_ns = world.now_ns + ns;
}

void world_leave(struct party *party)
{
    world_silence(&party->bell);
    for (size_t i = 0; party->is_ready && i < world.n_ready; i++)
        if (world.ready[i] == party) {
            world.ready[i] = world.ready[--world.n_ready];
            party->is_ready = false;
        }
}

void world_ring_at(struct bell *bell, uint64_t at_ns)
{
    due_set(&world.bells, &bell->due, at_ns);
}

void world_silence(struct bell *bell)
{
    due_drop(&world.bells, &bell->due);
}

static void ring_due(void)
{
    struct due *first;
    while ((first = due_first(&world.bells)) != NULL && first->at <= world.now_ns) {
        due_drop(&world.bells, first);
        struct bell *bell = container_of(first, struct bell, due);
        bell->ring(bell);
    }
}

/* A random ready party; NULL: all ready parties sleep. */
static struct party *take_ready(void)
{
    while (world.n_ready > 0) {
        size_t i = (size_t)random_below(&world.order, world.n_ready);
        struct party *party = world.ready[i];
        world.ready[i] = world.ready[--world.n_ready];
        party->is_ready = false;
        if (party->asleep_ns <= world.now_ns)
            return party;
        world_wake_at(party, party->asleep_ns);
    }
    return NULL;
}

static void take_turn(struct party *party)
{
    world.steps++;
    world.current = party;
    bool before = heap_is_weirs(party->is_weirs);
    party->turn(party);
    (void)heap_is_weirs(before);
    world.current = NULL;
    world.last = party;
    if (world.turn_ns > 0)
        world.now_ns += random_below(&world.order, world.turn_ns + 1);
}

bool world_step(void)
{
    ring_due();
    struct party *party = take_ready();
    if (party != NULL) {
        take_turn(party);
        return true;
    }
    struct due *first = due_first(&world.bells);
    if (first == NULL)
        return false;
    world.last = NULL;
    world.now_ns = first->at;
    return true;
}
