#include "limit/command/fanout.h"

#include <stddef.h>

static const struct {
    struct slice name;
    struct fanout_way way;
} rows[] = {
#define ROW(name, to, join) {{(name), sizeof(name) - 1}, {FANOUT_##to, JOIN_##join}},
#include "limit/command/fanout.def"
#undef ROW
};

/* Tips that begin so say where requests go, or what replies become. */
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
static bool read_request(struct slice policy, enum fanout *to)
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
        tips->has_request = read_request(policy, &tips->way.to);
    else if (tip_begins(tip, response_policy, &policy))
        tips->has_response = read_response(policy, &tips->way.join);
}

/* A command with replies that cannot be joined goes to the home node, as a command without tips does. */
struct fanout_way fanout_of(struct slice name, const struct fanout_tips *tips)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (slice_eq_nocase(rows[i].name, name))
            return rows[i].way;
    if (tips != NULL && tips->has_request && tips->has_response)
        return tips->way;
    return (struct fanout_way){FANOUT_KEYS, JOIN_FIRST};
}
