/*
 * The scripts as they stand in upstream/scripts/, taken in by the assembler: what is in the files is what Redis is
 * sent, prelude.lua before each of the others.
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

#define SCRIPT(id, file) EMBED(file);
#include "upstream/scripts.def"
#undef SCRIPT

struct slice script_source(enum script script)
{
    static const struct {
        const char *begin;
        const char *end;
    } sources[SCRIPT_COUNT] = {
#define SCRIPT(id, file) [SCRIPT_##id] = {script_##file##_begin, script_##file##_end},
#include "upstream/scripts.def"
#undef SCRIPT
    };
    return slice_of(sources[script].begin, (size_t)(sources[script].end - sources[script].begin));
}
