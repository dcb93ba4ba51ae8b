/* The simulator's command line: one seed, seed after seed, or a recorded scenario. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/apart.h"
#include "tests/sim/masters.h"
#include "tests/sim/repeat.h"
#include "tests/sim/shrink.h"

/* odds of --refuses in millionths: a run of 1000 commands has some ten refusals */
#define REFUSALS 3000

struct options {
    uint64_t seed, steps, seconds, seeds;
    const char *record, *replay, *shrink, *site;
    bool is_traced, walks, refuses, repeats, has_cluster;
};

static void print_help(void)
{
    fputs(
        "usage: sim [--seed N] [--steps M] [--seeds K | --seconds T] [--cluster]\n"
        "           [--fail-site K | --fail-sites | --refuses] [--trace | --repeats] [--record FILE]\n"
        "       sim --replay FILE [--trace]\n"
        "       sim --shrink FILE\n"
        "\n"
        "  --seed N       the first seed; the same seed and steps are the same run, byte for byte\n"
        "  --steps M      commands of clients in a run\n"
        "  --seeds K      so many seeds, this one and the next; the first that fails ends it\n"
        "  --seconds T    go on with the next seeds for so long; the first that fails ends it\n"
        "  --fail-site K  memory is refused once: where the run comes to its Kth place that asks for some, from 0\n"
        "  --fail-sites   the same for each place that a seed comes to, one run after the other\n"
        "  --refuses      memory is refused by chance in each run, not only in a quarter of them\n"
        "  --cluster      before a Redis Cluster: other runs of the same seeds\n"
        "  --repeats      each run three times: it is the same run among others, on its own and as a scenario\n"
        "  --trace        print every event\n"
        "  --record FILE  keep a failed run there as a scenario\n"
        "  --replay FILE  run a scenario\n"
        "  --shrink FILE  take away from a scenario that fails what it does not need to fail\n",
        stdout);
}

static struct options parse(int argc, char **argv)
{
    static const struct option names[] = {{"seed", required_argument, NULL, 's'},
                                          {"steps", required_argument, NULL, 'n'},
                                          {"seconds", required_argument, NULL, 't'},
                                          {"seeds", required_argument, NULL, 'c'},
                                          {"fail-site", required_argument, NULL, 'm'},
                                          {"fail-sites", no_argument, NULL, 'a'},
                                          {"refuses", no_argument, NULL, 'f'},
                                          {"cluster", no_argument, NULL, 'l'},
                                          {"repeats", no_argument, NULL, 'p'},
                                          {"trace", no_argument, NULL, 'v'},
                                          {"record", required_argument, NULL, 'w'},
                                          {"replay", required_argument, NULL, 'r'},
                                          {"shrink", required_argument, NULL, 'k'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    struct options options = {.seed = 1, .steps = 10000, .seeds = 1};
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (option == 's')
            options.seed = strtoull(optarg, NULL, 10);
        else if (option == 'n')
            options.steps = strtoull(optarg, NULL, 10);
        else if (option == 't')
            options.seconds = strtoull(optarg, NULL, 10);
        else if (option == 'c')
            options.seeds = strtoull(optarg, NULL, 10);
        else if (option == 'm')
            options.site = optarg;
        else if (option == 'a')
            options.walks = true;
        else if (option == 'f')
            options.refuses = true;
        else if (option == 'l')
            options.has_cluster = true;
        else if (option == 'p')
            options.repeats = true;
        else if (option == 'v')
            options.is_traced = true;
        else if (option == 'w')
            options.record = optarg;
        else if (option == 'r')
            options.replay = optarg;
        else if (option == 'k')
            options.shrink = optarg;
        else {
            print_help();
            exit(option == 'h' ? 0 : 2);
        }
    }
    return options;
}

static int replay(const struct options *options)
{
    struct scenario *scenario = scenario_load(options->replay);
    if (scenario == NULL)
        return 2;
    bool is_good = apart_replay(scenario, options->is_traced, false);
    scenario_free(scenario);
    return is_good ? 0 : 1;
}

static uint64_t commands; /* in all runs so far */

/* Runs share a process, unless one is traced or runs alone. */
static bool run_plan(const struct options *options, const struct plan *plan)
{
    bool is_one =
        options->is_traced || (options->seconds == 0 && options->seeds == 1 && !options->walks);
    bool is_good = options->repeats ? repeat_run(plan)
                   : is_one         ? apart_run(plan, options->is_traced, options->record)
                                    : apart_run_next(plan, options->record);
    commands += apart_outcome()->commands;
    return is_good;
}

static void make(struct plan *plan, const struct options *options, uint64_t seed)
{
    plan_make(plan, seed, options->steps);
    if (options->has_cluster)
        masters_plan(plan);
}

static bool run_seed(const struct options *options, uint64_t seed)
{
    struct plan plan;
    make(&plan, options, seed);
    struct planned_memory memory = {.mode = MEMORY_ONE_SITE};
    if (options->refuses)
        plan_refuse(&plan, &(struct planned_memory){.mode = MEMORY_BY_CHANCE, .odds = REFUSALS});
    if (options->site != NULL) {
        memory.place = (uint32_t)strtoul(options->site, NULL, 10);
        plan_refuse(&plan, &memory);
    }
    return run_plan(options, &plan);
}

/* One run for each allocation site that a run without refusals reaches. */
static bool walk_seed(const struct options *options, uint64_t seed)
{
    struct plan plan;
    struct planned_memory memory = {.mode = MEMORY_ONE_SITE, .place = UINT32_MAX};
    make(&plan, options, seed);
    plan_refuse(&plan, &memory);
    bool is_good = run_plan(options, &plan);
    uint32_t n = memory_sites();
    for (memory.place = 0; is_good && memory.place < n; memory.place++) {
        plan_refuse(&plan, &memory);
        is_good = run_plan(options, &plan);
    }
    return is_good;
}

int __real_clock_gettime(clockid_t clock, struct timespec *at);

/* The system's clock. clock_gettime returns the world's time, which stands still between runs. */
static double seconds_now(void)
{
    struct timespec now;
    __real_clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Prints the totals in the format that tests/tools/run-sim.sh reads. */
static void tell_all(uint64_t seeds, double seconds)
{
    printf("sim: %" PRIu64 " seeds, %" PRIu64 " commands, %.0f commands a second\n", seeds,
           commands, (double)commands / seconds);
}

static int hunt(const struct options *options)
{
    double begin = seconds_now();
    double end = begin + (double)options->seconds;
    uint64_t n = 0;
    bool is_good;
    memory_share();
    do {
        is_good = (options->walks ? walk_seed : run_seed)(options, options->seed + n++);
    } while (is_good && (options->seconds > 0 ? seconds_now() < end : n < options->seeds));
    is_good = apart_end() && is_good;
    if (options->walks || options->seconds > 0)
        memory_tell();
    if (options->seconds > 0)
        tell_all(n, seconds_now() - begin);
    return is_good ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct options options = parse(argc, argv);
    clearenv();
    run_prepare();
    if (options.shrink != NULL)
        return shrink(options.shrink) ? 0 : 1;
    return options.replay != NULL ? replay(&options) : hunt(&options);
}
