/*
 * Included by the assembler (.incbin), so that browsers get exactly what is in the files.
 */
#include "admin/page_files.h"

#define EMBED(name)                                                                                                    \
    __asm__(".section .rodata\n"                                                                                       \
            "page_" #name "_begin:\n"                                                                                  \
            ".incbin \"src/admin/page/page." #name "\"\n"                                                              \
            "page_" #name "_end:\n"                                                                                    \
            ".text\n");                                                                                                \
    extern const char page_##name##_begin[], page_##name##_end[];                                                      \
    struct slice page_##name(void)                                                                                     \
    {                                                                                                                  \
        return slice_of(page_##name##_begin, (size_t)(page_##name##_end - page_##name##_begin));                       \
    }

EMBED(html)
EMBED(css)
EMBED(js)
