/*
 * The requests of a run, made once before the run: batches of P requests each, sent over and over.
 *
 * A request is a list of words. "{k}" in a word becomes the number of a random key, with a fixed
 * number of digits. The word "{v}" becomes the value.
 */
#ifndef WEIR_BENCH_BATCHES_H
#define WEIR_BENCH_BATCHES_H

#include <stddef.h>
#include <stdint.h>

struct recipe {
    char *const *words; /* a word "+" separates requests */
    int n_words;
    unsigned per_batch; /* P; the kinds of requests alternate */
    uint32_t keys;
    size_t value_bytes;
    uint64_t seed;
};

struct batches {
    char *bytes;
    size_t *starts; /* n + 1 offsets */
    size_t n;
    size_t next; /* index of the batch that batches_next returns */
};

/* Exits the process if memory is out or the recipe is empty. */
void batches_init(struct batches *batches, const struct recipe *recipe);
void batches_fini(struct batches *batches);

/* Number of kinds of requests in the recipe. */
unsigned recipe_kinds(const struct recipe *recipe);

static inline const char *batches_next(struct batches *batches, size_t *len)
{
    size_t i = batches->next;
    batches->next = i + 1 == batches->n ? 0 : i + 1;
    *len = batches->starts[i + 1] - batches->starts[i];
    return batches->bytes + batches->starts[i];
}

#endif
