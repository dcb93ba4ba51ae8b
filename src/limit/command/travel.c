/*
 * An allow-list: a command is shareable if its row says so and no flag rules it out. For every
 * other command the worst case is assumed.
 */
#include "limit/command/travel.h"

#include <stddef.h>
#include <stdio.h>

#include "limit/command/own.h"

enum lane { SHARED, DATA, PAUSABLE, PRIVATE, FORGING, URGENT, BLOCKING, PINNED, ALIEN };
enum control { LIMITED, CONTROL, HANDSHAKE };

static const struct travel rows[] = {
#define ROW(name_, flow_, effect_, lane, control)                                                  \
    {.name = {(name_), sizeof(name_) - 1},                                                         \
     .flow = FLOW_##flow_,                                                                         \
     .effect = EFFECT_##effect_,                                                                   \
     .is_shareable = (lane) == SHARED || (lane) == DATA || (lane) == PAUSABLE,                     \
     .is_data = (lane) == DATA,                                                                    \
     .blocks = (lane) == BLOCKING,                                                                 \
     .pins = (lane) == PINNED || (lane) == ALIEN,                                                  \
     .may_forge = (lane) == FORGING || (lane) == ALIEN,                                            \
     .is_urgent = (lane) == URGENT,                                                                \
     .is_pausable = (lane) == PAUSABLE,                                                            \
     .is_control = (control) != LIMITED,                                                           \
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

static const struct travel *travel_find(struct slice name)
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
    return travel_find(slice_str(star));
}

/* The worst case, for commands without a row. */
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

/*
 * True if the flags fit a command that only reads or writes data. A server may have a different
 * command under a known name.
 */
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
        return (struct travel){
            .flow = FLOW_OWN, .is_shareable = true, .is_control = own->is_control};
    const struct travel *row = travel_find(name);
    if (row == NULL)
        row = find_star(name);
    if (row == NULL || (flags & CMD_MODULE) || (row->is_data && !is_plain_data(flags)))
        return stranger(flags);
    return *row;
}

/* ---- several nodes ---- */

static const struct {
    struct slice name;
    struct fanout_way way;
} ways[] = {
#define ROW(name, to, join) {{(name), sizeof(name) - 1}, {FANOUT_##to, JOIN_##join}},
#include "limit/command/fanout.def"
#undef ROW
};

/* Prefixes of the tips on where requests go and how replies are joined. */
static const struct slice request_policy = SLICE("request_policy:");
static const struct slice response_policy = SLICE("response_policy:");

static bool tip_begins(struct slice tip, struct slice with, struct slice *rest)
{
    if (tip.len < with.len || !slice_eq(slice_of(tip.at, with.len), with))
        return false;
    *rest = slice_of(tip.at + with.len, tip.len - with.len);
    return true;
}

/* False: a policy that only a row of fanout.def can follow (multi_shard, special). */
static bool travel_read_request(struct slice policy, enum fanout *to)
{
    if (slice_eq(policy, SLICE("all_shards")))
        *to = FANOUT_MASTERS;
    else if (slice_eq(policy, SLICE("all_nodes")))
        *to = FANOUT_NODES;
    else
        return false;
    return true;
}

static bool read_response(struct slice policy, enum join *join)
{
    static const struct {
        const char *name;
        enum join join;
    } policies[] = {
        {"all_succeeded", JOIN_OK}, {"one_succeeded", JOIN_ANY},   {"agg_sum", JOIN_SUM},
        {"agg_min", JOIN_LEAST},    {"agg_logical_and", JOIN_AND},
    };
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++)
        if (slice_eq(policy, slice_str(policies[i].name))) {
            *join = policies[i].join;
            return true;
        }
    return false;
}

void fanout_read_tip(struct fanout_tips *tips, struct slice tip)
{
    struct slice policy;
    if (tip_begins(tip, request_policy, &policy))
        tips->has_request = travel_read_request(policy, &tips->way.to);
    else if (tip_begins(tip, response_policy, &policy))
        tips->has_response = read_response(policy, &tips->way.join);
}

/*
 * If the replies of a command cannot be joined, the command goes to the default node, as a command
 * without tips does.
 */
struct fanout_way fanout_of(struct slice name, const struct fanout_tips *tips)
{
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (slice_eq_nocase(ways[i].name, name))
            return ways[i].way;
    if (tips != NULL && tips->has_request && tips->has_response)
        return tips->way;
    return (struct fanout_way){FANOUT_KEYS, JOIN_FIRST};
}
