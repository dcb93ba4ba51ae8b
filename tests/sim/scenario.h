/*
 * A run as a text file: the plan, then the acts of clients and the faults, one a line. A replay
 * does not depend on what the seed would choose today.
 *
 *     plan clients 7
 *     config [weir]
 *     act 3 set 17 4 0             client 3 did this next, with these numbers
 *     operate set 1 2 3            the operator did this next
 *     link client 3 2 > 170 0 0 reset 20 7
 *                                  the second connection of client 3, after byte 170 to weir
 *     fault redis 3100 50 2 1500 redis_down 20 7
 *                                  the fault struck for 20 us, 50 ns and 2 steps after weir
 *                                  had sent Redis 3100 bytes; at the latest 1500 ns
 *                                  after the start
 *     abort 1700 42                an abort 1700 ns after the last one; 42 is the pick
 *     end 9100 1700000             the run settled at step 9100, 1.7 ms after the start
 *     memory 79 1600 3 512 2 64    the third allocation of step 79 was refused, 1600 ns after
 *                                  the start. In a build with mark 64: the second one
 *                                  at that time at place 512
 */
#ifndef WEIR_SIM_SCENARIO_H
#define WEIR_SIM_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/sim/client.h"
#include "tests/sim/run.h"

/* Parties other than clients: */
#define SCENARIO_FAULTS UINT32_MAX         /* faults */
#define SCENARIO_LINKS (UINT32_MAX - 1)    /* faults of connections: see links.h */
#define SCENARIO_OPERATOR (UINT32_MAX - 2) /* see operator.h */
#define SCENARIO_MEMORY (UINT32_MAX - 3)   /* refusals of memory */
#define SCENARIO_ABORTS (UINT32_MAX - 4)   /* see aborts.h */

struct line {
    uint32_t party; /* a client, or SCENARIO_* */
    char name[24];
    uint64_t numbers[9];
};

struct scenario {
    struct plan plan;
    struct line *lines;
    size_t n, room;
    uint64_t end_step, end_ns; /* UINT64_MAX: no end is recorded */
    /* index of the next line of each client, then of faults, operator, memory and aborts */
    size_t *next;
};

/* NULL and an error on stderr: the file cannot be read. */
struct scenario *scenario_load(const char *path);
__attribute__((warn_unused_result)) bool scenario_save(const struct scenario *scenario,
                                                       const char *path);
void scenario_free(struct scenario *scenario);

/* Notes that clients send nothing more from now on. Once. */
void scenario_note_end(void);

/*
 * Notes a failure. Unless the end is noted already, the end is after this step and time, so that
 * the replay fails too.
 */
void scenario_note_failure(void);

/* The scenario to replay in this run. */
void scenario_replay(struct scenario *scenario);
bool scenario_is_replayed(void);

/* In the run: stops the clock at the scenario's end. */
void scenario_begin(void);

/*
 * Records this run in `file`, and flushes each line, so that the file is complete if the run
 * crashes.
 */
void scenario_record(const struct plan *plan, FILE *file);

/* True if no line is left, or no line was used for long. */
bool scenario_is_over(void);

/* The party's next line; NULL: none. */
const struct line *scenario_peek(uint32_t party);
void scenario_take(uint32_t party);

/* Arms all link faults. */
void scenario_arm_links(void);

void scenario_note_line(const struct line *line);
void scenario_note(uint32_t party, const char *name, uint64_t a, uint64_t b, uint64_t c);

#endif
