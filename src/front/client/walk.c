#include "front/client/walk.h"

#include <stddef.h>

bool walk_step(struct walk *walk, const struct list *list, void (*look)(struct list *item, void *arg), void *arg)
{
    for (int n = 0; n < WALK_STEP && walk->next != list; n++) {
        struct list *item = walk->next;
        walk->next = item->next;
        look(item, arg);
    }
    if (walk->next != list)
        return false;
    walk->next = NULL;
    return true;
}
