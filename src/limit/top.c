/*
 * A table of counters for each metric, and a small hash index over its names.
 *
 * A table's counters [0, n) are in use. The index has twice as many slots as counters, so every search ends at a free
 * one; 0 is a free slot, else it holds a counter's index plus one. Sums are in units of what counted 1 at the base
 * time, which is less than a half-life ago whenever sums are read: as it moves on, sums are halved.
 */
#include "limit/top.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

#define SLOTS_BITS 8
#define SLOTS (1 << SLOTS_BITS) /* 2 * TOP_SUBJECTS: a counter's number fits a byte */
#define MISSING TOP_SUBJECTS
#define LN2 0.69314718055994530942

struct name {
    uint64_t hash;
    uint16_t subject_len;
    uint16_t policy_len;
    char subject[SUBJECT_NAME_MAX];
    char policy[TOP_POLICY_MAX];
};

struct table {
    double sums[TOP_SUBJECTS]; /* apart from the names: the smallest must be found fast */
    double overs[TOP_SUBJECTS];
    struct name names[TOP_SUBJECTS];
    size_t n;
    uint8_t slots[SLOTS];
};

struct top {
    pthread_mutex_t lock;
    uint64_t base_ns;
    uint64_t now_ns; /* the time of `weight`, not before the base */
    double weight;   /* of what is added now: 1 at the base, 2 a half-life later */
    struct table tables[TOP_BY_COUNT];
};

static const struct {
    const char *name;
    const char *field;
} words[TOP_BY_COUNT] = {
    [TOP_COMMANDS] = {"commands", "commands_per_s"},
    [TOP_REFUSED] = {"refused", "refused_per_s"},
    [TOP_BYTES] = {"bytes", "bytes_per_s"},
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
        term *= x * LN2 / i;
        sum += term;
    }
    return sum;
}

static void scale(struct top *top, double factor)
{
    for (size_t by = 0; by < TOP_BY_COUNT; by++)
        for (size_t i = 0; i < top->tables[by].n; i++) {
            top->tables[by].sums[i] *= factor;
            top->tables[by].overs[i] *= factor;
        }
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

static void move_to(struct top *top, uint64_t now_ns)
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

struct key {
    uint64_t hash;
    struct slice subject;
    struct slice policy;
};

static struct slice cut(struct slice text, size_t most)
{
    return slice_of(text.at, text.len < most ? text.len : most);
}

/* Multiplied, so that the caller's hash need not be good in particular bits. */
static size_t first_slot(uint64_t hash)
{
    return (size_t)(hash * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SLOTS_BITS));
}

static size_t after(size_t slot)
{
    return (slot + 1) % SLOTS;
}

static bool is_named(const struct name *name, const struct key *key)
{
    return name->hash == key->hash && slice_eq(slice_of(name->subject, name->subject_len), key->subject) &&
           slice_eq(slice_of(name->policy, name->policy_len), key->policy);
}

static size_t find(const struct table *table, const struct key *key)
{
    for (size_t slot = first_slot(key->hash); table->slots[slot] != 0; slot = after(slot))
        if (is_named(&table->names[table->slots[slot] - 1], key))
            return table->slots[slot] - UINT32_C(1);
    return MISSING;
}

static void index_put(struct table *table, size_t counter)
{
    size_t slot = first_slot(table->names[counter].hash);
    while (table->slots[slot] != 0)
        slot = after(slot);
    table->slots[slot] = (uint8_t)(counter + 1);
}

