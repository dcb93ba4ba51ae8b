#include "quota/batch.h"

#include <stdlib.h>
#include <string.h>

#include "quota/answer.h"
#include "quota/outcome.h"
#include "resp/argv.h"
#include "resp/emit.h"
#include "upstream/lane/lack.h"

#define ENTRIES_MAX 250 /* as many values as Lua can unpack */
#define FIRST_ROOM 16
#define SLOTS_PER_ENTRY 2

struct batch *batch_new(const struct batch_question *question)
{
    struct batch *batch = calloc(1, sizeof *batch + question->words.len);
    if (batch == NULL)
        return NULL;
    list_init(&batch->in_exchange);
    list_init(&batch->in_slot);
    batch->question = *question;
    batch->question.words.at = memcpy(batch->words, question->words.at, question->words.len);
    return batch;
}

void batch_free(struct batch *batch)
{
    free(batch->refusal);
    free(batch->entries);
    free(batch->index);
    free(batch);
}

bool batch_fits(const struct batch *batch, const struct batch_question *question)
{
    const struct quota_algorithm *algorithm = question->algorithm;
    return batch->question.algorithm == algorithm && algorithm->joining != QUOTA_ALONE &&
           batch->n < ENTRIES_MAX &&
           batch_work_us(batch) + batch->question.work_us <= BATCH_WORK_US &&
           slice_eq(question->words, batch->question.words);
}

/* ---- entries ---- */

/* Returns the cell of the hash index for that key, or a free cell. */
static uint16_t *find_slot(const struct batch *batch, struct slice key, uint64_t hash)
{
    uint32_t mask = batch->n_slots - 1;
    uint32_t i = (uint32_t)hash & mask;
    while (batch->index[i] != 0) {
        const struct batch_entry *entry = &batch->entries[batch->index[i] - 1];
        if (entry->hash == hash && slice_eq(batch_first_call(entry)->key, key))
            break;
        i = (i + 1) & mask;
    }
    return &batch->index[i];
}

/* Repairs the list of an entry that has moved in memory. */
static void relink(struct list *moved, const struct list *old)
{
    if (moved->next == old) {
        list_init(moved);
        return;
    }
    moved->next->prev = moved;
    moved->prev->next = moved;
}

/* Rebuilds the index from the entries. */
static void index_anew(struct batch *batch)
{
    memset(batch->index, 0, batch->n_slots * sizeof batch->index[0]);
    for (uint32_t i = 0; i < batch->n; i++)
        *find_slot(batch, batch_first_call(&batch->entries[i])->key, batch->entries[i].hash) =
            (uint16_t)(i + 1);
}

static bool batch_grow(struct batch *batch)
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

/* True if equal calls become one entry with a count. Calls with tokens never do. */
static bool can_join(const struct batch *batch)
{
    return batch->question.algorithm->joining == QUOTA_JOINED;
}

static bool batch_has_parts(const struct batch *batch)
{
    return batch->question.algorithm->family == FAMILY_PARTS;
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
    if (batch->question.algorithm->joining == QUOTA_ALONE)
        return true;
    if (batch_has_parts(batch))
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
    struct argv_walk keys = decision_keys(decision);
    while (argv_next(&keys, &one))
        if (slice_eq(one, key))
            return true;
    return false;
}

static bool share_a_key(const struct decision *decision, const struct decision *other)
{
    struct slice key;
    struct argv_walk keys = decision_keys(decision);
    while (argv_next(&keys, &key))
        if (has_key(other, key))
            return true;
    return false;
}

/*
 * True if a call that joins an earlier entry would overtake another call about one of the same
 * keys. `behind` is the first entry to look at.
 */
static bool would_overtake(const struct batch *batch, uint32_t behind,
                           const struct decision *decision, uint64_t bits)
{
    for (uint32_t i = behind; bits != 0 && i < batch->n; i++)
        if ((batch->entries[i].bits & bits) != 0 &&
            share_a_key(decision, batch_first_call(&batch->entries[i])))
            return true;
    return false;
}

