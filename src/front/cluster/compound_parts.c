#include "front/cluster/compound_parts.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "front/session/wait_coverage.h"
#include "limit/command/keys.h"
#include "resp/argv.h"
#include "resp/join.h"

static struct portion *part_of_hop(struct hop *hop)
{
    return container_of(hop, struct portion, way.hop);
}

static struct portion *part_of_lent(struct lent *lent)
{
    return container_of(lent, struct portion, way.lent);
}

static bool is_split(const struct compound *compound)
{
    return compound->fanout == FANOUT_SLOTS || compound->fanout == FANOUT_WRITTEN;
}

/* ---- the end of a part ---- */

/* Adds n bytes to the kept replies. The call may close the client. */
static void note_kept(struct compound *compound, size_t n)
{
    struct client *client = compound->client;
    compound->bytes += n;
    client_note_kept(client, n);
}

static void keep_reply(struct portion *part, struct slice reply)
{
    struct compound *compound = part->compound;
    if (bytes_add(&part->reply, reply, SIZE_MAX))
        note_kept(compound, reply.len);
    else
        client_close_starved(compound->client);
}

/* Joins the replies of single-key requests, in the order of the part's keys. */
static void join_keys(struct portion *part)
{
    struct compound *compound = part->compound;
    uint32_t n = compound->split.parts[part->index].n_keys;
    struct slice *replies = malloc(n * sizeof *replies);
    size_t n_replies = 0;
    struct build out;
    build_init(&out, false);
    for (uint32_t i = 0; replies != NULL && i < n; i++)
        if (part->keys[i].reply.len > 0)
            replies[n_replies++] = bytes_slice(&part->keys[i].reply);
    if (n_replies > 0)
        join_replies(&out, compound->join == JOIN_VALUES ? JOIN_LIST : (enum join)compound->join,
                     replies, n_replies, 0);
    if (n_replies == 0 || out.is_broken)
        client_close_starved(compound->client);
    else
        keep_reply(part, slice_of(out.at, out.len));
    build_fini(&out);
    free(replies);
}

/* Decrements n_left. The call may free the compound. */
static void end_one(struct compound *compound)
{
    if (--compound->n_left == 0)
        compound_over(compound);
}

static void key_over(struct portion *whole)
{
    if (--whole->n_left > 0)
        return;
    if (!whole->compound->is_lost)
        join_keys(whole);
    end_one(whole->compound);
}

static void part_over(struct portion *part)
{
    if (part->is_over)
        return;
    part->is_over = true;
    if (part->whole != NULL)
        key_over(part->whole);
    else
        end_one(part->compound);
}

static void part_answered(struct portion *part, struct slice reply)
{
    keep_reply(part, reply);
    part_over(part);
}

/*
 * Called once for each part that gets no reply because the client is closed. The call may free the
 * compound.
 */
static void part_lost(struct portion *part)
{
    part->compound->is_lost = true;
    part_over(part);
}

static void on_hop_reply(struct hop *hop, struct slice reply)
{
    part_answered(part_of_hop(hop), reply);
}

static void on_hop_lost(struct hop *hop)
{
    part_lost(part_of_hop(hop));
}

static void on_lent_reply(struct lent *lent, struct slice reply)
{
    struct portion *part = part_of_lent(lent);
    struct compound *compound = part->compound;
    if (!lent->is_sent) {
        part_answered(part, reply);
        return;
    }
    /* on_lent_more has already counted the bytes of the reply */
    if (!bytes_add(&part->reply, reply, SIZE_MAX))
        client_close_starved(compound->client);
    part_over(part);
}

static void on_lent_more(struct lent *lent, size_t n)
{
    note_kept(part_of_lent(lent)->compound, n);
}

static void on_lent_lost(struct lent *lent)
{
    part_lost(part_of_lent(lent));
}

static const struct lent_ops lent_ops = {
    .on_reply = on_lent_reply,
    .on_more = on_lent_more,
    .on_lost = on_lent_lost,
};

/* ---- sending ---- */

static bool compound_parts_on_try_again(struct hop *hop, struct slice request);

static const struct hop_ops hop_ops = {
    .on_reply = on_hop_reply,
    .on_try_again = compound_parts_on_try_again,
    .on_lost = on_hop_lost,
};
/*
 * A request of one key cannot be split, and needs no on_try_again: the key is at one of the two
 * nodes.
 */
static const struct hop_ops key_ops = {.on_reply = on_hop_reply, .on_lost = on_hop_lost};

