/*
 * Text for people and for programs: a string builder, what escapes values in it, and columns for a terminal.
 */
#ifndef WEIR_BASE_TEXT_H
#define WEIR_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/*
 * Declared zeroed by its owner. No call fails: out of memory sets is_broken, after which every call does nothing, and
 * only the user of the result has to look.
 */
struct text {
    char *at; /* heap; not NUL-terminated */
    size_t len, room;
    bool is_broken; /* a part is missing: do not use */
};

void text_add(struct text *text, struct slice piece);
__attribute__((format(printf, 2, 3))) void text_print(struct text *text, const char *format, ...);

/* Escaped as the value of a label in Prometheus' text format; without the quotation marks. */
void text_add_label(struct text *text, struct slice value);

/* A JSON string with its quotation marks. Bytes that are no UTF-8 become U+FFFD; <, > and & are escaped. */
void text_add_json(struct text *text, struct slice value);

/* One field of CSV, in quotation marks. */
void text_add_csv(struct text *text, struct slice value);

void text_fini(struct text *text);

#define JSON_QUOTED_MAX(len) (6 * (len) + 2) /* a string of `len` bytes has at most so many, quoted */

/*
 * Write `value` as a JSON string with its quotation marks into out, at most `room` >= 2 bytes; what does not fit is
 * left out, by whole characters. The result is always valid: bytes that are no UTF-8 become U+FFFD; control characters
 * are escaped, and so are <, > and &, for use inside HTML. Returns its length.
 */
size_t json_quote(char *out, size_t room, struct slice value);

/* How many bytes the character at the beginning of `rest` has; 0: it is not valid UTF-8. `rest` is not empty. */
size_t utf8_len(struct slice rest);

#define COLUMNS_MAX 16

/*
 * Append `cells` to `out` as lines in columns that end in CR LF: its rows end in '\n', its cells in
 * '\t' but for a row's last one; the first row is of headings. Columns are as wide as need be,
 * those beyond COLUMNS_MAX stay as they are. A column whose cells all begin with a digit, headings
 * aside, stands to the right, but for the first.
 */
void columns_write(struct text *out, struct slice cells);

#endif
