/*
 * A walk over a list, some items in each step: for what concerns every client of a worker, so that an iteration of its
 * loop has bounded work, and no client waits until all have been looked at.
 *
 * The items keep their order while a walk is under way; those that come meanwhile are pushed at the end, and are looked
 * at, too.
 */
#ifndef WEIR_FRONT_WALK_H
#define WEIR_FRONT_WALK_H

#include <stdbool.h>

#include "base/list.h"

#define WALK_STEP 128 /* items in one step: to bind as many clients takes some 0.2 ms */

struct walk {
    struct list *next; /* the item that is looked at next, or the list itself: at the end; NULL: no walk is under way */
};

static inline bool walk_is_on(const struct walk *walk)
{
    return walk->next != NULL;
}

/* From the first item on. */
static inline void walk_begin(struct walk *walk, struct list *list)
{
    walk->next = list->next;
}

/* Look at the next WALK_STEP items. Any of them may be taken out, after walk_skip. True: the walk has ended. */
bool walk_step(struct walk *walk, const struct list *list, void (*look)(struct list *item, void *arg), void *arg);

/* The item is about to be taken out of the list. */
static inline void walk_skip(struct walk *walk, const struct list *item)
{
    if (walk->next == item)
        walk->next = item->next;
}

#endif
