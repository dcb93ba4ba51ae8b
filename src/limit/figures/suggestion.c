#include "limit/figures/suggestion.h"

#include <stdio.h>

#define HEADROOM 1.2
#define HUNDRED 100  /* of so many subjects, one may be limited; */
#define GAP_SHARE 10 /* ... or, above a gap, one of so many */

/* Numbers on a logarithmic scale, for the largest few of many: 1/32 apart, so that rounding up adds 3 % at most. */
#define MARK_STEPS 32
#define MARKS (64 * MARK_STEPS)
#define GAP_MARKS (2 * MARK_STEPS) /* four times as much */
#define GAP_RATE 3600              /* commands an hour ... */
#define GAP_BURST 60               /* ... and of a burst: the least above a gap */

bool suggestion_has_enough(uint64_t subjects, uint64_t observed_s)
{
    return subjects >= SUGGESTION_SUBJECTS || (subjects > 0 && observed_s >= SUGGESTION_SECONDS);
}

static double peak(const struct peaks *peaks, enum peak which)
{
    return (double)peaks->of[which];
}

static double per_s(const struct suggestion *suggestion)
{
    return (double)suggestion->count / suggestion->period_s;
}

/* ---- what a subject needs ---- */

static double needed_rate(const struct peaks *peaks, uint64_t observed_s)
{
    enum peak which = observed_s < 20 ? PEAK_1S : observed_s < 120 ? PEAK_10S : PEAK_60S;
    return peak(peaks, which) / peak_seconds(which);
}

/*
 * What two halves of `half` commands each, that take `seconds` each, need at that rate. Their first and last second may
 * be no more than an instant each.
 */
