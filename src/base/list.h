/*
 * A circular doubly linked list with links inside its members. The head is a link too. A link is
 * either in exactly one list or points at itself.
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

#endif
