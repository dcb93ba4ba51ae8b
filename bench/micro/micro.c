/*
 * Runs the microbenchmarks. Prints nanoseconds of each, or, under callgrind, dumps the instructions
 * of each.
 *
 * For nanoseconds all rows alternate many times, and the fastest time of each row counts. Other
 * work of the machine can only slow a row down. For instructions (-i) each row runs ROUNDS_COUNTED
 * times and leaves a dump with its name, which bench/micro.py reads.
 */
#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_ZERO_STATS
#define CALLGRIND_DUMP_STATS_AT(name) errx(1, "built without valgrind/callgrind.h")
#endif

#include "micro.h"

#define ROWS_MAX 64
#define TURNS 40
#define TURN_NS 1000000u /* long enough for the clock, short enough to find a quiet moment */
#define CALIBRATE 1000
#define ROUNDS_COUNTED 10000

struct row {
    const struct micro *micro;
    uint64_t n; /* calls in one measurement */
    double ns;  /* of one call */
};

static struct row rows[ROWS_MAX];
static size_t n_rows;

static uint64_t thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static double ns_of(const struct micro *micro, uint64_t n)
{
    uint64_t start_ns = thread_ns();
    micro->run(n);
    return (double)(thread_ns() - start_ns) / (double)n;
}

static bool is_asked_for(const char *name, char *const *names)
{
    if (!*names)
        return true;
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

static void choose(char *const *names)
{
    const struct micro *const lists[] = {micro_scan(),   micro_argv(), micro_command(),
                                         micro_funnel(), micro_gate(), micro_emit()};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (const struct micro *micro = lists[i]; micro->name; micro++) {
            if (!is_asked_for(micro->name, names))
                continue;
            if (n_rows == ROWS_MAX)
                errx(1, "more than %d rows", ROWS_MAX);
            rows[n_rows++].micro = micro;
        }
}

static void prepare(void)
{
    for (struct row *row = rows; row < rows + n_rows; row++) {
        if (row->micro->prepare)
            row->micro->prepare();
        row->micro->run(CALIBRATE);
    }
}

static void measure(void)
{
    for (struct row *row = rows; row < rows + n_rows; row++) {
        row->ns = ns_of(row->micro, CALIBRATE);
        row->n = (uint64_t)(TURN_NS / (row->ns > 0.1 ? row->ns : 0.1)) + 1;
    }
    for (int turn = 0; turn < TURNS; turn++)
        for (struct row *row = rows; row < rows + n_rows; row++) {
            double ns = ns_of(row->micro, row->n);
            if (ns < row->ns)
                row->ns = ns;
        }
}

static void count(void)
{
    for (struct row *row = rows; row < rows + n_rows; row++) {
        CALLGRIND_ZERO_STATS;
        row->micro->run(ROUNDS_COUNTED);
        CALLGRIND_DUMP_STATS_AT(row->micro->name);
    }
}

static void print(bool is_json)
{
    for (size_t i = 0; i < n_rows; i++) {
        if (is_json)
            printf("%s\"%s\": {\"ns\": %.2f}%s", i ? ",\n " : "{", rows[i].micro->name, rows[i].ns,
                   i + 1 < n_rows ? "" : "}\n");
        else
            printf("%-32s %8.2f ns\n", rows[i].micro->name, rows[i].ns);
    }
}

int main(int argc, char **argv)
{
    bool is_json = false, is_counted = false;
    int letter;
    while ((letter = getopt(argc, argv, "ij")) != -1) {
        is_counted |= letter == 'i';
        is_json |= letter == 'j';
        if (letter == '?')
            errx(2, "usage: micro [-i | -j] [NAME...]");
    }
    choose(argv + optind);
    prepare();
    if (is_counted) {
        count();
        return 0;
    }
    measure();
    print(is_json);
    return 0;
}
