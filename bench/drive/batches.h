/*
 * The requests of a run, made once before it: batches of P requests each, to be sent as they are, over and over.
 *
 * A request is words; "{k}" in one becomes the number of a random key, always as many digits, and a word "{v}" the
 * value.
 */
#ifndef WEIR_BENCH_BATCHES_H
#define WEIR_BENCH_BATCHES_H

#include <stddef.h>
#include <stdint.h>

struct recipe {
    char *const *words; /* requests are divided by a word "+" */
    int n_words;
    unsigned per_batch; /* P; the kinds of requests take turns */
    uint32_t keys;
    size_t value_bytes;
    uint64_t seed;
};

struct batches {
    char *bytes;
    size_t *starts; /* n + 1 of them */
    size_t n;
    size_t next; /* the batch that batches_next hands out */
};

/* Ends the process when memory is out or the recipe is empty. */
void batches_init(struct batches *batches, const struct recipe *recipe);
void batches_fini(struct batches *batches);

/* How many kinds of requests the recipe has. */
unsigned recipe_kinds(const struct recipe *recipe);

static inline const char *batches_next(struct batches *batches, size_t *len)
{
    size_t i = batches->next;
    batches->next = i + 1 == batches->n ? 0 : i + 1;
    *len = batches->starts[i + 1] - batches->starts[i];
    return batches->bytes + batches->starts[i];
}

#endif
