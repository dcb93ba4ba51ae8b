#include "tests/sim/under_way.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

uint64_t under_way_owner(struct slice key)
{
    uint64_t parts[2] = {0};
    size_t at = 2;
    if (key.len < 7 || key.at[1] != ':')
        return 0;
    for (int part = 0; part < 2; part++) {
        size_t begin = at;
        for (; at < key.len && key.at[at] >= '0' && key.at[at] <= '9'; at++)
            parts[part] = parts[part] * 10 + (uint64_t)(key.at[at] - '0');
        if (at == begin || at == key.len || key.at[at++] != (part == 0 ? '.' : ':'))
            return 0;
    }
    return (parts[0] + 1) << 32 | parts[1];
}

/* Blocking commands are not in flight for weir, and WATCH is of class control. */
static bool is_exempt(struct slice name)
{
    return strncasecmp(name.at, "b", 1) == 0 ||
           (name.len == 5 && strncasecmp(name.at, "watch", 5) == 0);
}

unsigned under_way_begin(struct under_way *lane, const struct slice *argv, size_t argc,
                         uint64_t answer, uint64_t read)
{
    uint64_t owner = argc > 1 && !is_exempt(argv[0]) ? under_way_owner(argv[1]) : 0;
    unsigned n = 1;
    for (; lane->n > 0 && lane->calls[lane->first].answer < read; lane->n--)
        lane->first = (lane->first + 1) % UNDER_WAY_MAX;
    if (owner == 0 || lane->n == UNDER_WAY_MAX)
        return 0;
    for (unsigned i = 0; i < lane->n; i++)
        n += lane->calls[(lane->first + i) % UNDER_WAY_MAX].owner == owner;
    lane->calls[(lane->first + lane->n++) % UNDER_WAY_MAX] = (struct under_way_call){owner, answer};
    return n;
}
