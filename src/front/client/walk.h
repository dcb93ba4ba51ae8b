/*
 * A walk over a list, some items in each step. An iteration of the loop then has bounded work when
 * every client of a worker is concerned, and no client waits until all are visited.
 *
 * Items keep their order during a walk. New items are pushed at the end, and are visited, too.
 */
#ifndef WEIR_FRONT_WALK_H
#define WEIR_FRONT_WALK_H

#include <stdbool.h>

#include "base/list.h"

#define WALK_STEP 128 /* items in a step; binding so many clients takes some 0.2 ms */

struct walk {
    struct list *next; /* the next item, or the list's head at the end; NULL: no walk is on */
};

static inline bool walk_is_on(const struct walk *walk)
{
    return walk->next != NULL;
}

static inline void walk_begin(struct walk *walk, struct list *list)
{
    walk->next = list->next;
}

/*
 * Visits the next WALK_STEP items. Any item may be taken out of the list after walk_skip. True: the
 * walk has ended.
 */
bool walk_step(struct walk *walk, const struct list *list, void (*look)(struct list *item, void *arg), void *arg);

/* Call before the item is taken out of the list. */
static inline void walk_skip(struct walk *walk, const struct list *item)
{
    if (walk->next == item)
        walk->next = item->next;
}

#endif
