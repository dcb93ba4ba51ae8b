/* FIXED and SLIDING APPROX. */
#include "tests/sim/exact.h"

#define NS_PER_US 1000
#define US_PER_MS 1000
#define DAY_US INT64_C(86400000000)

static const char counts[] = "ERR the key still counts in 8 other periods";

struct panes {
    struct exact_window all[EXACT_KEPT + EXACT_RATES], was[EXACT_KEPT + EXACT_RATES];
    unsigned n;
    unsigned asked[EXACT_RATES]; /* index in `all` */
    int64_t used[EXACT_RATES];   /* before the call */
};

/* ---- the calendar of UTC ---- */

static int64_t days_from_civil(int64_t year, int month)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    int64_t past = year - 1;
    bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return past * 365 + past / 4 - past / 100 + past / 400 - 719162 + before[month] +
           (month > 1 && is_leap);
}

/* D2: the start and the end of the window that contains now_us. */
static void calendar_window(char letter, int64_t now_us, int64_t *start, int64_t *over)
{
    int64_t day = now_us / DAY_US, last;
    if (letter == 'd') {
        last = day + 1;
    } else if (letter == 'w') {
        day -= (day + 3) % 7; /* 1970 began on a Thursday */
        last = day + 7;
    } else {
        int64_t year = 1970 + day / 366;
        while (days_from_civil(year + 1, 0) <= day)
            year++;
        int month = 0;
        while (month < 11 && days_from_civil(year, month + 1) <= day)
            month++;
        day = days_from_civil(year, month);
        last = month < 11 ? days_from_civil(year, month + 1) : days_from_civil(year + 1, 0);
    }
    *start = day * DAY_US;
    *over = last * DAY_US;
}

/* ---- one window ---- */

/* A1: the units that count at `at`, rounded up. */
static int64_t held(const struct exact_window *window, int64_t at)
{
    struct exact_window then = *window;
    if (then.before == 0 && (then.letter != '\0' || then.is_first))
        return then.used;
    while (at >= then.start + then.period && (then.used > 0 || then.before > 0)) {
        then.start += then.period;
        then.before = then.used;
        then.used = 0;
    }
    return then.used +
           exact_ceil(then.before * (then.period - exact_max(0, at - then.start)), then.period);
}

static int64_t holds(enum exact_kind kind, const struct exact_window *window, int64_t at)
{
    return kind == EXACT_FIXED ? window->used : held(window, at);
}

/* A3, W3: the time for which a unit of the window still counts. */
static int64_t over_of(enum exact_kind kind, const struct exact_window *window, int64_t now)
{
    if (window->used > 0)
        return window->start + (kind == EXACT_APPROX ? 2 : 1) * window->period - now;
    return window->before > 0 ? window->start + window->period - now : 0;
}

/* O7: units given back are taken from this window first, then from the previous window. */
static void add(enum exact_kind kind, struct exact_window *window, int64_t units)
{
    int64_t used = exact_min(window->used + units, EXACT_MOST);
    if (used < 0 && kind == EXACT_APPROX)
        window->before = exact_max(0, window->before + used);
    window->used = exact_max(0, used);
}

