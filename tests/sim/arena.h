/*
 * An allocator for runs that follow each other in one process. Blocks of fixed sizes lie side by
 * side in one range of memory. Each run finds the range as the run before has found it, so no page
 * is requested from the kernel twice.
 *
 * Thread: one. There is one arena, mapped by the first allocation.
 */
#ifndef WEIR_SIM_ARENA_H
#define WEIR_SIM_ARENA_H

#include <stdbool.h>
#include <stddef.h>

/* NULL: out of memory. Aligned to 16 bytes. */
void *arena_take(size_t size);
void *arena_take_zeroed(size_t size);
/* `alignment` is a power of two. */
void *arena_take_aligned(size_t alignment, size_t size);

void arena_give(void *memory); /* NULL does nothing */

/* The size that was asked for. */
size_t arena_size(const void *memory);

/* True: the block has the new size at its old address. */
bool arena_resize(void *memory, size_t size);

/* All blocks in use now are kept by arena_rewind. */
void arena_mark(void);

/*
 * Restores the state at the mark, for the next run. False: a block allocated since the mark was not
 * given back.
 */
__attribute__((warn_unused_result)) bool arena_rewind(void);

#endif
