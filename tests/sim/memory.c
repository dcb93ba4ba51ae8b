#include "tests/sim/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "tests/sim/kernel.h"
#include "tests/sim/run.h"
#include "tests/sim/scenario.h"
#include "tests/sim/trace.h"
#include "tests/sim/world.h"

enum { STREAM_MEMORY = 6 };

#define PLACES_MAX 1024
#define PATIENCE_NS UINT64_C(10000000) /* a step of a replay may not come */

extern const char __executable_start;

/* A hash table with open addressing. */
struct site {
    uintptr_t at; /* 0: free */
    uint32_t number;
    uint32_t refused;
    uint64_t asked_ns; /* time of the last allocation at this site */
    uint64_t asked;    /* number of allocations at that time */
};

struct sites {
    struct site all[PLACES_MAX];
    uint32_t n;
};

static struct memory {
    struct random chance;
    struct sites sites;
    uint64_t step;  /* step of the last allocation */
    uint64_t nth;   /* number of allocations in that step */
    uint64_t asked; /* number of allocations in the run */
    uint64_t refused;
    uint64_t ends; /* closed clients that refusals have explained */
    bool has_lost_lanes;
} memory;

static struct shared {
    struct sites sites;
    uint32_t n_last;
} * shared; /* NULL: not shared */

static struct site *find(struct sites *sites, uintptr_t at)
{
    size_t i = (size_t)(at * UINT64_C(0x9E3779B97F4A7C15) >> 32) % PLACES_MAX;
    while (sites->all[i].at != at && sites->all[i].at != 0)
        i = (i + 1) % PLACES_MAX;
    if (sites->all[i].at == 0) {
        if (sites->n == PLACES_MAX - 1)
            abort();
        sites->all[i] = (struct site){.at = at, .number = sites->n++};
    }
    return &sites->all[i];
}

/* ---- one run ---- */

void memory_read_log(struct slice line)
{
    static const char closed[] = " connection is closed: ";
    memory.has_lost_lanes |=
        memory.refused > 0 && memmem(line.at, line.len, closed, sizeof closed - 1) != NULL;
}

void memory_start(void)
{
    memory = (struct memory){0};
    random_init(&memory.chance, run.plan.seed, STREAM_MEMORY);
}

/* True in an iteration of weir's loops, after the start and before the stop. */
static bool is_weirs(void)
{
    return world.current != NULL && world.current->is_weirs && run.phase == RUN_ACTS &&
           run.commands > 0;
}

static void count(struct site *place)
{
    memory.nth = memory.step == world.steps ? memory.nth + 1 : 1;
    memory.step = world.steps;
    memory.asked++;
    place->asked = place->asked_ns == world.now_ns ? place->asked + 1 : 1;
    place->asked_ns = world.now_ns;
}

static uint64_t offset_of(uintptr_t address)
{
    return address - (uintptr_t)&__executable_start;
}

static bool refuses(const void *caller);

/* Identifies the build: sites of another build have other addresses. */
static uint64_t build(void)
{
    return offset_of((uintptr_t)refuses);
}

/* The numbers of a refusal's line in a scenario. */
enum { OF_STEP, OF_TIME, OF_NTH, OF_PLACE, OF_ASKED, OF_BUILD };

/*
 * True if the site has allocated as often at the line's time as the line says, or allocates next
 * after that time. In another build: true if the step has as many allocations as the line says.
 */
static bool is_same(const uint64_t *numbers, const struct site *place)
{
    uint64_t now_ns = world.now_ns - SIM_START_NS;
    if (numbers[OF_BUILD] == build())
        return numbers[OF_PLACE] == offset_of(place->at) &&
               (now_ns > numbers[OF_TIME] ||
                (now_ns == numbers[OF_TIME] && place->asked >= numbers[OF_ASKED]));
    return world.steps > numbers[OF_STEP] ||
           (world.steps == numbers[OF_STEP] && memory.nth >= numbers[OF_NTH]);
}

/* A refusal that never came at its time strikes now. */
static bool is_refused_again(const struct site *place)
{
    const struct line *line = scenario_peek(SCENARIO_MEMORY);
    if (line == NULL)
        return false;
    bool is_late = world.now_ns - SIM_START_NS >= line->numbers[OF_TIME] + PATIENCE_NS;
    if (!is_late && !is_same(line->numbers, place))
        return false;
    scenario_take(SCENARIO_MEMORY);
    return true;
}

