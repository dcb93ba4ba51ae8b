/*
 * How commands travel.
 *
 * Nothing that keeps state on a connection, waits, or answers otherwise than once is shareable: the rows say so by
 * name, and what has no row must show by its flags that it is a plain data command.
 */
#include "limit/travel.h"

#include <stdio.h>

#include "limit/own.h"

enum lane { SHARED, PAUSABLE, PRIVATE, URGENT, BLOCKING, PINNED };
enum control { LIMITED, CONTROL };

static const struct travel rows[] = {
#define ROW(name_, flow_, effect_, lane, control)                                                                      \
    {.name = (name_),                                                                                                  \
     .flow = FLOW_##flow_,                                                                                             \
     .effect = EFFECT_##effect_,                                                                                       \
     .is_shareable = (lane) == SHARED || (lane) == PAUSABLE,                                                           \
     .blocks = (lane) == BLOCKING,                                                                                     \
     .pins = (lane) == PINNED,                                                                                         \
     .is_urgent = (lane) == URGENT,                                                                                    \
     .is_pausable = (lane) == PAUSABLE,                                                                                \
     .is_control = (control) == CONTROL},
#include "limit/travel.def"
#undef ROW
};

size_t travel_count(void)
{
    return sizeof rows / sizeof rows[0];
}

const struct travel *travel_row(size_t i)
{
    return &rows[i];
}

static const struct travel *find(struct slice name)
{
    for (size_t i = 0; i < travel_count(); i++)
        if (slice_eq_nocase(slice_str(rows[i].name), name))
            return &rows[i];
    return NULL;
}

static const struct travel *find_star(struct slice name)
{
    char star[COMMAND_NAME_MAX + sizeof "|*"];
    const char *bar = memchr(name.at, '|', name.len);
    if (!bar || bar - name.at > COMMAND_NAME_MAX)
        return NULL;
    snprintf(star, sizeof star, "%.*s|*", (int)(bar - name.at), name.at);
    return find(slice_str(star));
}

static struct travel by_flags(uint16_t flags)
{
    const uint16_t data = CMD_READONLY | CMD_WRITE;
    const uint16_t against = CMD_NOSCRIPT | CMD_BLOCKING | CMD_PUBSUB | CMD_ADMIN | CMD_MODULE;
    return (struct travel){
        .flow = FLOW_ONE,
        .effect = EFFECT_NONE,
        .is_shareable = (flags & data) && !(flags & against),
        .blocks = flags & CMD_BLOCKING,
        .pins = flags & CMD_MODULE,
    };
}

struct travel travel_of(struct slice name, uint16_t flags)
{
    const struct own *own = own_find(name);
    if (own)
        return (struct travel){.flow = FLOW_OWN, .is_shareable = true, .is_control = own->is_control};
    const struct travel *row = find(name);
    if (!row)
        row = find_star(name);
    return row ? *row : by_flags(flags);
}
