#include "limit/figures/observed.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

struct observed_one {
    char *name;
    struct observed_forgotten forgotten;
};

struct observed {
    _Atomic uint64_t since_ns; /* 0: nothing has been counted */
    pthread_mutex_t lock;      /* of what is forgotten, and of: */
    unsigned n;
    struct observed_one classes[DEMAND_CLASSES];
};

static const char *const builtins[DEMAND_BUILTINS] = {
    [DEMAND_ALL] = "all", [DEMAND_READ] = "read", [DEMAND_WRITE] = "write"};

struct observed *observed_new(void)
{
    struct observed *observed = mem_zalloc(1, sizeof *observed);
    pthread_mutex_init(&observed->lock, NULL);
    for (unsigned i = 0; i < DEMAND_BUILTINS; i++)
        observed_class(observed, slice_str(builtins[i]));
    return observed;
}

void observed_free(struct observed *observed)
{
    if (observed == NULL)
        return;
    for (unsigned i = 0; i < observed->n; i++) {
        population_fini(&observed->classes[i].forgotten.population);
        free(observed->classes[i].name);
    }
    pthread_mutex_destroy(&observed->lock);
    free(observed);
}

/* ---- classes ---- */

unsigned observed_class(struct observed *observed, struct slice name)
{
    for (unsigned i = 0; i < observed->n; i++)
        if (slice_eq_nocase(observed_name(observed, i), name))
            return i;
    if (observed->n == DEMAND_CLASSES)
        return DEMAND_CLASSES;
    struct observed_one *class = &observed->classes[observed->n];
    class->name = mem_strndup(name.at, name.len);
    population_init(&class->forgotten.population, POPULATION_CELLS_MIN);
    pthread_mutex_lock(&observed->lock);
    unsigned added = observed->n++;
    pthread_mutex_unlock(&observed->lock);
    return added;
}

unsigned observed_count(const struct observed *observed)
{
    return observed->n;
}

struct slice observed_name(const struct observed *observed, unsigned class_index)
{
    return slice_str(observed->classes[class_index].name);
}

/* ---- since when ---- */

uint64_t observed_seconds(const struct observed *observed, uint64_t now_ns)
{
    uint64_t since_ns = atomic_load_explicit(&observed->since_ns, memory_order_relaxed);
    return since_ns == 0 || now_ns < since_ns ? 0 : (now_ns - since_ns) / NS_PER_S;
}

void observed_begin(struct observed *observed, uint64_t now_ns)
{
    uint64_t none = 0;
    if (atomic_load_explicit(&observed->since_ns, memory_order_relaxed) == 0)
        atomic_compare_exchange_strong_explicit(&observed->since_ns, &none, now_ns, memory_order_relaxed,
                                                memory_order_relaxed);
}

/* ---- what is forgotten ---- */

/* By their peaks of 60 s, the largest first; a name that is there already is there once. */
static void note_name(struct observed_forgotten *forgotten, struct slice name, const struct peaks *peaks)
{
    struct observed_name *most = forgotten->most;
    struct observed_name noted = {.len = name.len < OBSERVED_NAME_MAX ? name.len : OBSERVED_NAME_MAX, .peaks = *peaks};
    memcpy(noted.text, name.at, noted.len);
    size_t at = 0;
    while (at < forgotten->n_most && !slice_eq(slice_of(most[at].text, most[at].len), slice_of(noted.text, noted.len)))
        at++;
    if (at == OBSERVED_NAMES)
        at--;
    else if (at == forgotten->n_most)
        most[forgotten->n_most++] = (struct observed_name){.len = 0};
    if (most[at].peaks.of[PEAK_60S] >= peaks->of[PEAK_60S])
        return;
    for (; at > 0 && most[at - 1].peaks.of[PEAK_60S] < peaks->of[PEAK_60S]; at--)
        most[at] = most[at - 1];
    most[at] = noted;
}

void observed_forget(struct observed *observed, struct slice name, struct demand *demand)
{
    if (demand == NULL)
        return;
    pthread_mutex_lock(&observed->lock);
    for (unsigned i = 0; i < observed->n; i++) {
        struct observed_forgotten *forgotten = &observed->classes[i].forgotten;
        const struct peaks peaks = demand_peaks(demand, i);
        if (peaks.of[PEAK_1S] == 0)
            continue;
        population_add(&forgotten->population, &peaks, 1);
        note_name(forgotten, name, &peaks);
    }
    pthread_mutex_unlock(&observed->lock);
}

void observed_copy_forgotten(struct observed *observed, unsigned class_index, struct observed_forgotten *out)
{
    const struct observed_forgotten *forgotten = &observed->classes[class_index].forgotten;
    pthread_mutex_lock(&observed->lock);
    *out = *forgotten;
    population_copy(&out->population, &forgotten->population);
    pthread_mutex_unlock(&observed->lock);
}
