#include "front/route/replies.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 4
#define CAPACITY_KEPT 32 /* runs; an empty ring of at most this capacity is kept */
/* bytes; most replies are short, so a piece fits a pool cell */
#define PIECE_MIN ((uint32_t)(CELL_BYTES - sizeof(struct early_piece)))
#define PIECE_MORE 4096 /* bytes; more pieces usually follow in the same run */

struct early_piece {
    struct early_piece *next;
    uint32_t filled;
    uint32_t room;
    char *held;     /* a reply for a reserved position, instead of `data`; heap */
    bool is_open;   /* the reply of this reserved position has not come */
    uint32_t taken; /* bytes of `data` that were sent */
    char data[];
};

/* ---- early bytes ---- */

static bool early_is_empty(const struct early *early)
{
    return early->first == NULL;
}

static bool add_piece(struct replies *replies, struct early *early, size_t n, size_t least)
{
    size_t room = n > least ? n : least;
    bool is_cell = room <= PIECE_MIN;
    struct early_piece *piece =
        is_cell ? pool_get_cell(replies->pool) : malloc(sizeof *piece + room);
    if (piece == NULL)
        return false;
    *piece = (struct early_piece){.room = (uint32_t)room};
    if (!is_cell)
        pool_note_more(replies->pool, sizeof *piece + room);
    if (early_is_empty(early))
        early->first = piece;
    else
        early->last->next = piece;
    early->last = piece;
    return true;
}

/* True if bytes can be added to the piece. A piece with a reserved reply takes no other bytes. */
static bool replies_has_room(const struct early_piece *piece)
{
    return piece->held == NULL && piece->filled < piece->room;
}

static bool replies_keep(struct replies *replies, struct early *early, const char *data, size_t n)
{
    while (n > 0) {
        struct early_piece *last = early->last;
        if (early_is_empty(early) || !replies_has_room(last)) {
            if (!add_piece(replies, early, n, early_is_empty(early) ? PIECE_MIN : PIECE_MORE))
                return false;
            last = early->last;
        }
        uint32_t left = last->room - last->filled;
        uint32_t part = n < left ? (uint32_t)n : left;
        memcpy(last->data + last->filled, data, part);
        last->filled += part;
        replies->early_bytes += part;
        data += part;
        n -= part;
    }
    return true;
}

static void drop_piece(struct replies *replies, struct early *early)
{
    struct early_piece *piece = early->first;
    early->first = piece->next;
    replies->early_bytes -= piece->filled - piece->taken;
    if (piece->held != NULL)
        pool_note_less(replies->pool, piece->filled);
    free(piece->held);
    if (piece->room <= PIECE_MIN) {
        pool_put_cell(replies->pool, piece);
        return;
    }
    pool_note_less(replies->pool, sizeof *piece + piece->room);
    free(piece);
}

static void drop_early(struct replies *replies, struct early *early)
{
    while (!early_is_empty(early))
        drop_piece(replies, early);
}

/* ---- strands ---- */

bool strand_keep(struct replies *replies, struct early *strand, const char *data, size_t n)
{
    return replies_keep(replies, strand, data, n);
}

struct early_piece *strand_hold(struct replies *replies, struct early *strand)
{
    if (!add_piece(replies, strand, 0, 0))
        return NULL;
    strand->last->is_open = true;
    return strand->last;
}

bool replies_fill(struct replies *replies, struct early_piece *piece, struct slice reply)
{
    assert(piece->is_open);
    piece->is_open = false;
    if (reply.len == 0)
        return true;
    piece->held = malloc(reply.len);
    if (piece->held == NULL)
        return false;
    memcpy(piece->held, reply.at, reply.len);
    piece->filled = (uint32_t)reply.len;
    replies->early_bytes += reply.len;
    pool_note_more(replies->pool, reply.len);
    return true;
}

enum strand_next strand_look(const struct early *strand, const struct early_piece **at,
                             struct slice *bytes)
{
    const struct early_piece *piece = *at == NULL ? strand->first : (*at)->next;
    *at = piece;
    if (piece == NULL)
        return STRAND_EMPTY;
    if (piece->is_open)
        return STRAND_OPEN;
    *bytes = piece->held != NULL
                 ? slice_of(piece->held, piece->filled)
                 : slice_of(piece->data + piece->taken, piece->filled - piece->taken);
    return piece->room == 0 ? STRAND_REPLY : STRAND_BYTES;
}

