/*
 * Text for people and for programs: a string builder, escapes for values, and columns for a
 * terminal.
 */
#ifndef WEIR_BASE_TEXT_H
#define WEIR_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/*
 * A zeroed struct is an empty text. No call fails. If memory is out, the call sets is_broken, and
 * later calls do nothing. Callers need to check is_broken only before they use the text.
 */
struct text {
    char *at; /* heap; not NUL-terminated */
    size_t len, room;
    bool is_broken; /* a part is missing: the text must not be used */
};

void text_add(struct text *text, struct slice piece);
__attribute__((format(printf, 2, 3))) void text_print(struct text *text, const char *format, ...);

/*
 * Adds `value`, escaped as the value of a label in Prometheus' text format, without the quotation
 * marks.
 */
void text_add_label(struct text *text, struct slice value);

/*
 * Adds a JSON string with its quotation marks. Bytes that are not UTF-8 become U+FFFD; <, > and &
 * are escaped.
 */
void text_add_json(struct text *text, struct slice value);

/* Adds one field of CSV, in quotation marks. */
void text_add_csv(struct text *text, struct slice value);

void text_fini(struct text *text);

#define JSON_QUOTED_MAX(len) (6 * (len) + 2) /* the most bytes of a quoted string of `len` bytes */

/*
 * Writes `value` as a JSON string with its quotation marks into `out`, at most `room` >= 2 bytes.
 * Excess is omitted, by whole characters. The result is always valid. Bytes that are not UTF-8
 * become U+FFFD. Control characters, and <, > and & for use inside HTML, are escaped. Returns the
 * length of the result.
 */
size_t json_quote(char *out, size_t room, struct slice value);

/*
 * Returns how many bytes the first character of `rest` has; 0: not valid UTF-8. `rest` is not
 * empty.
 */
size_t utf8_len(struct slice rest);

#define COLUMNS_MAX 16

/*
 * Appends `cells` to `out` as lines in columns. Each line ends in CR LF. Rows of `cells` end in
 * '\n'. Cells end in '\t', except the last cell of a row. The first row holds the headings. Columns
 * beyond COLUMNS_MAX are not aligned. A column is aligned to the right if all its cells but the
 * heading begin with a digit. The first column is always aligned to the left.
 */
void columns_write(struct text *out, struct slice cells);

#endif
