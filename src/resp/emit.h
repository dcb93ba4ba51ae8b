/*
 * Writes RESP into the caller's memory. Every function returns how many bytes it wrote.
 */
#ifndef WEIR_RESP_EMIT_H
#define WEIR_RESP_EMIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define EMIT_HEADER_MAX 24 /* a type byte, 20 digits and CRLF */

/* "*n\r\n", "$n\r\n", ":n\r\n": any type byte followed by a number. Needs EMIT_HEADER_MAX bytes. */
size_t emit_header(char *out, char type, int64_t n);

/* A request or an array of bulks. Needs EMIT_HEADER_MAX * (argc + 1) bytes, the arguments, and 2 bytes for each. */
size_t emit_array(char *out, const struct slice *args, size_t argc);

#endif
