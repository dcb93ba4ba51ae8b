/*
 * [blocks that stay | blocks of this run | what an earlier run has touched | zeroes]
 *                   kept                 used                             touched  end
 *
 * There are two such ranges. One range is for small blocks, on huge pages where the system has such
 * pages. The other range is for large blocks, of which mostly little is touched.
 *
 * A block is a head and the bytes of its class: multiples of 16 up to SMALL, then four classes for
 * each doubling. A block given back is in the free list of its class. Blocks are neither split nor
 * joined.
 */
#include "tests/sim/arena.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* address space, chosen: one run in ten thousand uses a hundredth of it */
#define ARENA_BYTES (UINT64_C(8) << 30)
#define SMALL_BYTES (UINT64_C(2) << 30) /* part of ARENA_BYTES for blocks smaller than LARGE */
#define LARGE (UINT64_C(256) << 10)
#define HUGE_PAGE (UINT64_C(2) << 20)
#define UNIT 16
#define SMALL 1024
#define SMALL_CLASSES (SMALL / UNIT + 1)
#define LARGEST_BITS 33
#define CLASSES (SMALL_CLASSES + 4 * (LARGEST_BITS - 10))

struct head {
    uint64_t size;    /* the size that was asked for */
    uint32_t class;   /* class of the block */
    uint32_t skipped; /* bytes between the start of the block and this head, for alignment */
};
_Static_assert(sizeof(struct head) == UNIT, "what is behind it is aligned as it is");

struct range {
    char *kept, *used, *touched, *end;
};

struct arena {
    struct range small, large;
    size_t n_new; /* blocks behind `kept` that are in use */
    /* free lists by class; the first word of each block points at the next block */
    void *waiting[CLASSES];
};

static struct arena *arena;

static bool map(void)
{
    char *begin = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED)
        return false;
    char *aligned = begin + (-(uintptr_t)begin & (HUGE_PAGE - 1));
    /* fewer page faults, where the system has huge pages */
    (void)madvise(aligned, SMALL_BYTES - HUGE_PAGE, MADV_HUGEPAGE);
    char *first = begin + ((sizeof *arena + UNIT - 1) & ~(UNIT - 1UL));
    char *middle = begin + SMALL_BYTES;
    arena = (struct arena *)(void *)begin;
    arena->small = (struct range){first, first, first, middle};
    arena->large = (struct range){middle, middle, middle, begin + ARENA_BYTES};
    return true;
}

static bool is_new(const char *block)
{
    return block >= arena->small.end ? block > arena->large.kept : block > arena->small.kept;
}

/* The smallest class with room for `size`, and its room. */
static uint32_t class_of(size_t size, size_t *room)
{
    if (size <= SMALL) {
        uint32_t units = (uint32_t)((size + UNIT - 1) / UNIT);
        *room = (size_t)units * UNIT;
        return units;
    }
    /* 2^bits < size <= 2^(bits + 1), bits from 10 on */
    unsigned bits = 63 - (unsigned)__builtin_clzll(size - 1);
    size_t quarter = (size_t)1 << (bits - 2);
    uint32_t part = (uint32_t)((size - 1) >> (bits - 2)) & 3;
    *room = ((size_t)4 + part + 1) * quarter;
    return SMALL_CLASSES + 4 * (bits - 10) + part;
}

/* *dirty: how many of the block's first bytes may be other than zero. */
static char *take_block(size_t size, uint32_t *class, size_t *dirty)
{
    size_t room;
    if (size >= (UINT64_C(1) << LARGEST_BITS) || (arena == NULL && !map()))
        return NULL;
    *class = class_of(size, &room);
    char *waiting = arena->waiting[*class];
    if (waiting != NULL) {
        memcpy(&arena->waiting[*class], waiting, sizeof(void *));
        arena->n_new += is_new(waiting);
        *dirty = size;
        return waiting - sizeof(struct head);
    }
    struct range *range = room < LARGE ? &arena->small : &arena->large;
    char *block = range->used;
    if ((size_t)(range->end - block) < sizeof(struct head) + room)
        return NULL;
    range->used += sizeof(struct head) + room;
    arena->n_new++;
    char *data = block + sizeof(struct head);
    *dirty = range->touched <= data ? 0 : (size_t)(range->touched - data);
    if (range->touched < range->used)
        range->touched = range->used;
    return block;
}

static void *begin_block(char *block, size_t size, uint32_t class)
{
    *(struct head *)(void *)block = (struct head){.size = size, .class = class};
    return block + sizeof(struct head);
}

static struct head *head_of(const void *memory)
{
    return (struct head *)(uintptr_t)((const char *)memory - sizeof(struct head));
}

void *arena_take(size_t size)
{
    uint32_t class;
    size_t dirty;
    char *block = take_block(size > 0 ? size : 1, &class, &dirty);
    return block != NULL ? begin_block(block, size, class) : NULL;
}

void *arena_take_zeroed(size_t size)
{
    uint32_t class;
    size_t dirty;
    char *block = take_block(size > 0 ? size : 1, &class, &dirty);
    if (block == NULL)
        return NULL;
    void *memory = begin_block(block, size, class);
    return memset(memory, 0, dirty < size ? dirty : size);
}

void *arena_take_aligned(size_t alignment, size_t size)
{
    uint32_t class;
    size_t dirty;
    if (alignment <= UNIT)
        return arena_take(size);
    char *block = take_block(size + alignment, &class, &dirty);
    if (block == NULL)
        return NULL;
    char *memory = block + sizeof(struct head);
    memory += -(uintptr_t)memory & (alignment - 1);
    struct head *head = head_of(memory);
    *head = (struct head){size, class, (uint32_t)((char *)head - block)};
    return memory;
}

void arena_give(void *memory)
{
    if (memory == NULL)
        return;
    const struct head *head = head_of(memory);
    uint32_t class = head->class;
    char *first = (char *)memory - head->skipped;
    arena->n_new -= is_new(first);
    memcpy(first, &arena->waiting[class], sizeof(void *));
    arena->waiting[class] = first;
}

size_t arena_size(const void *memory)
{
    return memory != NULL ? head_of(memory)->size : 0;
}

/* The last block of the large range can grow at its address. */
static bool grow_last(const char *data, size_t before, size_t room)
{
    struct range *range = &arena->large;
    if (before < LARGE || room < before || data + before != range->used ||
        (size_t)(range->end - data) < room)
        return false;
    range->used += room - before;
    if (range->touched < range->used)
        range->touched = range->used;
    return true;
}

bool arena_resize(void *memory, size_t size)
{
    struct head *head = head_of(memory);
    size_t room;
    size_t before;
    if (size == 0 || size >= (UINT64_C(1) << LARGEST_BITS) || head->skipped > 0)
        return false;
    uint32_t class = class_of(size, &room);
    if (class != head->class) {
        (void)class_of(head->size, &before);
        if (!grow_last((const char *)memory, before, room))
            return false;
    }
    head->size = size;
    head->class = class;
    return true;
}

void arena_mark(void)
{
    if (arena == NULL && !map())
        return;
    arena->small.kept = arena->small.used;
    arena->large.kept = arena->large.used;
    arena->n_new = 0;
}

bool arena_rewind(void)
{
    if (arena->n_new > 0)
        return false;
    memset(arena->waiting, 0, sizeof arena->waiting);
    arena->small.used = arena->small.kept;
    arena->large.used = arena->large.kept;
    return true;
}
