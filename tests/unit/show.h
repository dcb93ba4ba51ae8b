/* Prints bytes for people: printable ASCII unchanged, the rest escaped. */
#ifndef WEIR_TESTS_SHOW_H
#define WEIR_TESTS_SHOW_H

#include <stddef.h>
#include <stdio.h>

static inline void show_bytes(FILE *out, const char *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)at[i];
        if (byte == '\r')
            fputs("\\r", out);
        else if (byte == '\n')
            fputs("\\n", out);
        else if (byte < ' ' || byte > '~')
            fprintf(out, "\\x%02x", byte);
        else
            putc(byte, out);
    }
}

#endif
