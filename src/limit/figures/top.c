#include "limit/figures/top.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

/*
 * Counters [0, n) of a table are in use. The index has twice as many entries as the table has
 * counters: every search ends at a free entry. An entry is 0 if free, otherwise the number of a
 * counter plus one.
 *
 * Sums are in units of an addition of 1 at the base time. When sums are read, the base is less than
 * a half-life ago. As the base moves on, sums are halved.
 */
#define TOP_SLOTS_BITS 8
/* 2 * TOP_SUBJECTS; the number of a counter fits in a byte */
#define TOP_SLOTS (1 << TOP_SLOTS_BITS)
#define TOP_MISSING TOP_SUBJECTS
#define TOP_LN2 0.69314718055994530942

struct top_name {
    uint64_t hash;
    uint16_t subject_len;
    uint16_t policy_len;
    char subject[SUBJECT_NAME_MAX];
    char policy[TOP_POLICY_MAX];
};

struct top_table {
    double sums[TOP_SUBJECTS]; /* separate from the names: speeds up the search for the smallest */
    double overs[TOP_SUBJECTS];
    double starts[TOP_SUBJECTS];     /* the part of the sum that existed at since_ns */
    uint64_t since_ns[TOP_SUBJECTS]; /* when the subject appeared or reappeared */
    uint64_t last_ns[TOP_SUBJECTS];  /* last addition */
    struct top_name names[TOP_SUBJECTS];
    size_t n;
    uint8_t slots[TOP_SLOTS];
};

/* The limits that refused one subject, by Space-Saving too; a sum of 0 is a free counter. */
struct top_refusers {
    double sums[TOP_REFUSERS];
    uint16_t limits[TOP_REFUSERS];
};

struct top {
    pthread_mutex_t lock;
    uint64_t base_ns;
    uint64_t now_ns; /* time of `weight`, not before base_ns */
    double weight;   /* factor of an addition at now_ns: 1 at the base, 2 a half-life later */
    struct top_table tables[TOP_BY_COUNT];
    struct top_refusers refusers[TOP_SUBJECTS]; /* by counter of TOP_REFUSED */
};

struct top_key {
    uint64_t hash;
    struct slice subject;
    struct slice policy;
};

/*
 * ---- counting: a table of counters for each metric, with a small hash index over the names ----
 */

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

/* ---- decay ---- */

/*
 * 2^x for 0 <= x < 1: the series of e^(x ln 2) up to its 14th power, accurate to 2^-45. Avoids the
 * mathematics library.
 */
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
static double top_left_after(uint64_t ns)
{
    double left = 1 / power_of_2((double)(ns % TOP_HALF_LIFE_NS) / (double)TOP_HALF_LIFE_NS);
    for (uint64_t i = ns / TOP_HALF_LIFE_NS; i > 0 && left > 0; i--)
        left /= 2;
    return left;
}

static void top_scale(struct top *top, double factor)
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
    top_scale(top, factor);
    top->base_ns += half_lives * TOP_HALF_LIFE_NS;
}

/*
 * Moves shorter than this are skipped. A shorter move changes no rate by a ten-thousandth, and
 * computing the weight is the largest cost.
 */
#define TICK_NS NS_PER_MS

/* Moves now_ns of `top` forward, never back, under the lock. Sums are read as of top->now_ns. */
static void top_move_to(struct top *top, uint64_t now_ns)
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

static struct slice top_cut(struct slice text, size_t most)
{
    return slice_of(text.at, text.len < most ? text.len : most);
}

/* The multiplication tolerates hashes with poor bits. */
static size_t top_first_slot(uint64_t hash)
{
    return (size_t)(hash * UINT64_C(0x9e3779b97f4a7c15) >> (64 - TOP_SLOTS_BITS));
}

static size_t after(size_t slot)
{
    return (slot + 1) % TOP_SLOTS;
}

static bool top_is_named(const struct top_name *name, const struct top_key *key)
{
    return name->hash == key->hash &&
           slice_eq(slice_of(name->subject, name->subject_len), key->subject) &&
           slice_eq(slice_of(name->policy, name->policy_len), key->policy);
}

/* The counter of the key; TOP_MISSING: none. Under the lock. */
static size_t top_find(const struct top_table *table, const struct top_key *key)
{
    for (size_t slot = top_first_slot(key->hash); table->slots[slot] != 0; slot = after(slot))
        if (top_is_named(&table->names[table->slots[slot] - 1], key))
            return table->slots[slot] - UINT32_C(1);
    return TOP_MISSING;
}

static void top_index_put(struct top_table *table, size_t counter)
{
    size_t slot = top_first_slot(table->names[counter].hash);
    while (table->slots[slot] != 0)
        slot = after(slot);
    table->slots[slot] = (uint8_t)(counter + 1);
}