static bool is_in_spread(const struct portion *part)
{
    const struct list *in_spread = &part->way.hop.in_spread;
    return in_spread->next != NULL && !list_is_empty(in_spread);
}

/*
 * Starts the hop of a part. If the hop cannot begin, the part is lost at once. If the client is
 * closed later, the hop calls on_lost.
 */
static void send_hop(struct portion *part, const struct hop_ops *ops, struct build *bytes,
                     int32_t slot, struct nodes_row *row)
{
    struct compound *compound = part->compound;
    const struct hop_request request = {
        slice_of(bytes->at, bytes->len), slot, row, compound->tag, compound->run,
        .is_held = part->whole != NULL};
    bool is_sent = false;
    if (bytes->is_broken)
        client_close_starved(compound->client);
    else if (!client_is_closed(compound->client))
        is_sent = hop_start(&part->way.hop, ops, compound->client, &request);
    build_fini(bytes);
    if (!is_sent && !is_in_spread(part))
        part_lost(part);
}

/*
 * Sends the request of a single key. An MSET value is skipped if the same key is named again later:
 * single-key requests have no order among each other.
 */
static void send_key(struct portion *part)
{
    struct compound *compound = part->compound;
    const struct slot_split *split = &compound->split;
    struct build bytes;
    if (compound->fanout == FANOUT_WRITTEN && slot_split_is_overwritten(split, part->index)) {
        part_over(part);
        return;
    }
    build_init(&bytes, false);
    slot_split_put_key(split, part->index, &bytes);
    send_hop(part, &key_ops, &bytes, split->parts[split->keys[part->index].part].slot, NULL);
}

/* Sends one request for each key of the part. False if out of memory; nothing is then sent. */
static bool send_keys(struct portion *part)
{
    struct compound *compound = part->compound;
    const struct slot_split *split = &compound->split;
    uint32_t n = split->parts[part->index].n_keys;
    part->keys = calloc(n, sizeof *part->keys);
    if (part->keys == NULL)
        return false;
    uint32_t key = split->parts[part->index].first;
    for (uint32_t i = 0; i < n; i++, key = split->keys[key].next)
        part->keys[i] = (struct portion){.compound = compound, .whole = part, .index = key};
    part->n_left = n + 1; /* plus one until all keys are started */
    for (uint32_t i = 0; i < n; i++)
        send_key(&part->keys[i]);
    key_over(part);
    return true;
}

/* The slot migrates, and its keys are at two nodes. Each key continues as a request of its own. */
static bool compound_parts_on_try_again(struct hop *hop, struct slice request)
{
    (void)request;
    struct portion *part = part_of_hop(hop);
    const struct compound *compound = part->compound;
    return is_split(compound) && compound->split.parts[part->index].n_keys > 1 && send_keys(part);
}

/* ---- convoys: all parts for one node, sent in one piece ---- */

/* rows of the topology that can have a convoy (chosen); parts for other rows are sent one by one */
#define CONVOY_ROWS 64

/* True if the hop has begun. A hop that has begun calls on_lost even if the client is closed. */
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
    bool is_begun = !bytes.is_broken && hop_start_refused(&part->way.hop, &hop_ops,
                                                          compound->client, &request, &refusal);
    if (bytes.is_broken)
        client_close_starved(compound->client);
    build_fini(&bytes);
    if (!is_begun && !is_begun_hop(&part->way.hop))
        part_lost(part);
}

/*
 * Tells refused requests, which wait to be sent again, that this part has run: see overtaken.h. If
 * memory is out, passes an empty request, which stands for any request.
 */
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
    if (is_run && !list_is_empty(&client_extra(hop->client)->spread->refused))
        note_run(convoy, convoy->parts[i].part);
}

static void on_convoy_replies(struct hop *hop, struct bytes *replies)
{
    struct convoy *convoy = convoy_of(hop);
    struct compound *compound = convoy->compound;
    size_t begin = 0;
    convoy->replies = *replies;
    *replies = (struct bytes){0};
    note_kept(compound, convoy->replies.len);
    for (uint32_t i = 0; i < convoy->n; i++) {
        size_t end = convoy->parts[i].end;
        if (end > begin) {
            convoy_part(convoy, i)->in_convoy = slice_of(convoy->replies.at + begin, end - begin);
            part_over(convoy_part(convoy, i));
        }
        begin = end;
    }
    end_one(compound);
}

