#include "limit/figures/observed.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

struct observed_one {
    char *name;
    struct observed_forgotten forgotten;
};

struct observed {
    _Atomic uint64_t since_ns; /* 0: counting has not begun */
    pthread_mutex_t lock;      /* protects `n`, and the dropped subjects in `classes` */
    unsigned n;
    struct observed_one classes[PEAK_CLASSES_MAX];
};

static const char *const builtins[PEAK_CLASS_BUILTINS] = {
    [PEAK_CLASS_ALL] = "all", [PEAK_CLASS_READ] = "read", [PEAK_CLASS_WRITE] = "write"};

struct observed *observed_new(void)
{
    struct observed *observed = mem_zalloc(1, sizeof *observed);
    pthread_mutex_init(&observed->lock, NULL);
    for (unsigned i = 0; i < PEAK_CLASS_BUILTINS; i++)
        observed_class(observed, slice_str(builtins[i]));
    return observed;
}

void observed_free(struct observed *observed)
{
    if (observed == NULL)
        return;
    for (unsigned i = 0; i < observed->n; i++) {
        distribution_fini(&observed->classes[i].forgotten.distribution);
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
    if (observed->n == PEAK_CLASSES_MAX)
        return PEAK_CLASSES_MAX;
    struct observed_one *class = &observed->classes[observed->n];
    class->name = mem_strndup(name.at, name.len);
    distribution_init(&class->forgotten.distribution, DISTRIBUTION_CELLS_MIN);
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

/* ---- start of counting ---- */

uint64_t observed_seconds(const struct observed *observed, uint64_t now_ns)
{
    uint64_t since_ns = atomic_load_explicit(&observed->since_ns, memory_order_relaxed);
    return since_ns == 0 || now_ns < since_ns ? 0 : (now_ns - since_ns) / NS_PER_S;
}

/* Starts the clock at the first command. Any thread. */
static void observed_begin(struct observed *observed, uint64_t now_ns)
{
    uint64_t none = 0;
    if (atomic_load_explicit(&observed->since_ns, memory_order_relaxed) == 0)
        atomic_compare_exchange_strong_explicit(&observed->since_ns, &none, now_ns,
                                                memory_order_relaxed, memory_order_relaxed);
}

/* ---- dropped subjects ---- */

/* Keeps the names with the largest 60 s peaks, in descending order. A name occurs once. */
static void observed_note_name(struct observed_forgotten *forgotten, struct slice name,
                               const struct peaks *peaks)
{
    struct observed_name *most = forgotten->most;
    struct observed_name noted = {
        .len = name.len < OBSERVED_NAME_MAX ? name.len : OBSERVED_NAME_MAX, .peaks = *peaks};
    memcpy(noted.text, name.at, noted.len);
    size_t at = 0;
    while (at < forgotten->n_most &&
           !slice_eq(slice_of(most[at].text, most[at].len), slice_of(noted.text, noted.len)))
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

void observed_forget(struct observed *observed, struct slice name, struct peak_rates *peak_rates)
{
    if (peak_rates == NULL)
        return;
    pthread_mutex_lock(&observed->lock);
    for (unsigned i = 0; i < observed->n; i++) {
        struct observed_forgotten *forgotten = &observed->classes[i].forgotten;
        const struct peaks peaks = peak_rates_get(peak_rates, i);
        if (peaks.of[PEAK_1S] == 0)
            continue;
        distribution_add(&forgotten->distribution, &peaks, 1);
        observed_note_name(forgotten, name, &peaks);
    }
    pthread_mutex_unlock(&observed->lock);
}

void observed_copy_forgotten(struct observed *observed, unsigned class_index,
                             struct observed_forgotten *out)
{
    const struct observed_forgotten *forgotten = &observed->classes[class_index].forgotten;
    pthread_mutex_lock(&observed->lock);
    *out = *forgotten;
    distribution_copy(&out->distribution, &forgotten->distribution);
    pthread_mutex_unlock(&observed->lock);
}

/* ---- plans ---- */

struct draft {
    struct peak_plan *plan;
    struct members *members;
    struct observed *observed;
    uint16_t *masks; /* by command id */
};

/* The mask in the form of peak_rates_add: commands that read or write have no bit for all. */
static uint16_t counted_mask(uint16_t mask)
{
    bool is_either = (mask & (1U << PEAK_CLASS_READ | 1U << PEAK_CLASS_WRITE)) != 0;
    return (uint16_t)(is_either ? mask & ~(1U << PEAK_CLASS_ALL) : mask);
}

static void add_group(struct peak_plan *plan, uint16_t mask)
{
    bool is_alone = mask != 0 && mask < 1U << PEAK_RATES_BLOCK && (mask & (mask - 1)) == 0;
    plan->alone[plan->n_groups] = is_alone ? (uint8_t)__builtin_ctz(mask) : PEAK_RATES_BLOCK;
    plan->masks[plan->n_groups++] = mask;
}

/* Gives each command the group of its mask. False: too many groups. */
static bool assign_groups(const struct draft *draft)
{
    struct peak_plan *plan = draft->plan;
    plan->n_groups = 0;
    for (size_t id = 0; id < plan->n_commands; id++) {
        unsigned group = 0;
        uint16_t mask = counted_mask(draft->masks[id]);
        while (group < plan->n_groups && plan->masks[group] != mask)
            group++;
        if (group == PEAK_PLAN_GROUPS)
            return false;
        if (group == plan->n_groups)
            add_group(plan, mask);
        plan->groups[id] = (uint8_t)group;
    }
    return true;
}

/*
 * True if a limit on the class with these members applies to the command when it asks to pass: see
 * limit/policy/policy.c.
 */
static bool is_bound(const struct draft *draft, const bool *of, size_t id)
{
    return of[id] &&
           (command_table_row(members_table(draft->members), id)->flags & CMD_CONTROL) == 0;
}

static void change_class(const struct draft *draft, const bool *of, uint16_t bit, bool is_in)
{
    for (size_t id = 0; id < draft->plan->n_commands; id++)
        if (is_bound(draft, of, id))
            draft->masks[id] = (uint16_t)(is_in ? draft->masks[id] | bit : draft->masks[id] & ~bit);
}

static bool observed_has_any(const struct draft *draft, const bool *of)
{
    size_t id = 0;
    while (id < draft->plan->n_commands && !is_bound(draft, of, id))
        id++;
    return id < draft->plan->n_commands;
}

/* Observes the class, unless that makes too many groups. */
static void observed_observe(const struct draft *draft, const struct class *class)
{
    const bool *of = members_of(draft->members, class);
    if (!observed_has_any(draft, of))
        return;
    unsigned index = observed_class(draft->observed, class_name(class));
    if (index == PEAK_CLASSES_MAX)
        return;
    change_class(draft, of, (uint16_t)(1U << index), true);
    if (assign_groups(draft))
        return;
    change_class(draft, of, (uint16_t)(1U << index), false);
    (void)assign_groups(draft);
}

static bool is_limited(const struct class *class, const struct limit *limits, size_t n_limits)
{
    for (size_t i = 0; i < n_limits; i++)
        if (limits[i].class == class)
            return true;
    return false;
}

/* True for the operator's own classes, not for spelled-out ones: @slow, cmd.get. */
static bool is_operators(const struct class *class)
{
    struct slice name = class_name(class);
    bool is_spelled = name.at[0] == '@' || strncmp(name.at, "cmd.", 4) == 0;
    return !class_is_builtin(class) && !is_spelled;
}

void peak_plan_make(struct peak_plan *plan, struct members *members,
                    const struct policy_state *policy_state, const struct limit *limits,
                    size_t n_limits)
{
    const struct classes *classes = members_classes(members);
    size_t n_classes = classes_count(classes);
    peak_plan_fini(plan);
    plan->n_commands = command_table_count(members_table(members));
    plan->groups = mem_zalloc(plan->n_commands, sizeof *plan->groups);
    if (policy_state == NULL)
        return; /* a set that is only examined and never used for a client */
    struct draft draft = {plan, members, policy_state->observed,
                          mem_zalloc(plan->n_commands, sizeof *draft.masks)};
    (void)assign_groups(&draft);
    for (size_t i = 0; i < n_classes; i++)
        if (class_is_builtin(classes_at(classes, i)))
            observed_observe(&draft, classes_at(classes, i));
    for (size_t i = 0; i < n_classes; i++)
        if (is_limited(classes_at(classes, i), limits, n_limits))
            observed_observe(&draft, classes_at(classes, i));
    for (size_t i = 0; i < n_classes; i++)
        if (is_operators(classes_at(classes, i)))
            observed_observe(&draft, classes_at(classes, i));
    free(draft.masks);
}

void peak_plan_fini(struct peak_plan *plan)
{
    free(plan->groups);
    *plan = (struct peak_plan){.n_groups = 0};
}

/* ---- counting ---- */

/* Skips the overflow subject, which stands for many clients and shows nothing about any one. */
static void observed_tell(struct subject *subject, uint16_t mask, uint32_t n, uint64_t now_ns)
{
    if (mask == 0)
        return;
    if (atomic_load_explicit(&subject->peak_rates, memory_order_relaxed) == NULL) {
        if (subject_is_overflow(subject))
            return;
        observed_begin(subject->policy_state->observed, now_ns);
    }
    peak_rates_add(&subject->peak_rates, mask, n, now_ns);
}

static __attribute__((noinline)) void flush_each(struct peak_rates_pending *pending,
                                                 uint64_t now_ns)
{
    for (uint64_t left = pending->touched; left; left &= left - 1) {
        unsigned group = (unsigned)__builtin_ctzll(left);
        observed_tell(pending->subject, pending->plan->masks[group], pending->counts[group],
                      now_ns);
        pending->counts[group] = 0;
    }
    pending->touched = 0;
}

/*
 * Most calls add one command of a subject that has already sent a command in this second. These
 * calls take a few instructions.
 */
void peak_rates_flush(struct peak_rates_pending *pending, uint64_t now_ns)
{
    uint64_t touched = pending->touched;
    unsigned group = (unsigned)__builtin_ctzll(touched);
    struct peak_rates *block =
        atomic_load_explicit(&pending->subject->peak_rates, memory_order_acquire);
    unsigned alone = pending->plan->alone[group];
    if ((touched & (touched - 1)) != 0 || alone == PEAK_RATES_BLOCK || block == NULL ||
        !peak_rates_is_now(block, now_ns)) {
        flush_each(pending, now_ns);
        return;
    }
    peak_rates_count(block, alone, pending->counts[group]);
    pending->counts[group] = 0;
    pending->touched = 0;
}

void peak_rates_drop(struct peak_rates_pending *pending)
{
    for (uint64_t left = pending->touched; left; left &= left - 1)
        pending->counts[__builtin_ctzll(left)] = 0;
    pending->touched = 0;
}

void peak_rates_tell(struct subject *subject, const struct peak_plan *plan,
                     const struct command *command, uint64_t now_ns)
{
    observed_tell(subject, plan->masks[peak_plan_group(plan, command)], 1, now_ns);
}
