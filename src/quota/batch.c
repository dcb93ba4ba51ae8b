#include "quota/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "resp/argv.h"
#include "resp/emit.h"

#define FIRST_ROOM 16
#define SLOTS_PER_ENTRY 2

struct batch *batch_new(const struct quota_algorithm *algorithm, struct slice words, unsigned n_words, unsigned work_us)
{
    struct batch *batch = calloc(1, sizeof *batch + words.len);
    if (batch == NULL)
        return NULL;
    list_init(&batch->in_exchange);
    list_init(&batch->in_slot);
    batch->algorithm = algorithm;
    batch->n_words = n_words;
    batch->work_us = work_us;
    batch->words_len = words.len;
    memcpy(batch->words, words.at, words.len);
    return batch;
}

void batch_free(struct batch *batch)
{
    free(batch->refusal);
    free(batch->entries);
    free(batch->index);
    free(batch);
}

bool batch_fits(const struct batch *batch, const struct quota_algorithm *algorithm, struct slice words)
{
    return batch->algorithm == algorithm && algorithm->joining != QUOTA_ALONE && batch->n < BATCH_KEYS_MAX &&
           batch_work_us(batch) + batch->work_us <= BATCH_WORK_US &&
           slice_eq(words, slice_of(batch->words, batch->words_len));
}

/* ---- entries ---- */

static struct decision *first_call(const struct batch_entry *entry)
{
    return container_of(entry->calls.next, struct decision, in_entry);
}

/* The slot of that key, or a free one. */
static uint16_t *find_slot(const struct batch *batch, struct slice key, uint64_t hash)
{
    uint32_t mask = batch->n_slots - 1;
    uint32_t i = (uint32_t)hash & mask;
    while (batch->index[i] != 0) {
        const struct batch_entry *entry = &batch->entries[batch->index[i] - 1];
        if (entry->hash == hash && slice_eq(first_call(entry)->key, key))
            break;
        i = (i + 1) & mask;
    }
    return &batch->index[i];
}

/* Entries have moved in memory: repair their lists. */
static void relink(struct list *moved, const struct list *old)
{
    if (moved->next == old) {
        list_init(moved);
        return;
    }
    moved->next->prev = moved;
    moved->prev->next = moved;
}

/* The index names those that there are. */
static void index_anew(struct batch *batch)
{
    memset(batch->index, 0, batch->n_slots * sizeof batch->index[0]);
    for (uint32_t i = 0; i < batch->n; i++)
        *find_slot(batch, first_call(&batch->entries[i])->key, batch->entries[i].hash) = (uint16_t)(i + 1);
}

static bool grow(struct batch *batch)
{
    uint32_t room = batch->room > 0 ? 2 * batch->room : FIRST_ROOM;
    struct batch_entry *entries = calloc(room, sizeof *entries);
    uint16_t *index = calloc((size_t)room * SLOTS_PER_ENTRY, sizeof *index);
    if (entries == NULL || index == NULL) {
        free(entries);
        free(index);
        return false;
    }
    for (uint32_t i = 0; i < batch->n; i++) {
        entries[i] = batch->entries[i];
        relink(&entries[i].calls, &batch->entries[i].calls);
    }
    free(batch->entries);
    free(batch->index);
    batch->entries = entries;
    batch->room = room;
    batch->index = index;
    batch->n_slots = room * SLOTS_PER_ENTRY;
    index_anew(batch);
    return true;
}

/* Calls with tokens never become one entry with a count. */
static bool can_join(const struct batch *batch)
{
    return batch->algorithm->joining == QUOTA_JOINED;
}

static bool has_parts(const struct batch *batch)
{
    return batch->algorithm->family == FAMILY_PARTS;
}

static uint64_t bit_of(uint64_t hash)
{
    return UINT64_C(1) << hash % 64;
}

uint64_t batch_note_key(struct batch *batch, uint64_t hash)
{
    batch->seen[hash / 64 % BATCH_SEEN] |= bit_of(hash);
    return bit_of(hash);
}

bool batch_concerns(const struct batch *batch, struct slice key, uint64_t hash)
{
    if (batch->algorithm->joining == QUOTA_ALONE)
        return true;
    if (has_parts(batch))
        return (batch->seen[hash / 64 % BATCH_SEEN] & bit_of(hash)) != 0;
    if (can_join(batch))
        return batch->n > 0 && *find_slot(batch, key, hash) != 0;
    for (uint32_t i = 0; i < batch->n; i++)
        if (batch->entries[i].hash == hash)
            return true;
    return false;
}

static bool has_key(const struct decision *decision, struct slice key)
{
    struct slice one;
    struct argv_walk keys = {decision->key.at, decision->key.at + decision->key.len, decision->n_keys};
    while (argv_next(&keys, &one))
        if (slice_eq(one, key))
            return true;
    return false;
}

static bool share_a_key(const struct decision *decision, const struct decision *other)
{
    struct slice key;
    struct argv_walk keys = {decision->key.at, decision->key.at + decision->key.len, decision->n_keys};
    while (argv_next(&keys, &key))
        if (has_key(other, key))
            return true;
    return false;
}

/*
 * Would a call on several keys that joins an entry overtake one that asks about a key of its, in those from `behind`
 * on?
 */
static bool would_overtake(const struct batch *batch, uint32_t behind, const struct decision *decision, uint64_t bits)
{
    for (uint32_t i = behind; bits != 0 && i < batch->n; i++)
        if ((batch->entries[i].bits & bits) != 0 && share_a_key(decision, first_call(&batch->entries[i])))
            return true;
    return false;
}

