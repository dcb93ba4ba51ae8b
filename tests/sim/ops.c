#include "tests/sim/ops.h"

#include "tests/sim/run.h"

static const struct op *const tables[] = {data_ops, session_ops, shared_ops, limit_ops, rude_ops};
#define N_TABLES (sizeof tables / sizeof tables[0])

static bool fits(const struct client *client, const struct op *op)
{
    const struct intent *intent = &client->intent;
    if (intent->n_subscribed > 0 && !intent->is_resp3 && (op->flags & OP_SUBSCRIBED) == 0)
        return false;
    if (intent->in_multi && (op->flags & (OP_QUEUES | OP_MULTI)) == 0)
        return false;
    return true;
}

static unsigned weight_of(const struct client *client, const struct op *op)
{
    return fits(client, op) ? op->weight : 0;
}

const struct op *op_draw(struct client *client)
{
    uint64_t whole = 0;
    for (size_t t = 0; t < N_TABLES; t++)
        for (const struct op *op = tables[t]; op->name != NULL; op++)
            whole += weight_of(client, op);
    uint64_t drawn = random_below(&client->chance, whole);
    for (size_t t = 0; t < N_TABLES; t++)
        for (const struct op *op = tables[t]; op->name != NULL; op++) {
            uint64_t weight = weight_of(client, op);
            if (drawn < weight)
                return op;
            drawn -= weight;
        }
    return &data_ops[0];
}

const struct op *op_named(struct slice name)
{
    for (size_t t = 0; t < N_TABLES; t++)
        for (const struct op *op = tables[t]; op->name != NULL; op++)
            if (slice_eq(slice_str(op->name), name))
                return op;
    return NULL;
}

bool is_excused(const struct client *client, const struct act *act, const struct reply *reply)
{
    (void)client;
    if (reply->type != '-')
        return false;
    if (run.plan.has_limits && (act->op->flags & OP_CONTROL) == 0 && reply_begins(reply, '-', SLICE("THROTTLED ")))
        return true;
    return !run.is_faultless &&
           (reply_begins(reply, '-', SLICE("UPSTREAM ")) || reply_begins(reply, '-', SLICE("LOADING ")));
}
