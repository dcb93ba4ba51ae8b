#include "tests/sim/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "limit/queue.h"
#include "tests/sim/changes.h"
#include "tests/sim/spent.h"
#include "tests/sim/world.h"

#define MS UINT64_C(1000000)
#define ROUGH_NS 100  /* intervals below are stored as fine rates: limit/funnel.c */
#define EARLY_NS 1000 /* largest lag of a loop's clock behind the time of a read */

static struct planned_limits bound;  /* the limits in force */
static struct planned_limits coming; /* the limits that may be in force already */
static bool is_changing, is_unknown;
static bool is_loose; /* see limits_use */

static const struct {
    const char *name;
    enum limit_class class;
} names[] = {{"read", LIMIT_READ},
             {"write", LIMIT_WRITE},
             {"cmd.get", LIMIT_GET},
             {"cmd.set", LIMIT_SET},
             {"all", LIMIT_ANY}};
#define DELAYS 200000 /* odds of a delay, in millionths */
#define N_NAMES (sizeof names / sizeof names[0])

/* What is known of one limit and one subject. */
static struct known {
    struct window window;
    struct window across; /* window across changes of the limit */
    struct spent spent;
    unsigned leaving; /* commands of disconnected clients that may still be charged */
} all_known[N_NAMES][LIMIT_SUBJECTS];
static struct changes changes[N_NAMES]; /* history of each limit */
/* when the current limit came into force, and when the previous limit ended */
static uint64_t since_ns[N_NAMES], until_ns[N_NAMES];
/* number of disconnected clients that may charge the subject any number of commands */
static unsigned unknown[LIMIT_SUBJECTS];

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
        limit->delay_ms = random_hits(chance, DELAYS) ? (uint32_t)random_scale(chance, 1000) : 0;
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
        n += (size_t)snprintf(out + n, room - n, "%s = %u/%ums burst %u",
                              limits_class_name(limit->class), limit->count, limit->period_ms,
                              limit->burst);
        if (limit->delay_ms > 0)
            n += (size_t)snprintf(out + n, room - n, " over delay %ums", limit->delay_ms);
        n += (size_t)snprintf(out + n, room - n, "\n");
    }
}

/* ---- changes of limits ---- */

static const struct planned_limit *enforced(const struct planned_limits *limits, size_t which);

/* Restarts the history with the limit in force. */
static void link_anew(size_t which)
{
    const struct planned_limit *limit = enforced(&bound, which);
    changes_forget(&changes[which]);
    for (unsigned subject = 0; subject < LIMIT_SUBJECTS; subject++)
        all_known[which][subject].across.n = 0;
    if (limit != NULL)
        changes_begin(&changes[which], limit, world.now_ns);
}

/* While a limit is removed, or in shadow mode, nothing is known of what passes. */
static void link_coming(size_t which)
{
    const struct planned_limit *to = is_unknown ? NULL : enforced(&coming, which);
    if (changes[which].n > 0 && (to == NULL || !changes_may(&changes[which], to, world.now_ns)))
        changes_forget(&changes[which]);
}

static void link_change(size_t which)
{
    const struct planned_limit *to = is_unknown ? NULL : enforced(&coming, which);
    if (changes[which].n > 0 && (to == NULL || !changes_now(&changes[which], to, world.now_ns)))
        changes_forget(&changes[which]);
}

void limits_use(const struct planned_limits *limits, bool are_loose)
{
    bound = coming = *limits;
    is_changing = false;
    is_loose = are_loose;
    for (size_t i = 0; i < N_NAMES; i++)
        link_anew(i);
}

/* NULL: no limit for that class. */
static const struct planned_limit *find(const struct planned_limits *limits, enum limit_class class)
{
    for (unsigned i = 0; i < limits->n; i++)
        if (limits->all[i].class == class)
            return &limits->all[i];
    return NULL;
}

static const struct planned_limit *enforced(const struct planned_limits *limits, size_t which)
{
    return limits->is_shadow ? NULL : find(limits, names[which].class);
}

/* True if both have the same enforced limit for the class. */
static bool is_same(const struct planned_limits *a, const struct planned_limits *b,
                    enum limit_class class)
{
    const struct planned_limit *one = find(a, class), *other = find(b, class);
    return one != NULL && other != NULL && one->count == other->count &&
           one->period_ms == other->period_ms && one->burst == other->burst &&
           one->delay_ms == other->delay_ms && !a->is_shadow && !b->is_shadow;
}

void limits_changing(const struct planned_limits *to)
{
    is_changing = true;
    is_unknown |= to == NULL;
    if (to != NULL)
        coming = *to;
    for (size_t i = 0; i < N_NAMES; i++)
        link_coming(i);
}

