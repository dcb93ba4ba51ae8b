/* Conversion of replies to Lua values, and of Lua values to replies. */
#include <lauxlib.h>

#include "tests/sim/redis_lua.h"
#include "tests/sim/redis_reply.h"

/* ---- replies to values ---- */

static struct slice take_line(struct slice *rest)
{
    const char *cr = memchr(rest->at, '\r', rest->len);
    struct slice line = slice_of(rest->at + 1, (size_t)(cr - rest->at) - 1);
    size_t used = line.len + 3;
    *rest = slice_of(rest->at + used, rest->len - used);
    return line;
}

static int64_t number_in(struct slice line)
{
    int64_t number = 0;
    text_to_number(line, &number);
    return number;
}

static void push_field(lua_State *lua, const char *name, struct slice text)
{
    lua_createtable(lua, 0, 1);
    lua_pushlstring(lua, text.at, text.len);
    lua_setfield(lua, -2, name);
}

void lua_push_error(lua_State *lua, struct slice error)
{
    struct text text = {0};
    if (error.len > 0 && error.at[0] == '-')
        error = slice_of(error.at + 1, error.len - 1);
    else
        text_add(&text, SLICE("ERR "));
    text_add(&text, error);
    push_field(lua, "err", text_slice(&text));
    text_fini(&text);
}

static void push_value(lua_State *lua, struct slice *rest);

static void push_many(lua_State *lua, struct slice *rest, int64_t n)
{
    lua_createtable(lua, (int)n, 0);
    for (int64_t i = 1; i <= n; i++) {
        push_value(lua, rest);
        lua_rawseti(lua, -2, (int)i);
    }
}

/* { map = { key = value ... } } or { set = { member = true ... } } */
static void push_named(lua_State *lua, struct slice *rest, int64_t n, bool is_map)
{
    lua_createtable(lua, 0, 1);
    lua_createtable(lua, 0, (int)n);
    for (int64_t i = 0; i < n; i++) {
        push_value(lua, rest);
        if (is_map)
            push_value(lua, rest);
        else
            lua_pushboolean(lua, 1);
        lua_rawset(lua, -3);
    }
    lua_setfield(lua, -2, is_map ? "map" : "set");
}

static struct slice take_bytes(struct slice *rest, int64_t n)
{
    struct slice bytes = slice_of(rest->at, (size_t)n);
    *rest = slice_of(rest->at + n + 2, rest->len - (size_t)n - 2);
    return bytes;
}

static void push_text(lua_State *lua, struct slice *rest, int64_t n)
{
    if (n < 0) {
        lua_pushboolean(lua, 0);
        return;
    }
    struct slice bytes = take_bytes(rest, n);
    lua_pushlstring(lua, bytes.at, bytes.len);
}

static void push_verbatim(lua_State *lua, struct slice *rest, int64_t n)
{
    struct slice bytes = take_bytes(rest, n);
    lua_createtable(lua, 0, 1);
    lua_createtable(lua, 0, 2);
    lua_pushlstring(lua, bytes.at, 3);
    lua_setfield(lua, -2, "format");
    lua_pushlstring(lua, bytes.at + 4, bytes.len - 4);
    lua_setfield(lua, -2, "string");
    lua_setfield(lua, -2, "verbatim_string");
}

static void push_double(lua_State *lua, struct slice line)
{
    char copy[64] = "";
    memcpy(copy, line.at, line.len < sizeof copy ? line.len : sizeof copy - 1);
    lua_createtable(lua, 0, 1);
    lua_pushnumber(lua, strtod(copy, NULL));
    lua_setfield(lua, -2, "double");
}

static void push_value(lua_State *lua, struct slice *rest)
{
    char type = rest->at[0];
    struct slice line = take_line(rest);
    luaL_checkstack(lua, 4, "a reply is too deep");
    switch (type) {
    case '+':
        push_field(lua, "ok", line);
        break;
    case '-':
        push_field(lua, "err", line);
        break;
    case ':':
        lua_pushnumber(lua, (lua_Number)number_in(line));
        break;
    case '$':
        push_text(lua, rest, number_in(line));
        break;
    case '=':
        push_verbatim(lua, rest, number_in(line));
        break;
    case '*':
    case '>':
        if (number_in(line) < 0)
            lua_pushboolean(lua, 0);
        else
            push_many(lua, rest, number_in(line));
        break;
    case '%':
    case '~':
        push_named(lua, rest, number_in(line), type == '%');
        break;
    case ',':
        push_double(lua, line);
        break;
    case '#':
        lua_pushboolean(lua, line.at[0] == 't');
        break;
    default:
        lua_pushnil(lua);
    }
}

void lua_push_reply(lua_State *lua, struct slice reply)
{
    if (reply.len > 0)
        push_value(lua, &reply);
    else
        lua_pushnil(lua);
}

/* ---- values to replies ---- */

