/*
 * An allow-list: a command is shareable if its row says so and no flag speaks against it. Of every other command the
 * worst is assumed.
 */
#include "limit/command/travel.h"

#include <stdio.h>

#include "limit/command/own.h"

enum lane { SHARED, DATA, PAUSABLE, PRIVATE, FORGING, URGENT, BLOCKING, PINNED, ALIEN };
enum control { LIMITED, CONTROL, HANDSHAKE };

static const struct travel rows[] = {
#define ROW(name_, flow_, effect_, lane, control)                                                                      \
    {.name = {(name_), sizeof(name_) - 1},                                                                             \
     .flow = FLOW_##flow_,                                                                                             \
     .effect = EFFECT_##effect_,                                                                                       \
     .is_shareable = (lane) == SHARED || (lane) == DATA || (lane) == PAUSABLE,                                         \
     .is_data = (lane) == DATA,                                                                                        \
     .blocks = (lane) == BLOCKING,                                                                                     \
     .pins = (lane) == PINNED || (lane) == ALIEN,                                                                      \
     .may_forge = (lane) == FORGING || (lane) == ALIEN,                                                                \
     .is_urgent = (lane) == URGENT,                                                                                    \
     .is_pausable = (lane) == PAUSABLE,                                                                                \
     .is_control = (control) != LIMITED,                                                                               \
     .is_handshake = (control) == HANDSHAKE},
#include "limit/command/travel.def"
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
        if (slice_eq_nocase(rows[i].name, name))
            return &rows[i];
    return NULL;
}

static const struct travel *find_star(struct slice name)
{
    char star[COMMAND_NAME_MAX + sizeof "|*"];
    const char *bar = memchr(name.at, '|', name.len);
    if (bar == NULL || bar - name.at > COMMAND_NAME_MAX)
        return NULL;
    snprintf(star, sizeof star, "%.*s|*", (int)(bar - name.at), name.at);
    return find(slice_str(star));
}

/* For commands without a row. */
static struct travel stranger(uint16_t flags)
{
    return (struct travel){
        .flow = FLOW_ONE,
        .effect = EFFECT_NONE,
        .blocks = flags & CMD_BLOCKING,
        .pins = flags & CMD_MODULE,
        .may_forge = true,
    };
}

/* A server may have a different command of that name. */
static bool is_plain_data(uint16_t flags)
{
    const uint16_t data = CMD_READONLY | CMD_WRITE;
    const uint16_t against = CMD_NOSCRIPT | CMD_BLOCKING | CMD_PUBSUB | CMD_ADMIN;
    return (flags & data) && !(flags & against);
}

struct travel travel_of(struct slice name, uint16_t flags)
{
    const struct own *own = own_find(name);
    if (own != NULL)
        return (struct travel){.flow = FLOW_OWN, .is_shareable = true, .is_control = own->is_control};
    const struct travel *row = find(name);
    if (row == NULL)
        row = find_star(name);
    if (row == NULL || (flags & CMD_MODULE) || (row->is_data && !is_plain_data(flags)))
        return stranger(flags);
    return *row;
}
