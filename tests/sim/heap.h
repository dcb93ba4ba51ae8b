/*
 * Counts allocated bytes: the bytes that weir has taken in its own iterations, and all bytes. Not
 * for builds with sanitizers, which have their own allocator and leak detection.
 */
#ifndef WEIR_SIM_HEAP_H
#define WEIR_SIM_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False: this build counts nothing, and all counts are 0. */
bool heap_is_counted(void);

/* Bytes in use, by all parts of the process. */
size_t heap_bytes(void);

/* is_weirs: allocations count as weir's from now on. Returns the previous value. */
bool heap_is_weirs(bool is_weirs);

/* Bytes that weir has allocated and not freed. Negative if weir has freed more. */
int64_t heap_weirs_bytes(void);

#endif
