#include "tests/sim/due.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

static bool is_before(const struct due *a, const struct due *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void put(struct dues *dues, size_t place, struct due *due)
{
    dues->heap[place] = due;
    due->place = place;
}

static void rise(struct dues *dues, size_t place)
{
    struct due *due = dues->heap[place];
    for (; place > 1 && is_before(due, dues->heap[place / 2]); place /= 2)
        put(dues, place, dues->heap[place / 2]);
    put(dues, place, due);
}

static void sink(struct dues *dues, size_t place)
{
    struct due *due = dues->heap[place];
    for (;;) {
        size_t child = 2 * place;
        if (child < dues->n && is_before(dues->heap[child + 1], dues->heap[child]))
            child++;
        if (child > dues->n || !is_before(dues->heap[child], due))
            break;
        put(dues, place, dues->heap[child]);
        place = child;
    }
    put(dues, place, due);
}

void due_drop(struct dues *dues, struct due *due)
{
    size_t place = due->place;
    if (place == 0)
        return;
    due->place = 0;
    struct due *last = dues->heap[dues->n--];
    if (last == due)
        return;
    put(dues, place, last);
    rise(dues, place);
    sink(dues, last->place);
}

void due_set(struct dues *dues, struct due *due, uint64_t at)
{
    due_drop(dues, due);
    if (dues->n + 1 >= dues->room) {
        dues->room = dues->room > 0 ? 2 * dues->room : 64;
        dues->heap = mem_realloc(dues->heap, dues->room, sizeof(struct due *));
    }
    due->at = at;
    due->order = dues->orders++;
    put(dues, ++dues->n, due);
    rise(dues, due->place);
}

void dues_fini(struct dues *dues)
{
    free(dues->heap);
    *dues = (struct dues){0};
}
