/* Lists: a ring buffer of strings. */
#ifndef WEIR_SIM_REDIS_LISTS_H
#define WEIR_SIM_REDIS_LISTS_H

#include "tests/sim/redis_state.h"

void deque_push(struct deque *list, struct slice text, bool at_left);
/* the caller frees the text; the list must not be empty */
struct text deque_pop(struct deque *list, bool at_left);
struct text *deque_at(const struct deque *list, size_t i);
void deque_fini(struct deque *list);

/*
 * Pushes an item, popped from another list, to `target`; `there` is the target's value or NULL.
 * Takes the item.
 */
void list_move_to(struct redis_conn *conn, struct slice target, struct value *there,
                  struct text *item, bool to_left);

/* LMOVE and BLMOVE. */
void list_move(struct redis_conn *conn, struct slice from, struct slice to, bool from_left,
               bool to_left);

#endif