static struct slice string_at_top(lua_State *lua)
{
    size_t len;
    const char *text = lua_tolstring(lua, -1, &len);
    return slice_of(text, len);
}

/* Replies a line of `text` up to a NUL. Line ends become blanks, except in a server that forges. */
static void reply_line(struct redis_conn *conn, const char *type, struct slice text)
{
    struct text line = {0};
    text_add(&line, text_upto_nul(text));
    for (size_t i = 0; i < line.len && !conn->redis->config.forges; i++)
        if (line.at[i] == '\r' || line.at[i] == '\n')
            line.at[i] = ' ';
    reply_raw(conn, slice_str(type));
    reply_raw(conn, text_slice(&line));
    reply_raw(conn, SLICE("\r\n"));
    text_fini(&line);
}

static bool push_raw_field(lua_State *lua, const char *name, int type)
{
    lua_pushstring(lua, name);
    lua_rawget(lua, -2);
    if (lua_type(lua, -1) == type)
        return true;
    lua_pop(lua, 1);
    return false;
}

/* Replies the table at the top of the stack as a map or set. */
static void reply_names(lua_State *lua, struct redis_conn *conn, unsigned protocol, bool is_map)
{
    size_t n = 0;
    size_t mark = reply_mark(conn);
    lua_pushnil(lua);
    for (; lua_next(lua, -2) != 0; n++) {
        lua_pushvalue(lua, -2);
        lua_reply(lua, conn, protocol);
        if (is_map)
            lua_reply(lua, conn, protocol);
        else
            lua_pop(lua, 1);
    }
    if (is_map)
        reply_map_at(conn, mark, n);
    else
        reply_set_at(conn, mark, n);
}

static void reply_items(lua_State *lua, struct redis_conn *conn, unsigned protocol)
{
    size_t n = 0;
    size_t mark = reply_mark(conn);
    for (;;) {
        lua_rawgeti(lua, -1, (int)n + 1);
        if (lua_isnil(lua, -1))
            break;
        lua_reply(lua, conn, protocol);
        n++;
    }
    lua_pop(lua, 1);
    reply_array_at(conn, mark, n);
}

static bool reply_verbatim_field(lua_State *lua, struct redis_conn *conn)
{
    if (!push_raw_field(lua, "verbatim_string", LUA_TTABLE))
        return false;
    bool is_good = push_raw_field(lua, "string", LUA_TSTRING);
    if (is_good) {
        reply_verbatim(conn, string_at_top(lua));
        lua_pop(lua, 1);
    }
    lua_pop(lua, 1);
    return is_good;
}

static void reply_table(lua_State *lua, struct redis_conn *conn, unsigned protocol)
{
    if (push_raw_field(lua, "err", LUA_TSTRING)) {
        reply_error(conn, "%.*s", SHOWN(string_at_top(lua)));
        lua_pop(lua, 1);
    } else if (push_raw_field(lua, "ok", LUA_TSTRING)) {
        reply_line(conn, "+", string_at_top(lua));
        lua_pop(lua, 1);
    } else if (push_raw_field(lua, "double", LUA_TNUMBER)) {
        reply_double(conn, lua_tonumber(lua, -1));
        lua_pop(lua, 1);
    } else if (push_raw_field(lua, "map", LUA_TTABLE)) {
        reply_names(lua, conn, protocol, true);
        lua_pop(lua, 1);
    } else if (push_raw_field(lua, "set", LUA_TTABLE)) {
        reply_names(lua, conn, protocol, false);
        lua_pop(lua, 1);
    } else if (!reply_verbatim_field(lua, conn)) {
        reply_items(lua, conn, protocol);
    }
}

static void reply_boolean(struct redis_conn *conn, bool is_true, unsigned protocol)
{
    if (protocol == 2 && is_true)
        reply_number(conn, 1);
    else if (protocol == 2)
        reply_null(conn);
    else if (conn->protocol == 3)
        reply_raw(conn, is_true ? SLICE("#t\r\n") : SLICE("#f\r\n"));
    else
        reply_number(conn, is_true);
}

void lua_reply(lua_State *lua, struct redis_conn *conn, unsigned protocol)
{
    if (!lua_checkstack(lua, 4)) {
        reply_error(conn, "ERR reached lua stack limit");
        lua_pop(lua, 1);
        return;
    }
    switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
        reply_bulk(conn, string_at_top(lua));
        break;
    case LUA_TBOOLEAN:
        reply_boolean(conn, lua_toboolean(lua, -1), protocol);
        break;
    case LUA_TNUMBER: {
        lua_Number number = lua_tonumber(lua, -1);
        bool is_in = number > -9.3e18 && number < 9.2e18;
        reply_number(conn, is_in ? (int64_t)number : INT64_MIN);
        break;
    }
    case LUA_TTABLE:
        reply_table(lua, conn, protocol);
        break;
    default:
        reply_null(conn);
    }
    lua_pop(lua, 1);
}
