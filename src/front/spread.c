#include "front/spread.h"

#include <stdlib.h>

#include "upstream/deliver.h"

struct spread *spread_new(void)
{
    struct spread *spread = calloc(1, sizeof *spread);
    if (spread == NULL)
        return NULL;
    list_init(&spread->retired);
    list_init(&spread->hops);
    list_init(&spread->refused);
    return spread;
}

static struct place *retired_at(const struct list *at)
{
    return container_of(at, struct place, in_retired);
}

uint32_t spread_in_flight(const struct spread *spread)
{
    if (spread == NULL)
        return 0;
    uint32_t n = spread->n_hops;
    for (size_t i = 0; i < spread->n_places; i++)
        n += spread->places[i] != NULL ? spread->places[i]->rider.in_flight : 0;
    for (const struct list *at = spread->retired.next; at != &spread->retired; at = at->next)
        n += retired_at(at)->rider.in_flight;
    return n;
}

struct place *spread_place(const struct spread *spread, const struct nodes_row *row)
{
    for (size_t i = 0; spread != NULL && i < spread->n_places; i++)
        if (spread->places[i] != NULL && spread->places[i]->row == row)
            return spread->places[i];
    return NULL;
}

struct place *spread_place_at(const struct spread *spread, const struct node *node)
{
    for (size_t i = 0; spread != NULL && i < spread->n_places; i++)
        if (spread->places[i] != NULL && lanes_node(&spread->places[i]->row->lanes) == node)
            return spread->places[i];
    return NULL;
}

/* ---- order of replies ---- */

/* What is in flight at the place, and in no run yet, is a run from now on. */
static bool begin_run(struct replies *replies, struct place *place)
{
    return place->source.n_runs > 0 ||
           replies_begin(replies, &place->source, deliver_is_in_frame_of(place->rider.lane, &place->rider));
}

/* With the newest call. */
static void end_run(struct spread *spread, struct replies *replies)
{
    (void)lane_end_run(&spread->newest->rider);
    replies_close(replies, &spread->newest->source);
    spread->is_ended = true;
}

bool spread_end_run(struct spread *spread, struct replies *replies)
{
    struct place *newest = spread->newest;
    if (newest == NULL || spread->is_ended || newest->rider.in_flight == 0) {
        spread->newest = NULL;
        return true;
    }
    if (!begin_run(replies, newest))
        return false;
    end_run(spread, replies);
    return true;
}

bool spread_turn_slowly(struct spread *spread, struct replies *replies, struct place *place)
{
    bool is_alone = replies_are_idle(replies) && (spread->newest == NULL || spread->newest->rider.in_flight == 0);
    if (!is_alone && (!spread_end_run(spread, replies) || !replies_begin(replies, &place->source, false)))
        return false;
    spread->newest = place;
    spread->is_ended = false;
    return true;
}

void spread_end_batch(struct spread *spread, struct replies *replies)
{
    struct place *newest = spread->newest;
    if (newest == NULL || spread->is_ended || replies_are_idle(replies) || newest->source.n_runs == 0)
        return;
    end_run(spread, replies);
}

/* ---- all of them ---- */

static void want_idle(struct place *place)
{
    place->rider.wants_idle |= place->rider.in_flight > 0;
}

void spread_want_idle(struct spread *spread)
{
    for (size_t i = 0; i < spread->n_places; i++)
        if (spread->places[i] != NULL)
            want_idle(spread->places[i]);
    for (const struct list *at = spread->retired.next; at != &spread->retired; at = at->next)
        want_idle(retired_at(at));
}

void spread_end_question(struct place *place)
{
    if (place->question.login == NULL)
        return;
    doors_forget(&place->question);
    login_put(place->question.login);
    place->question.login = NULL;
    proof_drop(&place->question.proof);
}

void spread_end_session(struct spread *spread, bool has_logged_in)
{
    for (size_t i = 0; spread != NULL && i < spread->n_places; i++) {
        struct place *place = spread->places[i];
        if (place == NULL)
            continue;
        lease_drop(&place->shared);
        if (!has_logged_in)
            continue;
        spread_end_question(place);
        proof_drop(&place->proof);
        place->was_proven = false;
    }
}

void spread_renew_epochs(struct spread *spread)
{
    for (size_t i = 0; spread != NULL && i < spread->n_places; i++)
        if (spread->places[i] != NULL)
            spread->places[i]->epoch = node_epoch(lanes_node(&spread->places[i]->row->lanes));
}
