/*
 * struct.pack, struct.unpack and struct.size: integers of 1 to 8 bytes, and strings of a fixed
 * length or up to a NUL.
 *
 * Formats: < > = byte order; b B h H l L i[n] I[n] integers; c[n] n bytes; s a string up to a NUL;
 * x a zero byte.
 */
#include <lauxlib.h>

#include "tests/sim/redis_lua.h"

#define BYTES_MAX 8

struct item {
    char kind; /* 'i', 'I', 'c', 's', 'x'; 0: the end */
    size_t size;
};

struct format {
    const char *at;
    bool is_big;
};

static size_t read_size(struct format *format, size_t otherwise)
{
    size_t size = 0;
    if (*format->at < '0' || *format->at > '9')
        return otherwise;
    while (*format->at >= '0' && *format->at <= '9' && size < 1000000)
        size = size * 10 + (size_t)(*format->at++ - '0');
    return size;
}

static struct item next_item(lua_State *lua, struct format *format)
{
    for (;;) {
        char c = *format->at;
        if (c == '\0')
            return (struct item){0};
        format->at++;
        switch (c) {
        case '>':
        case '<':
        case '=':
            format->is_big = c == '>';
            break;
        case ' ':
            break;
        case 'b':
        case 'B':
            return (struct item){c == 'b' ? 'i' : 'I', 1};
        case 'h':
        case 'H':
            return (struct item){c == 'h' ? 'i' : 'I', 2};
        case 'l':
        case 'L':
            return (struct item){c == 'l' ? 'i' : 'I', 8};
        case 'i':
        case 'I': {
            size_t size = read_size(format, 4);
            if (size == 0 || size > BYTES_MAX)
                luaL_error(lua, "integral size %d is larger than limit of %d", (int)size,
                           BYTES_MAX);
            return (struct item){c, size};
        }
        case 'c':
            return (struct item){c, read_size(format, 1)};
        case 's':
        case 'x':
            return (struct item){c, c == 'x'};
        default:
            luaL_error(lua, "invalid format option '%c'", c);
        }
    }
}

static void add_number(luaL_Buffer *out, lua_Number number, size_t size, bool is_big)
{
    uint64_t value = number < 0 ? (uint64_t)(int64_t)number : (uint64_t)number;
    char bytes[BYTES_MAX];
    for (size_t i = 0; i < size; i++, value >>= 8)
        bytes[is_big ? size - 1 - i : i] = (char)(value & 0xff);
    luaL_addlstring(out, bytes, size);
}

static int struct_pack(lua_State *lua)
{
    struct format format = {luaL_checkstring(lua, 1), false};
    luaL_Buffer out;
    int arg = 2;
    luaL_buffinit(lua, &out);
    for (;;) {
        struct item item = next_item(lua, &format);
        size_t len = 0;
        if (item.kind == 0)
            break;
        if (item.kind == 'x') {
            luaL_addchar(&out, '\0');
        } else if (item.kind == 'i' || item.kind == 'I') {
            add_number(&out, luaL_checknumber(lua, arg++), item.size, format.is_big);
        } else {
            const char *text = luaL_checklstring(lua, arg++, &len);
            size_t size = item.kind == 's' || item.size == 0 ? len : item.size;
            if (len < size)
                luaL_argerror(lua, arg - 1, "string too short");
            luaL_addlstring(&out, text, size);
            if (item.kind == 's')
                luaL_addchar(&out, '\0');
        }
    }
    luaL_pushresult(&out);
    return 1;
}

static lua_Number number_of(const char *bytes, struct item item, bool is_big)
{
    uint64_t value = 0;
    for (size_t i = 0; i < item.size; i++)
        value = value << 8 | (unsigned char)bytes[is_big ? i : item.size - 1 - i];
    if (item.kind == 'I')
        return (lua_Number)value;
    unsigned shift = (unsigned)(8 * (BYTES_MAX - item.size));
    return (lua_Number)((int64_t)(value << shift) >> shift);
}

static int struct_unpack(lua_State *lua)
{
    struct format format = {luaL_checkstring(lua, 1), false};
    size_t len;
    const char *data = luaL_checklstring(lua, 2, &len);
    size_t at = (size_t)luaL_optinteger(lua, 3, 1) - 1;
    int n = 0;
    for (;;) {
        struct item item = next_item(lua, &format);
        if (item.kind == 0)
            break;
        const char *end = item.kind == 's' && at < len ? memchr(data + at, '\0', len - at) : NULL;
        if (at > len || item.size > len - at || (item.kind == 's' && end == NULL))
            luaL_argerror(lua, 2, "data string too short");
        luaL_checkstack(lua, 2, "too many results");
        size_t size = item.kind == 's' ? (size_t)(end - data) - at : item.size;
        if (item.kind == 'i' || item.kind == 'I')
            lua_pushnumber(lua, number_of(data + at, item, format.is_big));
        else if (item.kind != 'x')
            lua_pushlstring(lua, data + at, size);
        n += item.kind != 'x';
        at += size + (item.kind == 's');
    }
    lua_pushnumber(lua, (lua_Number)(at + 1));
    return n + 1;
}

static int struct_size(lua_State *lua)
{
    struct format format = {luaL_checkstring(lua, 1), false};
    size_t size = 0;
    for (;;) {
        struct item item = next_item(lua, &format);
        if (item.kind == 0)
            break;
        if (item.kind == 's' || (item.kind == 'c' && item.size == 0))
            luaL_argerror(lua, 1, "variable-size format in struct.size");
        size += item.size;
    }
    lua_pushnumber(lua, (lua_Number)size);
    return 1;
}

void lua_open_struct(lua_State *lua)
{
    static const luaL_Reg functions[] = {
        {"pack", struct_pack}, {"unpack", struct_unpack}, {"size", struct_size}, {NULL, NULL}};
    luaL_register(lua, "struct", functions);
    lua_pop(lua, 1);
}
