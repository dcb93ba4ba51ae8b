/*
 * The Lua that scripts see: redis, struct, and no more of the standard libraries than is harmless.
 */
#ifndef WEIR_SIM_REDIS_LUA_H
#define WEIR_SIM_REDIS_LUA_H

#include <lua.h>

#include "tests/sim/redis_lua_heap.h"
#include "tests/sim/redis_state.h"

/* A script that is being run, or has been given its time. */
struct script_state {
    lua_State *lua;
    struct lua_heap *heap;   /* its memory */
    lua_State *thread;       /* NULL: none runs */
    int thread_ref;          /* which keeps it */
    struct redis_conn *conn; /* for whom the script's calls are carried out; it has no peer */
    struct redis_conn *caller;
    const struct command *command; /* EVAL or one of its like */
    char sha[41];
    struct text *keys; /* heap; those that it was given */
    size_t n_keys;
    uint64_t began_us, due_us, took_us;
    unsigned pcalls; /* of Lua's own: there it cannot give way */
    bool may_yield, has_yielded, has_written, is_killed, is_readonly, has_read;
};

lua_State *lua_make(struct redis *redis);
struct script_state *lua_script(lua_State *lua);

/* redis.call, where the words lie on the stack; the reply replaces them. */
void lua_open_struct(lua_State *lua);                    /* redis_lua_struct.c */
void lua_push_reply(lua_State *lua, struct slice reply); /* redis_lua_reply.c */
void lua_push_error(lua_State *lua, struct slice error); /* {err = ...}; "-CODE text", or text alone */
void lua_reply(lua_State *lua, struct redis_conn *conn, unsigned protocol); /* takes the value at the top */

/* It takes so much time, and gives way if it may. Returns what a C function of Lua's is to return. */
int lua_take_us(lua_State *lua, uint64_t us);

#endif
