/*
 * Allocation that never fails, for the start and for reading configuration. Clients and connections
 * never use these functions.
 *
 * A call returns memory, or logs a line and ends the process, so no caller checks the result.
 * free() releases the memory. A reload of the configuration first calls mem_would_give, and changes
 * nothing if the result is false.
 */
#ifndef WEIR_BASE_MEM_H
#define WEIR_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

/* Returns `size` bytes, their content undefined. Never NULL, not even for 0. */
__attribute__((malloc, returns_nonnull, warn_unused_result)) void *mem_alloc(size_t size);

/*
 * Returns `count` members of `size` bytes, zeroed. An overflow of the product counts as out of
 * memory.
 */
__attribute__((malloc, returns_nonnull, warn_unused_result)) void *mem_zalloc(size_t count,
                                                                              size_t size);

/* Grows or shrinks `old` to `count` members of `size` bytes; `old` may be NULL. */
__attribute__((returns_nonnull, warn_unused_result)) void *mem_realloc(void *old, size_t count,
                                                                       size_t size);

/* Returns a NUL-terminated copy of `len` bytes. */
__attribute__((malloc, returns_nonnull, warn_unused_result)) char *mem_strndup(const char *text,
                                                                               size_t len);

/* Returns a copy of the text, and NULL for NULL. */
__attribute__((malloc, warn_unused_result)) char *mem_strdup(const char *text);

/* Returns the text that printf would print; heap. */
__attribute__((format(printf, 1, 2), malloc, returns_nonnull, warn_unused_result)) char *mem_print(
    const char *format, ...);

/*
 * Returns how many bytes this thread has allocated with these functions so far. Freed memory still
 * counts.
 */
size_t mem_given(void);

/* True if this many bytes can be allocated now. Calls malloc, and frees the memory at once. */
__attribute__((warn_unused_result)) bool mem_would_give(size_t bytes);

#endif
