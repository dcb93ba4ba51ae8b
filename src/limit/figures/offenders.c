/*
 * Rows in order of arrival, and an index over them with twice as many entries. An entry is 0 if
 * free, otherwise the number of a row plus one.
 */
#include "limit/figures/offenders.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SLOTS_BITS 10
#define SLOTS (1 << SLOTS_BITS)

_Static_assert(SLOTS == 2 * OFFENDERS_MAX, "a search ends at a free slot");

struct offenders {
    pthread_mutex_t lock;
    _Atomic uint32_t taken; /* number of times rows were taken out */
    struct {
        uint64_t hash;
        uint32_t key;
        uint32_t taken; /* value of `taken` + 1; 0: none */
    } last;             /* last offender noted; used by the owner only */
    size_t n;
    bool is_cut;
    uint16_t slots[SLOTS];
    struct offender rows[OFFENDERS_MAX];
};

struct offenders *offenders_new(void)
{
    struct offenders *offenders = mem_zalloc(1, sizeof *offenders);
    pthread_mutex_init(&offenders->lock, NULL);
    return offenders;
}

void offenders_free(struct offenders *offenders)
{
    if (offenders == NULL)
        return;
    pthread_mutex_destroy(&offenders->lock);
    free(offenders);
}

/* The index entry of the row, or the free entry for the row. */
static size_t offenders_find(const struct offenders *offenders, const struct offender *row)
{
    uint64_t mixed =
        (row->hash ^ ((uint64_t)row->limit << 2 | row->kind)) * UINT64_C(0x9e3779b97f4a7c15);
    size_t slot = (size_t)(mixed >> (64 - SLOTS_BITS));
    for (; offenders->slots[slot] != 0; slot = (slot + 1) % SLOTS) {
        const struct offender *there = &offenders->rows[offenders->slots[slot] - 1U];
        if (there->hash == row->hash && there->limit == row->limit && there->kind == row->kind)
            break;
    }
    return slot;
}

static void offenders_set_name(struct offender *row, struct slice name)
{
    static const char cut[] = "...";
    size_t len = name.len < OFFENDER_NAME_MAX ? name.len : OFFENDER_NAME_MAX;
    if (len > 0)
        memcpy(row->name, name.at, len);
    if (name.len > OFFENDER_NAME_MAX)
        memcpy(row->name + OFFENDER_NAME_MAX - (sizeof cut - 1), cut, sizeof cut - 1);
    row->name_len = (uint8_t)len;
}

void offenders_note(struct offenders *offenders, unsigned limit, enum offender_kind kind,
                    struct slice name, uint64_t hash)
{
    struct offender row = {.hash = hash, .limit = (uint16_t)limit, .kind = (uint8_t)kind};
    uint32_t key = limit << 2 | (unsigned)kind;
    uint32_t taken = atomic_load_explicit(&offenders->taken, memory_order_relaxed) + 1;
    if (offenders->last.hash == hash && offenders->last.key == key &&
        offenders->last.taken == taken)
        return;
    offenders->last.hash = hash;
    offenders->last.key = key;
    offenders->last.taken = taken;
    pthread_mutex_lock(&offenders->lock);
    size_t slot = offenders_find(offenders, &row);
    if (offenders->slots[slot] == 0 && offenders->n < OFFENDERS_MAX) {
        offenders_set_name(&row, name);
        offenders->rows[offenders->n++] = row;
        offenders->slots[slot] = (uint16_t)offenders->n;
    } else if (offenders->slots[slot] == 0) {
        offenders->is_cut = true;
    }
    pthread_mutex_unlock(&offenders->lock);
}

size_t offenders_take(struct offenders *offenders, struct offender *rows, bool *is_cut)
{
    pthread_mutex_lock(&offenders->lock);
    atomic_fetch_add_explicit(&offenders->taken, 1, memory_order_relaxed);
    size_t n = offenders->n;
    *is_cut = offenders->is_cut;
    memcpy(rows, offenders->rows, n * sizeof *rows);
    if (n > 0)
        memset(offenders->slots, 0, sizeof offenders->slots);
    offenders->n = 0;
    offenders->is_cut = false;
    pthread_mutex_unlock(&offenders->lock);
    return n;
}