static bool is_chosen(const struct site *place, bool is_new)
{
    const struct planned_memory *plan = &run.plan.memory;
    if (plan->mode == MEMORY_ONE_SITE)
        return is_new && place->number == plan->place;
    if (plan->mode == MEMORY_EACH_ONCE && place->refused > 0)
        return false;
    return random_hits(&memory.chance, plan->odds);
}

static void note_refused(struct site *place)
{
    char text[64];
    int n = snprintf(text, sizeof text, "no memory, place %" PRIu32, place->number);
    trace_note(TRACE_FAULT, 0, text, (size_t)n);
    const struct line line = {SCENARIO_MEMORY,
                              "refused",
                              {world.steps, world.now_ns - SIM_START_NS, memory.nth,
                               offset_of(place->at), place->asked, build()}};
    scenario_note_line(&line);
    place->refused++;
    memory.refused++;
}

static bool refuses(const void *caller)
{
    if (run.plan.memory.mode == MEMORY_PLENTY || !is_weirs())
        return false;
    uint32_t known = memory.sites.n;
    struct site *place = find(&memory.sites, (uintptr_t)caller);
    struct site *also = shared != NULL ? find(&shared->sites, (uintptr_t)caller) : NULL;
    count(place);
    bool is_refused =
        scenario_is_replayed() ? is_refused_again(place) : is_chosen(place, memory.sites.n > known);
    if (is_refused)
        note_refused(place);
    if (also != NULL)
        also->refused += is_refused;
    if (is_refused)
        errno = ENOMEM; /* as in the C library; without it errno is from an earlier call */
    return is_refused;
}

bool memory_was_short(void)
{
    return memory.refused > 0;
}

/* Each refusal explains one closed client. A closed lane closes all clients with calls on it. */
bool memory_explains_end(void)
{
    return memory.has_lost_lanes || ++memory.ends <= memory.refused;
}

void memory_fini(void)
{
    if (shared != NULL)
        shared->n_last = memory.sites.n;
}

/* ---- many runs ---- */

void memory_share(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("sim");
        exit(2);
    }
}

uint32_t memory_sites(void)
{
    return shared->n_last;
}

/* Prints function, file and line of a site from the debug information. */
static void tell_place(const struct site *place)
{
    char program[512], command[600], where[256];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0';
    snprintf(command, sizeof command, "addr2line -fspe '%s' 0x%zx 2>&1", program,
             (size_t)(offset_of(place->at) - 1));
    FILE *pipe = popen(command, "r");
    if (pipe != NULL && fgets(where, sizeof where, pipe) != NULL)
        printf("  never refused: %s", where);
    if (pipe != NULL)
        pclose(pipe);
}

void memory_tell(void)
{
    uint32_t refused = 0;
    for (size_t i = 0; i < PLACES_MAX; i++) {
        const struct site *place = &shared->sites.all[i];
        refused += place->refused > 0;
        if (place->at != 0 && place->refused == 0)
            tell_place(place);
    }
    if (shared->sites.n > 0)
        printf("sim: memory was refused at %" PRIu32 " of %" PRIu32 " places that asked for some\n",
               refused, shared->sites.n);
}

/* ---- called by weir's objects ---- */

void *sim_malloc(size_t size);
void *sim_calloc(size_t count, size_t size);
void *sim_realloc(void *old, size_t size);
char *sim_strdup(const char *text);
char *sim_strndup(const char *text, size_t n);
bool sim_mem_would_give(size_t bytes);

#define CALLER __builtin_return_address(0)

void *sim_malloc(size_t size)
{
    return refuses(CALLER) ? NULL : malloc(size);
}

void *sim_calloc(size_t count, size_t size)
{
    return refuses(CALLER) ? NULL : calloc(count, size);
}

void *sim_realloc(void *old, size_t size)
{
    return refuses(CALLER) ? NULL : realloc(old, size);
}

char *sim_strdup(const char *text)
{
    return refuses(CALLER) ? NULL : strdup(text);
}

char *sim_strndup(const char *text, size_t n)
{
    return refuses(CALLER) ? NULL : strndup(text, n);
}

bool sim_mem_would_give(size_t bytes)
{
    return !refuses(CALLER) && mem_would_give(bytes);
}
