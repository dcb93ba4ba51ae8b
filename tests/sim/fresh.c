/*
 * Only pages with non-zero bytes are saved. Most pages are zero, and most zero pages are never
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
#define RANGES_MAX 8

/* A range of memory with variables, and its saved bytes. */
struct range {
    char *at;
    size_t len;
    char *copy;
    bool *is_zero; /* one for each page, beginning at `at` */
};

static struct range ranges[RANGES_MAX];
static size_t n_ranges;

static const char zeroes[PAGE];

static size_t page_len(const struct range *range, size_t offset)
{
    return range->len - offset < PAGE ? range->len - offset : PAGE;
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
    if (n_ranges == RANGES_MAX)
        abort();
    ranges[n_ranges++] = (struct range){at, len, take(len), take(len / PAGE + 1)};
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
            relro_end = (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz +
                         PAGE - 1) /
                        PAGE * PAGE;
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
    for (size_t i = 0; i < n_ranges; i++) {
        const struct range *range = &ranges[i];
        for (size_t offset = 0; offset < range->len; offset += PAGE) {
            size_t len = page_len(range, offset);
            bool is_zero = memcmp(range->at + offset, zeroes, len) == 0;
            range->is_zero[offset / PAGE] = is_zero;
            if (!is_zero)
                memcpy(range->copy + offset, range->at + offset, len);
        }
    }
}

void fresh_again(void)
{
    for (size_t i = 0; i < n_ranges; i++) {
        const struct range *range = &ranges[i];
        for (size_t offset = 0; offset < range->len; offset += PAGE) {
            size_t len = page_len(range, offset);
            char *at = range->at + offset;
            if (!range->is_zero[offset / PAGE])
                memcpy(at, range->copy + offset, len);
            else if (memcmp(at, zeroes, len) != 0)
                memset(at, 0, len);
        }
    }
}
