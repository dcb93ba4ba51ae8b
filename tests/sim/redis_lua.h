/*
 * The Lua environment of scripts: redis, struct, and the harmless part of the standard libraries.
 */
#ifndef WEIR_SIM_REDIS_LUA_H
#define WEIR_SIM_REDIS_LUA_H

#include <lua.h>

#include "tests/sim/redis_lua_heap.h"
#include "tests/sim/redis_state.h"

/* A script that runs, or that waits for its time to pass. */
struct script_state {
    lua_State *lua;
    struct lua_heap *heap;   /* memory of the Lua state */
    lua_State *thread;       /* NULL: no script runs */
    int thread_ref;          /* reference that keeps `thread` */
    struct redis_conn *conn; /* executes the script's calls, without a peer */
    struct redis_conn *caller;
    const struct command *command; /* EVAL, EVALSHA ... */
    char sha[41];
    struct text *keys; /* heap; KEYS of the call */
    size_t n_keys;
    uint64_t began_us, due_us, took_us;
    unsigned pcalls; /* depth of Lua's pcall, inside of which the script cannot yield */
    bool may_yield, has_yielded, has_written, is_killed, is_readonly, has_read;
};

lua_State *lua_make(struct redis *redis);
struct script_state *lua_script(lua_State *lua);

void lua_open_struct(lua_State *lua);                    /* redis_lua_struct.c */
void lua_push_reply(lua_State *lua, struct slice reply); /* redis_lua_reply.c */
/* pushes {err = ...}; "-CODE text", or text alone */
void lua_push_error(lua_State *lua, struct slice error);
/* takes the value at the top */
void lua_reply(lua_State *lua, struct redis_conn *conn, unsigned protocol);

/* The script takes `us` of time, and yields if it may. Returns the result for a lua_CFunction. */
int lua_take_us(lua_State *lua, uint64_t us);

#endif
