/*
 * An allocator for runs that follow each other in one process: blocks of some sizes, side by side in one stretch of
 * memory, which a run finds as the one before has found it, so that no page is asked of the kernel twice.
 *
 * Thread: one. There is one arena, mapped when something is first taken.
 */
#ifndef WEIR_SIM_ARENA_H
#define WEIR_SIM_ARENA_H

#include <stdbool.h>
#include <stddef.h>

/* NULL: there is no more. Aligned to 16 bytes. */
void *arena_take(size_t size);
void *arena_take_zeroed(size_t size);
/* `alignment` is a power of two. */
void *arena_take_aligned(size_t alignment, size_t size);

void arena_give(void *memory); /* NULL: nothing */

/* What was asked for. */
size_t arena_size(const void *memory);

/* True: the block is as large now, where it is. */
bool arena_resize(void *memory, size_t size);

/* What is taken now stays. */
void arena_mark(void);

/* As it was at the mark, for the next run. False: something that was taken since has not been given back. */
__attribute__((warn_unused_result)) bool arena_rewind(void);

#endif
