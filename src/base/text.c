#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define FIRST_ROOM 1024

static bool make_room(struct text *text, size_t more)
{
    if (text->is_broken || text->room - text->len >= more)
        return !text->is_broken;
    size_t room = text->room > 0 ? text->room : FIRST_ROOM;
    while (room - text->len < more)
        room *= 2;
    char *at = realloc(text->at, room);
    text->is_broken = at == NULL;
    if (at == NULL)
        return false;
    text->at = at;
    text->room = room;
    return true;
}

void text_add(struct text *text, struct slice piece)
{
    if (piece.len == 0 || !make_room(text, piece.len))
        return;
    memcpy(text->at + text->len, piece.at, piece.len);
    text->len += piece.len;
}

void text_print(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int need = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (need <= 0 || !make_room(text, (size_t)need + 1))
        return;
    va_start(args, format);
    vsnprintf(text->at + text->len, (size_t)need + 1, format, args);
    va_end(args);
    text->len += (size_t)need;
}

void text_add_label(struct text *text, struct slice value)
{
    for (size_t i = 0; i < value.len; i++) {
        char c = value.at[i];
        if (c == '\n')
            text_add(text, SLICE("\\n"));
        else if (c == '"' || c == '\\')
            text_print(text, "\\%c", c);
        else
            text_add(text, slice_of(&value.at[i], 1));
    }
}

void text_add_json(struct text *text, struct slice value)
{
    size_t room = JSON_QUOTED_MAX(value.len);
    if (make_room(text, room))
        text->len += json_quote(text->at + text->len, room, value);
}

void text_add_csv(struct text *text, struct slice value)
{
    text_add(text, SLICE("\""));
    for (size_t i = 0; i < value.len; i++) {
        if (value.at[i] == '"')
            text_add(text, SLICE("\""));
        text_add(text, slice_of(&value.at[i], 1));
    }
    text_add(text, SLICE("\""));
}

void text_fini(struct text *text)
{
    free(text->at);
    *text = (struct text){0};
}