/* Free a slot, and move entries behind it up that would not be found any more. */
static void index_take(struct table *table, size_t counter)
{
    size_t hole = first_slot(table->names[counter].hash);
    while (table->slots[hole] != counter + 1)
        hole = after(hole);
    for (size_t slot = after(hole); table->slots[slot] != 0; slot = after(slot)) {
        size_t first = first_slot(table->names[table->slots[slot] - 1].hash);
        if ((slot - first) % SLOTS < (slot - hole) % SLOTS)
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
static size_t smallest(const struct table *table)
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
static size_t claim(struct table *table, const struct key *key)
{
    size_t i = table->n;
    if (i < TOP_SUBJECTS) {
        table->n++;
        table->sums[i] = 0;
    } else {
        i = smallest(table);
        index_take(table, i);
    }
    table->overs[i] = table->sums[i];
    struct name *name = &table->names[i];
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

static void add(struct table *table, const struct key *key, double amount)
{
    size_t i = find(table, key);
    if (i == MISSING)
        i = claim(table, key);
    table->sums[i] += amount;
}

void top_add_each(struct top *top, struct slice policy, struct slice subject, uint64_t hash,
                  const uint64_t amounts[TOP_BY_COUNT], uint64_t now_ns)
{
    const struct key key = {hash, cut(subject, SUBJECT_NAME_MAX), cut(policy, TOP_POLICY_MAX)};
    pthread_mutex_lock(&top->lock);
    move_to(top, now_ns);
    for (int by = 0; by < TOP_BY_COUNT; by++)
        if (amounts[by] > 0)
            add(&top->tables[by], &key, (double)amounts[by] * top->weight);
    pthread_mutex_unlock(&top->lock);
}

void top_add(struct top *top, enum top_by by, struct slice policy, struct slice subject, uint64_t hash, uint64_t amount,
             uint64_t now_ns)
{
    uint64_t amounts[TOP_BY_COUNT] = {0};
    amounts[by] = amount;
    top_add_each(top, policy, subject, hash, amounts, now_ns);
}

/* ---- all tables together ---- */

/* One counter's name, and what it counts more than its table's floor. */
struct found {
    struct name name;
    double sum;
    double over;
};

static int by_name(const void *one, const void *other)
{
    const struct name *a = &((const struct found *)one)->name;
    const struct name *b = &((const struct found *)other)->name;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    if (a->subject_len != b->subject_len)
        return a->subject_len - b->subject_len;
    if (a->policy_len != b->policy_len)
        return a->policy_len - b->policy_len;
    int order = memcmp(a->subject, b->subject, a->subject_len);
    return order != 0 ? order : memcmp(a->policy, b->policy, a->policy_len);
}

static int by_sum(const void *one, const void *other)
{
    const struct found *a = one;
    const struct found *b = other;
    if (a->sum > b->sum || a->sum < b->sum)
        return a->sum > b->sum ? -1 : 1;
    return by_name(one, other);
}

/* Copy the counters of one table; add its floor, the most that a subject missing from it can have. */
static size_t copy(struct top *top, enum top_by by, uint64_t now_ns, struct found *out, double *floors)
{
    const struct table *table = &top->tables[by];
    pthread_mutex_lock(&top->lock);
    move_to(top, now_ns);
    double floor = table->n == TOP_SUBJECTS ? table->sums[smallest(table)] : 0;
    for (size_t i = 0; i < table->n; i++) {
        out[i].name = table->names[i];
        out[i].sum = (table->sums[i] - floor) / top->weight;
        out[i].over = (table->overs[i] - floor) / top->weight;
    }
    *floors += floor / top->weight;
    size_t n = table->n;
    pthread_mutex_unlock(&top->lock);
    return n;
}

/* Add up neighbours with the same name. Returns how many entries remain. */
static size_t fold(struct found *found, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || by_name(&found[kept - 1], &found[i]) != 0) {
            found[kept++] = found[i];
            continue;
        }
        found[kept - 1].sum += found[i].sum;
        found[kept - 1].over += found[i].over;
    }
    return kept;
}

/* The rate that keeps a sum constant is ln 2 of it every half-life; rounded. */
static uint64_t per_s(double sum)
{
    double rate = sum * LN2 * 1e9 / (double)TOP_HALF_LIFE_NS + 0.5;
    return rate < 0x1p63 ? (uint64_t)rate : UINT64_C(1) << 63;
}

static void describe(const struct found *found, double floors, struct top_entry *out)
{
    const struct name *name = &found->name;
    memcpy(out->subject, name->subject, sizeof out->subject);
    memcpy(out->policy, name->policy, sizeof out->policy);
    out->subject_len = name->subject_len;
    out->policy_len = name->policy_len;
    out->per_s = per_s(found->sum + floors);
    out->over_per_s = per_s(found->over + floors);
}

size_t top_heaviest(struct top *const *tops, size_t n_tops, enum top_by by, uint64_t now_ns, struct top_entry *out,
                    size_t max)
{
    struct found *found = malloc((n_tops + 1) * TOP_SUBJECTS * sizeof *found);
    if (found == NULL)
        return 0;
    size_t n = 0;
    double floors = 0;
    for (size_t i = 0; i < n_tops; i++)
        n += copy(tops[i], by, now_ns, found + n, &floors);
    qsort(found, n, sizeof *found, by_name);
    n = fold(found, n);
    qsort(found, n, sizeof *found, by_sum);
    size_t given = 0;
    while (given < n && given < max && found[given].sum + floors >= 0.5) {
        describe(&found[given], floors, &out[given]);
        given++;
    }
    free(found);
    return given;
}
