/*
 * A circular doubly linked list with links inside its members. The head is a link too. A link is
 * either in exactly one list or points at itself. A walk (struct walk) visits a list in steps.
 */
#ifndef WEIR_BASE_LIST_H
#define WEIR_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next;
    struct list *prev;
};

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline void list_init(struct list *l)
{
    l->next = l;
    l->prev = l;
}

static inline bool list_is_empty(const struct list *l)
{
    return l->next == l;
}

/* Appends at the end. `item` is in no list. */
static inline void list_push(struct list *head, struct list *item)
{
    item->prev = head->prev;
    item->next = head;
    head->prev->next = item;
    head->prev = item;
}

/* Removes the link from its list. Safe on a link that is in no list. */
static inline void list_take(struct list *item)
{
    item->prev->next = item->next;
    item->next->prev = item->prev;
    list_init(item);
}

/*
 * Moves all members of `from` to the empty list `to`. Members may then leave and join `from` while
 * `to` is walked.
 */
static inline void list_take_all(struct list *to, struct list *from)
{
    list_init(to);
    if (list_is_empty(from))
        return;
    to->next = from->next;
    to->prev = from->prev;
    to->next->prev = to;
    to->prev->next = to;
    list_init(from);
}

/* ---- a walk over a list, some items in each step ---- */

#define WALK_STEP 128 /* items in a step; binding 128 clients to their subjects takes some 0.2 ms */

/*
 * A walk bounds the work in one iteration of a loop when a thread must visit all items. Items keep
 * their order during a walk. New items are pushed at the end, and the walk visits them as well.
 */
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
static inline bool walk_step(struct walk *walk, const struct list *list,
                             void (*look)(struct list *item, void *arg), void *arg)
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

/* Must be called before an item is taken out of the list during a walk. */
static inline void walk_skip(struct walk *walk, const struct list *item)
{
    if (walk->next == item)
        walk->next = item->next;
}

#endif