/* Windows restart for every limit that has changed. */
void limits_changed(void)
{
    for (size_t i = 0; i < N_NAMES; i++)
        link_change(i);
    for (unsigned i = 0; i < N_NAMES; i++) {
        if (!is_unknown && is_same(&bound, &coming, names[i].class))
            continue;
        for (unsigned subject = 0; subject < LIMIT_SUBJECTS; subject++)
            all_known[i][subject].window.n = 0;
        since_ns[i] = world.now_ns;
        if (is_unknown || (!bound.is_shadow && find(&bound, names[i].class) != NULL))
            until_ns[i] = world.now_ns;
    }
    bound = coming;
    is_changing = is_unknown = false;
    for (size_t i = 0; i < N_NAMES; i++)
        if (changes[i].n == 0)
            link_anew(i);
}

static void remember(struct window *window, uint64_t from_ns)
{
    if (window->n == WINDOW_KEPT) {
        window->n = WINDOW_KEPT / 2;
        memmove(window->from_ns, window->from_ns + WINDOW_KEPT - window->n,
                window->n * sizeof window->from_ns[0]);
    }
    unsigned at = window->n++;
    for (; at > 0 && window->from_ns[at - 1] > from_ns; at--)
        window->from_ns[at] = window->from_ns[at - 1];
    window->from_ns[at] = from_ns;
}

/* True if n may pass within `ns`. */
static bool is_lawful(const struct window_law *law, unsigned n, uint64_t ns)
{
    if (n <= law->burst)
        return true;
    if (!law->is_even)
        return n - law->burst <= ns / law->period_ns * law->count;
    return (double)(n - law->burst) * (double)law->period_ns <=
           (double)(ns + law->slack_ns) * law->count + 1;
}

bool window_admits(struct window *window, const struct window_law *law, uint64_t from_ns,
                   uint64_t to_ns)
{
    remember(window, from_ns);
    for (unsigned i = window->n, n = 1; i-- > 0; n++)
        if (!is_lawful(law, n, to_ns - window->from_ns[i]))
            return false;
    return true;
}

/* ---- limits of weir ---- */

static uint64_t interval_of(const struct planned_limit *limit)
{
    uint64_t period_ns = limit->period_ms * MS;
    return (period_ns + limit->count - 1) / limit->count;
}

static uint64_t burst_of(const struct planned_limit *limit)
{
    return limit->burst * interval_of(limit);
}

/*
 * A limit that delays may send commands up to DEPARTURE_SLACK_NS ahead of the rate. If the burst is
 * worth less time than that, the law has this slack instead of the burst.
 */
static struct window_law law_of(const struct planned_limit *limit)
{
    struct window_law law = {limit->period_ms * MS, limit->count, limit->burst, true, 0};
    if (limit->delay_ms == 0)
        return law;
    uint64_t burst_ns = (limit->burst - 1) * (law.period_ns / limit->count);
    if (burst_ns >= DEPARTURE_SLACK_NS)
        return law;
    law.burst = 1;
    law.slack_ns = DEPARTURE_SLACK_NS + 1;
    return law;
}

const char *limits_passed(unsigned subject, unsigned classes, uint64_t from_ns, uint64_t to_ns)
{
    for (unsigned i = 0; i < N_NAMES && !bound.is_shadow && !is_unknown; i++) {
        const struct planned_limit *limit = find(&bound, names[i].class);
        if (limit == NULL || (classes & limit->class) == 0)
            continue;
        if (changes[i].n > 0 &&
            !changes_admit(&changes[i], &all_known[i][subject].across, from_ns, to_ns))
            return "more than the limit and those before it let pass";
        if (from_ns <= since_ns[i] || (is_changing && !is_same(&bound, &coming, limit->class)))
            /* the decision may be that of another limit, about which this limit says nothing */
            continue;
        const struct window_law law = law_of(limit);
        if (!window_admits(&all_known[i][subject].window, &law, from_ns, to_ns))
            return "more than the limit lets pass";
    }
    return NULL;
}

void limits_charged(unsigned subject, unsigned classes)
{
    for (unsigned i = 0; i < N_NAMES; i++) {
        const struct planned_limit *limit = find(&bound, names[i].class);
        if (limit != NULL && (classes & limit->class) != 0)
            spent_add(&all_known[i][subject].spent, world.now_ns, interval_of(limit));
    }
}

/* ---- refusals ---- */

/* The longest possible time until the funnel has room; 0: there is room. UINT64_MAX: unknown. */
static uint64_t longest_wait(size_t which, const struct refused *refused, unsigned under_way)
{
    const struct planned_limit *limit = find(&bound, names[which].class);
    const struct known *known = &all_known[which][refused->subject];
    uint64_t interval_ns = interval_of(limit), at_ns = refused->from_ns - EARLY_NS;
    if (under_way == LIMITS_UNKNOWN)
        return UINT64_MAX;
    uint64_t empty_ns = spent_until(&known->spent, at_ns, under_way + known->leaving, interval_ns);
    if (empty_ns == UINT64_MAX)
        return UINT64_MAX;
    uint64_t then_ns = empty_ns + interval_ns, latest_ns = at_ns + burst_of(limit);
    return then_ns > latest_ns ? then_ns - latest_ns : 0;
}

