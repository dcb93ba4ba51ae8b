/* Commands about strings. */
#include "tests/sim/redis_args.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_db.h"

/* Sets the key to this string, whatever its type was. The expiry stays only with keeps_ttl. */
static struct value *store(struct redis_conn *conn, struct slice name, struct slice text,
                           bool keeps_ttl)
{
    struct value *value = key_find(conn, name);
    int64_t expires_ms = value != NULL && keeps_ttl ? value->expires_ms : NO_EXPIRY;
    if (value != NULL && value->type != VALUE_STRING) {
        key_delete(conn, name);
        value = NULL;
    }
    if (value == NULL)
        value = key_add(conn, name, VALUE_STRING);
    db_set_expiry(conn->db, value, expires_ms);
    text_set(&value->string, text);
    key_changed(conn, name);
    return value;
}

/* False: WRONGTYPE is replied. */
static bool reply_value(struct redis_conn *conn, const struct value *value)
{
    if (!key_has_type(conn, value, VALUE_STRING))
        return false;
    if (value != NULL)
        reply_bulk(conn, text_slice(&value->string));
    else
        reply_null(conn);
    return true;
}

void cmd_get(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    reply_value(conn, key_find(conn, argv[1]));
}

/* ---- SET ---- */

enum set_option { SET_NX = 1, SET_XX = 2, SET_GET = 4, SET_KEEPTTL = 8, SET_TIME = 16 };

struct set_options {
    unsigned bits;
    struct slice time;
    int64_t unit_ms;
    bool is_moment;
};

static bool take_time(struct set_options *options, struct slice word, const struct slice *next)
{
    static const struct {
        const char *word;
        int64_t unit_ms;
        bool is_moment;
    } units[] = {{"ex", 1000, false}, {"px", 1, false}, {"exat", 1000, true}, {"pxat", 1, true}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (!text_is(word, units[i].word) || next == NULL || (options->bits & SET_KEEPTTL))
            continue;
        bool is_other =
            options->unit_ms != units[i].unit_ms || options->is_moment != units[i].is_moment;
        if ((options->bits & SET_TIME) && is_other)
            return false;
        options->bits |= SET_TIME;
        options->time = *next;
        options->unit_ms = units[i].unit_ms;
        options->is_moment = units[i].is_moment;
        return true;
    }
    return false;
}

static unsigned set_option_of(struct slice word, unsigned bits)
{
    if (text_is(word, "nx"))
        return bits & SET_XX ? 0 : SET_NX;
    if (text_is(word, "xx"))
        return bits & SET_NX ? 0 : SET_XX;
    if (text_is(word, "get"))
        return SET_GET;
    if (text_is(word, "keepttl"))
        return bits & SET_TIME ? 0 : SET_KEEPTTL;
    return 0;
}

static bool read_options(struct redis_conn *conn, const struct slice *argv, size_t argc,
                         struct set_options *options)
{
    for (size_t i = 3; i < argc; i++) {
        unsigned option = set_option_of(argv[i], options->bits);
        options->bits |= option;
        if (option != 0)
            continue;
        if (!take_time(options, argv[i], i + 1 < argc ? &argv[i + 1] : NULL)) {
            reply_syntax(conn);
            return false;
        }
        i++;
    }
    /* Before 7.0 NX and GET excluded each other. */
    if (!is_at_least(conn->redis, 70000) && (options->bits & SET_GET) && (options->bits & SET_NX)) {
        reply_syntax(conn);
        return false;
    }
    return true;
}

void cmd_set(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct set_options options = {0};
    int64_t expires_ms = NO_EXPIRY;
    if (!read_options(conn, argv, argc, &options))
        return;
    if ((options.bits & SET_TIME) &&
        !arg_expiry(conn, options.time, options.unit_ms, options.is_moment, &expires_ms))
        return;
    const struct value *old = key_find(conn, argv[1]);
    bool was_there = old != NULL;
    if ((options.bits & SET_GET) && !reply_value(conn, old))
        return;
    if (((options.bits & SET_NX) && was_there) || ((options.bits & SET_XX) && !was_there)) {
        if (!(options.bits & SET_GET))
            reply_null(conn);
        return;
    }
    struct value *value = store(conn, argv[1], argv[2], options.bits & SET_KEEPTTL);
    if (options.bits & SET_TIME)
        db_set_expiry(conn->db, value, expires_ms);
    if (!(options.bits & SET_GET))
        reply_ok(conn);
}

/* ---- several keys ---- */

void cmd_mget(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    reply_array(conn, argc - 1);
    for (size_t i = 1; i < argc; i++) {
        const struct value *value = key_find(conn, argv[i]);
        if (value != NULL && value->type == VALUE_STRING)
            reply_bulk(conn, text_slice(&value->string));
        else
            reply_null(conn);
    }
}

static bool has_pairs(struct redis_conn *conn, size_t argc)
{
    if (argc % 2 == 1)
        return true;
    if (is_at_least(conn->redis, 70000))
        reply_arity(conn);
    else
        reply_error(conn, "ERR wrong number of arguments for MSET");
    return false;
}

void cmd_mset(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    if (!has_pairs(conn, argc))
        return;
    for (size_t i = 1; i < argc; i += 2)
        store(conn, argv[i], argv[i + 1], false);
    reply_ok(conn);
}
