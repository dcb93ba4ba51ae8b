#include "tests/sim/redis_lua.h"

#include <lauxlib.h>
#include <lualib.h>

#include "tests/sim/redis_acl.h"
#include "tests/sim/redis_call.h"
#include "tests/sim/redis_commands.h"
#include "tests/sim/redis_deny.h"
#include "tests/sim/redis_reply.h"
#include "tests/sim/redis_sha.h"

static const char state_key = 'k'; /* its address is the key of the state in Lua's registry */

struct script_state *lua_script(lua_State *lua)
{
    lua_pushlightuserdata(lua, (void *)(uintptr_t)&state_key);
    lua_rawget(lua, LUA_REGISTRYINDEX);
    struct script_state *state = lua_touserdata(lua, -1);
    lua_pop(lua, 1);
    return state;
}

/* ---- redis.call ---- */

/* Before 7.0 a script's own error tells the line. */
static void push_complaint(lua_State *lua, const struct redis *redis, struct slice complaint)
{
    lua_Debug place;
    struct text text = {0};
    if (is_at_least(redis, 70000)) {
        lua_push_error(lua, complaint);
        return;
    }
    if (lua_getstack(lua, 1, &place) && lua_getinfo(lua, "Sl", &place))
        text_addf(&text, "-%s: %d: ", place.source, place.currentline);
    text_add(&text, complaint);
    lua_push_error(lua, text_slice(&text));
    text_fini(&text);
}

/* False: the call is refused, and `why` has the error. */
static bool may_call(struct script_state *state, const struct slice *argv, size_t argc,
                     struct text *why)
{
    struct redis_conn *conn = state->conn;
    const struct command *command = command_find(conn->redis, argv, argc);
    bool is_old = !is_at_least(conn->redis, 70000);
    const char *name = is_valkey_8(conn->redis) ? "" : "Redis ";
    conn->command = conn->last_command = command;
    if (command == NULL) {
        text_addf(why, "Unknown %scommand called from %sscript", name, is_old ? "Lua " : "");
        return false;
    }
    if (!call_fits(command, argc)) {
        text_addf(why, "Wrong number of args calling %scommand %s script", name,
                  is_old ? "From Lua" : "from");
        return false;
    }
    /* as at the time-out */
    bool may_block = (command->bits & FLAG_BLOCKING) && is_at_least(conn->redis, 70200);
    if ((command->bits & FLAG_NOSCRIPT) && !may_block) {
        text_addf(why, "This Redis command is not allowed from script%s", is_old ? "s" : "");
        return false;
    }
    if (deny_is_stale(conn->redis) && !(command->bits & FLAG_STALE)) {
        text_addf(why, "Can not execute the command on a stale replica");
        return false;
    }
    if (state->is_readonly && (command->bits & (FLAG_WRITE | FLAG_MAY_REPLICATE))) {
        text_addf(why, "Write commands are not allowed from read-only scripts.");
        return false;
    }
    const char *denied = deny_in_script(conn, state->has_written);
    if (denied != NULL)
        text_addf(why, "%s", denied);
    return denied == NULL;
}

/*
 * Reads the words from the stack, numbers as text. False: a word is neither a string nor a number.
 */
static bool read_words(lua_State *lua, struct slice *argv, char (*digits)[64], int n,
                       bool is_shortest)
{
    for (int i = 0; i < n; i++) {
        size_t len;
        if (lua_type(lua, i + 1) == LUA_TNUMBER) {
            argv[i] = text_of_score(lua_tonumber(lua, i + 1), is_shortest, digits[i]);
            continue;
        }
        const char *text = lua_tolstring(lua, i + 1, &len);
        if (text == NULL)
            return false;
        argv[i] = slice_of(text, len);
    }
    return true;
}

static void carry_out(lua_State *lua, struct script_state *state, const struct slice *argv,
                      size_t argc)
{
    struct redis_conn *conn = state->conn;
    struct text why = {0};
    conn->user = state->caller->user;
    if (!may_call(state, argv, argc, &why)) {
        push_complaint(lua, conn->redis, text_slice(&why));
        text_fini(&why);
        return;
    }
    state->has_written |= (conn->command->bits & FLAG_WRITE) != 0;
    call_run(conn, argv, argc);
    lua_push_reply(lua, text_slice(&conn->out));
    conn->out.len = 0;
}

