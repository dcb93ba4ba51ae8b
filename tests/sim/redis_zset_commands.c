/* Commands about sorted sets. */
#include <math.h>

#include "tests/sim/redis_args.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_db.h"
#include "tests/sim/redis_zset.h"

static bool find_set(struct redis_conn *conn, struct slice name, struct value **value)
{
    *value = key_find(conn, name);
    return key_has_type(conn, *value, VALUE_ZSET);
}

/* ---- ZADD ---- */

enum zadd_option {
    ZADD_NX = 1,
    ZADD_XX = 2,
    ZADD_CH = 4,
    ZADD_INCR = 8,
    ZADD_GT = 16,
    ZADD_LT = 32
};

struct zadd {
    unsigned options;
    int64_t added, updated;
    bool has_done; /* the last member was added or changed */
    double score;  /* score of the last member */
};

static size_t read_zadd_options(const struct slice *argv, size_t argc, unsigned *options)
{
    static const char *const words[] = {"nx", "xx", "ch", "incr", "gt", "lt"};
    size_t i = 2;
    for (; i < argc; i++) {
        size_t k = 0;
        while (k < 6 && !text_is(argv[i], words[k]))
            k++;
        if (k == 6)
            break;
        *options |= 1U << k;
    }
    return i;
}

static const char *zadd_complaint(unsigned options, size_t n_pairs)
{
    if ((options & ZADD_NX) && (options & ZADD_XX))
        return "XX and NX options at the same time are not compatible";
    bool is_both = (options & ZADD_GT) && (options & ZADD_LT);
    if (is_both || ((options & ZADD_NX) && (options & (ZADD_GT | ZADD_LT))))
        return "GT, LT, and/or NX options at the same time are not compatible";
    if ((options & ZADD_INCR) && n_pairs > 1)
        return "INCR option supports a single increment-element pair";
    return NULL;
}

/* False: the score would be NaN. */
static bool zadd_one(struct zadd *zadd, struct zset *set, struct slice name, double score)
{
    double old;
    bool was_there = zset_score(set, name, &old);
    zadd->has_done = false;
    if (was_there ? zadd->options & ZADD_NX : zadd->options & ZADD_XX)
        return true;
    if (was_there && (zadd->options & ZADD_INCR))
        score += old;
    if (isnan(score))
        return false;
    if (was_there && (((zadd->options & ZADD_LT) && score >= old) ||
                      ((zadd->options & ZADD_GT) && score <= old)))
        return true;
    zadd->has_done = true;
    zadd->score = score;
    score = score == 0 ? 0 : score; /* drops the sign of zero, as in small sets */
    if (!was_there || score != old)
        zset_put(set, name, score);
    zadd->added += !was_there;
    zadd->updated += was_there && score != old;
    return true;
}

static bool read_scores(struct redis_conn *conn, const struct slice *pairs, size_t n_pairs)
{
    double score;
    for (size_t i = 0; i < n_pairs; i++)
        if (!arg_float(conn, pairs[2 * i], &score))
            return false;
    return true;
}

static void reply_zadd(struct redis_conn *conn, const struct zadd *zadd)
{
    if (!(zadd->options & ZADD_INCR))
        reply_number(conn, zadd->added + (zadd->options & ZADD_CH ? zadd->updated : 0));
    else if (zadd->has_done)
        reply_double(conn, zadd->score);
    else
        reply_null(conn);
}

