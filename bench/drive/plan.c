#include "plan.h"

#include <assert.h>
#include <err.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"

#define ROOM_AT_FIRST 16

/* xorshift64* */
static uint64_t random_next(struct plan *plan)
{
    plan->state ^= plan->state >> 12;
    plan->state ^= plan->state << 25;
    plan->state ^= plan->state >> 27;
    return plan->state * UINT64_C(0x2545F4914F6CDD1D);
}

/* A random number above 0, 1 at most. */
static double random_share(struct plan *plan)
{
    return (double)((random_next(plan) >> 11) + 1) * 0x1p-53;
}

void plan_step(struct plan *plan)
{
    plan->at_ns -= log(random_share(plan)) * plan->gap_ns;
    plan->conn = (unsigned)((random_next(plan) >> 32) * plan->conns >> 32);
}

void plan_init(struct plan *plan, double per_second, unsigned conns, uint64_t seed,
               uint64_t start_ns)
{
    *plan = (struct plan){.gap_ns = (double)NS_PER_S / per_second,
                          .start_ns = start_ns,
                          .state = seed * 2 + 1,
                          .conns = conns};
    for (int i = 0; i < 16; i++) /* the first numbers of small seeds are alike */
        random_next(plan);
    plan_step(plan);
}

static void grow(struct dues *dues)
{
    unsigned room = dues->room ? dues->room * 2 : ROOM_AT_FIRST;
    uint64_t *at = malloc(room * sizeof *at);
    if (!at)
        err(1, "no memory for what is due");
    for (unsigned i = 0; i < dues->n; i++)
        at[i] = dues->at[(dues->first + i) & (dues->room - 1)];
    free(dues->at);
    *dues = (struct dues){.at = at, .n = dues->n, .room = room};
}

void dues_push(struct dues *dues, uint64_t ns)
{
    if (dues->n == dues->room)
        grow(dues);
    dues->at[(dues->first + dues->n++) & (dues->room - 1)] = ns;
}

uint64_t dues_pop(struct dues *dues)
{
    assert(dues->n > 0);
    uint64_t ns = dues->at[dues->first];
    dues->first = (dues->first + 1) & (dues->room - 1);
    dues->n--;
    return ns;
}

void dues_fini(struct dues *dues)
{
    free(dues->at);
    *dues = (struct dues){0};
}