static bool is_error_at_top(lua_State *lua)
{
    if (!lua_istable(lua, -1))
        return false;
    lua_getfield(lua, -1, "err");
    bool is = lua_isstring(lua, -1);
    lua_pop(lua, 1);
    return is;
}

static const char *no_words(const struct redis *redis)
{
    if (is_valkey_8(redis))
        return "Command arguments must be strings or integers";
    return is_at_least(redis, 70000) ? "Lua redis lib command arguments must be strings or integers"
                                     : "Lua redis() command arguments must be strings or integers";
}

static int call(lua_State *lua, bool raises)
{
    struct script_state *state = lua_script(lua);
    int n = lua_gettop(lua);
    if (n == 0) {
        push_complaint(lua, state->conn->redis,
                       SLICE("Please specify at least one argument for this redis lib call"));
    } else {
        struct slice *argv = take_memory((size_t)n * sizeof *argv);
        char(*digits)[64] = take_memory((size_t)n * sizeof *digits);
        if (read_words(lua, argv, digits, n, is_at_least(state->conn->redis, 70200)))
            carry_out(lua, state, argv, (size_t)n);
        else
            push_complaint(lua, state->conn->redis, slice_str(no_words(state->conn->redis)));
        free(argv);
        free(digits);
    }
    if (!raises || !is_error_at_top(lua))
        return 1;
    if (!is_at_least(state->conn->redis, 70000))
        lua_getfield(lua, -1, "err");
    return lua_error(lua);
}

static int redis_call(lua_State *lua)
{
    return call(lua, true);
}

static int redis_pcall(lua_State *lua)
{
    return call(lua, false);
}

/* ---- other functions of redis ---- */

static int reply_of_one_field(lua_State *lua, const char *name)
{
    if (lua_gettop(lua) != 1 || lua_type(lua, -1) != LUA_TSTRING) {
        lua_push_error(lua, SLICE("wrong number or type of arguments"));
        return 1;
    }
    lua_newtable(lua);
    lua_pushvalue(lua, 1);
    lua_setfield(lua, -2, name);
    return 1;
}

static int redis_status_reply(lua_State *lua)
{
    return reply_of_one_field(lua, "ok");
}

/* Since 7.0 the text begins with a code. If there is no code, or only a dash, "ERR" is added. */
static int redis_error_reply(lua_State *lua)
{
    const struct redis *redis = lua_script(lua)->conn->redis;
    size_t len;
    if (lua_gettop(lua) != 1 || lua_type(lua, -1) != LUA_TSTRING || !is_at_least(redis, 70000))
        return reply_of_one_field(lua, "err");
    const char *text = lua_tolstring(lua, 1, &len);
    struct slice error = text_upto_nul(slice_of(text, len));
    struct text dashed = {0};
    text_add(&dashed, error.len > 0 && error.at[0] == '-' ? SLICE("") : SLICE("-"));
    text_add(&dashed, error);
    if (memchr(error.at, ' ', error.len) == NULL) { /* no code */
        struct slice message = dashed.len > 0 ? slice_of(dashed.at + 1, dashed.len - 1) : error;
        lua_push_error(lua, message);
    } else {
        lua_push_error(lua, text_slice(&dashed));
    }
    text_fini(&dashed);
    return 1;
}

static int redis_sha1hex(lua_State *lua)
{
    char hex[SHA1_HEX + 1];
    size_t len;
    if (lua_gettop(lua) != 1) {
        lua_push_error(lua, SLICE("wrong number of arguments"));
        return lua_error(lua);
    }
    const char *text = luaL_checklstring(lua, 1, &len);
    sha1_hex(slice_of(text, len), hex);
    lua_pushlstring(lua, hex, SHA1_HEX);
    return 1;
}

static int redis_setresp(lua_State *lua)
{
    lua_Integer protocol = lua_gettop(lua) == 1 ? lua_tointeger(lua, 1) : 0;
    if (protocol != 2 && protocol != 3) {
        lua_push_error(lua, SLICE("RESP version must be 2 or 3."));
        return lua_error(lua);
    }
    lua_script(lua)->conn->protocol = (unsigned)protocol;
    return 0;
}