/* The number behind `name`. -1: the number is negative. -2: no such name. */
static int64_t number_after(struct slice words, const char *name)
{
    const char *at = memmem(words.at, words.len, name, strlen(name));
    int64_t number = 0;
    if (at == NULL)
        return -2;
    at += strlen(name);
    if (*at == '-')
        return -1;
    for (; at < words.at + words.len && *at >= '0' && *at <= '9'; at++)
        number = 10 * number + (*at - '0');
    return number;
}

static const char *judge_refusal(size_t which, const struct refused *refused,
                                 unsigned (*under_way)(unsigned subject, unsigned classes))
{
    const struct planned_limit *limit = find(&bound, names[which].class);
    int64_t told_ms = number_after(refused->words, "retry_in_ms=");
    if ((refused->classes & names[which].class) == 0)
        return "refused by a limit that is not about it";
    if (told_ms < 1)
        return "refused for no time";
    if (limit == NULL || limit->delay_ms > 0 || is_loose || unknown[refused->subject] > 0 ||
        limit->period_ms * MS / limit->count < ROUGH_NS)
        return NULL;
    uint64_t told_ns = (uint64_t)(told_ms - 1) * MS;
    /* at most a burst is owed, so one interval admits a command */
    if (told_ns > limit->period_ms * MS / limit->count + 1)
        return "refused for longer than a command takes";
    if (longest_wait(which, refused, 0) > told_ns)
        return NULL;
    uint64_t wait_ns = longest_wait(which, refused, under_way(refused->subject, limit->class));
    if (wait_ns == 0)
        return "refused, and there is room";
    return wait_ns > told_ns ? NULL : "there will be room before it is told so";
}

/* True if a limit of that class may have decided at `from_ns` or later. */
static bool may_bind(size_t i, uint64_t from_ns)
{
    return is_unknown || (!bound.is_shadow && find(&bound, names[i].class) != NULL) ||
           from_ns <= until_ns[i] ||
           (is_changing && !coming.is_shadow && find(&coming, names[i].class) != NULL);
}

const char limits_strange[] = "refused by a limit that there is not";

const char *limits_refused(const struct refused *refused,
                           unsigned (*under_way)(unsigned subject, unsigned classes))
{
    static const char mark[] = "limit=default/";
    struct slice words = refused->words;
    const char *at = memmem(words.at, words.len, mark, sizeof mark - 1);
    if (at == NULL)
        return "refused by no limit";
    at += sizeof mark - 1;
    struct slice name = slice_of(at, words.len - (size_t)(at - words.at));
    for (size_t i = 0; i < N_NAMES; i++)
        if (slice_eq(name, slice_str(names[i].name)) && may_bind(i, refused->from_ns))
            return judge_refusal(i, refused, under_way);
    return limits_strange;
}

/* ---- clients that disconnect ---- */

struct leaver {
    struct bell bell;
    unsigned subjects;
    unsigned counts[N_NAMES];
};

static bool is_one(unsigned subjects)
{
    return (subjects & (subjects - 1)) == 0;
}

/* weir has closed its side: no request of the client is charged any more. */
static void on_left(struct bell *bell)
{
    struct leaver *leaver = container_of(bell, struct leaver, bell);
    for (unsigned subject = 0; subject < LIMIT_SUBJECTS; subject++) {
        if ((leaver->subjects >> subject & 1) == 0)
            continue;
        unknown[subject] -= !is_one(leaver->subjects);
        for (size_t i = 0; i < N_NAMES; i++) {
            const struct planned_limit *limit = find(&bound, names[i].class);
            struct known *known = &all_known[i][subject];
            known->leaving -= leaver->counts[i];
            if (limit != NULL && !is_one(leaver->subjects))
                spent_fill(&known->spent, world.now_ns, world.now_ns + burst_of(limit));
            for (; limit != NULL && leaver->counts[i] > 0; leaver->counts[i]--)
                spent_add(&known->spent, world.now_ns, interval_of(limit));
        }
    }
    free(leaver);
}

struct bell *limits_leave(unsigned subjects)
{
    struct leaver *leaver = mem_zalloc(1, sizeof *leaver);
    leaver->bell.ring = on_left;
    leaver->subjects = subjects;
    for (unsigned subject = 0; subject < LIMIT_SUBJECTS && !is_one(subjects); subject++)
        unknown[subject] += subjects >> subject & 1;
    return &leaver->bell;
}

void limits_leaves(struct bell *bell, unsigned classes)
{
    struct leaver *leaver = container_of(bell, struct leaver, bell);
    unsigned subject = (unsigned)__builtin_ctz(leaver->subjects);
    for (size_t i = 0; i < N_NAMES && is_one(leaver->subjects); i++)
        if ((classes & names[i].class) != 0) {
            leaver->counts[i]++;
            all_known[i][subject].leaving++;
        }
}
