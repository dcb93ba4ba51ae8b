#include "base/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Source of the ranges: RFC 3629, and table 3-7 of the Unicode standard. */
size_t utf8_len(struct slice rest)
{
    const unsigned char *p = (const unsigned char *)rest.at;
    unsigned first = p[0];
    size_t n = first < 0x80                    ? 1
               : first >= 0xc2 && first < 0xe0 ? 2
               : first >= 0xe0 && first < 0xf0 ? 3
                                               : 4;
    if (first >= 0xf5 || (first >= 0x80 && first < 0xc2) || n > rest.len)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool is_overlong = (first == 0xe0 && p[1] < 0xa0) || (first == 0xf0 && p[1] < 0x90);
    bool is_outside = (first == 0xed && p[1] >= 0xa0) || (first == 0xf4 && p[1] >= 0x90);
    return is_overlong || is_outside ? 0 : n;
}

static bool is_escaped(unsigned char c)
{
    return c < ' ' || c == 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&';
}

/*
 * Writes the first character of `rest` as in a JSON string. Returns the number of bytes written.
 * *used: the number of bytes of the character in `rest`.
 */
static size_t put_json(char out[8], struct slice rest, size_t *used)
{
    size_t n = utf8_len(rest);
    *used = n > 0 ? n : 1;
    if (n == 0)
        return (size_t)sprintf(out, "\\ufffd");
    if (is_escaped((unsigned char)rest.at[0]))
        return (size_t)sprintf(out, "\\u%04x", (unsigned char)rest.at[0]);
    memcpy(out, rest.at, n);
    return n;
}

size_t json_quote(char *out, size_t room, struct slice value)
{
    size_t len = 0;
    out[len++] = '"';
    while (value.len > 0) {
        char piece[8];
        size_t used;
        size_t n = put_json(piece, value, &used);
        if (len + n + 1 > room)
            break;
        memcpy(out + len, piece, n);
        len += n;
        value = slice_of(value.at + used, value.len - used);
    }
    out[len++] = '"';
    return len;
}

/* ---- building ---- */

#define FIRST_ROOM 1024

static bool text_make_room(struct text *text, size_t more)
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
    if (piece.len == 0 || !text_make_room(text, piece.len))
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
    if (need <= 0 || !text_make_room(text, (size_t)need + 1))
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
    if (text_make_room(text, room))
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

/* ---- columns ---- */

#define GAP 2 /* blanks between columns */

struct columns {
    size_t n;
    size_t widths[COLUMNS_MAX];
    bool are_words[COLUMNS_MAX]; /* aligned to the left */
};

/*
 * Takes the next cell off *left. *is_last: the cell is the last of its row. False: no cell is left.
 */
static bool next_cell(struct slice *left, struct slice *cell, bool *is_last)
{
    size_t len = 0;
    if (left->len == 0)
        return false;
    while (len < left->len && left->at[len] != '\t' && left->at[len] != '\n')
        len++;
    *cell = slice_of(left->at, len);
    *is_last = len == left->len || left->at[len] == '\n';
    size_t used = len + (len < left->len);
    *left = slice_of(left->at + used, left->len - used);
    return true;
}

static void measure_columns(struct columns *columns, struct slice cells)
{
    struct slice cell;
    bool is_last;
    size_t column = 0, row = 0;
    while (next_cell(&cells, &cell, &is_last)) {
        if (column < COLUMNS_MAX) {
            bool is_number = cell.len > 0 && cell.at[0] >= '0' && cell.at[0] <= '9';
            columns->widths[column] =
                cell.len > columns->widths[column] ? cell.len : columns->widths[column];
            columns->are_words[column] |= column == 0 || (row > 0 && !is_number);
        }
        column = is_last ? 0 : column + 1;
        row += is_last;
    }
}

static void add_blanks(struct text *out, size_t n)
{
    text_print(out, "%*s", (int)n, "");
}

void columns_write(struct text *out, struct slice cells)
{
    struct columns columns = {0};
    struct slice cell;
    bool is_last;
    size_t column = 0;
    measure_columns(&columns, cells);
    while (next_cell(&cells, &cell, &is_last)) {
        size_t width = column < COLUMNS_MAX ? columns.widths[column] : cell.len;
        bool is_word = column >= COLUMNS_MAX || columns.are_words[column];
        add_blanks(out, (column > 0 ? GAP : 0) + (is_word ? 0 : width - cell.len));
        text_add(out, cell);
        if (is_last)
            text_add(out, SLICE("\r\n"));
        else if (is_word)
            add_blanks(out, width - cell.len);
        column = is_last ? 0 : column + 1;
    }
}
