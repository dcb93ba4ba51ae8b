/* Writes RESP to the caller's memory. Every function returns the number of bytes written. */
#ifndef WEIR_RESP_EMIT_H
#define WEIR_RESP_EMIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define EMIT_HEADER_MAX 24 /* a type byte, a sign, 20 digits and CRLF */

/*
 * Writes a type byte, a number and CRLF: "*n\r\n", "$n\r\n", ":n\r\n". `out` has at least
 * EMIT_HEADER_MAX bytes.
 */
size_t emit_header(char *out, char type, int64_t n);

/*
 * Write a bulk string: emit_bulk with these bytes, emit_bulk_number with the digits of n. `out` has
 * EMIT_HEADER_MAX bytes plus the content's length plus 2.
 */
size_t emit_bulk(char *out, struct slice bytes);
size_t emit_bulk_number(char *out, int64_t n);

/*
 * Writes a request, or any array of bulks. `out` has EMIT_HEADER_MAX * (argc + 1) bytes, plus each
 * argument's length plus 2.
 */
size_t emit_array(char *out, const struct slice *args, size_t argc);

#endif
