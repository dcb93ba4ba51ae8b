#include "run/commands/order_line.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/slice.h"
#include "base/why.h"
#include "limit/policy/rate.h"

#define TEXT_ROOM 1024
#define WHY_ROOM 256
#define NAMES_ROOM 256 /* for the names of all policies; longer lists are left out of the error */

char *order_error(const char *format, ...)
{
    char text[TEXT_ROOM] = "ERR ";
    size_t len = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + len, sizeof text - len, format, args);
    va_end(args);
    return mem_strdup(text);
}

void log_order(struct journal *journal, const struct order *order, const char *kind, const char *format, ...)
{
    char text[TEXT_ROOM];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    journal_log(journal, LOG_INFO, kind, "%s%s%s", text, order->by[0] ? ", by " : "", order->by);
}

static struct slice policy_name(const void *arg, size_t i)
{
    return slice_str(policies_at(arg, i)->name);
}

char *order_no_policy(const struct policies *policies, struct slice name)
{
    struct slice near = near_name(name, policies_count(policies), policy_name, policies);
    if (near.len > 0)
        return order_error("no policy %.*s (did you mean %.*s?)", WHY_SLICE(name), WHY_SLICE(near));
    char all[NAMES_ROOM] = "";
    size_t n = policies_count(policies), len = 0;
    for (size_t i = 0; i < n && len < sizeof all; i++)
        len += (size_t)snprintf(all + len, sizeof all - len, "%s%s", i > 0 ? ", " : "", policies_at(policies, i)->name);
    if (n == 0 || len >= sizeof all)
        return order_error("no policy %.*s%s", WHY_SLICE(name), n == 0 ? ": there is none at all" : "");
    return order_error("no policy %.*s: there %s %s", WHY_SLICE(name), n == 1 ? "is" : "are", all);
}

bool order_is_one_line(const char *text)
{
    for (; text != NULL && *text; text++)
        if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
            return false;
    return true;
}

char *order_end(const struct order *order, uint64_t now_ns, uint64_t *until_ns)
{
    char why[WHY_ROOM];
    uint64_t lives_ns;
    *until_ns = order->until_ns;
    if (order->lives == NULL)
        return NULL;
    if (!order_is_one_line(order->lives) || !rate_parse_time(slice_str(order->lives), &lives_ns, why, sizeof why))
        return order_is_one_line(order->lives) ? order_error("EX: %s", why) : order_error("EX: that is no time");
    if (lives_ns == 0)
        return order_error("EX: the time must be longer than 0");
    *until_ns = now_ns + lives_ns;
    return NULL;
}

const char *order_print_end(const struct order *order, const char *before, char out[ORDER_END_ROOM])
{
    uint64_t now_ns = clock_ns();
    out[0] = '\0';
    if (order->lives != NULL)
        snprintf(out, ORDER_END_ROOM, "%s%.40s", before, order->lives);
    else if (order->until_ns > now_ns)
        snprintf(out, ORDER_END_ROOM, "%s%" PRIu64 "s", before, (order->until_ns - now_ns + NS_PER_S - 1) / NS_PER_S);
    return out;
}

static bool is_limit(struct slice what)
{
    return !slice_eq_nocase(what, SLICE("match")) && !slice_eq_nocase(what, SLICE("admin"));
}

char *order_line(const struct order *order, const struct policies *policies, struct line_name *name)
{
    *name = (struct line_name){SECTION_POLICY, slice_str(order->policy), slice_str(order->what)};
    if (!order_is_one_line(order->policy) || !order_is_one_line(order->what) || !order_is_one_line(order->expression))
        return order_error("control characters have no place in a configuration");
    const struct policy *policy = policies_find(policies, name->section);
    if (policy == NULL)
        return order_no_policy(policies, name->section);
    if (!is_limit(name->key))
        return order_error("%s is not a limit: change it in the file, then LIMIT RELOAD", order->what);
    name->section = slice_str(policy->name);
    return NULL;
}

/* Splits "sliding = 5/60s" or "sliding 5/60s". */
static void split_line(struct slice text, struct slice *key, struct slice *value)
{
    size_t len = 0;
    text = split_trim(text);
    while (len < text.len && text.at[len] != ' ' && text.at[len] != '\t' && text.at[len] != '=')
        len++;
    *key = slice_of(text.at, len);
    *value = split_trim(slice_of(text.at + len, text.len - len));
    if (value->len > 0 && value->at[0] == '=')
        *value = split_trim(slice_of(value->at + 1, value->len - 1));
}

char *order_named(const struct order *order, const struct named *named)
{
    struct slice name = slice_str(order->policy);
    if (!order_is_one_line(order->policy))
        return order_error("control characters have no place in a configuration");
    if (named_find(named, name) != NULL)
        return NULL;
    struct slice near = named_near(named, name);
    if (near.len > 0)
        return order_error("no limit is named %s (did you mean %.*s?)", order->policy, WHY_SLICE(near));
    return order_error("no limit is named %s", order->policy);
}

char *order_named_line(const struct order *order, const struct named *named, struct line_name *name,
                       struct slice *value)
{
    *name = (struct line_name){SECTION_LIMIT, slice_str(order->policy), SLICE("")};
    char *error = order_named(order, named);
    if (error != NULL)
        return error;
    if (!order_is_one_line(order->expression))
        return order_error("control characters have no place in a configuration");
    split_line(slice_str(order->expression), &name->key, value);
    return value->len > 0 ? NULL : order_error("a line is a key and its value, like sliding = 5/60s");
}
