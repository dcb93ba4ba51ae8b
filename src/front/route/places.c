#include "front/route/places.h"

#include <stdlib.h>

#include "base/num.h"
#include "front/route/hop.h"
#include "front/route/lane_choice.h"
#include "front/route/place.h"
#include "front/session/wait_coverage.h"
#include "front/client/read_side.h"
#include "front/client/session.h"
#include "front/cluster/shard_reads.h"
#include "limit/command/keys.h"
#include "upstream/lane/slow_reader.h"

static struct place *places_retired_at(const struct list *at)
{
    return container_of((struct list *)(uintptr_t)at, struct place, in_retired);
}

/* ---- which requests go by places ---- */

static bool places_is_plain(const struct request *request)
{
    const struct command *command = request->command;
    return command->is_shareable && command->flow == FLOW_ONE && command->effect == EFFECT_NONE &&
           command->id != 0 && !command->is_urgent && !command->blocks && !request->is_large &&
           request->bytes.len <= LARGE_REQUEST;
}

/*
 * True if the request must go by the client's main side, because the client's private lane at that
 * node watches keys. Also true if Redis pauses writes at that node, and would delay the clients
 * behind the write.
 */
static bool needs_main_at(const struct client *client, const struct request *request,
                          const struct nodes_row *row)
{
    const struct lane *own = client_has_own_lane(client) ? client->lane_user.lane : NULL;
    if (pin_has(client, PIN_WATCH) && own != NULL && lane_node(own) == lanes_node(&row->lanes))
        return true;
    return request->command->is_pausable &&
           node_is_paused(lanes_node(&row->lanes), client->front->loop->now_ns);
}

bool places_take(const struct client *client, const struct request *request)
{
    if (!client_is_on_cluster(client) || !places_is_plain(request) ||
        !transaction_is_none(&client->transaction) || pin_has(client, PIN_PASSTHROUGH) ||
        session_may_only_subscribe(client) || lane_choice_reads_huge(client))
        /*
         * even a client that sends much uses places, since each place limits its bytes to
         * SHARED_BYTES_MAX
         */
        return false;
    int32_t slot = keys_slot(request->command, request->bytes, request->argc);
    if (slot < 0 && slot != KEYS_NO_SLOT)
        return false;
    const struct nodes_row *row = places_row_for(client, request);
    return row == NULL || !needs_main_at(client, request, row);
}

/*
 * Returns the slot that CLUSTER COUNTKEYSINSLOT names. KEYS_NO_SLOT: the request is another
 * command.
 */
static int32_t slot_asked_of(const struct request *request)
{
    int64_t slot;
    bool is_one = request->argc == 3 && slice_is_word(request->name, SLICE("cluster")) &&
                  slice_is_word(request->args[0], SLICE("countkeysinslot")) &&
                  num_parse(request->args[1], &slot);
    return is_one && slot >= 0 && slot < SLOT_COUNT ? (int32_t)slot : KEYS_NO_SLOT;
}

/*
 * Returns the default node's row, or another master's row while the default node is away: any
 * master answers equally well.
 */
static struct nodes_row *row_without_keys(const struct nodes *nodes)
{
    for (size_t i = 0; i < nodes->topology->n_masters; i++)
        if (nodes->rows[i]->lanes.down == ERR_NONE)
            return nodes->rows[i];
    return nodes_default_row(nodes);
}

/* True if the slot is being migrated, or was redirected lately. */
static bool is_moving(const struct client *client, int32_t slot)
{
    const struct front *front = client->front;
    return slot >= 0 && (front->nodes.topology->slots->states[slot] != SLOT_STABLE ||
                         upstream_redirected_lately(front->nodes.worker_lanes.upstream,
                                                    (uint16_t)slot, front->loop->now_ns));
}