bool batch_add(struct batch *batch, struct decision *decision, uint64_t hash, uint64_t bits)
{
    if (batch->n == batch->room && !grow(batch))
        return false;
    uint16_t *slot = can_join(batch) ? find_slot(batch, decision->key, hash) : NULL;
    if (slot == NULL || *slot == 0 || would_overtake(batch, *slot, decision, bits)) {
        struct batch_entry *entry = &batch->entries[batch->n++];
        *entry = (struct batch_entry){.hash = hash, .bits = bits};
        list_init(&entry->calls);
        if (slot != NULL)
            *slot = (uint16_t)batch->n;
        list_push(&entry->calls, &decision->in_entry);
        entry->n = 1;
        return true;
    }
    struct batch_entry *entry = &batch->entries[*slot - 1];
    list_push(&entry->calls, &decision->in_entry);
    entry->n++;
    return true;
}

void batch_put_in_order(struct list *batches, struct batch *batch)
{
    struct list *at = batches->prev;
    while (at != batches && container_of(at, struct batch, in_exchange)->order > batch->order)
        at = at->prev;
    list_push(at->next, &batch->in_exchange);
}

struct batch *batch_split(struct batch *batch)
{
    struct batch_entry *last = &batch->entries[batch->n - 1];
    struct batch *part =
        batch_new(batch->algorithm, slice_of(batch->words, batch->words_len), batch->n_words, batch->work_us);
    if (part == NULL || !grow(part)) {
        if (part != NULL)
            batch_free(part);
        return NULL;
    }
    part->node = batch->node;
    part->slot = batch->slot;
    part->order = batch->order;
    part->asked_ns = batch->asked_ns;
    part->is_whole = batch->is_whole;
    memcpy(part->seen, batch->seen, sizeof part->seen);
    part->entries[0] = *last;
    relink(&part->entries[0].calls, &last->calls);
    part->n = 1;
    batch->n--;
    index_anew(part);
    index_anew(batch);
    return part;
}

/* ---- sending ---- */

struct writer {
    char *at;
};

static void put(struct writer *writer, struct slice text)
{
    memcpy(writer->at, text.at, text.len);
    writer->at += text.len;
}

static void put_bulk(struct writer *writer, struct slice text)
{
    writer->at += emit_header(writer->at, '$', (int64_t)text.len);
    put(writer, text);
    put(writer, SLICE("\r\n"));
}

static void put_count(struct writer *writer, uint32_t n)
{
    char digits[16];
    char *at = digits + sizeof digits;
    do {
        *--at = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    put_bulk(writer, slice_of(at, (size_t)(digits + sizeof digits - at)));
}

static bool has_counts(const struct batch *batch)
{
    for (uint32_t i = 0; i < batch->n; i++)
        if (batch->entries[i].n > 1)
            return true;
    return false;
}

static struct slice token_of(const struct decision *decision)
{
    return quota_takes_place(&decision->ask) ? slice_str(decision->token) : decision->ask.token;
}

static size_t request_room(const struct batch *batch, struct slice script)
{
    size_t room = 8 * EMIT_HEADER_MAX + script.len + batch->words_len;
    for (uint32_t i = 0; i < batch->n; i++) {
        const struct decision *decision = first_call(&batch->entries[i]);
        room += decision->key.len + token_of(decision).len + 3 * EMIT_HEADER_MAX;
    }
    return room;
}

static void write_script_call(const struct batch *batch, struct slice script, struct writer *writer)
{
    bool has_tokens = batch->algorithm->joining == QUOTA_BY_TOKEN;
    bool is_counted = !has_tokens && has_counts(batch);
    uint32_t n_keys = batch->n * (has_parts(batch) ? first_call(&batch->entries[0])->n_keys : 1);
    int64_t argc = 3 + (int64_t)batch->n_words + (int64_t)n_keys + (has_tokens || is_counted ? (int64_t)batch->n : 0);
    writer->at += emit_header(writer->at, '*', argc);
    put_bulk(writer, batch->is_whole ? SLICE("EVAL") : SLICE("EVALSHA"));
    put_bulk(writer, script);
    put_count(writer, n_keys);
    for (uint32_t i = 0; i < batch->n; i++)
        (has_parts(batch) ? put : put_bulk)(writer, first_call(&batch->entries[i])->key);
    put(writer, slice_of(batch->words, batch->words_len));
    for (uint32_t i = 0; is_counted && i < batch->n; i++)
        put_count(writer, batch->entries[i].n);
    for (uint32_t i = 0; has_tokens && i < batch->n; i++)
        put_bulk(writer, token_of(first_call(&batch->entries[i])));
}

static void write_delete(const struct batch *batch, struct writer *writer)
{
    const struct decision *decision = first_call(&batch->entries[0]);
    writer->at += emit_header(writer->at, '*', 1 + (int64_t)decision->n_keys);
    put_bulk(writer, SLICE("UNLINK"));
    put(writer, decision->key);
}

bool batch_send(struct batch *batch, struct script_conn *conn)
{
    struct slice script = SLICE("");
    if (batch_script(batch) != SCRIPT_COUNT)
        script = batch->is_whole ? script_source(batch_script(batch)) : script_conn_sha(conn, batch_script(batch));
    char *request = malloc(request_room(batch, script));
    if (request == NULL)
        return false;
    struct writer writer = {request};
    if (batch_script(batch) == SCRIPT_COUNT)
        write_delete(batch, &writer);
    else
        write_script_call(batch, script, &writer);
    bool is_sent = script_conn_ask(conn, batch->is_asking, request, (size_t)(writer.at - request));
    free(request);
    return is_sent;
}
