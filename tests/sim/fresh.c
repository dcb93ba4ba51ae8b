/*
 * Only pages with non-zero bytes are saved. Most pages are zero, and most of those are never
 * touched.
 */
#include "tests/sim/fresh.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096
#define STRETCHES 8

/* A range of memory with variables, and its saved bytes. */
struct stretch {
    char *at;
    size_t len;
    char *copy;
    bool *is_zero; /* one for each page, beginning at `at` */
};

static struct stretch stretches[STRETCHES];
static size_t n_stretches;

static const char zeroes[PAGE];

static size_t page_len(const struct stretch *stretch, size_t offset)
{
    return stretch->len - offset < PAGE ? stretch->len - offset : PAGE;
}

static void *take(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("sim");
        exit(2);
    }
    return memory;
}

static void add(char *at, size_t len)
{
    if (len == 0)
        return;
    if (n_stretches == STRETCHES)
        abort();
    stretches[n_stretches++] = (struct stretch){at, len, take(len), take(len / PAGE + 1)};
}

/*
 * The first entry is the program itself. Pages that are read-only after relocation (RELRO) precede
 * the rest.
 */
static int find(struct dl_phdr_info *info, size_t size, void *nothing)
{
    uintptr_t relro_end = 0;
    (void)size;
    (void)nothing;
    for (size_t i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO)
            relro_end =
                (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz + PAGE - 1) / PAGE * PAGE;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + part->p_vaddr;
        uintptr_t end = begin + part->p_memsz;
        if (part->p_type == PT_TLS && info->dlpi_tls_data != NULL)
            add(info->dlpi_tls_data, part->p_memsz);
        if (part->p_type != PT_LOAD || (part->p_flags & PF_W) == 0)
            continue;
        begin = begin < relro_end && relro_end <= end ? relro_end : begin;
        add((char *)begin, end - begin);
    }
    return 1;
}

void fresh_keep(void)
{
    (void)dl_iterate_phdr(find, NULL);
    for (size_t i = 0; i < n_stretches; i++) {
        const struct stretch *stretch = &stretches[i];
        for (size_t offset = 0; offset < stretch->len; offset += PAGE) {
            size_t len = page_len(stretch, offset);
            bool is_zero = memcmp(stretch->at + offset, zeroes, len) == 0;
            stretch->is_zero[offset / PAGE] = is_zero;
            if (!is_zero)
                memcpy(stretch->copy + offset, stretch->at + offset, len);
        }
    }
}

void fresh_again(void)
{
    for (size_t i = 0; i < n_stretches; i++) {
        const struct stretch *stretch = &stretches[i];
        for (size_t offset = 0; offset < stretch->len; offset += PAGE) {
            size_t len = page_len(stretch, offset);
            char *at = stretch->at + offset;
            if (!stretch->is_zero[offset / PAGE])
                memcpy(at, stretch->copy + offset, len);
            else if (memcmp(at, zeroes, len) != 0)
                memset(at, 0, len);
        }
    }
}
