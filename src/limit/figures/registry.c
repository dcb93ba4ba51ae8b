#include "limit/figures/registry.h"

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
#define TABLE_SIZE (2 * REGISTRY_POLICIES_MAX)
#define NOWHERE SLOT_NOWHERE

/* One limit of a policy. */
struct entry {
    char line[LINE_MAX + 1];
    uint8_t scope;
    uint16_t position;
    uint16_t slot;
    /* first index of the words of the limit's departures (limit/queue.h); NOWHERE: never needed */
    uint16_t departures;
    uint16_t next; /* 1 + id of the next entry of the policy; 0: none */
};

struct registry {
    struct policy_state **states;
    size_t n_states;
    struct entry *entries; /* by id */
    size_t n_entries;
    /* by number of a policy: 1 + id of the policy's first entry; 0: none */
    uint16_t first[REGISTRY_POLICIES_MAX];
    uint16_t table[TABLE_SIZE]; /* by hash of a policy's name: the policy's number + 1; 0: free */
    uint64_t order;             /* order (limit/rate_table.h) of the last set of rules */
    bool is_changed;            /* the rate of an index has changed */
};

_Static_assert(REGISTRY_LIMITS_MAX < UINT16_MAX, "an id plus one fits");

struct registry *registry_new(void)
{
    return mem_zalloc(1, sizeof(struct registry));
}

void registry_free(struct registry *registry)
{
    if (registry == NULL)
        return;
    for (size_t i = 0; i < registry->n_states; i++) {
        subject_free_detached(registry->states[i]->everybody);
        subject_free_detached(registry->states[i]->overflow);
        observed_free(registry->states[i]->observed);
        for (int scope = 0; scope < SCOPE_COUNT; scope++)
            free(registry->states[i]->rates[scope]);
        free(registry->states[i]);
    }
    free(registry->states);
    free(registry->entries);
    free(registry);
}

/* The table entry of the policy with that name, or the free entry for the policy. */
static uint16_t *registry_spot_of(struct registry *registry, struct slice name)
{
    size_t at = (size_t)hash_bytes((struct hash_key){0, 0}, name) % TABLE_SIZE;
    while (registry->table[at] != 0 &&
           !slice_eq(name, slice_str(registry->states[registry->table[at] - 1]->name)))
        at = (at + 1) % TABLE_SIZE;
    return &registry->table[at];
}

struct policy_state *registry_policy(struct registry *registry, struct slice name)
{
    uint16_t *spot = registry_spot_of(registry, name);
    if (*spot != 0)
        return registry->states[*spot - 1];
    if (registry->n_states == REGISTRY_POLICIES_MAX)
        return NULL;
    struct policy_state *policy_state = mem_zalloc(1, sizeof *policy_state);
    snprintf(policy_state->name, sizeof policy_state->name, "%.*s", (int)name.len, name.at);
    policy_state->name_len = (uint8_t)strlen(policy_state->name);
    policy_state->number = (uint16_t)registry->n_states;
    policy_state->observed = observed_new();
    policy_state->overflow = subject_new_lasting(policy_state, PER_SUBJECT, SLICE("overflow"));
    registry->states =
        mem_realloc(registry->states, registry->n_states + 1, sizeof(struct policy_state *));
    registry->states[registry->n_states++] = policy_state;
    *spot = (uint16_t)registry->n_states;
    return policy_state;
}

size_t registry_count(const struct registry *registry)
{
    return registry->n_states;
}

static struct entry *registry_find(struct registry *registry,
                                   const struct policy_state *policy_state, struct slice line,
                                   const struct limit *limit)
{
    for (uint16_t id = registry->first[policy_state->number]; id != 0;
         id = registry->entries[id - 1].next) {
        struct entry *entry = &registry->entries[id - 1];
        if (entry->scope == limit->scope && entry->position == limit->position &&
            slice_eq(line, slice_str(entry->line)))
            return entry;
    }
    return NULL;
}

