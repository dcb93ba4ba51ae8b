#include "upstream/tags.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 16

void tags_fini(struct tags *tags)
{
    free(tags->ring);
    memset(tags, 0, sizeof *tags);
}

bool tags_grow(struct tags *tags)
{
    uint32_t capacity = tags->capacity == 0 ? FIRST_CAPACITY : tags->capacity * 2;
    uint32_t *ring = malloc(capacity * sizeof *ring);
    if (ring == NULL)
        return false;
    for (uint32_t at = tags->head; at != tags->tail; at++)
        ring[at & (capacity - 1)] = tags->ring[at & (tags->capacity - 1)];
    free(tags->ring);
    tags->ring = ring;
    tags->capacity = capacity;
    return true;
}
