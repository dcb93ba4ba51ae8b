/*
 * The scripts as they stand in upstream/scripts/, taken in by the assembler: what is in the files is what Redis is sent,
 * prelude.lua before each of the others.
 */
#include "upstream/script.h"

#define EMBED(name)                                                                                                    \
    __asm__(".section .rodata\n"                                                                                       \
            "script_" #name "_begin:\n"                                                                                \
            ".incbin \"src/upstream/scripts/prelude.lua\"\n"                                                           \
            ".incbin \"src/upstream/scripts/" #name ".lua\"\n"                                                         \
            "script_" #name "_end:\n"                                                                                  \
            ".text\n");                                                                                                \
    extern const char script_##name##_begin[], script_##name##_end[]

EMBED(gcra);
EMBED(sliding);
EMBED(approx);
EMBED(fixed);
EMBED(holders);

#define SCRIPT(name) {script_##name##_begin, script_##name##_end}

struct slice script_source(enum script script)
{
    static const struct {
        const char *begin;
        const char *end;
    } sources[SCRIPT_COUNT] = {
        [SCRIPT_GCRA] = SCRIPT(gcra),   [SCRIPT_SLIDING] = SCRIPT(sliding), [SCRIPT_APPROX] = SCRIPT(approx),
        [SCRIPT_FIXED] = SCRIPT(fixed), [SCRIPT_HOLDERS] = SCRIPT(holders),
    };
    return slice_of(sources[script].begin, (size_t)(sources[script].end - sources[script].begin));
}
