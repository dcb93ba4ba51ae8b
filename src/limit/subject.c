#include "limit/subject.h"

#include <assert.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "limit/figures/peak_rates.h"

#define MORE_FUNNELS 7
/* more than any number of connections or calls; as a time, 4 s after boot */
#define GAUGE_MOST (UINT64_C(1) << 32)
#define SPINS 64 /* spins on the lock of a subject before the thread yields the processor */

size_t subject_bytes(size_t name_len, uint16_t n_funnels)
{
    return sizeof(struct subject) + n_funnels * sizeof(struct funnel) + name_len;
}

struct subject *subject_init(void *memory, struct policy_state *policy_state, struct slice name,
                             uint16_t n_funnels)
{
    struct subject *subject = memory;
    atomic_init(&subject->holders, 1);
    subject->policy_state = policy_state;
    subject->n_funnels = n_funnels;
    subject->name_len = (uint16_t)name.len;
    subject->name = (char *)&subject->funnels[n_funnels];
    memcpy(subject->name, name.at, name.len);
    return subject;
}

/* `zalloc` is calloc or mem_zalloc. NULL: out of memory. */
static struct subject *new_outside(struct policy_state *policy_state, enum scope scope,
                                   struct slice name, void *(*zalloc)(size_t count, size_t size))
{
    uint16_t n_funnels = policy_state_slots(policy_state, scope);
    void *memory = zalloc(1, subject_bytes(name.len, n_funnels));
    if (memory == NULL)
        return NULL;
    struct subject *subject = subject_init(memory, policy_state, name, n_funnels);
    subject->scope = (uint8_t)scope;
    return subject;
}

struct subject *subject_new_detached(struct policy_state *policy_state, enum scope scope)
{
    return new_outside(policy_state, scope, SLICE(""), calloc);
}

struct subject *subject_new_lasting(struct policy_state *policy_state, enum scope scope,
                                    struct slice name)
{
    return new_outside(policy_state, scope, name, mem_zalloc);
}

void subject_free_detached(struct subject *subject)
{
    struct more_funnels *more = subject != NULL ? atomic_load(&subject->more) : NULL;
    while (more != NULL) {
        struct more_funnels *next = atomic_load(&more->next);
        free(more);
        more = next;
    }
    if (subject != NULL) {
        peak_rates_free(atomic_load(&subject->peak_rates));
        rate_table_put(atomic_load(&subject->rates));
        retimings_free(subject->retimings);
    }
    free(subject);
}

struct slice subject_name(const struct subject *subject)
{
    return slice_of(subject->name, subject->name_len);
}

void subject_hold(struct subject *subject)
{
    atomic_fetch_add_explicit(&subject->holders, 1, memory_order_relaxed);
}

bool subject_is_common(const struct subject *subject)
{
    return subject == subject->policy_state->overflow ||
           subject == subject->policy_state->everybody;
}

bool subject_is_overflow(const struct subject *subject)
{
    return subject == subject->policy_state->overflow;
}

/* ---- funnels added later ---- */

/* Makes room for a few more indexes than exist now. Indexes mostly come in groups. */
static struct more_funnels *more_new(uint16_t first, uint16_t n_slots,
                                     void *(*zalloc)(size_t count, size_t size))
{
    uint16_t n = (uint16_t)(n_slots - first + MORE_FUNNELS);
    struct more_funnels *more = zalloc(1, sizeof *more + n * sizeof(struct funnel));
    if (more != NULL) {
        more->first = first;
        more->n = n;
    }
    return more;
}

static bool grow(struct subject *subject, void *(*zalloc)(size_t count, size_t size))
{
    uint16_t n_slots = policy_state_slots(subject->policy_state, (enum scope)subject->scope);
    _Atomic(struct more_funnels *) *link = &subject->more;
    uint16_t first = subject->n_funnels;
    while (first < n_slots) {
        struct more_funnels *more = atomic_load_explicit(link, memory_order_acquire);
        if (more == NULL) {
            struct more_funnels *made = more_new(first, n_slots, zalloc);
            if (made == NULL)
                return false;
            if (atomic_compare_exchange_strong_explicit(link, &more, made, memory_order_acq_rel,
                                                        memory_order_acquire))
                more = made;
            else
                free(made); /* another thread was faster */
        }
        first = (uint16_t)(more->first + more->n);
        link = &more->next;
    }
    return true;
}

bool subject_grow(struct subject *subject)
{
    return grow(subject, calloc);
}

void subject_grow_lasting(struct subject *subject)
{
    (void)grow(subject, mem_zalloc);
}

struct funnel *subject_find_funnel(struct subject *subject, uint16_t slot)
{
    if (slot < subject->n_funnels)
        return &subject->funnels[slot];
    struct more_funnels *more = atomic_load_explicit(&subject->more, memory_order_acquire);
    while (more != NULL && slot >= more->first + more->n)
        more = atomic_load_explicit(&more->next, memory_order_acquire);
    return more != NULL ? &more->funnels[slot - more->first] : NULL;
}

struct funnel *subject_late_funnel(struct subject *subject, uint16_t slot)
{
    struct funnel *funnel = subject_find_funnel(subject, slot);
    assert(funnel != NULL);
    return funnel;
}