void strand_drop(struct replies *replies, struct early *strand, size_t n)
{
    struct early_piece *piece = strand->first;
    if (piece->room == 0 || piece->taken + n == piece->filled) {
        drop_piece(replies, strand);
        return;
    }
    piece->taken += (uint32_t)n;
    replies->early_bytes -= n;
}

void strand_clear(struct replies *replies, struct early *strand)
{
    drop_early(replies, strand);
}

/* ---- runs ---- */

static struct run *run_at(const struct replies *replies, uint32_t position)
{
    return &replies->ring[position & (replies->capacity - 1)];
}

static struct run *newest(const struct replies *replies)
{
    return run_at(replies, replies->tail - 1);
}

static void shed(struct replies *replies)
{
    pool_note_less(replies->pool, replies->capacity * sizeof *replies->ring);
    free(replies->ring);
    replies->ring = NULL;
    replies->capacity = 0;
}

static bool replies_grow(struct replies *replies)
{
    uint32_t capacity = replies->capacity == 0 ? FIRST_CAPACITY : replies->capacity * 2;
    struct run *ring = malloc(capacity * sizeof *ring);
    if (ring == NULL)
        return false;
    for (uint32_t at = replies->head; at != replies->tail; at++)
        ring[at & (capacity - 1)] = *run_at(replies, at);
    shed(replies);
    pool_note_more(replies->pool, capacity * sizeof *ring);
    replies->ring = ring;
    replies->capacity = capacity;
    return true;
}

static void pop(struct replies *replies)
{
    replies->head++;
    if (replies->head == replies->tail && replies->capacity > CAPACITY_KEPT)
        shed(replies);
}

void replies_init(struct replies *replies, struct pool *pool)
{
    *replies = (struct replies){.pool = pool};
    list_init(&replies->all_unsolicited);
}

static struct reply_source *source_of(struct list *in_unsolicited)
{
    return container_of(in_unsolicited, struct reply_source, in_unsolicited);
}

static void replies_forget(struct reply_source *source)
{
    source->n_runs = 0;
    source->is_cut = false;
}

void replies_clear(struct replies *replies)
{
    if (replies->speaking != NULL)
        replies_forget(replies->speaking);
    while (!list_is_empty(&replies->all_unsolicited)) {
        struct reply_source *source = source_of(replies->all_unsolicited.next);
        list_take(&source->in_unsolicited);
        drop_early(replies, &source->unsolicited);
        replies_forget(source);
    }
    for (; replies->head != replies->tail; replies->head++) {
        struct run *run = run_at(replies, replies->head);
        drop_early(replies, &run->early);
        replies_forget(run->source);
    }
    chain_clear(&replies->own, replies->pool);
    shed(replies);
    replies_init(replies, replies->pool);
}

static bool goes_on(const struct replies *replies, const struct reply_source *source)
{
    if (replies->head == replies->tail)
        return false;
    const struct run *last = newest(replies);
    return last->source == source && !last->is_ended && !last->is_closed && last->own_bytes == 0;
}

bool replies_begin(struct replies *replies, struct reply_source *source, bool is_in_frame)
{
    if (goes_on(replies, source))
        return true;
    if (replies->tail - replies->head == replies->capacity && !replies_grow(replies))
        return false;
    if (replies_are_idle(replies) && is_in_frame) {
        replies->speaking = source;
        source->is_cut = true;
    }
    uint32_t position = replies->tail++;
    *run_at(replies, position) = (struct run){.source = source};
    if (source->n_runs++ > 0)
        run_at(replies, source->newest)->next = position;
    else
        source->oldest = position;
    source->newest = position;
    return true;
}

void replies_close(struct replies *replies, const struct reply_source *source)
{
    assert(source->n_runs > 0);
    run_at(replies, source->newest)->is_closed = true;
}

bool replies_say(struct replies *replies, struct slice reply)
{
    assert(replies->head != replies->tail);
    newest(replies)->own_bytes += (uint32_t)reply.len;
    return chain_append(&replies->own, replies->pool, reply.at, reply.len);
}

/* The end of a run is also the end of a frame. */
void replies_end(struct replies *replies, struct reply_source *source)
{
    assert(source->n_runs > 0);
    struct run *run = run_at(replies, source->oldest);
    run->is_ended = true;
    source->n_runs--;
    source->oldest = run->next;
    if (replies->speaking != source)
        return;
    replies->speaking = NULL;
    source->is_cut = false;
}

/* ---- bytes that come ---- */

