#include "base/mem.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static _Thread_local size_t given;

static _Noreturn void die(size_t size)
{
    log_error(
        "out of memory: the system refused %zu bytes; give weir more memory or lower its limits",
        size);
    log_flush();
    abort();
}

/* Returns the bytes to allocate, at least 1: allocators may return NULL for 0. */
static size_t total(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        die(SIZE_MAX);
    return bytes ? bytes : 1;
}

void *mem_alloc(size_t size)
{
    void *memory = malloc(total(1, size));
    if (memory == NULL)
        die(size);
    given += size;
    return memory;
}

void *mem_zalloc(size_t count, size_t size)
{
    size_t bytes = total(count, size);
    void *memory = calloc(1, bytes);
    if (memory == NULL)
        die(bytes);
    given += bytes;
    return memory;
}

void *mem_realloc(void *old, size_t count, size_t size)
{
    size_t bytes = total(count, size);
    size_t before = malloc_usable_size(old);
    void *memory = realloc(old, bytes);
    if (memory == NULL)
        die(bytes);
    given += bytes > before ? bytes - before : 0;
    return memory;
}

char *mem_strndup(const char *text, size_t len)
{
    if (len == SIZE_MAX)
        die(len);
    char *copy = mem_alloc(len + 1);
    if (len > 0)
        memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

char *mem_strdup(const char *text)
{
    return text != NULL ? mem_strndup(text, strlen(text)) : NULL;
}

char *mem_print(const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    size_t room = (size_t)vsnprintf(NULL, 0, format, args) + 1;
    char *text = mem_alloc(room);
    vsnprintf(text, room, format, again);
    va_end(again);
    va_end(args);
    return text;
}

size_t mem_given(void)
{
    return given;
}

bool mem_would_give(size_t bytes)
{
    /* volatile: the compiler may drop an unused malloc and free */
    void *volatile memory = malloc(bytes);
    free(memory);
    return memory != NULL;
}
