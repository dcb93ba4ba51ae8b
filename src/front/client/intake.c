#include "front/client/intake.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 1024 /* most partial requests are small */

struct intake *intake_keep(const struct intake *local)
{
    uint32_t left = local->filled - local->taken;
    uint32_t capacity = left > FIRST_CAPACITY ? left : FIRST_CAPACITY;
    struct intake *in = malloc(sizeof *in);
    char *data = malloc(capacity);
    if (in == NULL || data == NULL) {
        free(in);
        free(data);
        return NULL;
    }
    memcpy(data, local->data + local->taken, left);
    *in = *local;
    in->data = data;
    in->capacity = capacity;
    in->filled = left;
    in->scanned = local->scanned - local->taken;
    in->taken = 0;
    return in;
}

void intake_compact(struct intake *in)
{
    if (in->taken == 0)
        return;
    memmove(in->data, in->data + in->taken, in->filled - in->taken);
    in->filled -= in->taken;
    in->scanned -= in->taken;
    in->taken = 0;
}

static void grow(struct intake *in)
{
    uint32_t least = in->filled + INTAKE_MIN_READ;
    uint32_t capacity = in->capacity * 2 < least ? least : in->capacity * 2;
    if (capacity > INTAKE_MAX)
        capacity = INTAKE_MAX;
    char *data = realloc(in->data, capacity);
    if (data == NULL)
        return; /* the read is small, or has no room */
    in->data = data;
    in->capacity = capacity;
}

size_t intake_make_room(struct intake *in)
{
    if (in->capacity - in->filled < INTAKE_MIN_READ)
        intake_compact(in);
    if (in->capacity - in->filled < INTAKE_MIN_READ && in->capacity < INTAKE_MAX)
        grow(in);
    return in->capacity - in->filled;
}

size_t intake_free(struct intake *in)
{
    size_t bytes = in->capacity;
    free(in->data);
    free(in);
    return bytes;
}
