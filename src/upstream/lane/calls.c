#include "upstream/lane/calls.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 16 /* a private lane seldom needs more; a busy shared one grows once or twice */

void calls_shed(struct calls *calls)
{
    pool_note_less(calls->pool, calls->capacity * sizeof *calls->ring);
    free(calls->ring);
    calls->ring = NULL;
    calls->capacity = 0;
}

void calls_fini(struct calls *calls)
{
    calls_shed(calls);
    memset(calls, 0, sizeof *calls);
}

static bool grow(struct calls *calls)
{
    uint32_t capacity = calls->capacity == 0 ? FIRST_CAPACITY : calls->capacity * 2;
    struct call *ring = malloc(capacity * sizeof *ring);
    if (ring == NULL)
        return false;
    for (uint32_t p = calls->head; p != calls->tail; p++)
        ring[p & (capacity - 1)] = *calls_at(calls, p);
    calls_shed(calls);
    pool_note_more(calls->pool, capacity * sizeof *ring);
    calls->ring = ring;
    calls->capacity = capacity;
    return true;
}

struct call *calls_push(struct calls *calls)
{
    if (calls->tail - calls->head == calls->capacity && !grow(calls))
        return NULL;
    struct call *call = calls_at(calls, calls->tail++);
    memset(call, 0, sizeof *call);
    return call;
}
