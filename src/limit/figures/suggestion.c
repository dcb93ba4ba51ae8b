#include "limit/figures/suggestion.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- distribution ---- */

#define STEP_BITS 4
#define STEPS (1U << STEP_BITS) /* steps in an octave */
#define PEAK_BITS 10            /* bits of a peak in a key; 32 octaves of 16 steps need 9 */
#define PEAK_MASK ((1U << PEAK_BITS) - 1)
#define IN_USE (1U << (PEAKS * PEAK_BITS)) /* set in every key: the key 0 is a free cell */
#define CELLS_FIRST 64
#define COARSE_MOST STEP_BITS

/*
 * ---- steps: numbers between two powers of two share a step if their first five bits are equal;
 * peaks are >= 1 ----
 */

static unsigned suggestion_step_of(uint32_t n)
{
    unsigned octave = 31U - (unsigned)__builtin_clz(n);
    return (octave << STEP_BITS) + ((unsigned)((uint64_t)n << STEP_BITS >> octave) & (STEPS - 1));
}

static uint32_t least_of(unsigned step)
{
    unsigned octave = step >> STEP_BITS;
    uint64_t least = ((uint64_t)(STEPS + (step & (STEPS - 1))) << octave) + STEPS - 1;
    return octave > 31 ? UINT32_MAX : (uint32_t)(least >> STEP_BITS);
}

static uint32_t most_of(unsigned step)
{
    uint32_t next = least_of(step + 1);
    return next == UINT32_MAX ? next : next - 1;
}

static unsigned suggestion_part(uint32_t key, unsigned peak)
{
    return key >> (peak * PEAK_BITS) & PEAK_MASK;
}

static uint32_t suggestion_key_of(const struct peaks *peaks, unsigned coarse)
{
    uint32_t key = IN_USE;
    for (unsigned i = 0; i < PEAKS; i++)
        key |= suggestion_step_of(peaks->of[i]) >> coarse << (i * PEAK_BITS);
    return key;
}

static struct peaks upper_of(uint32_t key, unsigned coarse)
{
    struct peaks peaks;
    for (unsigned i = 0; i < PEAKS; i++)
        peaks.of[i] = most_of(((suggestion_part(key, i) + 1) << coarse) - 1);
    return peaks;
}

/* ---- cells ---- */

