/*
 * A run as a text that can be kept: the plan, then what clients did and what went wrong, a line each. Replayed it does not
 * depend on what the seed would choose today.
 *
 *     plan clients 7
 *     config [weir]
 *     act 3 set 17 4 0             client 3 did this next, with these numbers
 *     fault 77 1500 redis_down 20 7   at step 77, 1500 ns after the start, this went wrong, for 20 us
 */
#ifndef WEIR_SIM_SCENARIO_H
#define WEIR_SIM_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/sim/client.h"
#include "tests/sim/run.h"

#define SCENARIO_FAULTS UINT32_MAX /* in the place of a client: what goes wrong */

struct line {
    uint64_t step, at_ns; /* of a fault */
    uint32_t party;       /* a client, or SCENARIO_FAULTS */
    char name[24];
    uint64_t numbers[3];
};

struct scenario {
    struct plan plan;
    struct line *lines;
    size_t n, room;
    size_t *next; /* by client, and behind them the faults': the first line that may be its next */
};

/* NULL and a word on stderr: it cannot be read. */
struct scenario *scenario_load(const char *path);
__attribute__((warn_unused_result)) bool scenario_save(const struct scenario *scenario, const char *path);
void scenario_free(struct scenario *scenario);

/* What is replayed in this run. */
void scenario_replay(struct scenario *scenario);
bool scenario_is_replayed(void);

/* Write this run down in `file`, line by line, so that it is all there whatever ends it. */
void scenario_record(const struct plan *plan, FILE *file);

/* There is no line left, or nothing has used any for long. */
bool scenario_is_over(void);

/* Its next line; NULL: there is none. */
const struct line *scenario_peek(uint32_t party);
void scenario_take(uint32_t party);

void scenario_note(uint32_t party, const char *name, uint64_t a, uint64_t b, uint64_t c);

#endif
