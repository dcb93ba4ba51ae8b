/*
 * A microbenchmark is a row: a name, what it needs before, and a function that does the thing n times.
 *
 * Each file of this folder has one list of rows, ended by one without a name.
 */
#ifndef WEIR_BENCH_MICRO_H
#define WEIR_BENCH_MICRO_H

#include <stdint.h>

struct micro {
    const char *name;      /* "gate/one limit" */
    void (*prepare)(void); /* once, before the first run; NULL: nothing */
    void (*run)(uint64_t n);
};

const struct micro *micro_scan(void);
const struct micro *micro_argv(void);
const struct micro *micro_command(void);
const struct micro *micro_funnel(void);
const struct micro *micro_gate(void);
const struct micro *micro_emit(void);

/* The compiler must take it that somebody looks at the value. */
#define micro_use(value) __asm__ volatile("" : : "r"(value) : "memory")

#endif
