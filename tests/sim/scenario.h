/*
 * A run as a text that can be kept: the plan, then what clients did and what went wrong, a line each. Replayed it does not
 * depend on what the seed would choose today.
 *
 *     plan clients 7
 *     config [weir]
 *     act 3 set 17 4 0             client 3 did this next, with these numbers
 *     operate set 1 2 3            the operator did this next
 *     link client 3 2 > 170 0 0 reset 20 7       of the second connection of client 3, after byte 170 to weir
 *     fault redis 3100 50 2 1500 redis_down 20 7 when weir had sent Redis 3100 bytes, 50 ns and 2 steps later, or else
 *                                  1500 ns after the start, this went wrong, for 20 us
 *     abort 1700 42                1700 ns after the one before some clients said something and reset: which, 42 says
 *     end 9100 1700000             at step 9100, 1.7 ms after the start, nothing more was said and nothing more went wrong
 *     memory 79 1600 3 512 2 64    at step 79, 1600 ns after the start, weir was refused what it asked for as the third; in a
 *                                  build of this mark, 64, when the place at 512 asked for the second time in that moment
 */
#ifndef WEIR_SIM_SCENARIO_H
#define WEIR_SIM_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/sim/client.h"
#include "tests/sim/run.h"

/* In the place of a client: */
#define SCENARIO_FAULTS UINT32_MAX         /* what goes wrong */
#define SCENARIO_LINKS (UINT32_MAX - 1)    /* and on which connection: see links.h */
#define SCENARIO_OPERATOR (UINT32_MAX - 2) /* see operator.h */
#define SCENARIO_MEMORY (UINT32_MAX - 3)   /* what memory is refused */
#define SCENARIO_ABORTS (UINT32_MAX - 4)   /* see aborts.h */

struct line {
    uint32_t party; /* a client, or one of these */
    char name[24];
    uint64_t numbers[9];
};

struct scenario {
    struct plan plan;
    struct line *lines;
    size_t n, room;
    uint64_t end_step, end_ns; /* UINT64_MAX: it tells no end */
    size_t *next; /* by client, behind them the faults', memory's and aborts': the first line that may be its next */
};

/* NULL and a word on stderr: it cannot be read. */
struct scenario *scenario_load(const char *path);
__attribute__((warn_unused_result)) bool scenario_save(const struct scenario *scenario, const char *path);
void scenario_free(struct scenario *scenario);

/* The run goes on, and says no more: clients only wait for what they have asked. Once. */
void scenario_note_end(void);

/* The run fails. Where nothing else has ended it, its end is behind this step and moment, which are to fail again. */
void scenario_note_failure(void);

/* What is replayed in this run. */
void scenario_replay(struct scenario *scenario);
bool scenario_is_replayed(void);

/* In the run: its clock stops when the scenario ends. */
void scenario_begin(void);

/* Write this run down in `file`, line by line, so that it is all there whatever ends it. */
void scenario_record(const struct plan *plan, FILE *file);

/* There is no line left, or nothing has used any for long. */
bool scenario_is_over(void);

/* Its next line; NULL: there is none. */
const struct line *scenario_peek(uint32_t party);
void scenario_take(uint32_t party);

/* All its lines about connections. */
void scenario_arm_links(void);

void scenario_note_line(const struct line *line);
void scenario_note(uint32_t party, const char *name, uint64_t a, uint64_t b, uint64_t c);

#endif