void cmd_zadd(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct zadd zadd = {0};
    size_t from = read_zadd_options(argv, argc, &zadd.options);
    size_t n_pairs = (argc - from) / 2;
    struct value *value;
    if (n_pairs == 0 || (argc - from) % 2 == 1) {
        reply_syntax(conn);
        return;
    }
    const char *complaint = zadd_complaint(zadd.options, n_pairs);
    if (complaint != NULL) {
        reply_error(conn, "ERR %s", complaint);
        return;
    }
    if (!read_scores(conn, argv + from, n_pairs) || !find_set(conn, argv[1], &value))
        return;
    if (value == NULL && !(zadd.options & ZADD_XX))
        value = key_add(conn, argv[1], VALUE_ZSET);
    bool is_good = true;
    for (size_t i = 0; value != NULL && is_good && i < n_pairs; i++) {
        double score = 0;
        text_to_float(argv[from + 2 * i], &score);
        is_good = zadd_one(&zadd, &value->zset, argv[from + 2 * i + 1], score);
    }
    if (is_good)
        reply_zadd(conn, &zadd);
    else
        reply_error(conn, "ERR resulting score is not a number (NaN)");
    if (zadd.added + zadd.updated > 0)
        key_changed(conn, argv[1]);
}

/* ---- single members ---- */

void cmd_zrem(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    struct value *value;
    if (!find_set(conn, argv[1], &value))
        return;
    int64_t n = 0;
    for (size_t i = 2; value != NULL && i < argc; i++)
        n += zset_remove(&value->zset, argv[i]);
    if (n > 0 && value->zset.count == 0)
        key_delete(conn, argv[1]);
    if (n > 0)
        key_changed(conn, argv[1]);
    reply_number(conn, n);
}

void cmd_zcard(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    struct value *value;
    if (find_set(conn, argv[1], &value))
        reply_number(conn, value != NULL ? (int64_t)value->zset.count : 0);
}

void cmd_zscore(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    struct value *value;
    double score;
    if (!find_set(conn, argv[1], &value))
        return;
    if (value != NULL && zset_score(&value->zset, argv[2], &score))
        reply_double(conn, score);
    else
        reply_null(conn);
}

/* ---- ranges ---- */

static bool read_border(struct slice arg, double *border, bool *is_out)
{
    char copy[256];
    *is_out = arg.len > 0 && arg.at[0] == '(';
    struct slice number = *is_out ? slice_of(arg.at + 1, arg.len - 1) : arg;
    if (number.len >= sizeof copy)
        return false;
    memcpy(copy, number.at, number.len);
    copy[number.len] = '\0';
    char *end;
    *border = strtod(copy, &end);
    return *end == '\0' && !isnan(*border);
}

static bool read_range(struct redis_conn *conn, struct slice least, struct slice most,
                       struct zrange *range)
{
    if (read_border(least, &range->least, &range->is_least_out) &&
        read_border(most, &range->most, &range->is_most_out))
        return true;
    reply_error(conn, "ERR min or max is not a float");
    return false;
}

void cmd_zcount(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    struct zrange range;
    struct value *value;
    size_t first;
    if (read_range(conn, argv[2], argv[3], &range) && find_set(conn, argv[1], &value))
        reply_number(conn, value != NULL ? (int64_t)zset_range(&value->zset, &range, &first) : 0);
}

static void remove_range(struct redis_conn *conn, struct slice name, struct value *value,
                         size_t first, size_t n)
{
    if (n > 0) {
        zset_remove_range(&value->zset, first, n);
        if (value->zset.count == 0)
            key_delete(conn, name);
        key_changed(conn, name);
    }
    reply_number(conn, (int64_t)n);
}

void cmd_zremrangebyscore(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    struct zrange range;
    struct value *value;
    size_t first = 0;
    if (!read_range(conn, argv[2], argv[3], &range) || !find_set(conn, argv[1], &value))
        return;
    size_t n = value != NULL ? zset_range(&value->zset, &range, &first) : 0;
    remove_range(conn, argv[1], value, first, n);
}

void cmd_zremrangebyrank(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    (void)argc;
    int64_t from;
    int64_t to;
    struct value *value;
    size_t first = 0;
    if (!arg_number(conn, argv[2], &from) || !arg_number(conn, argv[3], &to) ||
        !find_set(conn, argv[1], &value))
        return;
    size_t n = value != NULL ? range_of(from, to, value->zset.count, &first) : 0;
    remove_range(conn, argv[1], value, first, n);
}

/*
 * The options of a listing: by rank or by score, forwards or backwards, a part, with scores or
 * without.
 */