static struct distribution_cell *suggestion_find(const struct distribution *p, uint32_t key)
{
    size_t i = (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (p->n_cells - 1);
    while (p->cells[i].key != 0 && p->cells[i].key != key)
        i = (i + 1) & (p->n_cells - 1);
    return &p->cells[i];
}

static void suggestion_put(struct distribution *p, uint32_t key, uint32_t n)
{
    struct distribution_cell *cell = suggestion_find(p, key);
    p->used += cell->key == 0;
    cell->key = key;
    cell->subjects = cell->subjects < UINT32_MAX - n ? cell->subjects + n : UINT32_MAX;
}

/* False: out of memory; nothing has changed. */
static bool rebuild(struct distribution *p, size_t n_cells, unsigned coarse)
{
    struct distribution_cell *cells = calloc(n_cells, sizeof *cells);
    if (cells == NULL)
        return false;
    struct distribution old = *p;
    p->cells = cells;
    p->n_cells = n_cells;
    p->coarse = coarse;
    p->used = 0;
    for (size_t i = 0; i < old.n_cells; i++) {
        if (old.cells[i].key == 0)
            continue;
        uint32_t key = IN_USE;
        for (unsigned j = 0; j < PEAKS; j++)
            key |= suggestion_part(old.cells[i].key, j) >> (coarse - old.coarse) << (j * PEAK_BITS);
        suggestion_put(p, key, old.cells[i].subjects);
    }
    free(old.cells);
    return true;
}

/*
 * Makes room for one more cell. The table stays at most three quarters full, unless it can neither
 * grow nor become coarser. Then one cell stays free. False: no room.
 */
static bool suggestion_make_room(struct distribution *p)
{
    while (p->cells == NULL || (p->used + 1) * 4 > p->n_cells * 3) {
        bool may_grow = p->n_cells < p->most;
        if (!may_grow && p->coarse == COARSE_MOST)
            return p->used + 1 < p->n_cells;
        size_t more = p->n_cells > 0 ? 2 * p->n_cells : CELLS_FIRST;
        if (!rebuild(p, may_grow ? more : p->n_cells, may_grow ? p->coarse : p->coarse + 1))
            return p->cells != NULL && p->used + 1 < p->n_cells;
    }
    return true;
}

void distribution_init(struct distribution *p, size_t most_cells)
{
    *p = (struct distribution){.most = most_cells};
}

void distribution_fini(struct distribution *p)
{
    free(p->cells);
    distribution_init(p, p->most);
}

void distribution_copy(struct distribution *to, const struct distribution *from)
{
    distribution_init(to, from->most);
    struct distribution_cell *cells =
        from->cells != NULL ? malloc(from->n_cells * sizeof *cells) : NULL;
    if (cells == NULL)
        return;
    memcpy(cells, from->cells, from->n_cells * sizeof *cells);
    *to = *from;
    to->cells = cells;
}

void distribution_add(struct distribution *p, const struct peaks *peaks, uint32_t n)
{
    if (peaks->of[PEAK_1S] == 0 || n == 0 || !suggestion_make_room(p))
        return;
    suggestion_put(p, suggestion_key_of(peaks, p->coarse), n);
    p->subjects += n;
}

void distribution_take(struct distribution *p, const struct peaks *peaks)
{
    if (peaks->of[PEAK_1S] == 0 || p->cells == NULL)
        return;
    struct distribution_cell *cell = suggestion_find(p, suggestion_key_of(peaks, p->coarse));
    if (cell->key == 0 || cell->subjects == 0)
        return;
    cell->subjects--;
    p->subjects--;
}

void distribution_merge(struct distribution *p, const struct distribution *other)
{
    size_t at = 0;
    struct peaks upper;
    const struct distribution_cell *cell;
    while ((cell = distribution_next(other, &at, &upper)) != NULL)
        distribution_add(p, &upper, cell->subjects);
}

const struct distribution_cell *distribution_next(const struct distribution *p, size_t *at,
                                                  struct peaks *upper)
{
    while (*at < p->n_cells && p->cells[*at].subjects == 0)
        ++*at;
    if (*at == p->n_cells)
        return NULL;
    const struct distribution_cell *cell = &p->cells[(*at)++];
    *upper = upper_of(cell->key, p->coarse);
    return cell;
}

struct peaks distribution_lower(const struct distribution *p, const struct distribution_cell *cell)
{
    struct peaks peaks;
    for (unsigned i = 0; i < PEAKS; i++)
        peaks.of[i] = least_of(suggestion_part(cell->key, i) << p->coarse);
    return peaks;
}

#define HEADROOM 1.2
#define HUNDRED 100  /* one in this many subjects may be limited */
#define GAP_SHARE 10 /* one in this many subjects may be above a gap (suggestion.h) */

/*
 * Marks: numbers on a logarithmic scale with 32 steps to an octave. Rounding up adds 3 % at most.
 * Marks find the largest few of many numbers.
 */
#define MARK_STEPS 32
#define MARKS (64 * MARK_STEPS)
#define GAP_MARKS (2 * MARK_STEPS) /* a factor of four */
/*
 * least need for rate above a gap, in commands an hour: one a second
 */
#define GAP_RATE 3600
#define GAP_BURST 60 /* least need for burst above a gap, in commands */

bool suggestion_has_enough(uint64_t subjects, uint64_t observed_s)
{
    return subjects >= SUGGESTION_SUBJECTS || (subjects > 0 && observed_s >= SUGGESTION_SECONDS);
}

static double peak(const struct peaks *peaks, enum peak which)
{
    return (double)peaks->of[which];
}

static double suggestion_per_s(const struct suggestion *suggestion)
{
    return (double)suggestion->count / suggestion->period_s;
}

/* ---- needs of one subject ---- */

static double needed_rate(const struct peaks *peaks, uint64_t observed_s)
{
    enum peak which = observed_s < 20 ? PEAK_1S : observed_s < 120 ? PEAK_10S : PEAK_60S;
    return peak(peaks, which) / peak_seconds(which);
}

/*
 * Returns the burst for two adjacent windows of `half` commands each. The commands of one window
 * take `seconds`. All commands of the first second may come at its end, and all commands of the
 * last second at its start. These two seconds therefore give nothing back.
 */
static double suggestion_pair(double half, double seconds, double rate)
{
    return 2 * half - rate * (seconds > 1 ? 2 * seconds - 2 : 0);
}

static double suggestion_larger(double a, double b)
{
    return a > b ? a : b;
}

static double suggestion_smaller(double a, double b)
{
    return a < b ? a : b;
}

/* The burst that the peaks need. The 60 s peak must not exceed `rate`. */
static double needed_burst(const struct peaks *peaks, double rate)
{
    double p1 = peak(peaks, PEAK_1S);
    double p10 = peak(peaks, PEAK_10S);
    double p60 = peak(peaks, PEAK_60S);
    double seconds =
        suggestion_smaller(p10 / p1, 10); /* time of the 10 s peak at the fastest pace */
    double tens = (double)(uint64_t)(p60 / p10);
    double rest = p60 / p10 - tens;
    double minute = rest > 0 ? 10 * tens + rest * seconds : 10 * (tens - 1) + seconds;
    minute = suggestion_smaller(minute, 60); /* time of the 60 s peak at the fastest pace */
    return suggestion_larger(
        suggestion_pair(p1, 1, rate),
        suggestion_larger(suggestion_pair(p10, seconds, rate), suggestion_pair(p60, minute, rate)));
}

bool suggestion_passes(const struct suggestion *suggestion, const struct peaks *peaks)
{
    double rate = suggestion_per_s(suggestion);
    return peaks->of[PEAK_60S] == 0 || (peak(peaks, PEAK_60S) <= 60 * rate &&
                                        needed_burst(peaks, rate) <= (double)suggestion->burst);
}

double suggestion_excess(const struct suggestion *suggestion, const struct peaks *peaks,
                         enum peak *which)
{
    double most = 0;
    *which = PEAK_1S;
    for (enum peak i = PEAK_1S; i < PEAKS; i++) {
        double excess = peak(peaks, i) / ((double)suggestion->burst +
                                          suggestion_per_s(suggestion) * peak_seconds(i));
        *which = excess > most ? i : *which;
        most = suggestion_larger(most, excess);
    }
    return most;
}

bool suggestion_limits(const struct suggestion *suggestion, const struct peaks *peaks)
{
    enum peak which;
    return suggestion_excess(suggestion, peaks, &which) > 1;
}

/* ---- needs of ordinary subjects ---- */

/*
 * Number of subjects by need, one count for each mark. Subjects that no burst satisfies are in the
 * last mark.
 */
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
    return (double)(UINT64_C(1) << mark / MARK_STEPS) *
           (1 + (mark % MARK_STEPS + 1.0) / MARK_STEPS);
}

