/*
 * Rows in order of arrival, and an index over them with twice as many entries. An entry is 0 if
 * free, otherwise the number of a row plus one.
 */
#include "limit/figures/whom.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SLOTS_BITS 10
#define SLOTS (1 << SLOTS_BITS)

_Static_assert(SLOTS == 2 * WHOM_ROWS, "a search ends at a free slot");

struct whom {
    pthread_mutex_t lock;
    _Atomic uint32_t taken; /* number of times rows were taken out */
    struct {
        uint64_t hash;
        uint32_t place;
        uint32_t taken; /* value of `taken` + 1; 0: none */
    } last;             /* last offender noted; used by the owner only */
    size_t n;
    bool is_cut;
    uint16_t slots[SLOTS];
    struct whom_row rows[WHOM_ROWS];
};

struct whom *whom_new(void)
{
    struct whom *whom = mem_zalloc(1, sizeof *whom);
    pthread_mutex_init(&whom->lock, NULL);
    return whom;
}

void whom_free(struct whom *whom)
{
    if (whom == NULL)
        return;
    pthread_mutex_destroy(&whom->lock);
    free(whom);
}

/* The index entry of the row, or the free entry for it. */
static size_t find(const struct whom *whom, const struct whom_row *row)
{
    uint64_t mixed = (row->hash ^ ((uint64_t)row->limit << 2 | row->kind)) * UINT64_C(0x9e3779b97f4a7c15);
    size_t slot = (size_t)(mixed >> (64 - SLOTS_BITS));
    for (; whom->slots[slot] != 0; slot = (slot + 1) % SLOTS) {
        const struct whom_row *there = &whom->rows[whom->slots[slot] - 1U];
        if (there->hash == row->hash && there->limit == row->limit && there->kind == row->kind)
            break;
    }
    return slot;
}

static void set_name(struct whom_row *row, struct slice name)
{
    static const char cut[] = "...";
    size_t len = name.len < WHOM_NAME_MAX ? name.len : WHOM_NAME_MAX;
    if (len > 0)
        memcpy(row->name, name.at, len);
    if (name.len > WHOM_NAME_MAX)
        memcpy(row->name + WHOM_NAME_MAX - (sizeof cut - 1), cut, sizeof cut - 1);
    row->name_len = (uint8_t)len;
}

void whom_note(struct whom *whom, unsigned limit, enum whom_kind kind, struct slice name, uint64_t hash)
{
    struct whom_row row = {.hash = hash, .limit = (uint16_t)limit, .kind = (uint8_t)kind};
    uint32_t place = limit << 2 | (unsigned)kind;
    uint32_t taken = atomic_load_explicit(&whom->taken, memory_order_relaxed) + 1;
    if (whom->last.hash == hash && whom->last.place == place && whom->last.taken == taken)
        return;
    whom->last.hash = hash;
    whom->last.place = place;
    whom->last.taken = taken;
    pthread_mutex_lock(&whom->lock);
    size_t slot = find(whom, &row);
    if (whom->slots[slot] == 0 && whom->n < WHOM_ROWS) {
        set_name(&row, name);
        whom->rows[whom->n++] = row;
        whom->slots[slot] = (uint16_t)whom->n;
    } else if (whom->slots[slot] == 0) {
        whom->is_cut = true;
    }
    pthread_mutex_unlock(&whom->lock);
}

size_t whom_take(struct whom *whom, struct whom_row *rows, bool *is_cut)
{
    pthread_mutex_lock(&whom->lock);
    atomic_fetch_add_explicit(&whom->taken, 1, memory_order_relaxed);
    size_t n = whom->n;
    *is_cut = whom->is_cut;
    memcpy(rows, whom->rows, n * sizeof *rows);
    if (n > 0)
        memset(whom->slots, 0, sizeof whom->slots);
    whom->n = 0;
    whom->is_cut = false;
    pthread_mutex_unlock(&whom->lock);
    return n;
}
