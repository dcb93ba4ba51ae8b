/*
 * CL.THROTTLE as in redis-cell, on the client's own keys: under weir's prefix, in the client's
 * database (raw), or left to Redis.
 */
#include <string.h>

#include "tests/sim/ops.h"
#include "tests/sim/run.h"

#define BURST 2 /* one unit more than this fits at once; nothing is regained for a day */

static bool is_set(const char *mode)
{
    return strstr(run.plan.config, mode) != NULL;
}

/* Under the prefix there is one key, or one key for each user, whatever the client's database. */
static struct cell_key *cell_of(struct client *client)
{
    if (is_set("cl-throttle = raw"))
        return &client->session.cells[0][client->session.database];
    return &client->session.cells[limit_owner(client)][0];
}

/* True if no flush of all keys can have changed the count since the last reply. */
static bool is_known(const struct cell_key *cell, const struct act *act)
{
    return cell->losses == run.losses && run.changed_ns < act->read_ns;
}

static uint32_t quantity(const struct act *act)
{
    return act->a % 4;
}

static void say_cell(struct client *client, struct act *act)
{
    bool has_quantity = quantity(act) != 1 || act->b % 2 == 0;
    say_begin(client, has_quantity ? 6 : 5);
    say_word(client, SLICE("CL.THROTTLE"));
    say_key(client, 'c', 0);
    say_text(client, "%u", BURST);
    say_word(client, SLICE("1"));
    say_word(client, SLICE("86400"));
    if (has_quantity)
        say_text(client, "%u", quantity(act));
    expect(client, act);
}

static const char *judge_cell(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    struct reply field[5];
    struct cell_key *cell = cell_of(client);
    if (is_set("cl-throttle = off"))
        return reply_begins(reply, '-', SLICE("ERR unknown command "))
                   ? NULL
                   : "Redis has no such command";
    if (is_set("cl-throttle = raw") &&
        reply_begins(reply, '-', SLICE("ERR weir does not know the key's database")))
        return client->session.may_have_queued_select ? NULL : "its database is known";
    if (is_set("cl-throttle = raw") && client->session.has_queued_select)
        return "weir cannot know its database";
    if (reply->type != '*' || reply->number != 5)
        return "it is no decision";
    for (size_t i = 0; i < 5; i++)
        if (!reply_at(reply, i, &field[i]) || field[i].type != ':')
            return "it is no decision";
    if (!run.is_faultless)
        return NULL;
    if (field[1].number != BURST + 1)
        return "not the burst that was asked";
    if (!is_known(cell, act)) {
        *cell = (struct cell_key){(uint32_t)(BURST + 1 - field[2].number),
                                  run.changed_ns < act->read_ns ? run.losses : UINT64_MAX};
        return NULL;
    }
    bool fits = cell->used + quantity(act) <= BURST + 1;
    if (field[0].number != !fits)
        return fits ? "refused, and there is room" : "more than its own limit lets pass";
    cell->used += fits ? quantity(act) : 0;
    return field[2].number == BURST + 1 - cell->used ? NULL : "not as many as remain";
}

static void say_cell_reset(struct client *client, struct act *act)
{
    if (!run.plan.gives_back)
        return;
    say_begin(client, 3);
    say_word(client, SLICE("LIMIT"));
    say_word(client, SLICE("RESET"));
    say_key(client, 'c', 0);
    expect(client, act);
}

/* LIMIT RESET finds keys under the prefix only. */
static const char *judge_cell_reset(struct client *client, const struct act *act,
                                    const struct reply *reply)
{
    struct cell_key *cell = &client->session.cells[limit_owner(client)][0];
    bool is_there = !is_set("cl-throttle = ") && cell->used > 0;
    bool is_certain = run.is_faultless && is_known(cell, act);
    if (is_there)
        cell->used = 0;
    if (!is_certain)
        return reply->type == ':' ? NULL : "it is no number";
    return reply_is_integer(reply, is_there) ? NULL : "not the one key";
}

const struct op cell_ops[] = {
    {"cell", 6, OP_BLOCKS, 0, say_cell, judge_cell},
    {"cell_reset", 1, OP_BLOCKS, 0, say_cell_reset, judge_cell_reset},
    {0},
};
