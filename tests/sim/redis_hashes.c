/* Commands about hashes: fields in the order in which they came. */
#include "tests/sim/redis_args.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_db.h"

static struct field *find_field(const struct value *value, struct slice name)
{
    for (size_t i = 0; value != NULL && i < value->hash.count; i++)
        if (slice_eq(text_slice(&value->hash.items[i].name), name))
            return &value->hash.items[i];
    return NULL;
}

static struct field *add_field(struct fields *hash, struct slice name)
{
    if (hash->count == hash->room) {
        hash->room = hash->room > 0 ? hash->room * 2 : 4;
        hash->items = take_more(hash->items, hash->room, sizeof *hash->items);
    }
    struct field *field = &hash->items[hash->count++];
    *field = (struct field){{0}, {0}};
    text_add(&field->name, name);
    return field;
}

static void remove_field(struct fields *hash, struct field *field)
{
    text_fini(&field->name);
    text_fini(&field->value);
    size_t behind = (size_t)(hash->items + hash->count - field - 1);
    memmove(field, field + 1, behind * sizeof *field);
    hash->count--;
}

static bool find_hash(struct redis_conn *conn, struct slice name, struct value **value)
{
    *value = key_find(conn, name);
    return key_has_type(conn, *value, VALUE_HASH);
}

void cmd_hset(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct value *value;
    if (argc % 2 == 1) {
        reply_arity(conn);
        return;
    }
    if (!find_hash(conn, argv[1], &value))
        return;
    if (value == NULL)
        value = key_add(conn, argv[1], VALUE_HASH);
    int64_t n = 0;
    for (size_t i = 2; i < argc; i += 2) {
        struct field *field = find_field(value, argv[i]);
        n += field == NULL;
        if (field == NULL)
            field = add_field(&value->hash, argv[i]);
        text_set(&field->value, argv[i + 1]);
    }
    reply_number(conn, n);
    key_changed(conn, argv[1]);
}

void cmd_hsetnx(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    struct value *value;
    if (!find_hash(conn, argv[1], &value))
        return;
    bool is_new = find_field(value, argv[2]) == NULL;
    if (is_new) {
        if (value == NULL)
            value = key_add(conn, argv[1], VALUE_HASH);
        text_set(&add_field(&value->hash, argv[2])->value, argv[3]);
    }
    reply_number(conn, is_new);
    if (is_new)
        key_changed(conn, argv[1]);
}

static void reply_field(struct redis_conn *conn, const struct field *field)
{
    if (field != NULL)
        reply_bulk(conn, text_slice(&field->value));
    else
        reply_null(conn);
}

void cmd_hget(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    struct value *value;
    if (find_hash(conn, argv[1], &value))
        reply_field(conn, find_field(value, argv[2]));
}

void cmd_hmget(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct value *value;
    if (!find_hash(conn, argv[1], &value))
        return;
    reply_array(conn, argc - 2);
    for (size_t i = 2; i < argc; i++)
        reply_field(conn, find_field(value, argv[i]));
}

void cmd_hdel(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct value *value;
    if (!find_hash(conn, argv[1], &value))
        return;
    int64_t n = 0;
    for (size_t i = 2; i < argc; i++) {
        struct field *field = find_field(value, argv[i]);
        if (field == NULL)
            continue;
        remove_field(&value->hash, field);
        n++;
    }
    if (n > 0 && value->hash.count == 0)
        key_delete(conn, argv[1]);
    if (n > 0)
        key_changed(conn, argv[1]);
    reply_number(conn, n);
}

void cmd_hgetall(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    struct value *value;
    if (!find_hash(conn, argv[1], &value))
        return;
    size_t n = value != NULL ? value->hash.count : 0;
    reply_map(conn, n);
    for (size_t i = 0; i < n; i++) {
        reply_bulk(conn, text_slice(&value->hash.items[i].name));
        reply_bulk(conn, text_slice(&value->hash.items[i].value));
    }
}

void cmd_hkeys(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    struct value *value;
    if (!find_hash(conn, argv[1], &value))
        return;
    size_t n = value != NULL ? value->hash.count : 0;
    reply_array(conn, n);
    for (size_t i = 0; i < n; i++)
        reply_bulk(conn, text_slice(&value->hash.items[i].name));
}

void cmd_hlen(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    struct value *value;
    if (find_hash(conn, argv[1], &value))
        reply_number(conn, value != NULL ? (int64_t)value->hash.count : 0);
}

void cmd_hexists(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    struct value *value;
    if (find_hash(conn, argv[1], &value))
        reply_number(conn, find_field(value, argv[2]) != NULL);
}

void cmd_hincrby(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    int64_t by;
    int64_t number = 0;
    struct value *value;
    if (!arg_number(conn, argv[3], &by) || !find_hash(conn, argv[1], &value))
        return;
    struct field *field = find_field(value, argv[2]);
    if (field != NULL && !text_to_number(text_slice(&field->value), &number)) {
        reply_error(conn, "ERR hash value is not an integer");
        return;
    }
    if (__builtin_add_overflow(number, by, &number)) {
        reply_error(conn, "ERR increment or decrement would overflow");
        return;
    }
    if (value == NULL)
        value = key_add(conn, argv[1], VALUE_HASH);
    if (field == NULL)
        field = add_field(&value->hash, argv[2]);
    char digits[24];
    text_set(&field->value, text_of_number(number, digits));
    reply_number(conn, number);
    key_changed(conn, argv[1]);
}
