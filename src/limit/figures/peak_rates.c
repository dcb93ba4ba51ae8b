#include "limit/figures/peak_rates.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"

static _Atomic uint64_t bytes;

static const unsigned seconds[PEAKS] = {[PEAK_1S] = 1, [PEAK_10S] = 10, [PEAK_60S] = 60};

unsigned peak_seconds(enum peak peak)
{
    return seconds[peak];
}

static uint32_t peak_rates_read_word(const _Atomic uint32_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void write_word(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

static uint32_t plus(uint32_t a, uint32_t b)
{
    return a < UINT32_MAX - b ? a + b : UINT32_MAX;
}

static uint32_t peak_rates_larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* ---- the end of a second ---- */

static void end_second_of(struct peak_rates_of_class *class, uint32_t n, uint32_t ended,
                          uint32_t next)
{
    write_word(&class->peaks[PEAK_1S],
               peak_rates_larger(peak_rates_read_word(&class->peaks[PEAK_1S]), n));
    for (unsigned i = PEAK_10S; i < PEAKS; i++) {
        uint32_t sum = plus(peak_rates_read_word(&class->sum[i - 1]), n);
        write_word(&class->peaks[i],
                   peak_rates_larger(peak_rates_read_word(&class->peaks[i]), sum));
        write_word(&class->sum[i - 1], ended / seconds[i] == next / seconds[i] ? sum : 0);
    }
}

static uint32_t peak_rates_take_word(_Atomic uint32_t *word)
{
    return atomic_exchange_explicit(word, 0, memory_order_relaxed);
}

static void end_second(struct peak_rates *block, bool has_builtins, uint32_t ended, uint32_t next)
{
    uint32_t n[PEAK_RATES_BLOCK];
    for (unsigned i = 0; i < PEAK_RATES_BLOCK; i++)
        n[i] = peak_rates_take_word(&block->classes[i].now);
    if (has_builtins)
        n[PEAK_CLASS_ALL] = plus(n[PEAK_CLASS_ALL], plus(n[PEAK_CLASS_READ], n[PEAK_CLASS_WRITE]));
    for (unsigned i = 0; i < PEAK_RATES_BLOCK; i++)
        end_second_of(&block->classes[i], n[i], ended, next);
}

/*
 * Moves the block to `second`. The first thread in a second ends the previous second. A worker with
 * a slightly older clock counts in the new second.
 */
static void move_to(struct peak_rates *block, bool has_builtins, uint32_t second)
{
    uint32_t ended = peak_rates_read_word(&block->second);
    if (second > ended &&
        atomic_compare_exchange_strong_explicit(&block->second, &ended, second,
                                                memory_order_relaxed, memory_order_relaxed))
        end_second(block, has_builtins, ended, second);
}

/* ---- blocks ---- */

/* NULL: out of memory. */
static struct peak_rates *make_block(_Atomic(struct peak_rates *) *link, uint32_t second)
{
    struct peak_rates *made = calloc(1, sizeof *made);
    struct peak_rates *there = NULL;
    if (made == NULL)
        return NULL;
    atomic_init(&made->second, second);
    if (!atomic_compare_exchange_strong_explicit(link, &there, made, memory_order_acq_rel,
                                                 memory_order_acquire)) {
        free(made); /* another thread was faster */
        return there;
    }
    atomic_fetch_add_explicit(&bytes, sizeof *made, memory_order_relaxed);
    return made;
}

void peak_rates_add(_Atomic(struct peak_rates *) *first, uint16_t mask, uint32_t n, uint64_t now_ns)
{
    uint32_t second = (uint32_t)(now_ns / NS_PER_S);
    _Atomic(struct peak_rates *) *link = first;
    for (unsigned left = mask; left != 0; left >>= PEAK_RATES_BLOCK) {
        struct peak_rates *block = atomic_load_explicit(link, memory_order_acquire);
        if (block == NULL)
            block = make_block(link, second);
        if (block == NULL)
            return;
        if (second != peak_rates_read_word(&block->second))
            move_to(block, link == first, second);
        for (unsigned here = left & ((1U << PEAK_RATES_BLOCK) - 1); here != 0; here &= here - 1)
            peak_rates_count(block, (unsigned)__builtin_ctz(here), n);
        link = &block->next;
    }
}

/* Number of commands in the current second. */
static uint32_t peak_rates_now_of(const struct peak_rates *first, const struct peak_rates *block,
                                  unsigned i)
{
    uint32_t n = peak_rates_read_word(&block->classes[i].now);
    if (block == first && i == PEAK_CLASS_ALL)
        n = plus(n, plus(peak_rates_read_word(&block->classes[PEAK_CLASS_READ].now),
                         peak_rates_read_word(&block->classes[PEAK_CLASS_WRITE].now)));
    return n;
}

struct peaks peak_rates_get(struct peak_rates *first, unsigned class_index)
{
    struct peaks peaks = {{0}};
    struct peak_rates *block = first;
    for (; block != NULL && class_index >= PEAK_RATES_BLOCK; class_index -= PEAK_RATES_BLOCK)
        block = atomic_load_explicit(&block->next, memory_order_acquire);
    if (block == NULL)
        return peaks;
    const struct peak_rates_of_class *class = &block->classes[class_index];
    uint32_t now = peak_rates_now_of(first, block, class_index);
    peaks.of[PEAK_1S] = peak_rates_larger(peak_rates_read_word(&class->peaks[PEAK_1S]), now);
    for (unsigned i = PEAK_10S; i < PEAKS; i++) {
        uint32_t peak = peak_rates_larger(peak_rates_read_word(&class->peaks[i]),
                                          plus(peak_rates_read_word(&class->sum[i - 1]), now));
        /* words read while a second ends may disagree */
        peaks.of[i] = peak_rates_larger(peak, peaks.of[i - 1]);
    }
    if (peaks.of[PEAK_1S] == 0)
        peaks = (struct peaks){{0}};
    return peaks;
}

void peak_rates_free(struct peak_rates *first)
{
    while (first != NULL) {
        struct peak_rates *next = atomic_load_explicit(&first->next, memory_order_acquire);
        atomic_fetch_sub_explicit(&bytes, sizeof *first, memory_order_relaxed);
        free(first);
        first = next;
    }
}

uint64_t peak_rates_bytes(void)
{
    return atomic_load_explicit(&bytes, memory_order_relaxed);
}
