/*
 * A string builder: pages, metrics, JSON. Declared zeroed by its owner. No call fails: out of memory sets is_broken,
 * after which every call does nothing, and only whoever uses the result has to look.
 */
#ifndef WEIR_BASE_TEXT_H
#define WEIR_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

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

#endif
