#include "tests/sim/ops.h"

#include <stdarg.h>
#include <stdio.h>

#include "tests/sim/admin.h"
#include "tests/sim/run.h"

static const struct op *const tables[] = {
    data_ops,      transaction_ops, session_ops, script_ops, shared_ops,     channel_ops,  connection_ops, lock_ops,
    own_limit_ops, marks_ops,       limit_ops,   exact_ops,  limit_word_ops, blocking_ops, rude_ops,       catalog_ops,
    operator_ops,  forms_ops,       large_ops,   cell_ops,   slow_ops,       renewed_ops,  place_ops};
#define N_TABLES (sizeof tables / sizeof tables[0])

struct slice print(char text[WORD_ROOM], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, WORD_ROOM, format, args);
    va_end(args);
    return slice_of(text, (size_t)n);
}

static bool fits(const struct client *client, const struct op *op)
{
    const struct intent *intent = &client->intent;
    if (intent->subscribed != 0 && !intent->is_resp3 && (op->flags & OP_SUBSCRIBED) == 0)
        return false;
    if (intent->in_multi && (op->flags & (OP_QUEUES | OP_MULTI)) == 0)
        return false;
    if (intent->subscribed == 0 && (op->flags & OP_SUBSCRIBER) != 0)
        return false;
    if ((op->flags & OP_COMMON) != 0 && run.plan.has_user_keys)
        return false;
    bool must_end = intent->n_queued > QUEUED_MAX / 2;
    return (op->flags & OP_ENDS) != 0 ? intent->in_multi : !must_end;
}

#define STRANGER_WEIGHT 20 /* so much more often it logs in */

static unsigned weight_of(const struct client *client, const struct op *op)
{
    if (!client->intent.is_in && (op->flags & OP_ENTERS) != 0)
        return op->weight * STRANGER_WEIGHT;
    return fits(client, op) ? op->weight : 0;
}

const struct op *op_draw(struct client *client)
{
    uint64_t whole = 0;
    for (size_t t = 0; t < N_TABLES; t++)
        for (const struct op *op = tables[t]; op->name != NULL; op++)
            whole += weight_of(client, op);
    uint64_t drawn = random_below(&client->chance, whole);
    client->intent.n_queued += client->intent.in_multi;
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

bool may_be_stranger(const struct client *client, const struct act *act)
{
    const struct session *session = &client->session;
    bool may_be_refused =
        run.plan.may_change_password && admin_may_refuse(act) && (!session->is_named || !run.plan.knows_password);
    return !session->is_in || client_is_doubtful(client) || may_be_refused;
}

bool is_excused(const struct client *client, const struct act *act, const struct reply *reply)
{
    const struct session *session = &client->session;
    if (reply->type != '-')
        return false;
    if (admin_excuses(act, reply))
        return true;
    if (may_be_stranger(client, act) && (act->op->flags & OP_ENTERS) == 0 &&
        (reply_begins(reply, '-', SLICE("NOAUTH ")) ||
         reply_begins(reply, '-', SLICE("ERR Protocol error: unauthenticated ")) ||
         reply_begins(reply, '-', SLICE("EXECABORT Transaction discarded because of: NOAUTH ")))) {
        admin_note_refused(act);
        return true;
    }
    if (is_subscriber(session) && !session->is_resp3 && (act->op->flags & OP_SUBSCRIBED) == 0 &&
        (reply_begins(reply, '-', SLICE("ERR Can't execute '")) || /* versions have their own words */
         reply_begins(reply, '-', SLICE("EXECABORT Transaction discarded because of: "))))
        return true;
    if (run.plan.has_limits && (act->op->flags & OP_CONTROL) == 0 && reply_begins(reply, '-', SLICE("THROTTLED ")))
        return true;
    if (memory_was_short() && reply_is(reply, '-', SLICE("ERR out of memory")))
        return true;
    return !run_is_whole() &&
           (reply_begins(reply, '-', SLICE("UPSTREAM ")) || reply_begins(reply, '-', SLICE("LOADING ")) ||
            reply_begins(reply, '-', SLICE("EXECABORT Transaction discarded because of: LOADING ")) ||
            reply_begins(reply, '-', SLICE("ERR the upstream has answered amiss")));
}
