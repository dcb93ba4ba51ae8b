/*
 * A microbenchmark is a row: a name, a preparation, and a function that runs the step n times.
 *
 * Each file of this folder has one list of rows, terminated by a row without a name.
 */
#ifndef WEIR_BENCH_MICRO_H
#define WEIR_BENCH_MICRO_H

#include <stdint.h>

struct micro {
    const char *name;      /* "gate/one limit" */
    void (*prepare)(void); /* called once, before the first run; NULL: nothing */
    void (*run)(uint64_t n);
};

const struct micro *micro_scan(void);
const struct micro *micro_argv(void);
const struct micro *micro_command(void);
const struct micro *micro_funnel(void);
const struct micro *micro_gate(void);
const struct micro *micro_emit(void);

/* Makes the compiler assume that the value is used. */
#define micro_use(value) __asm__ volatile("" : : "r"(value) : "memory")

#endif