/* True if the position is a run of the source, ended or not. */
static bool is_here(const struct replies *replies, const struct reply_source *source,
                    uint32_t position)
{
    return position - replies->head < replies->tail - replies->head &&
           run_at(replies, position)->source == source;
}

/*
 * Chooses where the source's next frame belongs: to the source's oldest run. An unsolicited frame
 * must not overtake earlier bytes of its lane. While earlier bytes of the lane wait, the frame
 * joins their run, even if that run has ended. Otherwise the frame is kept outside the runs.
 */
static void choose_place(const struct replies *replies, struct reply_source *source)
{
    source->run_index = source->n_runs > 0 ? source->oldest : source->newest;
    source->is_unsolicited = source->n_runs == 0 && !is_here(replies, source, source->newest);
}

static bool replies_may_speak(const struct replies *replies, const struct reply_source *source)
{
    if (source->is_cut)
        return replies->speaking == source;
    if (replies->speaking != NULL || source->is_unsolicited)
        return replies->speaking == NULL;
    return source->run_index == replies->head &&
           early_is_empty(&run_at(replies, replies->head)->early);
}

static bool keep_in_place(struct replies *replies, struct reply_source *source, const char *data,
                          size_t n)
{
    if (!source->is_unsolicited)
        return replies_keep(replies, &run_at(replies, source->run_index)->early, data, n);
    if (early_is_empty(&source->unsolicited))
        list_push(&replies->all_unsolicited, &source->in_unsolicited);
    return replies_keep(replies, &source->unsolicited, data, n);
}

enum replies_verdict replies_take(struct replies *replies, struct reply_source *source,
                                  const char *data, size_t n, bool is_whole)
{
    if (!source->is_cut)
        choose_place(replies, source);
    bool may = replies_may_speak(replies, source);
    source->is_cut = !is_whole;
    if (may)
        replies->speaking = is_whole ? NULL : source;
    if (may)
        return REPLIES_PASS;
    return keep_in_place(replies, source, data, n) ? REPLIES_KEPT : REPLIES_FULL;
}

/* ---- bytes that go ---- */

struct outlet {
    bool (*put)(void *arg, const char *data, size_t n); /* false: stop */
    void *arg;
};

static bool put_early(struct replies *replies, struct early *early, const struct outlet *outlet)
{
    while (!early_is_empty(early)) {
        const struct early_piece *piece = early->first;
        if (!outlet->put(outlet->arg, piece->data, piece->filled))
            return false;
        drop_piece(replies, early);
    }
    return true;
}

static bool replies_put_own(struct replies *replies, uint32_t *bytes, const struct outlet *outlet)
{
    while (*bytes > 0) {
        struct slice piece;
        if (chain_peek(&replies->own, &piece, 1) == 0)
            return false; /* out of memory; replies_say has returned false already */
        size_t part = piece.len < *bytes ? piece.len : *bytes;
        if (!outlet->put(outlet->arg, piece.at, part))
            return false;
        chain_drop(&replies->own, replies->pool, part);
        *bytes -= (uint32_t)part;
    }
    return true;
}

static bool put_unsolicited(struct replies *replies, struct reply_source *source,
                            const struct outlet *outlet)
{
    list_take(&source->in_unsolicited);
    replies->speaking = source->is_cut && source->is_unsolicited ? source : NULL;
    return put_early(replies, &source->unsolicited, outlet);
}

/* Sends the kept bytes of the oldest run. False: nothing more can be sent. */
static bool put_run(struct replies *replies, const struct outlet *outlet)
{
    struct run *run = run_at(replies, replies->head);
    struct reply_source *source = run->source;
    if (!early_is_empty(&run->early)) {
        bool ends_here =
            source->is_cut && !source->is_unsolicited && source->run_index == replies->head;
        if (!put_early(replies, &run->early, outlet))
            return false;
        replies->speaking = ends_here ? source : NULL;
    }
    if (!run->is_ended || replies->speaking != NULL ||
        !replies_put_own(replies, &run->own_bytes, outlet))
        return false;
    pop(replies);
    return true;
}

void replies_flush(struct replies *replies, bool (*out)(void *arg, const char *data, size_t n),
                   void *arg)
{
    const struct outlet outlet = {out, arg};
    bool goes_on = true;
    while (goes_on && replies->speaking == NULL) {
        if (!list_is_empty(&replies->all_unsolicited))
            goes_on = put_unsolicited(replies, source_of(replies->all_unsolicited.next), &outlet);
        else
            goes_on = replies->head != replies->tail && put_run(replies, &outlet);
    }
}
