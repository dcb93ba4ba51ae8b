/*
 * Counts: a table of counters for each metric, and a small hash index over its names.
 */
#include "limit/figures/top.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"
#include "limit/figures/top_table.h"

static const struct {
    const char *name;
    const char *field;
} words[TOP_BY_COUNT] = {
    [TOP_COMMANDS] = {"commands", "commands_per_s"},
    [TOP_REFUSED] = {"refused", "refused_per_s"},
    [TOP_BYTES] = {"bytes", "bytes_per_s"},
    [TOP_SHARE] = {"share", "share_waited_us_per_s"},
};

const char *top_name(enum top_by by)
{
    return words[by].name;
}

const char *top_field(enum top_by by)
{
    return words[by].field;
}

struct top *top_new(void)
{
    struct top *top = mem_zalloc(1, sizeof *top);
    pthread_mutex_init(&top->lock, NULL);
    top->weight = 1;
    return top;
}

void top_free(struct top *top)
{
    if (top == NULL)
        return;
    pthread_mutex_destroy(&top->lock);
    free(top);
}

void top_forget(struct top *top)
{
    pthread_mutex_lock(&top->lock);
    memset(top->tables, 0, sizeof top->tables);
    pthread_mutex_unlock(&top->lock);
}

/* ---- decay ---- */

/* 2^x for 0 <= x < 1: e^(x ln 2) to its 14th power, good to 2^-45. Spares weir the mathematics library. */
static double power_of_2(double x)
{
    double sum = 1;
    double term = 1;
    for (int i = 1; i <= 14; i++) {
        term *= x * TOP_LN2 / i;
        sum += term;
    }
    return sum;
}

/* 2^-(time / half-life) */
double top_left_after(uint64_t ns)
{
    double left = 1 / power_of_2((double)(ns % TOP_HALF_LIFE_NS) / (double)TOP_HALF_LIFE_NS);
    for (uint64_t i = ns / TOP_HALF_LIFE_NS; i > 0 && left > 0; i--)
        left /= 2;
    return left;
}

static void scale(struct top *top, double factor)
{
    for (size_t by = 0; by < TOP_BY_COUNT; by++)
        for (size_t i = 0; i < top->tables[by].n; i++) {
            top->tables[by].sums[i] *= factor;
            top->tables[by].overs[i] *= factor;
            top->tables[by].starts[i] *= factor;
        }
    for (size_t i = 0; i < top->tables[TOP_REFUSED].n; i++)
        for (size_t j = 0; j < TOP_REFUSERS; j++)
            top->refusers[i].sums[j] *= factor;
}

static void move_base(struct top *top, uint64_t half_lives)
{
    double factor = 1;
    for (uint64_t i = 0; i < half_lives && factor > 0; i++)
        factor /= 2;
    scale(top, factor);
    top->base_ns += half_lives * TOP_HALF_LIFE_NS;
}

/* So little moves no rate by a ten-thousandth, and the weight takes longer to work out than all else. */
#define TICK_NS NS_PER_MS

void top_move_to(struct top *top, uint64_t now_ns)
{
    if (now_ns < top->now_ns + TICK_NS)
        return;
    uint64_t half_lives = (now_ns - top->base_ns) / TOP_HALF_LIFE_NS;
    if (half_lives > 0)
        move_base(top, half_lives);
    top->now_ns = now_ns;
    top->weight = power_of_2((double)(now_ns - top->base_ns) / (double)TOP_HALF_LIFE_NS);
}

/* ---- one table ---- */

static struct slice cut(struct slice text, size_t most)
{
    return slice_of(text.at, text.len < most ? text.len : most);
}

/* Multiplied, so that the caller's hash need not be good in particular bits. */
static size_t first_slot(uint64_t hash)
{
    return (size_t)(hash * UINT64_C(0x9e3779b97f4a7c15) >> (64 - TOP_SLOTS_BITS));
}

static size_t after(size_t slot)
{
    return (slot + 1) % TOP_SLOTS;
}

static bool is_named(const struct top_name *name, const struct top_key *key)
{
    return name->hash == key->hash && slice_eq(slice_of(name->subject, name->subject_len), key->subject) &&
           slice_eq(slice_of(name->policy, name->policy_len), key->policy);
}

size_t top_find(const struct top_table *table, const struct top_key *key)
{
    for (size_t slot = first_slot(key->hash); table->slots[slot] != 0; slot = after(slot))
        if (is_named(&table->names[table->slots[slot] - 1], key))
            return table->slots[slot] - UINT32_C(1);
    return TOP_MISSING;
}

