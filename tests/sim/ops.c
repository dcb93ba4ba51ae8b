#include "tests/sim/ops.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/admin.h"
#include "tests/sim/regime.h"
#include "tests/sim/run.h"

static const struct op *const tables[] = {
    data_ops,       transaction_ops, session_ops,   script_ops,  shared_ops,   channel_ops,
    connection_ops, lock_ops,        own_limit_ops, marks_ops,   limit_ops,    exact_ops,
    limit_word_ops, blocking_ops,    rude_ops,      catalog_ops, operator_ops, forms_ops,
    large_ops,      cell_ops,        slow_ops,      renewed_ops, place_ops};
#define N_TABLES (sizeof tables / sizeof tables[0])

struct slice print(char text[WORD_ROOM], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, WORD_ROOM, format, args);
    va_end(args);
    return slice_of(text, (size_t)n);
}

/* The conditions that decide which ops fit, as bits below MOODS. */
enum mood {
    IS_OUT = 1,
    IN_MULTI = 2,
    IS_DEAF = 4,
    HEARS_NOTHING = 8,
    MUST_END = 16,
    HAS_USER_KEYS = 32,
    MOODS = 64
};

static unsigned mood_of(const struct intent *intent)
{
    return (intent->is_in ? 0 : IS_OUT) | (intent->in_multi ? IN_MULTI : 0) |
           (intent->subscribed != 0 && !intent->is_resp3 ? IS_DEAF : 0) |
           (intent->subscribed == 0 ? HEARS_NOTHING : 0) |
           (intent->n_queued > QUEUED_MAX / 2 ? MUST_END : 0) |
           (run.plan.has_user_keys ? HAS_USER_KEYS : 0);
}

static bool fits(unsigned mood, unsigned flags)
{
    if ((mood & IS_DEAF) != 0 && (flags & OP_SUBSCRIBED) == 0)
        return false;
    if ((mood & IN_MULTI) != 0 && (flags & (OP_QUEUES | OP_MULTI)) == 0)
        return false;
    if ((mood & HEARS_NOTHING) != 0 && (flags & OP_SUBSCRIBER) != 0)
        return false;
    if ((flags & OP_COMMON) != 0 && (mood & HAS_USER_KEYS) != 0)
        return false;
    return (flags & OP_ENDS) != 0 ? (mood & IN_MULTI) != 0 : (mood & MUST_END) == 0;
}

#define STRANGER_WEIGHT 20 /* factor for logins of a client without a login */

static unsigned weight_in(unsigned mood, const struct op *op)
{
    if ((mood & IS_OUT) != 0 && (op->flags & OP_ENTERS) != 0)
        return op->weight * STRANGER_WEIGHT;
    return fits(mood, op->flags) ? op->weight : 0;
}

/* All ops in order, and the cumulative weight of each in one mood. */
#define OPS_MAX 512
struct urn {
    unsigned n; /* 0: not filled yet */
    uint32_t upto[OPS_MAX];
};

static const struct op *every[OPS_MAX];

static void fill(struct urn *urn, unsigned mood)
{
    uint32_t upto = 0;
    for (size_t t = 0; t < N_TABLES; t++)
        for (const struct op *op = tables[t]; op->name != NULL; op++) {
            if (urn->n == OPS_MAX)
                abort();
            every[urn->n] = op;
            urn->upto[urn->n++] = upto += weight_in(mood, op);
        }
}

static const struct urn *urn_of(unsigned mood)
{
    static struct urn urns[MOODS];
    if (urns[mood].n == 0)
        fill(&urns[mood], mood);
    return &urns[mood];
}

const struct op *op_draw(struct client *client)
{
    const struct urn *urn = urn_of(mood_of(&client->intent));
    uint64_t drawn = random_below(&client->chance, urn->upto[urn->n - 1]);
    client->intent.n_queued += client->intent.in_multi;
    unsigned low = 0;
    unsigned high = urn->n - 1;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (drawn < urn->upto[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return every[low];
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
    bool may_be_refused = run.plan.may_change_password && admin_may_refuse(act) &&
                          (!session->is_named || !run.plan.knows_password);
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
        /* the words differ between versions */
        (reply_begins(reply, '-', SLICE("ERR Can't execute '")) ||
         reply_begins(reply, '-', SLICE("EXECABORT Transaction discarded because of: "))))
        return true;
    if (run.plan.has_limits && (act->op->flags & OP_CONTROL) == 0 &&
        reply_begins(reply, '-', SLICE("THROTTLED ")))
        return true;
    if (memory_was_short() && reply_is(reply, '-', SLICE("ERR out of memory")))
        return true;
    /* weir does not know the password of Redis, or did not know it a moment ago */
    bool may_be_outside = run.plan.may_change_password || !regime_is_password_known(act->read_ns);
    if (may_be_outside && reply_begins(reply, '-', SLICE("NOAUTH Redis rejects ")))
        return true;
    return !run_is_whole() &&
           (reply_begins(reply, '-', SLICE("UPSTREAM ")) ||
            reply_begins(reply, '-', SLICE("LOADING ")) ||
            /* weir's own login */
            reply_begins(reply, '-', SLICE("NOAUTH Redis rejects ")) ||
            reply_begins(reply, '-',
                         SLICE("EXECABORT Transaction discarded because of: LOADING ")) ||
            reply_begins(reply, '-', SLICE("ERR the upstream sent an unexpected reply")));
}
