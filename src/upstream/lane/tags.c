#include "upstream/lane/tags.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 8

void tags_shed(struct tags *tags)
{
    pool_note_less(tags->pool, tags->capacity * sizeof *tags->ring);
    free(tags->ring);
    tags->ring = NULL;
    tags->capacity = 0;
}

void tags_fini(struct tags *tags)
{
    tags_shed(tags);
    memset(tags, 0, sizeof *tags);
}

bool tags_grow(struct tags *tags)
{
    uint32_t capacity = tags->capacity == 0 ? FIRST_CAPACITY : tags->capacity * 2;
    uint64_t *ring = malloc(capacity * sizeof *ring);
    if (ring == NULL)
        return false;
    for (uint32_t at = tags->head; at != tags->tail; at++)
        ring[at & (capacity - 1)] = tags->ring[at & (tags->capacity - 1)];
    tags_shed(tags);
    pool_note_more(tags->pool, capacity * sizeof *ring);
    tags->ring = ring;
    tags->capacity = capacity;
    return true;
}
