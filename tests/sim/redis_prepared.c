/* Scripts are prepared before the first server and never change, so they do not affect a run. */
#include "tests/sim/redis_prepared.h"

#include <lauxlib.h>

#include "tests/sim/redis.h"

#define PREPARED_MAX 32

static struct prepared all[PREPARED_MAX];
static size_t n_all;

const struct prepared *prepared_find(struct slice body)
{
    for (size_t i = 0; i < n_all; i++)
        if (slice_eq(all[i].body, body))
            return &all[i];
    return NULL;
}

struct slice script_code(struct slice body)
{
    if (body.len <= 2 || memcmp(body.at, "#!", 2) != 0)
        return body;
    const char *end = memchr(body.at, '\n', body.len);
    size_t len = end != NULL ? (size_t)(end - body.at) : body.len;
    return slice_of(body.at + len, body.len - len);
}

static int add_code(lua_State *lua, const void *data, size_t n, void *text)
{
    (void)lua;
    text_add(text, slice_of(data, n));
    return 0;
}

void redis_prepare(struct slice body)
{
    struct slice code = script_code(body);
    struct prepared *prepared = &all[n_all];
    lua_State *lua = luaL_newstate();
    if (n_all == PREPARED_MAX || lua == NULL)
        abort();
    if (luaL_loadbuffer(lua, code.at, code.len, SCRIPT_CHUNK) == 0) {
        prepared->body = body;
        sha1_hex(body, prepared->sha);
        lua_dump(lua, add_code, &prepared->code);
        n_all++;
    }
    lua_close(lua);
}
