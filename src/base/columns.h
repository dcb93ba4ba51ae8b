/*
 * Columns of text that stand one below the other, for people who read them in a terminal.
 */
#ifndef WEIR_BASE_COLUMNS_H
#define WEIR_BASE_COLUMNS_H

#include "base/slice.h"
#include "base/text.h"

#define COLUMNS_MAX 16

/*
 * Append `cells` to `out` as lines that end in CR LF: its rows end in '\n', its cells in '\t' but for a row's last
 * one; the
 * first row is of headings. Columns are as wide as need be, those beyond COLUMNS_MAX stay as they are; one whose
 * cells all begin with a digit, headings aside, stands to the right, but for the first.
 */
void columns_write(struct text *out, struct slice cells);

#endif
