/* The assembler includes the files (.incbin): browsers get the exact content. */
#include "admin/page_files.h"

#define FILE_OF(name) ".incbin \"src/admin/page/" name "\"\n"
#define EMBED(name, files)                                                                                             \
    __asm__(".section .rodata\n"                                                                                       \
            "page_" #name "_begin:\n" files "page_" #name "_end:\n"                                                    \
            ".text\n");                                                                                                \
    extern const char page_##name##_begin[], page_##name##_end[];                                                      \
    struct slice page_##name(void)                                                                                     \
    {                                                                                                                  \
        return slice_of(page_##name##_begin, (size_t)(page_##name##_end - page_##name##_begin));                       \
    }

EMBED(html, FILE_OF("page.html"))
EMBED(css, FILE_OF("page.css"))
EMBED(js, FILE_OF("figures.js") FILE_OF("charts.js") FILE_OF("table.js") FILE_OF("rows.js") FILE_OF("page.js"))
