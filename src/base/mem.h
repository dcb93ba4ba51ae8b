/*
 * Memory that cannot be refused: at the start, and to read configuration; never for what a client or a connection needs.
 *
 * A call returns memory or ends the process with one line in the log, so no caller checks. What mem_ gives, free()
 * takes back. Who reads configuration while clients are served asks mem_would_give first, and does without if not.
 */
#ifndef WEIR_BASE_MEM_H
#define WEIR_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

/* `size` bytes, their content undefined. Never NULL, not even for 0. */
__attribute__((malloc, returns_nonnull, warn_unused_result)) void *mem_alloc(size_t size);

/* `count` members of `size` bytes, all zero. Overflow of the product counts as out of memory. */
__attribute__((malloc, returns_nonnull, warn_unused_result)) void *mem_zalloc(size_t count, size_t size);

/* Grow or shrink to `count` members of `size` bytes; `old` may be NULL. */
__attribute__((returns_nonnull, warn_unused_result)) void *mem_realloc(void *old, size_t count, size_t size);

/* A NUL-terminated copy of `len` bytes. */
__attribute__((malloc, returns_nonnull, warn_unused_result)) char *mem_strndup(const char *text, size_t len);

/* Bytes that this thread has been given so far, each growth counted once, whatever has been freed since. */
size_t mem_given(void);

/* Would the system give so many bytes now? They are asked for and given back. */
__attribute__((warn_unused_result)) bool mem_would_give(size_t bytes);

#endif