static int redis_log(lua_State *lua)
{
    (void)lua;
    return 0;
}

static int redis_replicate_commands(lua_State *lua)
{
    lua_pushboolean(lua, 1);
    return 1;
}

static int redis_take_us(lua_State *lua)
{
    return lua_take_us(lua, (uint64_t)luaL_checknumber(lua, 1));
}

/* ---- the environment ---- */

/*
 * Lua's pcall, which returns the text of an error that is a table. Inside of pcall no script
 * yields.
 */
static int counted_pcall(lua_State *lua)
{
    struct script_state *state = lua_script(lua);
    int n = lua_gettop(lua);
    luaL_checkany(lua, 1);
    state->pcalls++;
    int status = lua_pcall(lua, n - 1, LUA_MULTRET, 0);
    state->pcalls--;
    if (status != 0 && lua_istable(lua, -1)) {
        lua_getfield(lua, -1, "err");
        if (lua_isstring(lua, -1))
            lua_replace(lua, -2);
        else
            lua_pop(lua, 1);
    }
    lua_pushboolean(lua, status == 0);
    lua_insert(lua, 1);
    return lua_gettop(lua);
}

static int no_such_global(lua_State *lua)
{
    return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'",
                      luaL_checkstring(lua, 2));
}

static int no_new_global(lua_State *lua)
{
    return luaL_error(lua, "Attempt to modify a readonly table");
}

static int no_chance(lua_State *lua)
{
    lua_pushnumber(lua, 0.5);
    return 1;
}

static void hide(lua_State *lua)
{
    static const char *const hidden[] = {"dofile", "loadfile", "print",   "newproxy",
                                         "gcinfo", "module",   "require", "coroutine"};
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++) {
        lua_pushnil(lua);
        lua_setglobal(lua, hidden[i]);
    }
    lua_getglobal(lua, "math");
    lua_pushcfunction(lua, no_chance);
    lua_setfield(lua, -2, "random");
    lua_pop(lua, 1);
}

static void protect_globals(lua_State *lua)
{
    lua_newtable(lua);
    lua_pushcfunction(lua, no_such_global);
    lua_setfield(lua, -2, "__index");
    lua_pushcfunction(lua, no_new_global);
    lua_setfield(lua, -2, "__newindex");
    lua_setmetatable(lua, LUA_GLOBALSINDEX);
}

/*
 * chosen: garbage is collected at this percentage of the memory in use, since memory is cheaper
 * than collection
 */
#define GARBAGE_PERCENT 400

lua_State *lua_make(struct redis *redis)
{
    static const luaL_Reg functions[] = {
        {"call", redis_call},
        {"pcall", redis_pcall},
        {"status_reply", redis_status_reply},
        {"error_reply", redis_error_reply},
        {"sha1hex", redis_sha1hex},
        {"setresp", redis_setresp},
        {"log", redis_log},
        {"replicate_commands", redis_replicate_commands},
        {"take_us", redis_take_us},
        {NULL, NULL},
    };
    static const luaL_Reg libraries[] = {{"", luaopen_base},
                                         {"table", luaopen_table},
                                         {"string", luaopen_string},
                                         {"math", luaopen_math},
                                         {NULL, NULL}};
    lua_State *lua = lua_newstate(lua_heap_allocate, redis->lua->heap);
    if (lua == NULL)
        abort();
    lua_gc(lua, LUA_GCSETPAUSE, GARBAGE_PERCENT);
    for (const luaL_Reg *library = libraries; library->func != NULL; library++) {
        lua_pushcfunction(lua, library->func);
        lua_pushstring(lua, library->name);
        lua_call(lua, 1, 0);
    }
    lua_open_struct(lua);
    luaL_register(lua, "redis", functions);
    lua_pop(lua, 1);
    lua_pushcfunction(lua, counted_pcall);
    lua_setglobal(lua, "pcall");
    hide(lua);
    protect_globals(lua);
    lua_pushlightuserdata(lua, (void *)(uintptr_t)&state_key);
    lua_pushlightuserdata(lua, redis->lua);
    lua_rawset(lua, LUA_REGISTRYINDEX);
    lua_settop(lua, 0);
    return lua;
}
