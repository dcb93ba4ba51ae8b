#include "limit/figures/ledger.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"
#include "limit/figures/observed.h"
#include "limit/queue.h"
#include "limit/rate_table.h"
#include "limit/subject.h"

#define LINE_MAX 96
#define ENTRIES_STEP 256
#define TABLE_SIZE (2 * LEDGER_POLICIES_MAX)
#define NOWHERE SLOT_NOWHERE

/* One limit of a policy. */
struct entry {
    char line[LINE_MAX + 1];
    uint8_t scope;
    uint16_t position;
    uint16_t slot;
    uint16_t departures; /* first index of its departure's words; NOWHERE: never needed */
    uint16_t next;       /* 1 + id of the next entry of the policy; 0: none */
};

struct ledger {
    struct record **records;
    size_t n_records;
    struct entry *entries; /* by id */
    size_t n_entries;
    /* by number of the policy: 1 + id of its first entry; 0: none */
    uint16_t first[LEDGER_POLICIES_MAX];
    uint16_t table[TABLE_SIZE]; /* by hash of a policy's name: its number + 1; 0: free */
    uint64_t order;             /* of the last set of rules */
    bool is_changed;            /* the rate of an index has changed */
};

_Static_assert(LEDGER_LIMITS_MAX < UINT16_MAX, "an id plus one fits");

struct ledger *ledger_new(void)
{
    return mem_zalloc(1, sizeof(struct ledger));
}

void ledger_free(struct ledger *ledger)
{
    if (ledger == NULL)
        return;
    for (size_t i = 0; i < ledger->n_records; i++) {
        subject_free_detached(ledger->records[i]->everybody);
        subject_free_detached(ledger->records[i]->overflow);
        observed_free(ledger->records[i]->observed);
        for (int scope = 0; scope < SCOPE_COUNT; scope++)
            free(ledger->records[i]->rates[scope]);
        free(ledger->records[i]);
    }
    free(ledger->records);
    free(ledger->entries);
    free(ledger);
}

/* The entry in the table of the policy of that name, or the free entry for it. */
static uint16_t *spot_of(struct ledger *ledger, struct slice name)
{
    size_t at = (size_t)hash_bytes((struct hash_key){0, 0}, name) % TABLE_SIZE;
    while (ledger->table[at] != 0 && !slice_eq(name, slice_str(ledger->records[ledger->table[at] - 1]->name)))
        at = (at + 1) % TABLE_SIZE;
    return &ledger->table[at];
}

struct record *ledger_record(struct ledger *ledger, struct slice name)
{
    uint16_t *spot = spot_of(ledger, name);
    if (*spot != 0)
        return ledger->records[*spot - 1];
    if (ledger->n_records == LEDGER_POLICIES_MAX)
        return NULL;
    struct record *record = mem_zalloc(1, sizeof *record);
    snprintf(record->name, sizeof record->name, "%.*s", (int)name.len, name.at);
    record->name_len = (uint8_t)strlen(record->name);
    record->number = (uint16_t)ledger->n_records;
    record->observed = observed_new();
    record->overflow = subject_new_lasting(record, PER_SUBJECT, SLICE("overflow"));
    ledger->records = mem_realloc(ledger->records, ledger->n_records + 1, sizeof(struct record *));
    ledger->records[ledger->n_records++] = record;
    *spot = (uint16_t)ledger->n_records;
    return record;
}

size_t ledger_records(const struct ledger *ledger)
{
    return ledger->n_records;
}

static struct entry *find(struct ledger *ledger, const struct record *record, struct slice line,
                          const struct limit *limit)
{
    for (uint16_t id = ledger->first[record->number]; id != 0; id = ledger->entries[id - 1].next) {
        struct entry *entry = &ledger->entries[id - 1];
        if (entry->scope == limit->scope && entry->position == limit->position &&
            slice_eq(line, slice_str(entry->line)))
            return entry;
    }
    return NULL;
}

