/*
 * Ranks: the counters of all tables together, and what else is known of the heaviest.
 */
#include <stdlib.h>

#include "limit/figures/top_table.h"

/* One counter's name, and what it counts more than its table's floor. */
struct found {
    struct top_name name;
    double sum;
    double over;
    double start;
    uint64_t since_ns;
    double rate; /* set when all are known: what it is ranked by */
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

/* Copy the counters of one table; add its floor, the most that a subject missing from it can have. */
static size_t copy(struct top *top, enum top_by by, uint64_t now_ns, struct found *out, double *floors)
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
        found[kept - 1].start += found[i].start;
        if (found[i].since_ns < found[kept - 1].since_ns)
            found[kept - 1].since_ns = found[i].since_ns;
    }
    return kept;
}

#define SHORTEST_NS NS_PER_S /* what has just come is as much as that in one second */

static uint64_t age_of(const struct found *found, uint64_t now_ns)
{
    uint64_t age_ns = now_ns > found->since_ns ? now_ns - found->since_ns : 0;
    return age_ns > SHORTEST_NS ? age_ns : SHORTEST_NS;
}

/* A steady stream that has lasted for an age has gathered so much less than one that has always been there. */
static double newness_of(const struct found *found, uint64_t now_ns)
{
    return 1 / (1 - top_left_after(age_of(found, now_ns)));
}

static void set_rate(struct found *found, uint64_t now_ns)
{
    found->rate = (found->sum - found->start) * newness_of(found, now_ns) + found->start;
}

/* The rate that keeps a sum constant is ln 2 of it every half-life; rounded. */
static uint64_t per_s(double sum)
{
    double rate = sum * TOP_LN2 * 1e9 / (double)TOP_HALF_LIFE_NS + 0.5;
    return rate < 0x1p63 ? (uint64_t)rate : UINT64_C(1) << 63;
}

/* ---- what else is known of one of them ---- */

static struct top_key key_of(const struct top_name *name)
{
    return (struct top_key){name->hash, slice_of(name->subject, name->subject_len),
                            slice_of(name->policy, name->policy_len)};
}

/* Add what this table has counted of the subject. */
static void gather(const struct top *top, enum top_by by, size_t i, struct found *sum)
{
    const struct top_table *table = &top->tables[by];
    sum->sum += table->sums[i] / top->weight;
    sum->start += table->starts[i] / top->weight;
    if (sum->since_ns == 0 || table->since_ns[i] < sum->since_ns)
        sum->since_ns = table->since_ns[i];
}

/* Add up those of one table with those of others. */
static void gather_refusers(const struct top *top, size_t i, struct top_refusers *sum)
{
    for (size_t j = 0; j < TOP_REFUSERS; j++)
        if (top->refusers[i].sums[j] > 0)
            top_add_refuser(sum, top->refusers[i].limits[j], top->refusers[i].sums[j] / top->weight);
}

static uint32_t most_refusing(const struct top_refusers *refusers)
{
    size_t most = 0;
    for (size_t i = 1; i < TOP_REFUSERS; i++)
        if (refusers->sums[i] > refusers->sums[most])
            most = i;
    return refusers->sums[most] >= 0.5 ? refusers->limits[most] : TOP_NO_LIMIT;
}

static void look_up(struct top *const *tops, size_t n_tops, const struct top_name *name, uint64_t now_ns,
                    struct top_entry *out)
{
    const struct top_key key = key_of(name);
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
    out->share_us_per_s = per_s(share.rate);
}

static void describe(const struct found *found, double floors, uint64_t now_ns, struct top_entry *out)
{
    const struct top_name *name = &found->name;
    memcpy(out->subject, name->subject, sizeof out->subject);
    memcpy(out->policy, name->policy, sizeof out->policy);
    out->subject_len = name->subject_len;
    out->policy_len = name->policy_len;
    out->per_s = per_s(found->rate + floors);
    out->over_per_s = per_s(found->over + floors);
    out->newness = newness_of(found, now_ns);
    out->over_ns = age_of(found, now_ns) < TOP_WINDOW_NS ? age_of(found, now_ns) : TOP_WINDOW_NS;
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
    for (size_t i = 0; i < n; i++)
        set_rate(&found[i], now_ns);
    qsort(found, n, sizeof *found, by_rate);
    size_t given = 0;
    for (size_t i = 0; i < n && given < max; i++) {
        if (found[i].sum + floors < 0.5)
            continue;
        describe(&found[i], floors, now_ns, &out[given]);
        look_up(tops, n_tops, &found[i].name, now_ns, &out[given]);
        given++;
    }
    free(found);
    return given;
}
