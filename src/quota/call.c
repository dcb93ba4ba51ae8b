/* Reads a request and keeps of it what is needed until its answer. */
#include "quota/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "quota/prefix.h"
#include "resp/emit.h"

/* "KEY" behind the prefix, as it is called in Redis. */
static struct slice put_key(char **at, struct slice prefix, struct slice key)
{
    char *start = *at;
    memcpy(*at, prefix.at, prefix.len);
    memcpy(*at + prefix.len, key.at, key.len);
    *at += prefix.len + key.len;
    return slice_of(start, prefix.len + key.len);
}

/* "NAME:KEY" behind the prefix, the name in lower case: two named limits on one key have nothing in common. */
static struct slice put_named(char **at, struct slice prefix, struct slice name, struct slice key)
{
    char *start = *at;
    (void)put_key(at, prefix, name);
    for (char *c = start + prefix.len; c < *at; c++)
        *c = ascii_lower(*c);
    *(*at)++ = ':';
    (void)put_key(at, SLICE(""), key);
    return slice_of(start, (size_t)(*at - start));
}

/* All keys of a RESET, each as a bulk. */
static void put_keys(struct quota_call *call, char *at, struct slice prefix)
{
    struct slice key;
    char *start = at;
    while (argv_next(&call->ask.keys, &key)) {
        at += emit_header(at, '$', (int64_t)(prefix.len + key.len));
        (void)put_key(&at, prefix, key);
        *at++ = '\r';
        *at++ = '\n';
        call->n_keys++;
    }
    call->key = slice_of(start, (size_t)(at - start));
}

static void make_token(struct quota_call *call)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        abort();
    for (size_t i = 0; i < sizeof bytes; i++) {
        call->token[2 * i] = hex[bytes[i] >> 4];
        call->token[2 * i + 1] = hex[bytes[i] & 15];
    }
}

static void init(struct quota_call *call, struct quota *quota, void *owner, bool is_resp3)
{
    call->quota = quota;
    call->owner = owner;
    list_init(&call->in_client);
    list_init(&call->in_entry);
    list_init(&call->in_wakes);
    build_init(&call->reply, is_resp3);
}

/* What of the request is needed later. */
static void keep(struct quota_call *call, const struct quota_ask *ask, struct slice prefix)
{
    char *at = call->text;
    call->ask = *ask;
    if (ask->rule.kind == QUOTA_RESET) {
        put_keys(call, at, prefix);
        return;
    }
    call->key = ask->name.len > 0 ? put_named(&at, prefix, ask->name, ask->key) : put_key(&at, prefix, ask->key);
    if (ask->token.len > 0)
        call->ask.token = put_key(&at, SLICE(""), ask->token);
    call->ask.key = call->key;
    call->ask.name = slice_of("", 0);
    if (ask->rule.kind == QUOTA_ACQUIRE)
        make_token(call);
}

/* NULL: none is named so, or the call does not fit it. */
static const struct named_limit *resolve(struct quota_ask *ask, const struct quota_context *context,
                                         struct build *error)
{
    char text[256];
    const struct named_limit *limit = named_find(context->named, ask->name);
    if (limit != NULL) {
        bool is_fit = quota_ask_resolve(ask, named_rule(limit, ask->key, context->now_ns), text, sizeof text);
        if (!is_fit)
            build_error(error, slice_str(text));
        return is_fit ? limit : NULL;
    }
    struct slice near = named_near(context->named, ask->name);
    int shown = (int)(ask->name.len < 64 ? ask->name.len : 64);
    int len = snprintf(text, sizeof text,
                       near.len > 0 ? "ERR no limit is named '%.*s' (did you mean %.*s?)"
                                    : "ERR no limit is named '%.*s'%.*s",
                       shown, ask->name.at, (int)near.len, near.at);
    build_error(error, slice_of(text, (size_t)len));
    return NULL;
}

struct quota_call *call_new(struct quota *quota, const struct quota_context *context, struct slice name,
                            struct slice request, void *owner, struct build *error)
{
    struct quota_ask asked;
    char why[256];
    if (!quota_ask_parse(&asked, name, request, why, sizeof why)) {
        build_error(error, slice_str(why));
        return NULL;
    }
    const struct named_limit *limit = NULL;
    if (asked.rule.kind == QUOTA_CHECK && (limit = resolve(&asked, context, error)) == NULL)
        return NULL;
    bool is_reset = asked.rule.kind == QUOTA_RESET;
    asked.is_raw = asked.is_cell && context->cell == QUOTA_CELL_RAW;
    char spelled[PREFIX_ROOM];
    struct slice prefix = SLICE("");
    if (!asked.is_raw && !prefix_of(context->prefix, context->user, spelled, &prefix)) {
        build_error(error, SLICE("ERR the user's name is too long for keys of its own: at most 255 bytes"));
        return NULL;
    }
    size_t per_key = is_reset ? prefix.len + EMIT_HEADER_MAX : prefix.len;
    size_t room = request.len + (is_reset ? asked.keys.left : 1) * per_key + 1;
    struct quota_call *call = calloc(1, sizeof *call + room);
    if (call == NULL) {
        build_error(error, SLICE("ERR out of memory"));
        return NULL;
    }
    init(call, quota, owner, context->is_resp3);
    keep(call, &asked, prefix);
    call->database = asked.is_raw ? context->database : 0;
    if (limit != NULL) {
        call->tally = named_tally_get(limit->tally);
        call->is_shadow = limit->is_shadow;
        call->ask.wait_ns = limit->is_shadow ? 0 : call->ask.wait_ns; /* who is not limited need not wait */
    }
    call->when_down = limit != NULL && limit->has_when_down ? limit->when_down : context->when_down;
    return call;
}

struct quota_call *call_answered(struct quota *quota, struct slice reply, void *owner)
{
    struct quota_call *call = calloc(1, sizeof *call);
    if (call == NULL)
        return NULL;
    init(call, quota, owner, false);
    call->is_done = true;
    build_raw(&call->reply, reply);
    return call;
}

void call_free(struct quota_call *call)
{
    build_fini(&call->reply);
    named_tally_put(call->tally);
    free(call);
}