static void index_put(struct top_table *table, size_t counter)
{
    size_t slot = first_slot(table->names[counter].hash);
    while (table->slots[slot] != 0)
        slot = after(slot);
    table->slots[slot] = (uint8_t)(counter + 1);
}

/* Free a slot, and move entries behind it up that would not be found any more. */
static void index_take(struct top_table *table, size_t counter)
{
    size_t hole = first_slot(table->names[counter].hash);
    while (table->slots[hole] != counter + 1)
        hole = after(hole);
    for (size_t slot = after(hole); table->slots[slot] != 0; slot = after(slot)) {
        size_t first = first_slot(table->names[table->slots[slot] - 1].hash);
        if ((slot - first) % TOP_SLOTS < (slot - hole) % TOP_SLOTS)
            continue;
        table->slots[hole] = table->slots[slot];
        hole = slot;
    }
    table->slots[hole] = 0;
}

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

/*
 * Of a full table. In four strands and without a branch that depends on sums: the plain loop takes ten times as long.
 */
size_t top_smallest(const struct top_table *table)
{
    const double *sums = table->sums;
    double least[4] = {sums[0], sums[1], sums[2], sums[3]};
    for (size_t i = 4; i < TOP_SUBJECTS; i += 4)
        for (size_t j = 0; j < 4; j++)
            least[j] = lesser(sums[i + j], least[j]);
    double sum = lesser(lesser(least[0], least[1]), lesser(least[2], least[3]));
    size_t i = 0;
    while (sums[i] > sum)
        i++;
    return i;
}

/* The step of Space-Saving: the smallest counter becomes a newcomer's. */
static size_t claim(struct top_table *table, const struct top_key *key, uint64_t now_ns)
{
    size_t i = table->n;
    if (i < TOP_SUBJECTS) {
        table->n++;
        table->sums[i] = 0;
    } else {
        i = top_smallest(table);
        index_take(table, i);
    }
    table->overs[i] = table->starts[i] = table->sums[i];
    table->since_ns[i] = now_ns;
    struct top_name *name = &table->names[i];
    name->hash = key->hash;
    name->subject_len = (uint16_t)key->subject.len;
    name->policy_len = (uint16_t)key->policy.len;
    if (key->subject.len > 0)
        memcpy(name->subject, key->subject.at, key->subject.len);
    if (key->policy.len > 0)
        memcpy(name->policy, key->policy.at, key->policy.len);
    index_put(table, i);
    return i;
}

void top_add_refuser(struct top_refusers *refusers, uint32_t limit, double amount)
{
    size_t place = 0;
    for (size_t i = 0; i < TOP_REFUSERS; i++) {
        if (refusers->sums[i] > 0 && refusers->limits[i] == limit) {
            place = i;
            break;
        }
        if (refusers->sums[i] < refusers->sums[place])
            place = i;
    }
    refusers->limits[place] = (uint16_t)limit;
    refusers->sums[place] += amount;
}

static void add(struct top *top, enum top_by by, const struct top_key *key, double amount, uint32_t refused_by)
{
    struct top_table *table = &top->tables[by];
    size_t i = top_find(table, key);
    if (i == TOP_MISSING) {
        i = claim(table, key, top->now_ns);
        if (by == TOP_REFUSED)
            top->refusers[i] = (struct top_refusers){0};
    } else if (top->now_ns - table->last_ns[i] >= TOP_SILENCE_NS) {
        table->since_ns[i] = top->now_ns;
        table->starts[i] = table->sums[i];
    }
    table->last_ns[i] = top->now_ns;
    table->sums[i] += amount;
    if (by == TOP_REFUSED && refused_by != TOP_NO_LIMIT)
        top_add_refuser(&top->refusers[i], refused_by, amount);
}

void top_add_each(struct top *top, struct slice policy, struct slice subject, uint64_t hash,
                  const uint64_t amounts[TOP_BY_COUNT], uint32_t refused_by, uint64_t now_ns)
{
    const struct top_key key = {hash, cut(subject, SUBJECT_NAME_MAX), cut(policy, TOP_POLICY_MAX)};
    pthread_mutex_lock(&top->lock);
    top_move_to(top, now_ns);
    for (int by = 0; by < TOP_BY_COUNT; by++)
        if (amounts[by] > 0)
            add(top, (enum top_by)by, &key, (double)amounts[by] * top->weight, refused_by);
    pthread_mutex_unlock(&top->lock);
}

void top_add(struct top *top, enum top_by by, struct slice policy, struct slice subject, uint64_t hash, uint64_t amount,
             uint64_t now_ns)
{
    uint64_t amounts[TOP_BY_COUNT] = {0};
    amounts[by] = amount;
    top_add_each(top, policy, subject, hash, amounts, TOP_NO_LIMIT, now_ns);
}
