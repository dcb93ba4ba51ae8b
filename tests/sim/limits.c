#include "tests/sim/limits.h"

#include <stdio.h>
#include <string.h>

#include "tests/sim/world.h"

static struct planned_limits bound;  /* what binds */
static struct planned_limits coming; /* what may bind already */
static bool is_changing, is_unknown;

static const struct {
    const char *name;
    enum limit_class class;
} names[] = {
    {"read", LIMIT_READ}, {"write", LIMIT_WRITE}, {"cmd.get", LIMIT_GET}, {"cmd.set", LIMIT_SET}, {"all", LIMIT_ANY}};
#define N_NAMES (sizeof names / sizeof names[0])
static struct window windows[N_NAMES][LIMIT_SUBJECTS];
static uint64_t since_ns[N_NAMES], until_ns[N_NAMES]; /* what binds has, and what bound did */

void limits_plan(struct planned_limits *limits, struct random *chance, char *out, size_t room)
{
    unsigned used = 0;
    limits->n = 1 + (unsigned)random_below(chance, LIMITS_MAX);
    for (unsigned i = 0; i < limits->n; i++) {
        size_t which = (size_t)random_below(chance, N_NAMES);
        while ((used >> which & 1) != 0)
            which = (which + 1) % N_NAMES;
        used |= 1U << which;
        struct planned_limit *limit = &limits->all[i];
        limit->class = names[which].class;
        limit->count = (uint32_t)random_scale(chance, 100000);
        limit->period_ms = (uint32_t)random_scale(chance, 10000);
        limit->burst = (uint32_t)random_scale(chance, WINDOW_KEPT / 2);
    }
    limits_write(limits, out, room);
}

const char *limits_class_name(enum limit_class class)
{
    size_t i = 0;
    while (i + 1 < N_NAMES && names[i].class != class)
        i++;
    return names[i].name;
}

void limits_write(const struct planned_limits *limits, char *out, size_t room)
{
    size_t n = 0;
    for (unsigned i = 0; i < limits->n; i++) {
        const struct planned_limit *limit = &limits->all[i];
        n += (size_t)snprintf(out + n, room - n, "%s = %u/%ums burst %u\n", limits_class_name(limit->class),
                              limit->count, limit->period_ms, limit->burst);
    }
}

void limits_use(const struct planned_limits *limits)
{
    bound = coming = *limits;
    is_changing = false;
}

/* NULL: no limit is about that class. */
static const struct planned_limit *find(const struct planned_limits *limits, enum limit_class class)
{
    for (unsigned i = 0; i < limits->n; i++)
        if (limits->all[i].class == class)
            return &limits->all[i];
    return NULL;
}

/* Does the same hold for that class in both? */
static bool is_same(const struct planned_limits *a, const struct planned_limits *b, enum limit_class class)
{
    const struct planned_limit *one = find(a, class), *other = find(b, class);
    return one != NULL && other != NULL && one->count == other->count && one->period_ms == other->period_ms &&
           one->burst == other->burst && !a->is_shadow && !b->is_shadow;
}

void limits_changing(const struct planned_limits *to)
{
    is_changing = true;
    is_unknown |= to == NULL;
    if (to != NULL)
        coming = *to;
}

/* What passes under another limit is counted anew. */
void limits_changed(void)
{
    for (unsigned i = 0; i < N_NAMES; i++) {
        if (!is_unknown && is_same(&bound, &coming, names[i].class))
            continue;
        memset(windows[i], 0, sizeof windows[i]);
        since_ns[i] = world.now_ns;
        if (is_unknown || (!bound.is_shadow && find(&bound, names[i].class) != NULL))
            until_ns[i] = world.now_ns;
    }
    bound = coming;
    is_changing = is_unknown = false;
}

static void remember(struct window *window, uint64_t from_ns)
{
    if (window->n == WINDOW_KEPT) {
        window->n = WINDOW_KEPT / 2;
        memmove(window->from_ns, window->from_ns + WINDOW_KEPT - window->n, window->n * sizeof window->from_ns[0]);
    }
    unsigned at = window->n++;
    for (; at > 0 && window->from_ns[at - 1] > from_ns; at--)
        window->from_ns[at] = window->from_ns[at - 1];
    window->from_ns[at] = from_ns;
}

/* May n pass within so long? */
static bool is_lawful(const struct window_law *law, unsigned n, uint64_t ns)
{
    if (n <= law->burst)
        return true;
    if (!law->is_even)
        return n - law->burst <= ns / law->period_ns * law->count;
    return (double)(n - law->burst) * (double)law->period_ns <= (double)ns * law->count + 1;
}

bool window_admits(struct window *window, const struct window_law *law, uint64_t from_ns, uint64_t to_ns)
{
    remember(window, from_ns);
    for (unsigned i = window->n, n = 1; i-- > 0; n++)
        if (!is_lawful(law, n, to_ns - window->from_ns[i]))
            return false;
    return true;
}

const char *limits_passed(unsigned subject, unsigned classes, uint64_t from_ns, uint64_t to_ns)
{
    for (unsigned i = 0; i < N_NAMES && !bound.is_shadow && !is_unknown; i++) {
        const struct planned_limit *limit = find(&bound, names[i].class);
        if (limit == NULL || (classes & limit->class) == 0)
            continue;
        if (from_ns <= since_ns[i] || (is_changing && !is_same(&bound, &coming, limit->class)))
            continue; /* it may have been decided under another limit, of which this one says nothing */
        const struct window_law law = {limit->period_ms * UINT64_C(1000000), limit->count, limit->burst, true};
        if (!window_admits(&windows[i][subject], &law, from_ns, to_ns))
            return "more than the limit lets pass";
    }
    return NULL;
}

/* May a limit on that class have refused what was not decided before that moment? */
static bool may_bind(size_t i, uint64_t from_ns)
{
    return is_unknown || (!bound.is_shadow && find(&bound, names[i].class) != NULL) || from_ns <= until_ns[i] ||
           (is_changing && !coming.is_shadow && find(&coming, names[i].class) != NULL);
}

const char *limits_refused(unsigned subject, unsigned classes, uint64_t from_ns, struct slice words)
{
    static const char mark[] = "limit=default/";
    const char *at = memmem(words.at, words.len, mark, sizeof mark - 1);
    (void)subject;
    if (at == NULL)
        return "refused by no limit";
    at += sizeof mark - 1;
    struct slice name = slice_of(at, words.len - (size_t)(at - words.at));
    for (size_t i = 0; i < N_NAMES; i++)
        if (slice_eq(name, slice_str(names[i].name)) && may_bind(i, from_ns))
            return (classes & names[i].class) != 0 ? NULL : "refused by a limit that is not about it";
    return "refused by a limit that there is not";
}