/* Frees an entry of the index, and moves up later entries that could not be found any more. */
static void index_take(struct top_table *table, size_t counter)
{
    size_t hole = top_first_slot(table->names[counter].hash);
    while (table->slots[hole] != counter + 1)
        hole = after(hole);
    for (size_t slot = after(hole); table->slots[slot] != 0; slot = after(slot)) {
        size_t first = top_first_slot(table->names[table->slots[slot] - 1].hash);
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
 * The smallest counter of a full table. The search runs in four strands, without a branch that
 * depends on sums. A plain loop takes ten times as long.
 */
static size_t top_smallest(const struct top_table *table)
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

/* The step of Space-Saving: gives the smallest counter to a new subject. */
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
    top_index_put(table, i);
    return i;
}

/* Adds to the counter of the limit. Under the lock. */
static void top_add_refuser(struct top_refusers *refusers, uint32_t limit, double amount)
{
    size_t index = 0;
    for (size_t i = 0; i < TOP_REFUSERS; i++) {
        if (refusers->sums[i] > 0 && refusers->limits[i] == limit) {
            index = i;
            break;
        }
        if (refusers->sums[i] < refusers->sums[index])
            index = i;
    }
    refusers->limits[index] = (uint16_t)limit;
    refusers->sums[index] += amount;
}

static void add(struct top *top, enum top_by by, const struct top_key *key, double amount,
                uint32_t refused_by)
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
    const struct top_key key = {hash, top_cut(subject, SUBJECT_NAME_MAX),
                                top_cut(policy, TOP_POLICY_MAX)};
    pthread_mutex_lock(&top->lock);
    top_move_to(top, now_ns);
    for (int by = 0; by < TOP_BY_COUNT; by++)
        if (amounts[by] > 0)
            add(top, (enum top_by)by, &key, (double)amounts[by] * top->weight, refused_by);
    pthread_mutex_unlock(&top->lock);
}

void top_add(struct top *top, enum top_by by, struct slice policy, struct slice subject,
             uint64_t hash, uint64_t amount, uint64_t now_ns)
{
    uint64_t amounts[TOP_BY_COUNT] = {0};
    amounts[by] = amount;
    top_add_each(top, policy, subject, hash, amounts, TOP_NO_LIMIT, now_ns);
}

/* ---- ranking: the counters of all tables together, and further figures of the heaviest ---- */

/* One counter: its name, and its values above the floor of its table. */
struct found {
    struct top_name name;
    double sum;
    double over;
    double start;
    uint64_t since_ns;
    double rate; /* rank; computed when all counters are copied */
};

static int by_name(const void *one, const void *other)
{
    const struct top_name *a = &((const struct found *)one)->name;
    const struct top_name *b = &((const struct found *)other)->name;
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    if (a->subject_len != b->subject_len)
        return a->subject_len - b->subject_len;
    if (a->policy_len != b->policy_len)
        return a->policy_len - b->policy_len;
    int order = memcmp(a->subject, b->subject, a->subject_len);
    return order != 0 ? order : memcmp(a->policy, b->policy, a->policy_len);
}

static int by_rate(const void *one, const void *other)
{
    const struct found *a = one;
    const struct found *b = other;
    if (a->rate > b->rate || a->rate < b->rate)
        return a->rate > b->rate ? -1 : 1;
    return by_name(one, other);
}

/*
 * Copies the counters of one table. Adds its floor to *floors: the most that a subject absent from
 * the table can have.
 */
static size_t top_copy(struct top *top, enum top_by by, uint64_t now_ns, struct found *out,
                       double *floors)
{
    const struct top_table *table = &top->tables[by];
    pthread_mutex_lock(&top->lock);
    top_move_to(top, now_ns);
    double floor = table->n == TOP_SUBJECTS ? table->sums[top_smallest(table)] : 0;
    for (size_t i = 0; i < table->n; i++) {
        out[i].name = table->names[i];
        out[i].sum = (table->sums[i] - floor) / top->weight;
        out[i].over = (table->overs[i] - floor) / top->weight;
        out[i].start = (table->starts[i] - floor) / top->weight;
        out[i].since_ns = table->since_ns[i];
    }
    *floors += floor / top->weight;
    size_t n = table->n;
    pthread_mutex_unlock(&top->lock);
    return n;
}

/* Merges neighbours of equal name. Returns the number of entries that remain. */
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
        found[kept - 1].start += found[i].start;
        if (found[i].since_ns < found[kept - 1].since_ns)
            found[kept - 1].since_ns = found[i].since_ns;
    }
    return kept;
}

#define SHORTEST_NS NS_PER_S /* a new subject counts as if it were present for one second */

static uint64_t top_age_of(const struct found *found, uint64_t now_ns)
{
    uint64_t age_ns = now_ns > found->since_ns ? now_ns - found->since_ns : 0;
    return age_ns > SHORTEST_NS ? age_ns : SHORTEST_NS;
}

