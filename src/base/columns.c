#include "base/columns.h"

#include <stdbool.h>
#include <string.h>

#define GAP 2 /* blanks between columns */

struct columns {
    size_t n;
    size_t widths[COLUMNS_MAX];
    bool are_words[COLUMNS_MAX]; /* they stand to the left */
};

/* The next cell, which is taken from *left; is_last: of its row. False: there is none. */
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

static void measure(struct columns *columns, struct slice cells)
{
    struct slice cell;
    bool is_last;
    size_t column = 0, row = 0;
    while (next_cell(&cells, &cell, &is_last)) {
        if (column < COLUMNS_MAX) {
            bool is_number = cell.len > 0 && cell.at[0] >= '0' && cell.at[0] <= '9';
            columns->widths[column] = cell.len > columns->widths[column] ? cell.len : columns->widths[column];
            columns->are_words[column] |= column == 0 || (row > 0 && !is_number);
        }
        column = is_last ? 0 : column + 1;
        row += is_last;
    }
}

static void blanks(struct text *out, size_t n)
{
    text_print(out, "%*s", (int)n, "");
}

void columns_write(struct text *out, struct slice cells)
{
    struct columns columns = {0};
    struct slice cell;
    bool is_last;
    size_t column = 0;
    measure(&columns, cells);
    while (next_cell(&cells, &cell, &is_last)) {
        size_t width = column < COLUMNS_MAX ? columns.widths[column] : cell.len;
        bool is_word = column >= COLUMNS_MAX || columns.are_words[column];
        blanks(out, (column > 0 ? GAP : 0) + (is_word ? 0 : width - cell.len));
        text_add(out, cell);
        if (is_last)
            text_add(out, SLICE("\r\n"));
        else if (is_word)
            blanks(out, width - cell.len);
        column = is_last ? 0 : column + 1;
    }
}