/* ---- debts ---- */

/*
 * The least debt of a new subject at that index: the debt of the overflow subject, which only
 * shrinks with time.
 */
static uint64_t fresh_word(const struct subject *subject, size_t slot)
{
    const struct subject *overflow = subject->policy_state->overflow;
    if (slot < overflow->n_funnels)
        return funnel_word(&overflow->funnels[slot]);
    struct more_funnels *more = atomic_load_explicit(&overflow->more, memory_order_acquire);
    while (more != NULL && slot >= (size_t)more->first + more->n)
        more = atomic_load_explicit(&more->next, memory_order_acquire);
    return more != NULL ? funnel_word(&more->funnels[slot - more->first]) : 0;
}

static bool owe_nothing(const struct subject *subject, const struct funnel *funnels, size_t first,
                        size_t n, enum forgetting which, uint64_t now_ns)
{
    for (size_t i = 0; i < n; i++)
        if (!funnel_is_empty(&funnels[i], now_ns) &&
            (which == FORGET_EMPTY || funnel_word(&funnels[i]) > fresh_word(subject, first + i)))
            return false;
    return true;
}

bool subject_is_forgettable(struct subject *subject, enum forgetting which, uint64_t now_ns)
{
    if (atomic_load_explicit(&subject->holders, memory_order_acquire) > 0)
        return false;
    /* Words of different rates do not compare. */
    if (atomic_load_explicit(&subject->rates, memory_order_relaxed) !=
        atomic_load_explicit(&subject->policy_state->overflow->rates, memory_order_relaxed))
        which = FORGET_EMPTY;
    if (!owe_nothing(subject, subject->funnels, 0, subject->n_funnels, which, now_ns))
        return false;
    struct more_funnels *more = atomic_load_explicit(&subject->more, memory_order_acquire);
    for (; more != NULL; more = atomic_load_explicit(&more->next, memory_order_acquire))
        if (!owe_nothing(subject, more->funnels, more->first, more->n, which, now_ns))
            return false;
    return true;
}

static bool owes_nothing_at_all(const struct subject *subject, uint64_t now_ns)
{
    if (!owe_nothing(subject, subject->funnels, 0, subject->n_funnels, FORGET_EMPTY, now_ns))
        return false;
    struct more_funnels *more = atomic_load_explicit(&subject->more, memory_order_acquire);
    for (; more != NULL; more = atomic_load_explicit(&more->next, memory_order_acquire))
        if (!owe_nothing(subject, more->funnels, more->first, more->n, FORGET_EMPTY, now_ns))
            return false;
    return true;
}

/* Copies debts only. A gauge stays with the subject that counted it. */
static void subject_inherit(struct subject *heir, const struct funnel *funnels, size_t first,
                            size_t n, uint64_t now_ns)
{
    for (size_t i = 0; i < n && first + i < heir->n_funnels; i++)
        if (!funnel_is_empty(&funnels[i], now_ns))
            atomic_store_explicit(&heir->funnels[first + i].tat_ns, funnel_word(&funnels[i]),
                                  memory_order_relaxed);
}

void subject_inherit_overflow(struct subject *heir, uint64_t now_ns)
{
    struct subject *overflow = heir->policy_state->overflow;
    if (owes_nothing_at_all(overflow, now_ns))
        return;
    subject_lock(overflow);
    atomic_init(&heir->rates,
                rate_table_get(atomic_load_explicit(&overflow->rates, memory_order_relaxed)));
    subject_inherit(heir, overflow->funnels, 0, overflow->n_funnels, now_ns);
    struct more_funnels *more = atomic_load_explicit(&overflow->more, memory_order_acquire);
    for (; more != NULL; more = atomic_load_explicit(&more->next, memory_order_acquire))
        subject_inherit(heir, more->funnels, more->first, more->n, now_ns);
    subject_unlock(overflow);
}

/* Clears debts. A gauge is no debt and stays: only a time can be above GAUGE_MOST. */
static void forgive_funnels(struct funnel *funnels, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (gauge_value(&funnels[i]) > GAUGE_MOST)
            atomic_store_explicit(&funnels[i].tat_ns, 0, memory_order_relaxed);
}

void subject_forgive(struct subject *subject)
{
    subject_lock(subject);
    forgive_funnels(subject->funnels, subject->n_funnels);
    struct more_funnels *more = atomic_load_explicit(&subject->more, memory_order_acquire);
    for (; more != NULL; more = atomic_load_explicit(&more->next, memory_order_acquire))
        forgive_funnels(more->funnels, more->n);
    subject_unlock(subject);
}

/* ---- the spin lock ---- */

static void pause_briefly(unsigned spins)
{
    if (spins >= SPINS) {
        sched_yield();
        return;
    }
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void subject_wait_for_lock(struct subject *subject)
{
    unsigned spins = 0;
    do {
        while (atomic_load_explicit(&subject->lock, memory_order_relaxed))
            pause_briefly(spins++);
    } while (atomic_exchange_explicit(&subject->lock, 1, memory_order_acquire));
}
