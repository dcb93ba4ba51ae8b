/*
 * Writes RESP into the caller's memory. Every function returns how many bytes it wrote.
 */
#ifndef WEIR_RESP_EMIT_H
#define WEIR_RESP_EMIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define EMIT_HEADER_MAX 24 /* a type byte, 20 digits and CRLF */

/* "*n\r\n", "$n\r\n", ":n\r\n": any type byte and a number. `out` has at least EMIT_HEADER_MAX bytes. */
size_t emit_header(char *out, char type, int64_t n);

/*
 * A bulk string; or one whose bytes are the digits of n. `out` has EMIT_HEADER_MAX bytes and the
 * content's length + 2.
 */
size_t emit_bulk(char *out, struct slice bytes);
size_t emit_bulk_number(char *out, int64_t n);

/* A request, or any array of bulks. `out` has EMIT_HEADER_MAX * (argc + 1) bytes, and each argument's length + 2. */
size_t emit_array(char *out, const struct slice *args, size_t argc);

#endif