static void on_convoy_lost(struct hop *hop)
{
    struct convoy *convoy = convoy_of(hop);
    struct compound *compound = convoy->compound;
    size_t begin = 0;
    for (uint32_t i = 0; i < convoy->n; i++) {
        bool is_heard = i < convoy->n_heard;
        if (!is_heard || convoy->parts[i].end > begin)
            /* otherwise the part continues as a hop of its own */
            part_lost(convoy_part(convoy, i));
        begin = is_heard ? convoy->parts[i].end : begin;
    }
    end_one(compound);
}

static const struct hop_ops convoy_ops = {.on_lost = on_convoy_lost,
                                          .on_not_run = on_convoy_not_run,
                                          .on_one = on_convoy_one,
                                          .on_replies = on_convoy_replies};

/* Returns a convoy of all parts for `row`, NULL if out of memory. */
static struct convoy *make_convoy(struct compound *compound, uint16_t row, uint32_t n,
                                  struct build *bytes)
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

/*
 * Sends the `n` parts for `row` at once, if a lane is available now. Otherwise each part is sent
 * alone.
 */
static void start_convoy(struct compound *compound, uint16_t row, uint32_t n, struct build *bytes)
{
    struct client *client = compound->client;
    struct lane *lane;
    struct place *place =
        client_is_closed(client) ? NULL : place_get(client, client->front->nodes.rows[row]);
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
    if (!hop_start_train(&convoy->hop, &convoy_ops, place, lane, &request, n) &&
        !is_begun_hop(&convoy->hop))
        on_convoy_lost(&convoy->hop);
}

/* Sends one convoy to each node that has a lane. Parts that remain have row SLOT_UNSERVED. */
static void start_convoys(struct compound *compound)
{
    struct client *client = compound->client;
    const struct slot_map *map = client->front->nodes.topology->slots;
    uint32_t counts[CONVOY_ROWS] = {0};
    struct build bytes;
    build_init(&bytes, false);
    uint16_t n_rows =
        client->front->nodes.n < CONVOY_ROWS ? (uint16_t)client->front->nodes.n : CONVOY_ROWS;
    for (uint32_t i = 0; i < compound->n_parts; i++) {
        uint16_t row = slot_map_row(map, compound->split.parts[i].slot);
        compound->parts[i].row = row < n_rows ? row : SLOT_UNSERVED;
        counts[row < n_rows ? row : 0] += row < n_rows;
    }
    /* spread_is_outdated is read after the rows: see slot_map.h */
    bool is_outdated = spread_is_outdated(client_extra(client)->spread, &client->front->nodes);
    for (uint32_t i = 0; is_outdated && i < compound->n_parts; i++)
        compound->parts[i].row = SLOT_UNSERVED;
    for (uint16_t row = 0; row < n_rows && !is_outdated; row++)
        if (counts[row] > 0)
            start_convoy(compound, row, counts[row], &bytes);
    build_fini(&bytes);
}

static void free_convoys(struct compound *compound)
{
    for (struct convoy *convoy = compound->convoys, *next; convoy != NULL; convoy = next) {
        next = convoy->next;
        bytes_fini(&convoy->replies);
        free(convoy);
    }
    compound->convoys = NULL;
}

/* ---- the start ---- */

/*
 * Parts with hops need no zeroing, because starting a hop initialises the hop. Parts on lent lanes
 * are zeroed, because lent_is_on is called also before a part has begun.
 */
static struct portion *new_parts(const struct compound *compound, uint32_t n)
{
    if (compound->is_lent)
        return calloc(n, sizeof(struct portion));
    struct portion *parts = malloc(n * sizeof *parts);
    for (uint32_t i = 0; parts != NULL && i < n; i++) {
        memset(&parts[i], 0, offsetof(struct portion, way));
        parts[i].way.hop.in_spread.next = NULL;
    }
    return parts;
}

static bool alloc_parts(struct compound *compound, uint32_t n)
{
    compound->parts = new_parts(compound, n);
    if (compound->parts == NULL) {
        client_close_starved(compound->client);
        return false;
    }
    compound->n_parts = n;
    compound->n_left = n + 1;
    for (uint32_t i = 0; i < n; i++) {
        compound->parts[i].compound = compound;
        compound->parts[i].row = SLOT_UNSERVED;
        compound->parts[i].index = i;
    }
    return true;
}

static void start_slots(struct compound *compound)
{
    if (client_extra(compound->client)->spread != NULL &&
        client_extra(compound->client)->spread->n_held == 0)
        start_convoys(compound);
    for (uint32_t i = 0; i < compound->n_parts; i++) {
        if (compound->parts[i].row != SLOT_UNSERVED)
            continue;
        struct build bytes;
        build_init(&bytes, false);
        slot_split_put_part(&compound->split, i, &bytes);
        send_hop(&compound->parts[i], &hop_ops, &bytes, compound->split.parts[i].slot, NULL);
    }
}

