#include "tests/sim/limits.h"

#include <stdio.h>
#include <string.h>

static const struct planned_limits *bound;
static struct window windows[LIMITS_MAX][LIMIT_SUBJECTS];

static const struct {
    const char *name;
    enum limit_class class;
} names[] = {
    {"read", LIMIT_READ}, {"write", LIMIT_WRITE}, {"cmd.get", LIMIT_GET}, {"cmd.set", LIMIT_SET}, {"all", LIMIT_ANY}};
#define N_NAMES (sizeof names / sizeof names[0])

void limits_plan(struct planned_limits *limits, struct random *chance, char *out, size_t room)
{
    unsigned used = 0;
    size_t n = 0;
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
        n += (size_t)snprintf(out + n, room - n, "%s = %u/%ums burst %u\n", names[which].name, limit->count,
                              limit->period_ms, limit->burst);
    }
}

void limits_use(const struct planned_limits *limits)
{
    bound = limits;
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
    for (unsigned i = 0; i < bound->n; i++) {
        const struct planned_limit *limit = &bound->all[i];
        const struct window_law law = {limit->period_ms * UINT64_C(1000000), limit->count, limit->burst, true};
        if ((classes & limit->class) != 0 && !window_admits(&windows[i][subject], &law, from_ns, to_ns))
            return "more than the limit lets pass";
    }
    return NULL;
}

const char *limits_refused(unsigned subject, unsigned classes, struct slice words)
{
    static const char mark[] = "limit=default/";
    const char *at = memmem(words.at, words.len, mark, sizeof mark - 1);
    (void)subject;
    if (at == NULL)
        return "refused by no limit";
    at += sizeof mark - 1;
    struct slice name = slice_of(at, words.len - (size_t)(at - words.at));
    for (unsigned i = 0; i < bound->n; i++)
        for (size_t j = 0; j < N_NAMES; j++)
            if (names[j].class == bound->all[i].class && slice_eq(name, slice_str(names[j].name)))
                return (classes & bound->all[i].class) != 0 ? NULL : "refused by a limit that is not about it";
    return "refused by a limit that there is not";
}
