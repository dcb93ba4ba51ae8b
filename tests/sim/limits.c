#include "tests/sim/limits.h"

#include <stdio.h>
#include <string.h>

#define KEPT 512 /* commands of a subject that are looked back at */

/* When each of the last commands that passed can have been decided at the earliest: a sorted ring. */
struct history {
    uint64_t from_ns[KEPT];
    unsigned n;
    uint64_t passed;
};

static const struct planned_limits *bound;
static struct history histories[LIMITS_MAX][LIMIT_SUBJECTS];

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
        limit->burst = (uint32_t)random_scale(chance, KEPT / 2);
        n += (size_t)snprintf(out + n, room - n, "%s = %u/%ums burst %u\n", names[which].name, limit->count,
                              limit->period_ms, limit->burst);
    }
}

void limits_use(const struct planned_limits *limits)
{
    bound = limits;
}

static void remember(struct history *history, uint64_t from_ns)
{
    if (history->n == KEPT) {
        memmove(history->from_ns, history->from_ns + KEPT / 2, KEPT / 2 * sizeof history->from_ns[0]);
        history->n = KEPT / 2;
    }
    unsigned at = history->n++;
    for (; at > 0 && history->from_ns[at - 1] > from_ns; at--)
        history->from_ns[at] = history->from_ns[at - 1];
    history->from_ns[at] = from_ns;
    history->passed++;
}

/* Is there a window that ends now with more in it than may be? */
static bool is_broken(const struct planned_limit *limit, const struct history *history, uint64_t to_ns)
{
    for (unsigned i = history->n, n = 1; i-- > 0; n++) {
        if (n <= limit->burst)
            continue;
        uint64_t window_ns = to_ns - history->from_ns[i];
        if ((double)(n - limit->burst) * limit->period_ms * 1e6 > (double)window_ns * limit->count + 1)
            return true;
    }
    return false;
}

const char *limits_passed(unsigned subject, unsigned classes, uint64_t from_ns, uint64_t to_ns)
{
    for (unsigned i = 0; i < bound->n; i++) {
        struct history *history = &histories[i][subject];
        if ((classes & bound->all[i].class) == 0)
            continue;
        remember(history, from_ns);
        if (is_broken(&bound->all[i], history, to_ns))
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