static void start_at_row(struct portion *part, const struct request *request, struct slice words,
                         struct nodes_row *row)
{
    struct compound *compound = part->compound;
    if (compound->is_lent) {
        lent_start(&part->way.lent, &lent_ops, compound->client, request, row, words);
        lent_go_on(&part->way.lent);
        return;
    }
    struct build bytes;
    build_init(&bytes, false);
    build_raw(&bytes, words);
    send_hop(part, &hop_ops, &bytes, KEYS_NO_SLOT, row);
}

/* Builds SCAN with the cursor of one master and the remaining arguments. */
static void put_scan(const struct compound *compound, struct build *out)
{
    struct argv_walk walk;
    struct slice name;
    struct slice cursor;
    struct slice request = bytes_slice(&compound->request);
    argv_walk_init(&walk, request);
    const char *begin = walk.at;
    uint32_t argc = walk.left;
    if (!argv_next(&walk, &name))
        return;
    struct slice first = slice_of(begin, (size_t)(walk.at - begin));
    if (!argv_next(&walk, &cursor))
        return;
    build_array(out, argc);
    build_raw(out, first);
    char text[SCAN_CURSOR_ROOM];
    build_bulk(out, scan_cursor_print(compound->place.cursor, text));
    build_raw(out, slice_of(walk.at, (size_t)(request.at + request.len - walk.at)));
}

static void start_scan(struct compound *compound)
{
    struct build bytes;
    build_init(&bytes, false);
    put_scan(compound, &bytes);
    struct nodes_row *row =
        compound->client->front->nodes.rows[compound->order.rows[compound->place.master]];
    send_hop(&compound->parts[0], &hop_ops, &bytes, KEYS_NO_SLOT, row);
}

/* ---- WAIT ---- */

/*
 * Returns the number of places that WAIT asks: places with a wrote_at of at least *least. A place
 * marked WROTE_TOLD is asked again only until the client's next write at any place.
 */
static uint32_t count_written(const struct client *client, uint32_t *least)
{
    const struct spread *spread = client_extra(client)->spread;
    uint32_t n = 0, n_told = 0;
    for (size_t i = 0; spread != NULL && i < spread->n_places; i++) {
        uint32_t wrote_at = spread->places[i] != NULL ? spread->places[i]->wrote_at : 0;
        n += wrote_at > WROTE_TOLD;
        n_told += wrote_at == WROTE_TOLD;
    }
    *least = n > 0 ? WROTE_TOLD + 1 : WROTE_TOLD;
    return n > 0 ? n : n_told;
}

bool parts_has_written(const struct client *client)
{
    uint32_t least;
    return count_written(client, &least) > 0;
}

static void start_waits(struct compound *compound, const struct request *request)
{
    struct client *client = compound->client;
    uint32_t n = 0, least;
    (void)count_written(client, &least);
    for (size_t i = 0; i < client_extra(client)->spread->n_places && n < compound->n_parts; i++) {
        struct place *place = client_extra(client)->spread->places[i];
        if (place == NULL || place->wrote_at < least)
            continue;
        struct portion *part = &compound->parts[n++];
        bool is_lost = place->wrote_at != coverage_time(client);
        if (is_lost)
            place->wrote_at = WROTE_TOLD;
        lent_start(&part->way.lent, &lent_ops, client, request, place->row,
                   bytes_slice(&compound->request));
        lent_cover(&part->way.lent, !is_lost);
        lent_go_on(&part->way.lent);
    }
}

static uint32_t count_parts(const struct compound *compound)
{
    const struct topology *topology = compound->client->front->nodes.topology;
    uint32_t least;
    switch ((enum fanout)compound->fanout) {
    case FANOUT_SLOTS:
    case FANOUT_WRITTEN:
        return compound->split.n_parts;
    case FANOUT_MASTERS:
        return (uint32_t)topology->n_masters;
    case FANOUT_NODES:
        return (uint32_t)topology->n_rows;
    case FANOUT_WAIT:
        return count_written(compound->client, &least);
    case FANOUT_KEYS:
    case FANOUT_SCAN:
        break;
    }
    return 1;
}