/* The largest number of subjects that may be above a gap. */
static uint64_t most_above(uint64_t subjects)
{
    uint64_t tenth = subjects / GAP_SHARE;
    return tenth > 0 || subjects < SUGGESTION_SUBJECTS ? tenth : 1;
}

/* Number of subjects above the lowest gap; 0: no gap. `least`: the least need above a gap. */
static uint64_t above_gap(const struct marks *marks, uint64_t subjects, double least)
{
    uint64_t most = most_above(subjects);
    uint64_t above = 0;
    uint64_t found = 0;
    unsigned last = 0; /* smallest mark counted in `above`; 0: none yet */
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

/* Number of subjects that the suggestion may limit. */
static uint64_t count_spared(const struct marks *marks, uint64_t subjects, unsigned percentile,
                             double least)
{
    if (percentile != SUGGESTION_GAPS)
        return subjects * (HUNDRED - percentile) / HUNDRED;
    uint64_t above = above_gap(marks, subjects, least);
    return above > subjects / HUNDRED ? above : subjects / HUNDRED;
}

/* The smallest amount that suffices for all but `spared` subjects. */
static double enough(const struct marks *marks, uint64_t spared)
{
    uint64_t above = 0;
    unsigned mark = MARKS - 1;
    while (mark > 0 && above + marks->subjects[mark] <= spared)
        above += marks->subjects[mark--];
    return upper_of_mark(mark);
}

static double enough_rate(const struct distribution *distribution, uint64_t observed_s,
                          unsigned percentile)
{
    struct marks marks = {{0}};
    struct peaks peaks;
    const struct distribution_cell *cell;
    size_t at = 0;
    while ((cell = distribution_next(distribution, &at, &peaks)) != NULL)
        marks.subjects[mark_of(3600 * needed_rate(&peaks, observed_s))] += cell->subjects;
    return enough(&marks, count_spared(&marks, distribution->subjects, percentile, GAP_RATE)) /
           3600;
}

/*
 * The burst for ordinary subjects. Subjects that exceed the rate rank above all others. *above:
 * number of subjects above a gap.
 */
static double enough_burst(const struct distribution *distribution, double rate,
                           unsigned percentile, uint64_t *above)
{
    struct marks marks = {{0}};
    struct peaks peaks;
    const struct distribution_cell *cell;
    size_t at = 0;
    while ((cell = distribution_next(distribution, &at, &peaks)) != NULL) {
        bool can_pass = peak(&peaks, PEAK_60S) <= 60 * rate;
        marks.subjects[can_pass ? mark_of(needed_burst(&peaks, rate)) : MARKS - 1] +=
            cell->subjects;
    }
    *above =
        percentile == SUGGESTION_GAPS ? above_gap(&marks, distribution->subjects, GAP_BURST) : 0;
    return enough(&marks, count_spared(&marks, distribution->subjects, percentile, GAP_BURST));
}

/* Rounds up to two digits followed by zeros. */
static uint64_t round_up(double n)
{
    uint64_t scale = 1;
    while (n / (double)scale > 99)
        scale *= 10;
    uint64_t digits = (uint64_t)(n / (double)scale);
    digits += (double)digits < n / (double)scale;
    return (digits > 0 ? digits : 1) * scale;
}

struct suggestion suggestion_make(const struct distribution *distribution, uint64_t observed_s,
                                  unsigned percentile)
{
    double rate = HEADROOM * enough_rate(distribution, observed_s, percentile);
    struct suggestion made = {.period_s = rate >= 10 ? 1 : rate >= 10.0 / 60 ? 60 : 3600};
    made.count = round_up(rate * made.period_s);
    made.burst =
        round_up(enough_burst(distribution, suggestion_per_s(&made), percentile, &made.above));
    return made;
}

bool suggestion_covers(const struct suggestion *strict, const struct suggestion *loose)
{
    return strict->burst <= loose->burst && (unsigned __int128)strict->count * loose->period_s <=
                                                (unsigned __int128)loose->count * strict->period_s;
}

/* ---- as text ---- */

static const char *period_name(unsigned period_s)
{
    return period_s == 1 ? "s" : period_s == 60 ? "m" : "h";
}

struct slice suggestion_text(const struct suggestion *suggestion, char *out)
{
    int len =
        snprintf(out, SUGGESTION_ROOM, "%llu/%s burst %llu", (unsigned long long)suggestion->count,
                 period_name(suggestion->period_s), (unsigned long long)suggestion->burst);
    return slice_of(out, (size_t)len);
}