struct listing {
    /* is_auto: ZRANGE, with options for the rest */
    bool by_score, is_reverse, has_scores, is_limited, is_auto;
    int64_t offset, count;
};

static bool read_listing(struct redis_conn *conn, const struct slice *argv, size_t argc,
                         struct listing *listing)
{
    listing->count = -1;
    for (size_t i = 4; i < argc; i++) {
        size_t left = argc - i - 1;
        if (text_is(argv[i], "withscores")) {
            listing->has_scores = true;
        } else if (text_is(argv[i], "limit") && left >= 2) {
            if (!arg_number(conn, argv[i + 1], &listing->offset) ||
                !arg_number(conn, argv[i + 2], &listing->count))
                return false;
            listing->is_limited = true;
            i += 2;
        } else if (listing->is_auto && text_is(argv[i], "rev")) {
            listing->is_reverse = true;
        } else if (listing->is_auto && text_is(argv[i], "byscore")) {
            listing->by_score = true;
        } else {
            reply_syntax(conn);
            return false;
        }
    }
    if (listing->is_limited && listing->count != -1 && !listing->by_score) {
        reply_error(
            conn,
            "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
        return false;
    }
    return true;
}

static void reply_members(struct redis_conn *conn, const struct zset *set, size_t first, size_t n,
                          const struct listing *listing)
{
    bool is_nested = listing->has_scores && conn->protocol == 3;
    reply_array(conn, listing->has_scores && !is_nested ? n * 2 : n);
    for (size_t i = 0; i < n; i++) {
        const struct zmember *member =
            zset_at(set, listing->is_reverse ? set->count - 1 - first - i : first + i);
        if (is_nested)
            reply_array(conn, 2);
        reply_bulk(conn, dict_name(member->entry));
        if (listing->has_scores)
            reply_double(conn, member->score);
    }
}

static void list_by_rank(struct redis_conn *conn, const struct slice *argv,
                         const struct listing *listing)
{
    int64_t from;
    int64_t to;
    struct value *value;
    if (!arg_number(conn, argv[2], &from) || !arg_number(conn, argv[3], &to) ||
        !find_set(conn, argv[1], &value))
        return;
    size_t first = 0;
    size_t n = value != NULL ? range_of(from, to, value->zset.count, &first) : 0;
    reply_members(conn, value != NULL ? &value->zset : NULL, first, n, listing);
}

static void list_by_score(struct redis_conn *conn, const struct slice *argv,
                          const struct listing *listing)
{
    struct zrange range;
    struct value *value;
    size_t least = listing->is_reverse ? 3 : 2;
    if (!read_range(conn, argv[least], argv[5 - least], &range) || !find_set(conn, argv[1], &value))
        return;
    size_t first = 0;
    size_t n = value != NULL ? zset_range(&value->zset, &range, &first) : 0;
    if (n > 0 && listing->is_reverse)
        first = value->zset.count - first - n;
    size_t offset = listing->offset < 0 ? n : (size_t)listing->offset;
    offset = offset > n ? n : offset;
    n -= offset;
    if (listing->count >= 0 && (size_t)listing->count < n)
        n = (size_t)listing->count;
    reply_members(conn, value != NULL ? &value->zset : NULL, first + offset, n, listing);
}

static void list_members(struct redis_conn *conn, const struct slice *argv, size_t argc,
                         struct listing listing)
{
    if (!read_listing(conn, argv, argc, &listing))
        return;
    if (listing.by_score)
        list_by_score(conn, argv, &listing);
    else
        list_by_rank(conn, argv, &listing);
}

void cmd_zrange(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    list_members(conn, argv, argc, (struct listing){.is_auto = true});
}

void cmd_zrevrange(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    list_members(conn, argv, argc, (struct listing){.is_reverse = true});
}

void cmd_zrevrangebyscore(struct redis_conn *conn, const struct slice *argv, size_t argc)
{
    list_members(conn, argv, argc, (struct listing){.by_score = true, .is_reverse = true});
}
