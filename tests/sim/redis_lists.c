/* Lists, and their commands that do not block. */
#include "tests/sim/redis_lists.h"

#include "tests/sim/redis_args.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_db.h"

#define ROOM_FIRST 4

/* ---- the ring buffer ---- */

struct text *deque_at(const struct deque *list, size_t i)
{
    return &list->items[(list->head + i) & (list->room - 1)];
}

static void grow(struct deque *list)
{
    size_t room = list->room > 0 ? list->room * 2 : ROOM_FIRST;
    struct text *items = take_memory(room * sizeof *items);
    for (size_t i = 0; i < list->count; i++)
        items[i] = *deque_at(list, i);
    free(list->items);
    list->items = items;
    list->head = 0;
    list->room = room;
}

static void push_item(struct deque *list, struct text item, bool at_left)
{
    if (list->count == list->room)
        grow(list);
    if (at_left)
        list->head = (list->head - 1) & (list->room - 1);
    list->count++;
    *deque_at(list, at_left ? 0 : list->count - 1) = item;
}

void deque_push(struct deque *list, struct slice piece, bool at_left)
{
    struct text item = {0};
    text_add(&item, piece);
    push_item(list, item, at_left);
}

struct text deque_pop(struct deque *list, bool at_left)
{
    struct text item = *deque_at(list, at_left ? 0 : list->count - 1);
    if (at_left)
        list->head = (list->head + 1) & (list->room - 1);
    list->count--;
    return item;
}

void deque_fini(struct deque *list)
{
    for (size_t i = 0; i < list->count; i++)
        text_fini(deque_at(list, i));
    free(list->items);
}

/* ---- pushing ---- */

void cmd_rpush(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct value *value = key_find(conn, argv[1]);
    if (!key_has_type(conn, value, VALUE_LIST))
        return;
    if (value == NULL)
        value = key_add(conn, argv[1], VALUE_LIST);
    for (size_t i = 2; i < argc; i++)
        deque_push(&value->list, argv[i], false);
    reply_number(conn, (int64_t)value->list.count);
    key_changed(conn, argv[1]);
}

/* ---- popping ---- */

static void remove_if_empty(struct redis_conn *conn, struct slice name, const struct value *value)
{
    if (value->list.count == 0)
        key_delete(conn, name);
}

void cmd_lpop(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    int64_t count = 1;
    bool has_count = argc == 3;
    if (argc > 3) {
        reply_arity(conn);
        return;
    }
    if (has_count && !arg_positive(conn, argv[2], &count))
        return;
    struct value *value = key_find(conn, argv[1]);
    if (value == NULL && has_count)
        reply_null_array(conn);
    else if (value == NULL)
        reply_null(conn);
    if (value == NULL || !key_has_type(conn, value, VALUE_LIST))
        return;
    if (count > (int64_t)value->list.count)
        count = (int64_t)value->list.count;
    if (has_count)
        reply_array(conn, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        struct text item = deque_pop(&value->list, true);
        reply_bulk(conn, text_slice(&item));
        text_fini(&item);
    }
    if (count == 0)
        return;
    remove_if_empty(conn, argv[1], value);
    key_changed(conn, argv[1]);
}

/* ---- moving ---- */

void list_move_to(struct redis_conn *conn, struct slice target, struct value *there,
                  struct text *item, bool to_left)
{
    if (there == NULL)
        there = key_add(conn, target, VALUE_LIST);
    key_changed(conn, target);
    reply_bulk(conn, text_slice(item));
    push_item(&there->list, *item, to_left);
}

void list_move(struct redis_conn *conn, struct slice from, struct slice to, bool from_left,
               bool to_left)
{
    struct value *source = key_find(conn, from);
    if (source == NULL) {
        reply_null(conn);
        return;
    }
    if (!key_has_type(conn, source, VALUE_LIST))
        return;
    struct value *target = key_find(conn, to);
    if (!key_has_type(conn, target, VALUE_LIST))
        return;
    struct text item = deque_pop(&source->list, from_left);
    list_move_to(conn, to, target, &item, to_left);
    remove_if_empty(conn, from, source);
    key_changed(conn, from);
}

void cmd_lmove(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    bool from_left;
    bool to_left;
    if (arg_side(conn, argv[3], &from_left) && arg_side(conn, argv[4], &to_left))
        list_move(conn, argv[1], argv[2], from_left, to_left);
}