struct nodes_row *places_row_for(const struct client *client, const struct request *request)
{
    int32_t slot = keys_slot(request->command, request->bytes, request->argc);
    if (slot == KEYS_NO_SLOT)
        slot = slot_asked_of(request);
    if (slot >= 0) {
        struct nodes_row *row = nodes_slot_row(&client->front->nodes, (uint16_t)slot);
        /* A replica does not know which keys of a moving slot have left, and would answer nil. */
        bool may_be_replica =
            row != NULL && read_side_of(client) != NULL && !is_moving(client, slot);
        return may_be_replica ? shard_reads_row(client, request, row) : row;
    }
    bool is_pubsub = (request->command->flags & CMD_PUBSUB) != 0;
    return is_pubsub ? nodes_pubsub_row(&client->front->nodes)
                     : row_without_keys(&client->front->nodes);
}

bool places_must_settle(struct client *client)
{
    struct spread *spread = client->extra->spread;
    uint32_t version = slot_map_version(client->front->nodes.topology->slots);
    bool has_changed = spread_is_outdated(spread, &client->front->nodes);
    if (has_changed && spread_in_flight(spread) > 0)
        return true;
    for (size_t i = 0; has_changed && i < spread->n_places; i++)
        if (spread->places[i] != NULL)
            place_keep_heard(spread->places[i]); /* some slots may belong to another shard now */
    spread->version = version;
    spread->is_stale = false;
    return false;
}

/* ---- several keys ---- */

struct key_question {
    const struct key_filter *filter;
    bool is_read;
    bool is_barred;
};

static bool is_read(const struct request *request)
{
    return keep_kind(request->command) == KEPT_READ;
}

static void ask_for_key(void *arg, struct slice key)
{
    struct key_question *question = arg;
    question->is_barred |= key_filter_bars(question->filter, key, question->is_read);
}

bool places_must_not_overtake(const struct client *client, const struct request *request)
{
    struct key_filter *several = &client->extra->spread->several;
    if (several->is_used && spread_in_flight(client->extra->spread) == 0)
        key_filter_clear(several);
    if (!several->is_used)
        return false;
    struct key_question question = {.filter = several, .is_read = is_read(request)};
    (void)keys_each(request->command, request->bytes, request->argc, ask_for_key, &question);
    return question.is_barred;
}

struct key_note {
    struct key_filter *filter;
    bool is_read;
};

static void note_key(void *arg, struct slice key)
{
    const struct key_note *note = arg;
    key_filter_add(note->filter, key, note->is_read);
}

void places_note_keys(const struct client *client, const struct request *request)
{
    struct key_note note = {&client->extra->spread->several, is_read(request)};
    if (keys_count(request->command, request->bytes, request->argc) > 1)
        (void)keys_each(request->command, request->bytes, request->argc, note_key, &note);
}

/* ---- a new topology ---- */

/* True if a call, a hop, or a queued run of replies still refers to the place. */
static bool is_needed(const struct place *place)
{
    return place->lane_user.in_flight > 0 || place->n_hops > 0 || place->n_owed > 0;
}

static void places_retire(struct spread *spread, struct place *place)
{
    if (spread->target == place->row)
        spread->target = NULL;
    place_keep_heard(place);
    if (is_needed(place)) {
        if (place->lane_user.in_flight > 0 || place->n_hops > 0)
            place->lane_user.wants_idle = true;
        else
            place_leave(place); /* the row may be freed before the place */
        list_push(&spread->retired, &place->in_retired);
        return;
    }
    place_free(place);
}

static struct place *take_place(struct spread *spread, const struct nodes_row *row)
{
    for (size_t i = 0; i < spread->n_places; i++) {
        struct place *place = spread->places[i];
        if (place == NULL || place->row != row)
            continue;
        spread->places[i] = NULL;
        return place;
    }
    return NULL;
}

