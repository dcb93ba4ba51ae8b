#include "limit/figures/population.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define STEP_BITS 4
#define STEPS (1U << STEP_BITS) /* in an octave */
#define PEAK_BITS 10            /* of a key: 32 octaves, and one bit */
#define PEAK_MASK ((1U << PEAK_BITS) - 1)
#define IN_USE (1U << (PEAKS * PEAK_BITS)) /* a key is not 0 */
#define CELLS_FIRST 64
#define COARSE_MOST STEP_BITS

/* ---- steps: of the numbers of an octave those with the same first five bits; peaks are 1 or more ---- */

static unsigned step_of(uint32_t n)
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

static unsigned part(uint32_t key, unsigned peak)
{
    return key >> (peak * PEAK_BITS) & PEAK_MASK;
}

static uint32_t key_of(const struct peaks *peaks, unsigned coarse)
{
    uint32_t key = IN_USE;
    for (unsigned i = 0; i < PEAKS; i++)
        key |= step_of(peaks->of[i]) >> coarse << (i * PEAK_BITS);
    return key;
}

static struct peaks upper_of(uint32_t key, unsigned coarse)
{
    struct peaks peaks;
    for (unsigned i = 0; i < PEAKS; i++)
        peaks.of[i] = most_of(((part(key, i) + 1) << coarse) - 1);
    return peaks;
}

/* ---- cells ---- */

static struct population_cell *find(const struct population *p, uint32_t key)
{
    size_t i = (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (p->n_cells - 1);
    while (p->cells[i].key != 0 && p->cells[i].key != key)
        i = (i + 1) & (p->n_cells - 1);
    return &p->cells[i];
}

static void put(struct population *p, uint32_t key, uint32_t n)
{
    struct population_cell *cell = find(p, key);
    p->used += cell->key == 0;
    cell->key = key;
    cell->subjects = cell->subjects < UINT32_MAX - n ? cell->subjects + n : UINT32_MAX;
}

/* False: out of memory, and nothing has changed. */
static bool rebuild(struct population *p, size_t n_cells, unsigned coarse)
{
    struct population_cell *cells = calloc(n_cells, sizeof *cells);
    if (cells == NULL)
        return false;
    struct population old = *p;
    p->cells = cells;
    p->n_cells = n_cells;
    p->coarse = coarse;
    p->used = 0;
    for (size_t i = 0; i < old.n_cells; i++) {
        if (old.cells[i].key == 0)
            continue;
        uint32_t key = IN_USE;
        for (unsigned j = 0; j < PEAKS; j++)
            key |= part(old.cells[i].key, j) >> (coarse - old.coarse) << (j * PEAK_BITS);
        put(p, key, old.cells[i].subjects);
    }
    free(old.cells);
    return true;
}

/* Room for one cell more: the table is three quarters full at most. */
static bool make_room(struct population *p)
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

void population_init(struct population *p, size_t most_cells)
{
    *p = (struct population){.most = most_cells};
}

void population_fini(struct population *p)
{
    free(p->cells);
    population_init(p, p->most);
}

void population_copy(struct population *to, const struct population *from)
{
    population_init(to, from->most);
    struct population_cell *cells = from->cells != NULL ? malloc(from->n_cells * sizeof *cells) : NULL;
    if (cells == NULL)
        return;
    memcpy(cells, from->cells, from->n_cells * sizeof *cells);
    *to = *from;
    to->cells = cells;
}

void population_add(struct population *p, const struct peaks *peaks, uint32_t n)
{
    if (peaks->of[PEAK_1S] == 0 || n == 0 || !make_room(p))
        return;
    put(p, key_of(peaks, p->coarse), n);
    p->subjects += n;
}

void population_take(struct population *p, const struct peaks *peaks)
{
    if (peaks->of[PEAK_1S] == 0 || p->cells == NULL)
        return;
    struct population_cell *cell = find(p, key_of(peaks, p->coarse));
    if (cell->key == 0 || cell->subjects == 0)
        return;
    cell->subjects--;
    p->subjects--;
}

void population_merge(struct population *p, const struct population *other)
{
    size_t at = 0;
    struct peaks upper;
    const struct population_cell *cell;
    while ((cell = population_next(other, &at, &upper)) != NULL)
        population_add(p, &upper, cell->subjects);
}

const struct population_cell *population_next(const struct population *p, size_t *at, struct peaks *upper)
{
    while (*at < p->n_cells && p->cells[*at].subjects == 0)
        ++*at;
    if (*at == p->n_cells)
        return NULL;
    const struct population_cell *cell = &p->cells[(*at)++];
    *upper = upper_of(cell->key, p->coarse);
    return cell;
}

struct peaks population_lower(const struct population *p, const struct population_cell *cell)
{
    struct peaks peaks;
    for (unsigned i = 0; i < PEAKS; i++)
        peaks.of[i] = least_of(part(cell->key, i) << p->coarse);
    return peaks;
}
