#include "front/cluster/spread.h"

#include <stdlib.h>

#define FIRST_ENTRIES 16

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

static struct place *spread_retired_at(const struct list *at)
{
    return container_of(at, struct place, in_retired);
}

uint32_t spread_in_flight(const struct spread *spread)
{
    if (spread == NULL)
        return 0;
    uint32_t n = spread->n_hops;
    for (size_t i = 0; i < spread->n_places; i++)
        n += spread->places[i] != NULL ? spread->places[i]->lane_user.in_flight : 0;
    for (const struct list *at = spread->retired.next; at != &spread->retired; at = at->next)
        n += spread_retired_at(at)->lane_user.in_flight;
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

/* ---- the order of replies ---- */

static struct reply_entry *spread_entry_at(const struct spread *spread, uint32_t position)
{
    return &spread->entries[position & (spread->capacity - 1)];
}

static void shed_entries(struct spread *spread, struct pool *pool)
{
    pool_note_less(pool, spread->capacity * sizeof *spread->entries);
    free(spread->entries);
    spread->entries = NULL;
    spread->capacity = 0;
}

/* Reserves room for one entry and for the end of its group. False if out of memory. */
static bool spread_make_room(struct spread *spread, struct pool *pool)
{
    if (spread->tail - spread->head + 2 <= spread->capacity)
        return true;
    uint32_t capacity = spread->capacity == 0 ? FIRST_ENTRIES : 2 * spread->capacity;
    struct reply_entry *entries = malloc(capacity * sizeof *entries);
    if (entries == NULL)
        return false;
    for (uint32_t at = spread->head; at != spread->tail; at++)
        entries[at & (capacity - 1)] = *spread_entry_at(spread, at);
    shed_entries(spread, pool);
    pool_note_more(pool, capacity * sizeof *entries);
    spread->entries = entries;
    spread->capacity = capacity;
    return true;
}

bool spread_expect_slowly(struct spread *spread, struct replies *replies, struct place *place,
                          uint32_t n)
{
    if (!spread_make_room(spread, replies->pool))
        return false;
    if (spread->head == spread->tail && !spread->is_run)
        spread->is_open = false;
    if (!spread->is_open) {
        spread->is_run = !replies_are_idle(replies);
        if (spread->is_run && !replies_begin(replies, &spread->source, false))
            return false;
        spread->is_open = true;
    }
    *spread_entry_at(spread, spread->tail++) = (struct reply_entry){place, n, spread->order};
    place->n_owed += n;
    spread->order += n;
    return true;
}

/* Ends the open group as a run of replies. The newest entry is the last of the group. */
static void end_run(struct spread *spread, struct replies *replies)
{
    spread->is_open = spread->is_run = false;
    replies_close(replies, &spread->source);
    if (spread->head != spread->tail)
        *spread_entry_at(spread, spread->tail++) = (struct reply_entry){NULL, 0, spread->order};
    else
        replies_end(replies, &spread->source);
}

bool spread_end_run(struct spread *spread, struct replies *replies)
{
    if (!spread->is_open)
        return true;
    if (!spread->is_run && spread->head == spread->tail) {
        spread->is_open = false;
        return true;
    }
    if (!spread->is_run && !replies_begin(replies, &spread->source, spread_is_in_frame(spread)))
        return false;
    end_run(spread, replies);
    return true;
}

void spread_end_batch(struct spread *spread, struct replies *replies)
{
    if (spread->is_open && spread->is_run)
        end_run(spread, replies);
}

bool spread_is_in_frame(const struct spread *spread)
{
    if (spread->head == spread->tail)
        return false;
    const struct reply_entry *entry = spread_entry_at(spread, spread->head);
    return entry->place != NULL && entry->place->is_in_frame;
}

static struct slice behind(struct slice bytes, size_t n)
{
    return slice_of(bytes.at + n, bytes.len - n);
}

/* Returns how many replies end in these bytes. The bytes follow the bytes that `scan` has read. */
static uint32_t count_replies(struct reply_scan *scan, struct slice bytes)
{
    uint32_t n = 0;
    for (size_t used; bytes.len > 0; bytes = behind(bytes, used)) {
        enum scan_result result = reply_scan(scan, bytes.at, bytes.len, &used);
        if (result == SCAN_BAD)
            return n;
        n += result == SCAN_FRAME;
    }
    return n;
}

/* Returns the number of replies in the strand. A strand ends at the end of a reply. */
static uint32_t count_kept(const struct place *place)
{
    struct reply_scan scan = place->scan;
    const struct early_piece *at = NULL;
    struct slice bytes;
    uint32_t n = 0;
    for (;;) {
        switch (strand_look(&place->strand, &at, &bytes)) {
        case STRAND_EMPTY:
            return n;
        case STRAND_BYTES:
            n += count_replies(&scan, bytes);
            break;
        case STRAND_REPLY:
        case STRAND_OPEN:
            n++;
            break;
        }
    }
}

uint32_t spread_order_of(const struct spread *spread, const struct place *place)
{
    uint32_t n = count_kept(place);
    for (uint32_t at = spread->head; at != spread->tail; at++) {
        const struct reply_entry *entry = spread_entry_at(spread, at);
        if (entry->place != place)
            continue;
        if (n < entry->n)
            return entry->order + n;
        n -= entry->n;
    }
    return spread->order;
}

/* ---- receiving and passing on ---- */

/* State of one call that passes replies on. */
struct going {
    struct spread *spread;
    struct replies *replies;
    const struct spread_outlet *outlet;
    bool is_over; /* nothing more can be passed on */
    bool is_starved;
};

/* A number of reply bytes, and the number of replies that end in the bytes. */
struct part {
    size_t len;
    uint32_t n;
};

/* Scans at most `most` replies. */
static struct part scan_part(struct place *place, struct slice bytes, uint32_t most)
{
    struct part part = {0, 0};
    while (part.n < most && part.len < bytes.len) {
        const struct slice rest = behind(bytes, part.len);
        size_t used;
        if (!place->is_in_frame) {
            part.n += reply_scan_plain(&place->scan, rest.at, rest.len, most - part.n, &used);
            part.len += used;
            if (used > 0)
                continue;
        }
        enum scan_result result = reply_scan(&place->scan, rest.at, rest.len, &used);
        /* SCAN_BAD is impossible: the lane has scanned these bytes */
        part.len += result == SCAN_BAD ? rest.len : used;
        part.n += result == SCAN_FRAME;
        place->is_in_frame = result != SCAN_FRAME;
    }
    return part;
}

/* Passes the bytes on. False if nothing more can be passed on. */
static bool spread_put(struct going *going, struct slice bytes, bool is_whole)
{
    const struct spread_outlet *outlet = going->outlet;
    enum replies_verdict verdict = REPLIES_PASS;
    if (bytes.len == 0)
        return true;
    if (!replies_are_idle(going->replies))
        verdict =
            replies_take(going->replies, &going->spread->source, bytes.at, bytes.len, is_whole);
    going->is_starved = verdict == REPLIES_FULL;
    going->is_over = verdict == REPLIES_FULL ||
                     (verdict == REPLIES_PASS && !outlet->put(outlet->arg, bytes.at, bytes.len));
    return !going->is_over;
}

/* Flushes replies that waited behind the bytes just passed on. False if out of memory. */
static bool end_going(struct going *going)
{
    struct spread *spread = going->spread;
    if (!going->is_over && !replies_are_idle(going->replies))
        replies_flush(going->replies, going->outlet->put, going->outlet->arg);
    if (spread->head == spread->tail && spread->capacity > SPREAD_ENTRIES_KEPT)
        shed_entries(spread, going->replies->pool);
    return !going->is_starved;
}

/* Called when the first place in the order has delivered n replies. */
static void spread_note_given(struct spread *spread, uint32_t n)
{
    struct reply_entry *entry = spread_entry_at(spread, spread->head);
    entry->n -= n;
    entry->order += n;
    entry->place->n_owed -= n;
    spread->head += entry->n == 0;
}

/* Called when the oldest group is answered. False if nothing more can be passed on. */
static bool end_answered_run(struct going *going)
{
    struct spread *spread = going->spread;
    spread->head++;
    if (spread->source.n_runs == 0)
        return true;
    replies_end(going->replies, &spread->source);
    replies_flush(going->replies, going->outlet->put, going->outlet->arg);
    return spread->head != spread->tail;
}

/*
 * Passes on a piece from the strand of the first place in the order. False if nothing more can be
 * passed on.
 */
static bool put_strand(struct going *going)
{
    struct spread *spread = going->spread;
    const struct reply_entry *entry = spread_entry_at(spread, spread->head);
    struct place *place = entry->place;
    const struct early_piece *at = NULL;
    struct slice bytes;
    enum strand_next next = strand_look(&place->strand, &at, &bytes);
    if (next == STRAND_EMPTY || next == STRAND_OPEN)
        return false;
    struct part part = {bytes.len, 1};
    if (next == STRAND_BYTES)
        part = scan_part(place, bytes, entry->n);
    if (!spread_put(going, slice_of(bytes.at, part.len), !place->is_in_frame))
        return false;
    strand_drop(going->replies, &place->strand, part.len);
    spread_note_given(spread, part.n);
    return true;
}

static void put_strands(struct going *going)
{
    const struct spread *spread = going->spread;
    bool goes_on = true;
    while (goes_on && spread->head != spread->tail)
        goes_on = spread_entry_at(spread, spread->head)->place == NULL ? end_answered_run(going)
                                                                       : put_strand(going);
}

bool spread_go_on(struct spread *spread, struct replies *replies,
                  const struct spread_outlet *outlet)
{
    struct going going = {.spread = spread, .replies = replies, .outlet = outlet};
    put_strands(&going);
    return end_going(&going);
}

/* True if the place is first in the order and its strand is empty. */
static bool may_go(const struct spread *spread, const struct place *place)
{
    return spread->head != spread->tail && spread_entry_at(spread, spread->head)->place == place &&
           place->strand.first == NULL;
}

bool spread_take(struct spread *spread, struct replies *replies, struct place *place,
                 struct slice bytes, bool is_whole, const struct spread_outlet *outlet)
{
    struct going going = {.spread = spread, .replies = replies, .outlet = outlet};
    while (bytes.len > 0 && place->n_owed > 0) {
        if (!may_go(spread, place))
            return strand_keep(replies, &place->strand, bytes.at, bytes.len);
        struct part part = {bytes.len, 1};
        if (is_whole && place->n_owed == 1) {
            place->scan = (struct reply_scan){0};
            place->is_in_frame = false;
        } else {
            part = scan_part(place, bytes, spread_entry_at(spread, spread->head)->n);
        }
        if (!spread_put(&going, slice_of(bytes.at, part.len), !place->is_in_frame))
            break;
        spread_note_given(spread, part.n);
        bytes = behind(bytes, part.len);
        if (part.n > 0)
            put_strands(&going);
    }
    return end_going(&going);
}

bool spread_may_pass(const struct spread *spread, const struct replies *replies,
                     const struct place *place)
{
    return replies_are_idle(replies) && may_go(spread, place) && place->is_in_frame;
}

void spread_passed(struct place *place, size_t n)
{
    place->scan.bulk_left -= n;
}

static void forget_strand(struct replies *replies, struct place *place)
{
    strand_clear(replies, &place->strand);
    place->scan = (struct reply_scan){0};
    place->is_in_frame = false;
    place->n_owed = 0;
}

void spread_forget(struct spread *spread, struct replies *replies)
{
    for (size_t i = 0; i < spread->n_places; i++)
        if (spread->places[i] != NULL)
            forget_strand(replies, spread->places[i]);
    for (const struct list *at = spread->retired.next; at != &spread->retired; at = at->next)
        forget_strand(replies, spread_retired_at(at));
    spread->head = spread->tail = 0;
    shed_entries(spread, replies->pool);
    spread->is_open = spread->is_run = false;
}

/* ---- all places ---- */

static void want_idle(struct place *place)
{
    place->lane_user.wants_idle |= place->lane_user.in_flight > 0;
}

void spread_want_idle(struct spread *spread)
{
    for (size_t i = 0; i < spread->n_places; i++)
        if (spread->places[i] != NULL)
            want_idle(spread->places[i]);
    for (const struct list *at = spread->retired.next; at != &spread->retired; at = at->next)
        want_idle(spread_retired_at(at));
}

void spread_end_question(struct place *place)
{
    if (place->question.login == NULL)
        return;
    auth_lanes_forget(&place->question);
    login_put(place->question.login);
    place->question.login = NULL;
    auth_proof_drop(&place->question.proof);
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
        auth_proof_drop(&place->proof);
        place->was_proven = false;
    }
}

void spread_renew_auth_generations(struct spread *spread)
{
    for (size_t i = 0; spread != NULL && i < spread->n_places; i++)
        if (spread->places[i] != NULL)
            spread->places[i]->auth_generation =
                node_auth_generation(lanes_node(&spread->places[i]->row->lanes));
}
