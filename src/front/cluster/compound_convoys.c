#include <stdlib.h>

#include "front/cluster/compound_parts.h"
#include "front/route/places.h"
#include "limit/command/keys.h"

#define CONVOY_ROWS 64 /* what goes to nodes behind these goes part by part */

/* True if on_lost follows, whatever becomes of the client. */
static bool is_begun_hop(const struct hop *hop)
{
    return hop->in_spread.next != NULL && !list_is_empty(&hop->in_spread);
}

static struct convoy *convoy_of(struct hop *hop)
{
    return container_of(hop, struct convoy, hop);
}

static struct portion *convoy_part(const struct convoy *convoy, uint32_t i)
{
    return &convoy->compound->parts[convoy->parts[i].part];
}

static void on_convoy_not_run(struct hop *hop, enum not_run row, struct slice reply)
{
    struct convoy *convoy = convoy_of(hop);
    struct compound *compound = convoy->compound;
    struct portion *part = convoy_part(convoy, convoy->n_heard);
    struct build bytes;
    build_init(&bytes, false);
    slot_split_put_part(&compound->split, part->index, &bytes);
    const struct hop_request request = {slice_of(bytes.at, bytes.len),
                                        compound->split.parts[part->index].slot,
                                        NULL,
                                        compound->tag,
                                        compound->run,
                                        false};
    const struct hop_refusal refusal = {hop->place, row, reply};
    bool is_begun =
        !bytes.is_broken && hop_start_refused(&part->way.hop, &parts_hop_ops, compound->client, &request, &refusal);
    if (bytes.is_broken)
        client_close_starved(compound->client);
    build_fini(&bytes);
    if (!is_begun && !is_begun_hop(&part->way.hop))
        parts_lost(part);
}

/* Some other request waits to be sent again: see overtaken.h. Out of memory, this one is taken for any. */
static void note_run(const struct convoy *convoy, uint32_t part)
{
    struct build bytes;
    build_init(&bytes, false);
    slot_split_put_part(&convoy->compound->split, part, &bytes);
    overtaken_note_run(convoy->hop.place, slice_of(bytes.at, bytes.is_broken ? 0 : bytes.len));
    build_fini(&bytes);
}

static void on_convoy_one(struct hop *hop)
{
    struct convoy *convoy = convoy_of(hop);
    uint32_t i = convoy->n_heard++;
    convoy->parts[i].end = hop->reply.len;
    bool is_run = hop->reply.len > (i > 0 ? convoy->parts[i - 1].end : 0);
    if (is_run && !list_is_empty(&client_spread(hop->client)->refused))
        note_run(convoy, convoy->parts[i].part);
}

static void on_convoy_replies(struct hop *hop, struct bytes *replies)
{
    struct convoy *convoy = convoy_of(hop);
    struct compound *compound = convoy->compound;
    size_t begin = 0;
    convoy->replies = *replies;
    *replies = (struct bytes){0};
    parts_note_kept(compound, convoy->replies.len);
    for (uint32_t i = 0; i < convoy->n; i++) {
        size_t end = convoy->parts[i].end;
        if (end > begin) {
            convoy_part(convoy, i)->in_convoy = slice_of(convoy->replies.at + begin, end - begin);
            parts_over(convoy_part(convoy, i));
        }
        begin = end;
    }
    parts_end_one(compound);
}

static void on_convoy_lost(struct hop *hop)
{
    struct convoy *convoy = convoy_of(hop);
    struct compound *compound = convoy->compound;
    size_t begin = 0;
    for (uint32_t i = 0; i < convoy->n; i++) {
        bool is_heard = i < convoy->n_heard;
        if (!is_heard || convoy->parts[i].end > begin)
            parts_lost(convoy_part(convoy, i)); /* else it is a hop of its own */
        begin = is_heard ? convoy->parts[i].end : begin;
    }
    parts_end_one(compound);
}

static const struct hop_ops convoy_ops = {.on_lost = on_convoy_lost,
                                          .on_not_run = on_convoy_not_run,
                                          .on_one = on_convoy_one,
                                          .on_replies = on_convoy_replies};

/* With all parts for that row. NULL: out of memory. */
static struct convoy *make_convoy(struct compound *compound, uint16_t row, uint32_t n, struct build *bytes)
{
    struct convoy *convoy = malloc(sizeof *convoy + n * sizeof convoy->parts[0]);
    if (convoy == NULL)
        return NULL;
    convoy->compound = compound;
    convoy->next = compound->convoys;
    convoy->replies = (struct bytes){0};
    convoy->n = convoy->n_heard = 0;
    convoy->hop.in_spread.next = NULL;
    compound->convoys = convoy;
    for (uint32_t i = 0; convoy->n < n; i++) {
        if (compound->parts[i].row != row)
            continue;
        convoy->parts[convoy->n++].part = i;
        slot_split_put_part(&compound->split, i, bytes);
    }
    return convoy;
}

/* The `n` parts for that row go at once, if a lane takes them now; else each goes by itself. */
static void start_convoy(struct compound *compound, uint16_t row, uint32_t n, struct build *bytes)
{
    struct client *client = compound->client;
    struct lane *lane;
    struct place *place = client_is_closed(client) ? NULL : place_get(client, client->front->nodes.rows[row]);
    bool is_found = place != NULL && place_find_lane(place, NULL, &lane) == LANE_FOUND;
    bytes->len = 0;
    struct convoy *convoy = is_found ? make_convoy(compound, row, n, bytes) : NULL;
    if (convoy == NULL || bytes->is_broken) {
        for (uint32_t i = 0; i < compound->n_parts; i++)
            if (compound->parts[i].row == row)
                compound->parts[i].row = SLOT_UNSERVED;
        return;
    }
    const struct hop_request request = {
        slice_of(bytes->at, bytes->len), KEYS_NO_SLOT, NULL, compound->tag, compound->run, false};
    compound->n_left++;
    if (!hop_start_train(&convoy->hop, &convoy_ops, place, lane, &request, n) && !is_begun_hop(&convoy->hop))
        on_convoy_lost(&convoy->hop);
}

void convoys_start(struct compound *compound)
{
    struct client *client = compound->client;
    const struct slot_map *map = client->front->nodes.topology->slots;
    uint32_t counts[CONVOY_ROWS] = {0};
    struct build bytes;
    build_init(&bytes, false);
    uint16_t n_rows = client->front->nodes.n < CONVOY_ROWS ? (uint16_t)client->front->nodes.n : CONVOY_ROWS;
    for (uint32_t i = 0; i < compound->n_parts; i++) {
        uint16_t row = slot_map_row(map, compound->split.parts[i].slot);
        compound->parts[i].row = row < n_rows ? row : SLOT_UNSERVED;
        counts[row < n_rows ? row : 0] += row < n_rows;
    }
    bool is_outdated =
        spread_is_outdated(client_spread(client), &client->front->nodes); /* behind the rows: slot_map.h */
    for (uint32_t i = 0; is_outdated && i < compound->n_parts; i++)
        compound->parts[i].row = SLOT_UNSERVED;
    for (uint16_t row = 0; row < n_rows && !is_outdated; row++)
        if (counts[row] > 0)
            start_convoy(compound, row, counts[row], &bytes);
    build_fini(&bytes);
}

void convoys_free(struct compound *compound)
{
    for (struct convoy *convoy = compound->convoys, *next; convoy != NULL; convoy = next) {
        next = convoy->next;
        bytes_fini(&convoy->replies);
        free(convoy);
    }
    compound->convoys = NULL;
}