void places_adopt(struct client *client)
{
    struct spread *spread = client_extra(client)->spread;
    const struct nodes *nodes = &client->front->nodes;
    if (spread == NULL || spread->n_places == 0)
        return;
    struct place **now = calloc(nodes->n, sizeof(struct place *));
    if (now == NULL) {
        client_close_starved(client);
        return;
    }
    for (size_t i = 0; i < nodes->n; i++)
        now[i] = take_place(spread, nodes->rows[i]);
    for (size_t i = 0; i < spread->n_places; i++)
        if (spread->places[i] != NULL)
            places_retire(spread, spread->places[i]);
    free(spread->places);
    spread->places = now;
    spread->n_places = nodes->n;
    spread->is_stale = true;
    hops_adopt(client);
}

/* ---- continuing when the link is woken ---- */

static void free_retired(struct spread *spread)
{
    struct list *next;
    for (struct list *at = spread->retired.next; at != &spread->retired; at = next) {
        struct place *place = places_retired_at(at);
        next = at->next;
        if (is_needed(place))
            continue;
        list_take(&place->in_retired);
        place_free(place);
    }
}

void places_go_on(struct client *client)
{
    struct spread *spread = client_extra(client)->spread;
    if (spread == NULL)
        return;
    hops_go_on(client);
    if (!list_is_empty(&spread->retired))
        free_retired(spread);
}

static void catch_up(struct client *client, struct place *place)
{
    if (place->lane_user.absorbed > 0)
        slow_reader_absorbed(&client->front->nodes.worker_lanes, &place->lane_user);
    place->lane_user.is_paying = client->lane_user.is_paying;
    if (!place->lane_user.is_paying && place->lane_user.in_flight > 0)
        lane_catch_up(&place->lane_user);
}

void places_catch_up(struct client *client)
{
    struct spread *spread = client_extra(client)->spread;
    if (spread == NULL)
        return;
    for (size_t i = 0; i < spread->n_places; i++)
        if (spread->places[i] != NULL)
            catch_up(client, spread->places[i]);
    if (!client->lane_user.is_paying)
        hops_catch_up(client);
    for (const struct list *at = spread->retired.next; at != &spread->retired; at = at->next)
        catch_up(client, places_retired_at(at));
}

/* ---- closing ---- */

void places_leave(struct client *client)
{
    struct spread *spread = client_extra(client)->spread;
    if (spread == NULL)
        return;
    spread_forget(spread, &client->extra->replies);
    replies_clear(&client->extra->replies);
    hops_leave(client);
    for (size_t i = 0; i < spread->n_places; i++)
        if (spread->places[i] != NULL)
            place_leave(spread->places[i]);
    for (const struct list *at = spread->retired.next; at != &spread->retired; at = at->next)
        place_leave(places_retired_at(at));
}

void places_free(struct client *client)
{
    struct spread *spread = client_extra(client)->spread;
    if (spread == NULL)
        return;
    spread_forget(spread, &client->extra->replies);
    for (size_t i = 0; i < spread->n_places; i++)
        if (spread->places[i] != NULL)
            place_free(spread->places[i]);
    while (!list_is_empty(&spread->retired)) {
        struct place *place = places_retired_at(spread->retired.next);
        list_take(&place->in_retired);
        place_free(place);
    }
    hops_free(client);
    free(spread->places);
    free(spread);
    client->extra->spread = NULL;
}

void places_note_write(struct client *client, const struct lane *lane)
{
    coverage_note_write(client);
    bool is_there = client_is_on_cluster(client) && !lanes_of(lane)->is_retired;
    bool is_new =
        is_there && spread_place(client_extra(client)->spread, nodes_row_of(lane)) == NULL;
    struct place *place = is_there ? place_get(client, nodes_row_of(lane)) : NULL;
    if (place != NULL && is_new && session_login(client) != NULL)
        /* the proof with which the lane was found */
        auth_proof_copy(&place->proof, session_proof(client));
    if (place != NULL)
        place->wrote_at = coverage_time(client);
}
