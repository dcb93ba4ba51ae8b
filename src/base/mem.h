/*
 * Allocation that never fails, for the start and for reading configuration; never for what a client or connection
 * needs.
 *
 * A call returns memory, or logs a line and ends the process, so no caller checks. Memory is released with free().
 * Before configuration is read again while clients are served, mem_would_give is asked; if it says no, nothing changes.
 */
#ifndef WEIR_BASE_MEM_H
#define WEIR_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

/* `size` bytes, their content undefined. Never NULL, not even for 0. */
__attribute__((malloc, returns_nonnull, warn_unused_result)) void *mem_alloc(size_t size);

/* `count` members of `size` bytes, zeroed. An overflow of the product counts as out of memory. */
__attribute__((malloc, returns_nonnull, warn_unused_result)) void *mem_zalloc(size_t count, size_t size);

/* Grow or shrink to `count` members of `size` bytes; `old` may be NULL. */
__attribute__((returns_nonnull, warn_unused_result)) void *mem_realloc(void *old, size_t count, size_t size);

/* A NUL-terminated copy of `len` bytes. */
__attribute__((malloc, returns_nonnull, warn_unused_result)) char *mem_strndup(const char *text, size_t len);

/* A copy of the text; NULL: of NULL. */
__attribute__((malloc, warn_unused_result)) char *mem_strdup(const char *text);

/* A text as printf would print it; heap. */
__attribute__((format(printf, 1, 2), malloc, returns_nonnull, warn_unused_result)) char *mem_print(const char *format,
                                                                                                   ...);

/* How many bytes this thread has allocated here so far; what was freed since still counts. */
size_t mem_given(void);

/* Can so many bytes be allocated now? Tries it, and frees them. */
__attribute__((warn_unused_result)) bool mem_would_give(size_t bytes);

#endif
