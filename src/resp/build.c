/* Every function reserves room before it writes, and writes nothing to a broken build. */
#include "resp/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "resp/emit.h"

#define FIRST_ROOM 256

void build_init(struct build *build, bool is_resp3)
{
    *build = (struct build){.is_resp3 = is_resp3};
}

void build_fini(struct build *build)
{
    free(build->at);
    *build = (struct build){.is_resp3 = build->is_resp3};
}

/* Doubles the room: a reply of n bytes is copied less than twice. */
static bool build_grow(struct build *build, size_t n)
{
    size_t room = build->room > 0 ? build->room : FIRST_ROOM;
    while (room - build->len < n) {
        if (room > SIZE_MAX / 2)
            return false;
        room *= 2;
    }
    char *at = realloc(build->at, room);
    if (at == NULL)
        return false;
    build->at = at;
    build->room = room;
    return true;
}

/* Returns room for n more bytes, NULL if out of memory. */
static char *reserve(struct build *build, size_t n)
{
    if (!build->is_broken && build->room - build->len < n)
        build->is_broken = !build_grow(build, n);
    return build->is_broken ? NULL : build->at + build->len;
}

static void build_append(struct build *build, struct slice bytes)
{
    char *to = reserve(build, bytes.len);
    if (to == NULL || bytes.len == 0)
        return;
    memcpy(to, bytes.at, bytes.len);
    build->len += bytes.len;
}

void build_header(struct build *build, char type, int64_t number)
{
    char *to = reserve(build, EMIT_HEADER_MAX);
    if (to != NULL)
        build->len += emit_header(to, type, number);
}

void build_map(struct build *build, size_t pairs)
{
    build_header(build, build->is_resp3 ? '%' : '*',
                 (int64_t)(build->is_resp3 ? pairs : 2 * pairs));
}

void build_array(struct build *build, size_t n)
{
    build_header(build, '*', (int64_t)n);
}

void build_set(struct build *build, size_t n)
{
    build_header(build, build->is_resp3 ? '~' : '*', (int64_t)n);
}

void build_bulk(struct build *build, struct slice bytes)
{
    build_header(build, '$', (int64_t)bytes.len);
    build_append(build, bytes);
    build_append(build, SLICE("\r\n"));
}

void build_bulk_str(struct build *build, const char *text)
{
    build_bulk(build, slice_str(text));
}

/*
 * vsnprintf writes in place, and needs one more byte for its NUL. The line end overwrites the NUL.
 */
__attribute__((format(printf, 3, 0))) static void bulk_of(struct build *build, size_t len,
                                                          const char *format, va_list args)
{
    build_header(build, '$', (int64_t)len);
    char *to = reserve(build, len + 1);
    if (to == NULL)
        return;
    vsnprintf(to, len + 1, format, args);
    build->len += len;
    build_append(build, SLICE("\r\n"));
}

void build_printf_bulk(struct build *build, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0) {
        build->is_broken = true;
        return;
    }
    va_start(args, format);
    bulk_of(build, (size_t)len, format, args);
    va_end(args);
}

void build_int(struct build *build, int64_t number)
{
    build_header(build, ':', number);
}

void build_nil(struct build *build)
{
    build_append(build, build->is_resp3 ? SLICE("_\r\n") : SLICE("$-1\r\n"));
}

void build_raw(struct build *build, struct slice bytes)
{
    build_append(build, bytes);
}

static void build_line(struct build *build, struct slice type, struct slice text)
{
    build_append(build, type);
    size_t begin = build->len;
    build_append(build, text);
    for (size_t i = begin; i < build->len; i++)
        if (build->at[i] == '\r' || build->at[i] == '\n')
            build->at[i] = ' ';
    build_append(build, SLICE("\r\n"));
}

void build_status(struct build *build, struct slice text)
{
    build_line(build, SLICE("+"), text);
}

void build_error(struct build *build, struct slice text)
{
    build_line(build, SLICE("-"), text);
}
