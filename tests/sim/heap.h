/*
 * How many bytes of memory are taken, by whom: what weir has taken in its own turns, and all in all. Without sanitizers,
 * which have an allocator, and a search for leaks, of their own.
 */
#ifndef WEIR_SIM_HEAP_H
#define WEIR_SIM_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False: this build counts nothing, and everything is 0. */
bool heap_is_counted(void);

/* Bytes that are taken now, of everybody. */
size_t heap_bytes(void);

/* From now on it is weir who takes and gives back, or not. Returns what it was. */
bool heap_is_weirs(bool is_weirs);

/* What it has taken and not given back. */
int64_t heap_weirs_bytes(void);

#endif