bool batch_add(struct batch *batch, struct decision *decision, uint64_t hash, uint64_t bits)
{
    if (batch->n == batch->room && !batch_grow(batch))
        return false;
    uint16_t *slot = can_join(batch) ? find_slot(batch, decision->key, hash) : NULL;
    struct batch_entry *entry;
    if (slot == NULL || *slot == 0 || would_overtake(batch, *slot, decision, bits)) {
        entry = &batch->entries[batch->n++];
        *entry = (struct batch_entry){.hash = hash, .bits = bits};
        list_init(&entry->calls);
        if (slot != NULL)
            *slot = (uint16_t)batch->n;
    } else {
        entry = &batch->entries[*slot - 1];
    }
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
    struct batch *part = batch_new(&batch->question);
    if (part == NULL || !batch_grow(part)) {
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

static char *batch_put(char *at, struct slice text)
{
    memcpy(at, text.at, text.len);
    return at + text.len;
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
    return quota_takes_permit(&decision->ask) ? slice_str(decision->token) : decision->ask.token;
}

static size_t request_room(const struct batch *batch, struct slice script)
{
    size_t room = 8 * EMIT_HEADER_MAX + script.len + batch->question.words.len;
    for (uint32_t i = 0; i < batch->n; i++) {
        const struct decision *decision = batch_first_call(&batch->entries[i]);
        room += decision->key.len + token_of(decision).len + 3 * EMIT_HEADER_MAX;
    }
    return room;
}

static char *write_script_call(const struct batch *batch, struct slice script, char *at)
{
    bool has_tokens = batch->question.algorithm->joining == QUOTA_BY_TOKEN;
    bool is_counted = !has_tokens && has_counts(batch);
    uint32_t n_keys =
        batch->n * (batch_has_parts(batch) ? batch_first_call(&batch->entries[0])->n_keys : 1);
    uint32_t argc =
        3 + batch->question.n_words + n_keys + (has_tokens || is_counted ? batch->n : 0);
    at += emit_header(at, '*', argc);
    at += emit_bulk(at, batch->is_whole ? SLICE("EVAL") : SLICE("EVALSHA"));
    at += emit_bulk(at, script);
    at += emit_bulk_number(at, n_keys);
    for (uint32_t i = 0; i < batch->n; i++) {
        struct slice key = batch_first_call(&batch->entries[i])->key;
        at = batch_has_parts(batch) ? batch_put(at, key) : at + emit_bulk(at, key);
    }
    at = batch_put(at, batch->question.words);
    for (uint32_t i = 0; is_counted && i < batch->n; i++)
        at += emit_bulk_number(at, batch->entries[i].n);
    for (uint32_t i = 0; has_tokens && i < batch->n; i++)
        at += emit_bulk(at, token_of(batch_first_call(&batch->entries[i])));
    return at;
}

static char *write_delete(const struct batch *batch, char *at)
{
    const struct decision *decision = batch_first_call(&batch->entries[0]);
    at += emit_header(at, '*', 1 + (int64_t)decision->n_keys);
    at += emit_bulk(at, SLICE("UNLINK"));
    return batch_put(at, decision->key);
}

char *batch_write(const struct batch *batch, struct slice script, size_t *len)
{
    char *request = malloc(request_room(batch, script));
    if (request == NULL)
        return NULL;
    bool is_call = batch_script(batch) != SCRIPT_COUNT;
    char *end = is_call ? write_script_call(batch, script, request) : write_delete(batch, request);
    *len = (size_t)(end - request);
    return request;
}

/* ---- answers ---- */

struct slice batch_explain(struct node *node, struct slice error, char *out)
{
    enum lack lack = LACK_COUNT;
    if (slice_begins(error, SLICE("-NOAUTH")))
        lack = LACK_USER;
    else if (lack_is_refused(error, "eval"))
        lack = LACK_EVAL;
    else if (lack_is_refused(error, "unlink"))
        lack = LACK_UNLINK;
    else if (lack_is_channel(error))
        lack = LACK_CHANNEL;
    else if (lack_is_key(error))
        lack = LACK_KEYS;
    /* only a missing right to TIME aborts a script, and that error names the line of the script */
    else if (lack_is_in_script(error))
        lack = lack_ends_script(error) ? LACK_TIME : LACK_RIGHT;
    if (lack == LACK_COUNT)
        return error;
    node_lacks(node, lack);
    return lack_error(lack, node->upstream->is_cluster, error, out);
}

static const struct slice amiss = {"-ERR the upstream sent an unexpected reply",
                                   sizeof "-ERR the upstream sent an unexpected reply" - 1};

struct decision *batch_take(struct batch_entry *entry)
{
    struct decision *decision = container_of(entry->calls.next, struct decision, in_entry);
    list_take(&decision->in_entry);
    decision->is_asking = false;
    return decision;
}

static void fail_entry(const struct batch_ops *ops, struct batch_entry *entry, struct slice error,
                       bool is_down)
{
    while (!list_is_empty(&entry->calls))
        ops->on_failed(batch_take(entry), error, is_down);
}

void batch_fail(const struct batch_ops *ops, struct batch *batch, struct slice error, bool is_down)
{
    for (uint32_t i = 0; i < batch->n; i++)
        fail_entry(ops, &batch->entries[i], error, is_down);
    batch_free(batch);
}

/* Fails an entry with Redis' error text, cut to one line. */
static void fail_with(const struct batch_ops *ops, struct node *node, struct batch_entry *entry,
                      struct slice error)
{
    char line[256] = "-", named[LACK_ERROR_ROOM];
    size_t len = error.len < sizeof line - 1 ? error.len : sizeof line - 1;
    memcpy(line + 1, error.at, len);
    bool is_named = lack_is_in_script(error);
    fail_entry(ops, entry, is_named ? batch_explain(node, error, named) : slice_of(line, 1 + len),
               false);
}

static void answer_entry(const struct batch_ops *ops, const struct batch *batch, struct node *node,
                         struct batch_entry *entry, struct answer *answer)
{
    const struct decision *first = batch_first_call(entry);
    int64_t numbers[QUOTA_NUMBERS_MAX];
    struct quota_hold holds[QUOTA_PARTS_MAX] = {0};
    struct slice error = slice_of(NULL, 0);
    bool is_read = quota_numbers_read(answer, &first->ask, numbers, holds, &error);
    if (is_read && error.at != NULL)
        fail_with(ops, node, entry, error);
    else if (is_read && quota_numbers_are_sane(&first->ask, numbers, entry->n) &&
             quota_holds_are_sane(&first->ask, numbers, holds, entry->n))
        ops->on_numbers(batch, entry, numbers, holds);
    else
        fail_entry(ops, entry, amiss, false);
}

/* Returns how many integers the script must answer. */
static size_t numbers_of(const struct batch *batch)
{
    size_t n = 0;
    for (uint32_t i = 0; i < batch->n; i++) {
        n += quota_numbers(&batch_first_call(&batch->entries[i])->ask);
    }
    return n;
}

static void answer_delete(const struct batch_ops *ops, struct batch *batch, struct slice text)
{
    struct answer answer = answer_of(text);
    int64_t deleted = 0;
    struct slice error = slice_of(NULL, 0);
    bool is_number =
        answer_number(&answer, &deleted, &error) && error.at == NULL && answer_is_over(&answer);
    while (!list_is_empty(&batch->entries[0].calls)) {
        struct decision *decision = batch_take(&batch->entries[0]);
        if (is_number && deleted >= 0 && deleted <= (int64_t)decision->n_keys)
            ops->on_deleted(decision, deleted);
        else
            ops->on_failed(decision, amiss, false);
    }
    batch_free(batch);
}

void batch_answer(const struct batch_ops *ops, struct batch *batch, struct node *node,
                  struct slice reply)
{
    struct answer answer;
    if (batch_script(batch) == SCRIPT_COUNT) {
        answer_delete(ops, batch, reply);
        return;
    }
    if (!answer_begin(reply, numbers_of(batch), &answer)) {
        batch_fail(ops, batch, amiss, false);
        return;
    }
    for (uint32_t i = 0; i < batch->n; i++)
        answer_entry(ops, batch, node, &batch->entries[i], &answer);
    batch_free(batch);
}

void batch_drop(struct batch *batch)
{
    for (uint32_t i = 0; i < batch->n; i++)
        while (!list_is_empty(&batch->entries[i].calls))
            decision_drop(batch_take(&batch->entries[i]));
    batch_free(batch);
}