/*
 * The factor by which the sum of a steady stream without a beginning exceeds the sum of an equal
 * stream of this age.
 */
static double newness_of(const struct found *found, uint64_t now_ns)
{
    return 1 / (1 - top_left_after(top_age_of(found, now_ns)));
}

static void set_rate(struct found *found, uint64_t now_ns)
{
    found->rate = (found->sum - found->start) * newness_of(found, now_ns) + found->start;
}

/* The rate that keeps a sum constant: ln 2 of the sum every half-life; rounded. */
static uint64_t top_per_s(double sum)
{
    double rate = sum * TOP_LN2 * 1e9 / (double)TOP_HALF_LIFE_NS + 0.5;
    return rate < 0x1p63 ? (uint64_t)rate : UINT64_C(1) << 63;
}

/* ---- further figures of one subject ---- */

static struct top_key top_key_of(const struct top_name *name)
{
    return (struct top_key){name->hash, slice_of(name->subject, name->subject_len),
                            slice_of(name->policy, name->policy_len)};
}

/* Adds the sum of counter i to *sum. */
static void gather(const struct top *top, enum top_by by, size_t i, struct found *sum)
{
    const struct top_table *table = &top->tables[by];
    sum->sum += table->sums[i] / top->weight;
    sum->start += table->starts[i] / top->weight;
    if (sum->since_ns == 0 || table->since_ns[i] < sum->since_ns)
        sum->since_ns = table->since_ns[i];
}

/* Adds the refusing limits of counter i to *sum. */
static void gather_refusers(const struct top *top, size_t i, struct top_refusers *sum)
{
    for (size_t j = 0; j < TOP_REFUSERS; j++)
        if (top->refusers[i].sums[j] > 0)
            top_add_refuser(sum, top->refusers[i].limits[j],
                            top->refusers[i].sums[j] / top->weight);
}

static uint32_t most_refusing(const struct top_refusers *refusers)
{
    size_t most = 0;
    for (size_t i = 1; i < TOP_REFUSERS; i++)
        if (refusers->sums[i] > refusers->sums[most])
            most = i;
    return refusers->sums[most] >= 0.5 ? refusers->limits[most] : TOP_NO_LIMIT;
}

static void top_look_up(struct top *const *tops, size_t n_tops, const struct top_name *name,
                        uint64_t now_ns, struct top_entry *out)
{
    const struct top_key key = top_key_of(name);
    struct top_refusers refusers = {0};
    struct found share = {0};
    for (size_t t = 0; t < n_tops; t++) {
        struct top *top = tops[t];
        pthread_mutex_lock(&top->lock);
        top_move_to(top, now_ns);
        size_t i = top_find(&top->tables[TOP_REFUSED], &key);
        if (i != TOP_MISSING)
            gather_refusers(top, i, &refusers);
        i = top_find(&top->tables[TOP_SHARE], &key);
        if (i != TOP_MISSING)
            gather(top, TOP_SHARE, i, &share);
        pthread_mutex_unlock(&top->lock);
    }
    set_rate(&share, now_ns);
    out->refused_by = most_refusing(&refusers);
    out->share_us_per_s = top_per_s(share.rate);
}

static void top_describe(const struct found *found, double floors, uint64_t now_ns,
                         struct top_entry *out)
{
    const struct top_name *name = &found->name;
    memcpy(out->subject, name->subject, sizeof out->subject);
    memcpy(out->policy, name->policy, sizeof out->policy);
    out->subject_len = name->subject_len;
    out->policy_len = name->policy_len;
    out->per_s = top_per_s(found->rate + floors);
    out->over_per_s = top_per_s(found->over + floors);
    out->newness = newness_of(found, now_ns);
    out->over_ns =
        top_age_of(found, now_ns) < TOP_WINDOW_NS ? top_age_of(found, now_ns) : TOP_WINDOW_NS;
}

size_t top_heaviest(struct top *const *tops, size_t n_tops, enum top_by by, uint64_t now_ns,
                    struct top_entry *out, size_t max)
{
    struct found *found = malloc((n_tops + 1) * TOP_SUBJECTS * sizeof *found);
    if (found == NULL)
        return 0;
    size_t n = 0;
    double floors = 0;
    for (size_t i = 0; i < n_tops; i++)
        n += top_copy(tops[i], by, now_ns, found + n, &floors);
    qsort(found, n, sizeof *found, by_name);
    n = fold(found, n);
    for (size_t i = 0; i < n; i++)
        set_rate(&found[i], now_ns);
    qsort(found, n, sizeof *found, by_rate);
    size_t given = 0;
    for (size_t i = 0; i < n && given < max; i++) {
        if (found[i].sum + floors < 0.5)
            continue;
        top_describe(&found[i], floors, now_ns, &out[given]);
        top_look_up(tops, n_tops, &found[i].name, now_ns, &out[given]);
        given++;
    }
    free(found);
    return given;
}
