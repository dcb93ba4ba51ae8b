/*
 * Makes allocations of a program fail, controlled by a file shared with a test; preloaded by
 * LD_PRELOAD.
 *
 * Only allocations of the program itself fail. Allocations of libraries do not, nor those from an
 * address range that the file exempts. A site is the return address of an allocation call, relative
 * to the program's start.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXEMPT_MAX 16
#define SITES 1024

enum mode { PLENTY, EACH_SITE_ONCE, SOME_SITES, BY_CHANCE };

/* The layout is that of starve.py. */
struct control {
    _Atomic uint64_t mode;
    _Atomic uint64_t chance; /* of failure, as a fraction of 2^32 */
    _Atomic uint64_t seed;
    _Atomic uint64_t share; /* of sites that fail in SOME_SITES, as a fraction of 2^32 */
    _Atomic uint64_t salt;  /* selects these sites */
    _Atomic uint64_t seen;  /* allocations by the program */
    _Atomic uint64_t failed;
    _Atomic uint64_t lost; /* allocations from sites beyond SITES */
    uint64_t n_exempt;
    uint64_t exempt[EXEMPT_MAX][2];
    struct site {
        _Atomic uint64_t at; /* 0: entry unused */
        _Atomic uint64_t seen;
        _Atomic uint64_t failed;
    } sites[SITES];
};

static struct control *control;
static uintptr_t base, first, end;

static int find_program(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || (part->p_flags & PF_X) == 0)
            continue;
        first = base + part->p_vaddr;
        end = first + part->p_memsz;
    }
    return 1; /* stop: the program comes first */
}

__attribute__((constructor)) static void open_control(void)
{
    const char *path = getenv("STARVE_FILE");
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    dl_iterate_phdr(find_program, NULL);
    void *shared = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (shared != MAP_FAILED)
        control = shared;
}

static struct site *find_site(uint64_t at)
{
    for (size_t i = at % SITES, left = SITES; left > 0; i = (i + 1) % SITES, left--) {
        struct site *site = &control->sites[i];
        uint64_t none = 0;
        if (site->at == at || atomic_compare_exchange_strong(&site->at, &none, at) || none == at)
            return site;
    }
    control->lost++;
    return NULL;
}

/* Returns a hash below 2^32. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return (x ^ x >> 31) >> 32;
}

/* Returns a random number below 2^32 that depends on the seed and the number of calls alone. */
static uint64_t draw(void)
{
    return mix(atomic_fetch_add(&control->seed, UINT64_C(0x9E3779B97F4A7C15)));
}

static bool is_chosen(const struct site *site, uint64_t mode)
{
    switch (mode) {
    case EACH_SITE_ONCE:
        return site->failed == 0;
    case SOME_SITES:
        return mix(site->at + control->salt) < control->share;
    default:
        return mode == BY_CHANCE;
    }
}

static bool is_exempt(uint64_t at)
{
    for (uint64_t i = 0; i < control->n_exempt; i++)
        if (at >= control->exempt[i][0] && at < control->exempt[i][1])
            return true;
    return false;
}

static bool must_fail(const void *caller)
{
    uintptr_t address = (uintptr_t)caller;
    if (control == NULL || address < first || address >= end || is_exempt(address - base))
        return false;
    struct site *site = find_site(address - base);
    if (site == NULL)
        return false;
    control->seen++;
    site->seen++;
    if (!is_chosen(site, control->mode) || draw() >= control->chance)
        return false;
    control->failed++;
    site->failed++;
    return true;
}

#define NEXT(name)                                                                                 \
    static __typeof__(&name) next;                                                                 \
    if (next == NULL)                                                                              \
    next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define CALLER __builtin_return_address(0)

void *malloc(size_t size)
{
    NEXT(malloc);
    return must_fail(CALLER) ? NULL : next(size);
}

void *calloc(size_t count, size_t size)
{
    NEXT(calloc);
    return must_fail(CALLER) ? NULL : next(count, size);
}

void *realloc(void *old, size_t size)
{
    NEXT(realloc);
    return must_fail(CALLER) ? NULL : next(old, size);
}

char *strdup(const char *text)
{
    NEXT(strdup);
    return must_fail(CALLER) ? NULL : next(text);
}

char *strndup(const char *text, size_t n)
{
    NEXT(strndup);
    return must_fail(CALLER) ? NULL : next(text, n);
}