/* Allocates n adjacent indexes for that scope. Returns the first; NOWHERE: too many. */
static uint16_t add_slots(struct policy_state *policy_state, uint8_t scope, uint16_t n)
{
    uint16_t first = atomic_load_explicit(&policy_state->slots[scope], memory_order_relaxed);
    if (first + n > REGISTRY_SLOTS_MAX)
        return NOWHERE;
    policy_state->rates[scope] =
        mem_realloc(policy_state->rates[scope], first + (size_t)n, sizeof(struct slot_rate));
    memset(policy_state->rates[scope] + first, 0, n * sizeof(struct slot_rate));
    atomic_store_explicit(&policy_state->slots[scope], (uint16_t)(first + n), memory_order_release);
    return first;
}

static struct entry *registry_add(struct registry *registry, struct policy_state *policy_state,
                                  struct slice line, const struct limit *limit)
{
    if (registry->n_entries == REGISTRY_LIMITS_MAX || line.len > LINE_MAX)
        return NULL;
    uint16_t slot = add_slots(policy_state, limit->scope, 1);
    if (slot == NOWHERE)
        return NULL;
    if (registry->n_entries % ENTRIES_STEP == 0)
        registry->entries = mem_realloc(registry->entries, registry->n_entries + ENTRIES_STEP,
                                        sizeof *registry->entries);
    struct entry *entry = &registry->entries[registry->n_entries++];
    *entry = (struct entry){
        .scope = limit->scope,
        .position = limit->position,
        .slot = slot,
        .departures = NOWHERE,
        .next = registry->first[policy_state->number],
    };
    memcpy(entry->line, line.at, line.len);
    registry->first[policy_state->number] = (uint16_t)registry->n_entries;
    return entry;
}

/* From now on debts at that index drain at the rate and burst of this limit. */
static void note_rate(struct registry *registry, const struct policy_state *policy_state,
                      const struct limit *limit)
{
    struct slot_rate *slot = &policy_state->rates[limit->scope][limit->slot];
    const struct rate before = slot->rate;
    slot_rate_set(slot, limit);
    registry->is_changed |= before.count != 0 &&
                            (before.count != slot->rate.count || before.burst != slot->rate.burst ||
                             before.period_ns != slot->rate.period_ns);
}

uint64_t registry_next_order(struct registry *registry)
{
    /*
     * Skips one number, which the rates of blocks get. All other rates replace the rates of blocks:
     * limit/policy/exceptions.c.
     */
    return registry->order += 2;
}

struct rate_table *registry_rates(const struct policy_state *policy_state, enum scope scope,
                                  uint64_t order)
{
    return rate_table_new(order, policy_state->rates[scope],
                          policy_state_slots(policy_state, scope));
}

bool registry_take_changed(struct registry *registry)
{
    bool is_changed = registry->is_changed;
    registry->is_changed = false;
    return is_changed;
}

bool registry_enter(struct registry *registry, struct policy_state *policy_state, struct slice line,
                    struct limit *limit)
{
    struct entry *entry = registry_find(registry, policy_state, line, limit);
    if (entry == NULL)
        entry = registry_add(registry, policy_state, line, limit);
    if (entry == NULL)
        return false;
    if (limit_has_positions(limit) && entry->departures == NOWHERE)
        entry->departures = add_slots(policy_state, limit->scope, DEPARTURE_WORDS);
    if (limit_has_positions(limit) && entry->departures == NOWHERE)
        return false;
    limit->slot = entry->slot;
    limit->departures = entry->departures;
    limit->id = (uint16_t)(entry - registry->entries);
    note_rate(registry, policy_state, limit);
    if (limit->scope == PER_POLICY && policy_state->everybody == NULL)
        policy_state->everybody = subject_new_lasting(policy_state, PER_POLICY, SLICE(""));
    if (policy_state->everybody != NULL)
        subject_grow_lasting(policy_state->everybody);
    subject_grow_lasting(policy_state->overflow);
    return true;
}

struct limit_counters *limit_counters_new(void)
{
    return mem_zalloc(REGISTRY_LIMITS_MAX, sizeof(struct limit_counters));
}
