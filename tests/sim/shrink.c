#include "tests/sim/shrink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/sim/apart.h"

static char wanted[BLAME_ROOM]; /* the blame that must stay */

static bool fails(const struct scenario *scenario)
{
    return !apart_replay(scenario, false, true) && strcmp(apart_outcome()->blame, wanted) == 0;
}

/* Keeps the shorter scenario if it fails too. */
static bool try(struct scenario *scenario, const struct line *lines, size_t n)
{
    struct scenario shorter = *scenario;
    shorter.lines = mem_alloc((n + 1) * sizeof *lines);
    memcpy(shorter.lines, lines, n * sizeof *lines);
    shorter.n = n;
    bool is_good = n < scenario->n && fails(&shorter);
    if (is_good) {
        memcpy(scenario->lines, lines, n * sizeof *lines);
        scenario->n = n;
    }
    free(shorter.lines);
    return is_good;
}

static void without_party(struct scenario *scenario, uint32_t party)
{
    struct line *rest = mem_alloc((scenario->n + 1) * sizeof *rest);
    size_t n = 0;
    for (size_t i = 0; i < scenario->n; i++)
        if (scenario->lines[i].party != party)
            rest[n++] = scenario->lines[i];
    (void)try(scenario, rest, n);
    free(rest);
}

/*
 * Removes pieces of that size, from the end: the last lines are needed least often. True if a piece
 * was removed.
 */
static bool without_pieces(struct scenario *scenario, size_t size)
{
    struct line *rest = mem_alloc((scenario->n + 1) * sizeof *rest);
    bool has_gone = false;
    for (size_t end = scenario->n; end > 0; end = end > size ? end - size : 0) {
        size_t begin = end > size ? end - size : 0;
        memcpy(rest, scenario->lines, begin * sizeof *rest);
        memcpy(rest + begin, scenario->lines + end, (scenario->n - end) * sizeof *rest);
        has_gone |= try(scenario, rest, begin + scenario->n - end);
    }
    free(rest);
    return has_gone;
}

static void shrink_lines(struct scenario *scenario)
{
    for (uint32_t party = 0; party < scenario->plan.clients; party++)
        without_party(scenario, party);
    without_party(scenario, SCENARIO_FAULTS);
    without_party(scenario, SCENARIO_LINKS);
    without_party(scenario, SCENARIO_OPERATOR);
    without_party(scenario, SCENARIO_MEMORY);
    without_party(scenario, SCENARIO_ABORTS);
    for (size_t size = scenario->n / 2; size > 0; size /= 2) {
        fprintf(stderr, "sim: %zu lines, in pieces of %zu\n", scenario->n, size);
        while (without_pieces(scenario, size))
            ;
    }
}

bool shrink(const char *path)
{
    struct scenario *scenario = scenario_load(path);
    if (scenario == NULL)
        return false;
    bool is_good = !apart_replay(scenario, false, true);
    snprintf(wanted, sizeof wanted, "%s", apart_outcome()->blame);
    if (!is_good)
        fprintf(stderr, "sim: %s does not fail\n", path);
    else
        shrink_lines(scenario);
    if (is_good)
        fprintf(stderr, "sim: %zu lines are left: %s\n", scenario->n, wanted);
    is_good = is_good && scenario_save(scenario, path);
    scenario_free(scenario);
    return is_good;
}