/* A2: the least whole number of us after which there is room. */
static int64_t retry_of(enum exact_kind kind, const struct exact_window *window, int64_t room,
                        int64_t now)
{
    if (kind == EXACT_FIXED)
        return window->used > room ? window->start + window->period - now : 0;
    int64_t low = -1, high = window->start + 3 * window->period - now;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (held(window, now + middle) <= room)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* ---- windows of a key ---- */

/* W1, A1: moves the window to `now`. False: none of its units count. */
static bool is_seen(enum exact_kind kind, struct exact_window *window, int64_t now)
{
    if (window->letter != '\0' || window->is_first)
        return now < window->start + window->period;
    int64_t here = now - now % window->period;
    if (window->start < here) {
        window->before =
            kind == EXACT_APPROX && window->start == here - window->period ? window->used : 0;
        window->start = here;
        window->used = 0;
    }
    return true;
}

static bool is_same(const struct exact_window *a, const struct exact_window *b)
{
    bool is_named_alike =
        a->period == b->period && a->is_first == b->is_first && a->letter == b->letter;
    return is_named_alike && (a->letter == '\0' || a->start == b->start);
}

static struct exact_window new_window(const struct exact_call *call, const struct exact_rate *rate,
                                      int64_t now)
{
    struct exact_window window = {
        .period = rate->period_us, .is_first = call->is_from_first, .letter = rate->letter};
    int64_t over;
    if (rate->letter != '\0') {
        calendar_window(rate->letter, now, &window.start, &over);
        window.period = over - window.start;
    } else {
        window.start = call->is_from_first ? now : now - now % window.period;
    }
    return window;
}

static void look(struct panes *panes, const struct exact_key *key, const struct exact_call *call,
                 int64_t now)
{
    *panes = (struct panes){0};
    for (unsigned i = 0; i < key->n; i++) {
        panes->all[panes->n] = key->windows[i];
        panes->n += is_seen(call->kind, &panes->all[panes->n], now);
    }
    for (unsigned r = 0; r < call->n_rates; r++) {
        struct exact_window window = new_window(call, &call->rates[r], now);
        unsigned i = 0;
        while (i < panes->n && !is_same(&panes->all[i], &window))
            i++;
        if (i == panes->n)
            panes->all[panes->n++] = window;
        panes->asked[r] = i;
        panes->used[r] = holds(call->kind, &panes->all[i], now);
    }
    for (unsigned i = 0; i < panes->n; i++)
        panes->was[i] = panes->all[i];
}

/* W2. */
static int64_t granted_of(const struct panes *panes, const struct exact_call *call)
{
    int64_t granted = exact_tries(call), charge = call->cost > 0 ? exact_charge(call) : 1;
    if (exact_is_sure(call))
        return granted;
    for (unsigned r = 0; r < call->n_rates; r++)
        granted = exact_within(exact_floor(call->rates[r].count - panes->used[r], charge), 0,
                               call->is_held ? 0 : granted);
    return granted;
}

/* W4: charges each window once. */
static void charge_all(struct panes *panes, const struct exact_call *call, int64_t granted,
                       int64_t now)
{
    int64_t charge = exact_charge(call);
    for (unsigned r = 0; r < call->n_rates; r++) {
        bool is_again = false;
        for (unsigned i = 0; i < r; i++)
            is_again |= panes->asked[i] == panes->asked[r];
        if (!is_again)
            add(call->kind, &panes->all[panes->asked[r]], granted * charge);
    }
    for (unsigned r = 0; call->counts_all && r < call->n_rates; r++) { /* O8 */
        struct exact_window *window = &panes->all[panes->asked[r]];
        int64_t most = exact_min(panes->used[r] + exact_tries(call) * charge, call->rates[r].count);
        add(call->kind, window, exact_max(0, most - holds(call->kind, window, now)));
    }
}

static bool have_changed(const struct panes *panes)
{
    for (unsigned i = 0; i < panes->n; i++)
        if (panes->all[i].used != panes->was[i].used ||
            panes->all[i].before != panes->was[i].before)
            return true;
    return false;
}

/* T1 to T5. */
static struct exact_told tell(const struct panes *panes, const struct exact_call *call,
                              int64_t granted, int64_t now)
{
    struct exact_row rows[EXACT_RATES];
    int64_t charge = exact_charge(call);
    bool is_refused_count = granted == 0 && call->counts_all && !exact_looks(call);
    for (unsigned r = 0; r < call->n_rates; r++) {
        const struct exact_window *window = &panes->all[panes->asked[r]];
        int64_t most = call->rates[r].count, after = panes->used[r];
        if (call->mode == EXACT_CREDIT) {
            int64_t here = holds(call->kind, window, now);
            after = here;
        } else if (!exact_looks(call)) {
            after += granted * charge + (is_refused_count ? charge : 0);
        }
        int64_t retry =
            charge > most ? EXACT_NEVER : retry_of(call->kind, window, most - charge, now);
        if (retry != EXACT_NEVER)
            retry *= NS_PER_US;
        rows[r] = (struct exact_row){retry, most, exact_within(most - after, 0, most),
                                     over_of(call->kind, window, now) * NS_PER_US};
    }
    return granted > 0 ? exact_passed(rows, call->n_rates, granted)
                       : exact_refused(rows, call->n_rates);
}

/* W7, W8. Returns the number of windows that count. */
static unsigned write_panes(struct exact_key *key, const struct panes *panes, int64_t now,
                            int64_t *lives_ms)
{
    unsigned n = 0;
    int64_t longest = 0;
    for (unsigned i = 0; i < panes->n; i++) {
        int64_t over = over_of(key->kind, &panes->all[i], now);
        if (over <= 0)
            continue;
        longest = exact_max(longest, over);
        if (n < EXACT_KEPT)
            key->windows[n] = panes->all[i];
        n++;
    }
    for (unsigned i = n; i < EXACT_KEPT; i++)
        key->windows[i] = (struct exact_window){0};
    key->n = n < EXACT_KEPT ? n : EXACT_KEPT;
    *lives_ms = n > 0 ? exact_ceil(exact_max(longest, US_PER_MS), US_PER_MS) : 0;
    return n;
}

struct exact_step exact_window_ask(struct exact_key *key, const struct exact_call *call,
                                   int64_t now_us)
{
    struct exact_step step = {0};
    struct panes panes;
    look(&panes, key, call, now_us);
    int64_t granted = granted_of(&panes, call);
    if (!exact_looks(call))
        charge_all(&panes, call, granted, now_us);
    step.told = tell(&panes, call, granted, now_us);
    step.has_changed = !exact_looks(call) && have_changed(&panes);
    key->kind = call->kind;
    if (write_panes(key, &panes, now_us, &step.lives_ms) > EXACT_KEPT && step.has_changed)
        step.told.wrong = counts;
    return step;
}
