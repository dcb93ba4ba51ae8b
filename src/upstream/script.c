/*
 * The scripts from upstream/scripts/, embedded by the assembler. Redis is sent the exact bytes of
 * the files, with prelude.lua before the files of each script.
 */
#include "upstream/script.h"

#define LUA(name) ".incbin \"src/upstream/scripts/" #name ".lua\"\n"
#define BEGIN(id) ".section .rodata\n script_" #id "_begin:\n"
#define END(id) "script_" #id "_end:\n .text\n"
#define SCRIPT(id, files)                                                                          \
    __asm__(BEGIN(id) LUA(prelude) files END(id));                                                 \
    extern const char script_##id##_begin[], script_##id##_end[];
#include "upstream/scripts.def"
#undef SCRIPT

struct slice script_source(enum script script)
{
    static const struct {
        const char *begin;
        const char *end;
    } sources[SCRIPT_COUNT] = {
#define SCRIPT(id, files) [SCRIPT_##id] = {script_##id##_begin, script_##id##_end},
#include "upstream/scripts.def"
#undef SCRIPT
    };
    return slice_of(sources[script].begin, (size_t)(sources[script].end - sources[script].begin));
}