bool parts_start(struct compound *compound, const struct request *request)
{
    if (!alloc_parts(compound, count_parts(compound)))
        return false;
    if (is_split(compound)) {
        start_slots(compound);
    } else if (compound->fanout == FANOUT_SCAN) {
        start_scan(compound);
    } else if (compound->fanout == FANOUT_WAIT) {
        start_waits(compound, request);
    } else {
        struct nodes *nodes = &compound->client->front->nodes;
        for (uint32_t i = 0; i < compound->n_parts; i++)
            start_at_row(&compound->parts[i], request, bytes_slice(&compound->request),
                         nodes->rows[i]);
    }
    end_one(compound);
    return true;
}

bool parts_start_keys(struct compound *compound)
{
    if (!alloc_parts(compound, 1))
        return false;
    if (!send_keys(&compound->parts[0])) {
        client_close_starved(compound->client);
        return false;
    }
    end_one(compound);
    return true;
}

/* ---- the reply ---- */

/*
 * Builds the reply to SCAN. The cursor of the reply encodes the next master. An error is passed on.
 */
static void join_scan(const struct compound *compound, struct slice reply, struct build *out)
{
    struct slice cursor;
    struct slice rest;
    uint64_t next;
    if (join_is_error(reply)) {
        build_raw(out, reply);
        return;
    }
    if (!scan_reply_read(reply, &cursor, &rest) ||
        !scan_cursor_next(&compound->order, &compound->place, cursor, &next)) {
        build_raw(out, JOIN_ODD);
        return;
    }
    char text[SCAN_CURSOR_ROOM];
    build_array(out, 2);
    build_bulk(out, scan_cursor_print(next, text));
    build_raw(out, rest);
}

static void join_split(const struct compound *compound, const struct slice *replies,
                       struct build *out)
{
    const struct slot_split *split = &compound->split;
    struct join_where *where = malloc(split->n_keys * sizeof *where);
    if (where == NULL) {
        out->is_broken = true;
        return;
    }
    for (uint32_t i = 0; i < split->n_keys; i++)
        where[i] = (struct join_where){split->keys[i].part, split->keys[i].index};
    join_values(out, replies, compound->n_parts, where, split->n_keys);
    free(where);
}

void parts_join(const struct compound *compound, struct build *out)
{
    struct slice *replies = malloc(compound->n_parts * sizeof *replies);
    if (replies == NULL) {
        out->is_broken = true;
        return;
    }
    for (uint32_t i = 0; i < compound->n_parts; i++) {
        const struct portion *part = &compound->parts[i];
        replies[i] = part->in_convoy.len > 0 ? part->in_convoy : bytes_slice(&part->reply);
    }
    size_t pick = (size_t)(compound->client->front->loop->now_ns / NS_PER_US);
    if (compound->fanout == FANOUT_SCAN)
        join_scan(compound, replies[0], out);
    else if (compound->join == JOIN_VALUES)
        join_split(compound, replies, out);
    else
        join_replies(out, (enum join)compound->join, replies, compound->n_parts,
                     pick % compound->n_parts);
    free(replies);
}

/* ---- events of the client ---- */

void parts_go_on(struct compound *compound)
{
    compound->n_left++; /* keeps the compound until this loop is done */
    for (uint32_t i = 0; compound->is_lent && i < compound->n_parts; i++)
        lent_go_on(&compound->parts[i].way.lent);
    end_one(compound);
}

void parts_hurry(struct compound *compound)
{
    compound->n_left++;
    for (uint32_t i = 0; compound->is_lent && i < compound->n_parts; i++)
        lent_hurry(&compound->parts[i].way.lent);
    end_one(compound);
}

void parts_leave(struct compound *compound)
{
    compound->is_lost = true;
    compound->n_left++;
    for (uint32_t i = 0; compound->is_lent && i < compound->n_parts; i++)
        if (lent_is_on(&compound->parts[i].way.lent)) {
            lent_leave(&compound->parts[i].way.lent);
            compound->n_left--;
        }
    end_one(compound);
}

static void free_keys(struct portion *part, uint32_t n)
{
    for (uint32_t i = 0; part->keys != NULL && i < n; i++)
        bytes_fini(&part->keys[i].reply);
    free(part->keys);
}

void parts_free(struct compound *compound)
{
    for (uint32_t i = 0; i < compound->n_parts; i++) {
        struct portion *part = &compound->parts[i];
        if (is_split(compound))
            free_keys(part, compound->split.parts[i].n_keys);
        bytes_fini(&part->reply);
    }
    free_convoys(compound);
    free(compound->parts);
    compound->parts = NULL;
}