static double pair(double half, double seconds, double rate)
{
    return 2 * half - rate * (seconds > 1 ? 2 * seconds - 2 : 0);
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* At a rate that its 60 s peak does not exceed. */
static double needed_burst(const struct peaks *peaks, double rate)
{
    double p1 = peak(peaks, PEAK_1S);
    double p10 = peak(peaks, PEAK_10S);
    double p60 = peak(peaks, PEAK_60S);
    double seconds = smaller(p10 / p1, 10); /* that the largest 10 s take, if they come as fast as can be; ... */
    double tens = (double)(uint64_t)(p60 / p10);
    double rest = p60 / p10 - tens;
    double minute = rest > 0 ? 10 * tens + rest * seconds : 10 * (tens - 1) + seconds;
    minute = smaller(minute, 60); /* ... and the largest 60 s */
    return larger(pair(p1, 1, rate), larger(pair(p10, seconds, rate), pair(p60, minute, rate)));
}

bool suggestion_passes(const struct suggestion *suggestion, const struct peaks *peaks)
{
    double rate = per_s(suggestion);
    return peaks->of[PEAK_60S] == 0 ||
           (peak(peaks, PEAK_60S) <= 60 * rate && needed_burst(peaks, rate) <= (double)suggestion->burst);
}

double suggestion_excess(const struct suggestion *suggestion, const struct peaks *peaks, enum peak *which)
{
    double most = 0;
    *which = PEAK_1S;
    for (enum peak i = PEAK_1S; i < PEAKS; i++) {
        double excess = peak(peaks, i) / ((double)suggestion->burst + per_s(suggestion) * peak_seconds(i));
        *which = excess > most ? i : *which;
        most = larger(most, excess);
    }
    return most;
}

bool suggestion_limits(const struct suggestion *suggestion, const struct peaks *peaks)
{
    enum peak which;
    return suggestion_excess(suggestion, peaks, &which) > 1;
}

/* ---- what the ordinary need ---- */

/* How many subjects need so much; those that need more than can be given are in the last. */
struct marks {
    uint64_t subjects[MARKS];
};

static unsigned mark_of(double n)
{
    unsigned octave = 0;
    for (; n >= 2 && octave < 63; octave++)
        n /= 2;
    unsigned step = n < 2 ? (unsigned)((n < 1 ? 0 : n - 1) * MARK_STEPS) : MARK_STEPS - 1;
    return octave * MARK_STEPS + step;
}

static double upper_of_mark(unsigned mark)
{
    return (double)(UINT64_C(1) << mark / MARK_STEPS) * (1 + (mark % MARK_STEPS + 1.0) / MARK_STEPS);
}

/* How many subjects may be above a gap. */
static uint64_t most_above(uint64_t subjects)
{
    uint64_t tenth = subjects / GAP_SHARE;
    return tenth > 0 || subjects < SUGGESTION_SUBJECTS ? tenth : 1;
}

/* How many subjects are above the lowest gap; 0: there is none. `least`: of those above it. */
static uint64_t above_gap(const struct marks *marks, uint64_t subjects, double least)
{
    uint64_t most = most_above(subjects);
    uint64_t above = 0;
    uint64_t found = 0;
    unsigned last = 0; /* the mark of those that are counted in `above` and need least; 0: none is yet */
    for (unsigned mark = MARKS - 1; mark > 0 && above <= most; mark--) {
        if (marks->subjects[mark] == 0)
            continue;
        if (above > 0 && last - mark >= GAP_MARKS && last >= mark_of(least))
            found = above;
        above += marks->subjects[mark];
        last = mark;
    }
    return found;
}

/* How many need not pass. */
static uint64_t count_spared(const struct marks *marks, uint64_t subjects, unsigned percentile, double least)
{
    if (percentile != SUGGESTION_GAPS)
        return subjects * (HUNDRED - percentile) / HUNDRED;
    uint64_t above = above_gap(marks, subjects, least);
    return above > subjects / HUNDRED ? above : subjects / HUNDRED;
}

/* The least that is enough for all but so many. */
static double enough(const struct marks *marks, uint64_t spared)
{
    uint64_t above = 0;
    unsigned mark = MARKS - 1;
    while (mark > 0 && above + marks->subjects[mark] <= spared)
        above += marks->subjects[mark--];
    return upper_of_mark(mark);
}

static double enough_rate(const struct population *population, uint64_t observed_s, unsigned percentile)
{
    struct marks marks = {{0}};
    struct peaks peaks;
    const struct population_cell *cell;
    size_t at = 0;
    while ((cell = population_next(population, &at, &peaks)) != NULL)
        marks.subjects[mark_of(3600 * needed_rate(&peaks, observed_s))] += cell->subjects;
    return enough(&marks, count_spared(&marks, population->subjects, percentile, GAP_RATE)) / 3600;
}

/* Those that do not pass the rate are above all others. *above: how many are above a gap. */
static double enough_burst(const struct population *population, double rate, unsigned percentile, uint64_t *above)
{
    struct marks marks = {{0}};
    struct peaks peaks;
    const struct population_cell *cell;
    size_t at = 0;
    while ((cell = population_next(population, &at, &peaks)) != NULL) {
        bool can_pass = peak(&peaks, PEAK_60S) <= 60 * rate;
        marks.subjects[can_pass ? mark_of(needed_burst(&peaks, rate)) : MARKS - 1] += cell->subjects;
    }
    *above = percentile == SUGGESTION_GAPS ? above_gap(&marks, population->subjects, GAP_BURST) : 0;
    return enough(&marks, count_spared(&marks, population->subjects, percentile, GAP_BURST));
}

/* Up to two digits, and zeros behind them. */
static uint64_t round_up(double n)
{
    uint64_t scale = 1;
    while (n / (double)scale > 99)
        scale *= 10;
    uint64_t digits = (uint64_t)(n / (double)scale);
    digits += (double)digits < n / (double)scale;
    return (digits > 0 ? digits : 1) * scale;
}

struct suggestion suggestion_make(const struct population *population, uint64_t observed_s, unsigned percentile)
{
    double rate = HEADROOM * enough_rate(population, observed_s, percentile);
    struct suggestion made = {.period_s = rate >= 10 ? 1 : rate >= 10.0 / 60 ? 60 : 3600};
    made.count = round_up(rate * made.period_s);
    made.burst = round_up(enough_burst(population, per_s(&made), percentile, &made.above));
    return made;
}

bool suggestion_covers(const struct suggestion *strict, const struct suggestion *loose)
{
    return strict->burst <= loose->burst &&
           (unsigned __int128)strict->count * loose->period_s <= (unsigned __int128)loose->count * strict->period_s;
}

/* ---- as text ---- */

static const char *period_name(unsigned period_s)
{
    return period_s == 1 ? "s" : period_s == 60 ? "m" : "h";
}

struct slice suggestion_text(const struct suggestion *suggestion, char *out)
{
    int len = snprintf(out, SUGGESTION_ROOM, "%llu/%s burst %llu", (unsigned long long)suggestion->count,
                       period_name(suggestion->period_s), (unsigned long long)suggestion->burst);
    return slice_of(out, (size_t)len);
}
