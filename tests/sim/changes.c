#include "tests/sim/changes.h"

#include <string.h>

#include "limit/queue.h"

#define MS 1e6

static double rate_of(const struct planned_limit *limit)
{
    return limit->count / (limit->period_ms * MS);
}

/*
 * A limit that delays may send a command a little too soon after the previous command:
 * limit/queue.h.
 */
static double burst_of(const struct planned_limit *limit)
{
    return limit->burst +
           (limit->delay_ms > 0 ? 1 + rate_of(limit) * (double)DEPARTURE_SLACK_NS : 0);
}

void changes_forget(struct changes *changes)
{
    changes->n = 0;
}

void changes_begin(struct changes *changes, const struct planned_limit *limit, uint64_t now_ns)
{
    changes->n = 1;
    changes->at[0] = (struct rate_change){now_ns, rate_of(limit), burst_of(limit), 0};
}

static double higher(double a, double b)
{
    return a > b ? a : b;
}

static bool add(struct changes *changes, uint64_t now_ns, double per_ns, double burst)
{
    if (changes->n == CHANGES_KEPT)
        return false;
    const struct rate_change *last = &changes->at[changes->n - 1];
    changes->at[changes->n++] =
        (struct rate_change){now_ns, per_ns, burst, higher(burst - last->burst, 0)};
    return true;
}

bool changes_may(struct changes *changes, const struct planned_limit *to, uint64_t now_ns)
{
    const struct rate_change *last = &changes->at[changes->n - 1];
    return add(changes, now_ns, higher(last->per_ns, rate_of(to)),
               higher(last->burst, burst_of(to)));
}

bool changes_now(struct changes *changes, const struct planned_limit *to, uint64_t now_ns)
{
    return add(changes, now_ns, rate_of(to), burst_of(to));
}

/* How many commands may pass between these moments. */
static double allowed(const struct changes *changes, uint64_t from_ns, uint64_t to_ns)
{
    double most = 0;
    bool has_begun = false;
    for (unsigned i = 0; i < changes->n; i++) {
        const struct rate_change *at = &changes->at[i];
        uint64_t end_ns = i + 1 < changes->n && at[1].since_ns < to_ns ? at[1].since_ns : to_ns;
        if (end_ns < from_ns || at->since_ns > to_ns)
            continue;
        uint64_t begin_ns = at->since_ns > from_ns ? at->since_ns : from_ns;
        most += end_ns > begin_ns ? at->per_ns * (double)(end_ns - begin_ns) : 0;
        most += has_begun ? at->grown : at->burst;
        has_begun = true;
    }
    return most;
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

bool changes_admit(const struct changes *changes, struct window *window, uint64_t from_ns,
                   uint64_t to_ns)
{
    if (from_ns <= changes->at[0].since_ns) /* the decision may be older than what is known */
        return true;
    remember(window, from_ns);
    for (unsigned i = window->n, n = 1; i-- > 0; n++)
        if (n > allowed(changes, window->from_ns[i], to_ns) + 1e-6)
            return false;
    return true;
}