/* Allocates n adjacent indexes for that scope. Returns the first; NOWHERE: too many. */
static uint16_t add_slots(struct record *record, uint8_t scope, uint16_t n)
{
    uint16_t first = atomic_load_explicit(&record->slots[scope], memory_order_relaxed);
    if (first + n > LEDGER_SLOTS_MAX)
        return NOWHERE;
    record->rates[scope] = mem_realloc(record->rates[scope], first + (size_t)n, sizeof(struct slot_rate));
    memset(record->rates[scope] + first, 0, n * sizeof(struct slot_rate));
    atomic_store_explicit(&record->slots[scope], (uint16_t)(first + n), memory_order_release);
    return first;
}

static struct entry *add(struct ledger *ledger, struct record *record, struct slice line, const struct limit *limit)
{
    if (ledger->n_entries == LEDGER_LIMITS_MAX || line.len > LINE_MAX)
        return NULL;
    uint16_t slot = add_slots(record, limit->scope, 1);
    if (slot == NOWHERE)
        return NULL;
    if (ledger->n_entries % ENTRIES_STEP == 0)
        ledger->entries = mem_realloc(ledger->entries, ledger->n_entries + ENTRIES_STEP, sizeof *ledger->entries);
    struct entry *entry = &ledger->entries[ledger->n_entries++];
    *entry = (struct entry){
        .scope = limit->scope,
        .position = limit->position,
        .slot = slot,
        .departures = NOWHERE,
        .next = ledger->first[record->number],
    };
    memcpy(entry->line, line.at, line.len);
    ledger->first[record->number] = (uint16_t)ledger->n_entries;
    return entry;
}

/* From now on debts at that index drain at the rate and burst of this limit. */
static void note_rate(struct ledger *ledger, const struct record *record, const struct limit *limit)
{
    struct slot_rate *slot = &record->rates[limit->scope][limit->slot];
    const struct rate before = slot->rate;
    slot_rate_set(slot, limit);
    ledger->is_changed |= before.count != 0 && (before.count != slot->rate.count || before.burst != slot->rate.burst ||
                                                before.period_ns != slot->rate.period_ns);
}

uint64_t ledger_next_order(struct ledger *ledger)
{
    /*
     * The number between is for the rates of blocks, which all other rates replace:
     * limit/policy/exceptions.c.
     */
    return ledger->order += 2;
}

struct rate_table *ledger_rates(const struct record *record, enum scope scope, uint64_t order)
{
    return rate_table_new(order, record->rates[scope], record_slots(record, scope));
}

bool ledger_take_changed(struct ledger *ledger)
{
    bool is_changed = ledger->is_changed;
    ledger->is_changed = false;
    return is_changed;
}

bool ledger_enter(struct ledger *ledger, struct record *record, struct slice line, struct limit *limit)
{
    struct entry *entry = find(ledger, record, line, limit);
    if (entry == NULL)
        entry = add(ledger, record, line, limit);
    if (entry == NULL)
        return false;
    if (limit_has_places(limit) && entry->departures == NOWHERE)
        entry->departures = add_slots(record, limit->scope, DEPARTURE_WORDS);
    if (limit_has_places(limit) && entry->departures == NOWHERE)
        return false;
    limit->slot = entry->slot;
    limit->departures = entry->departures;
    limit->id = (uint16_t)(entry - ledger->entries);
    note_rate(ledger, record, limit);
    if (limit->scope == PER_POLICY && record->everybody == NULL)
        record->everybody = subject_new_lasting(record, PER_POLICY, SLICE(""));
    if (record->everybody != NULL)
        subject_grow_lasting(record->everybody);
    subject_grow_lasting(record->overflow);
    return true;
}

struct limit_counters *limit_counters_new(void)
{
    return mem_zalloc(LEDGER_LIMITS_MAX, sizeof(struct limit_counters));
}
