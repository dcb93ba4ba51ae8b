/*
 * A JSON writer. Each call adds a member to the innermost open object, or a row to the innermost
 * open list. The writer sets the commas.
 */
#ifndef WEIR_ADMIN_JSON_H
#define WEIR_ADMIN_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/* Writes only the name of a member, and a colon. */
void json_name(struct text *out, const char *key);

void json_number(struct text *out, const char *key, uint64_t value);
void json_real(struct text *out, const char *key, double value);
void json_flag(struct text *out, const char *key, bool value);
void json_string(struct text *out, const char *key, const char *value);
void json_text(struct text *out, const char *key, struct slice value); /* any bytes */
/* adds a list of `n` numbers */
void json_reals(struct text *out, const char *key, const float *values, size_t n);

void json_open_object(struct text *out, const char *key);
void json_open_list(struct text *out, const char *key);
void json_open_row(struct text *out); /* an object in a list */
void json_close_object(struct text *out);
void json_close_list(struct text *out);

#endif
