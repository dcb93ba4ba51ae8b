/*
 * The simulator's command line: one seed, or seed after seed, each in a process of its own.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/run.h"
#include "tests/sim/trace.h"

struct options {
    uint64_t seed, steps, seconds;
    bool is_traced;
};

static void print_help(void)
{
    fputs("usage: sim [--seed N] [--steps M] [--seconds T] [--trace]\n"
          "\n"
          "  --seed N      the first seed; the same seed and steps are the same run, byte for byte\n"
          "  --steps M     commands of clients in a run\n"
          "  --seconds T   go on with the next seeds for so long; the first that fails ends it\n"
          "  --trace       print every event\n",
          stdout);
}

static struct options parse(int argc, char **argv)
{
    static const struct option names[] = {
        {"seed", required_argument, NULL, 's'},    {"steps", required_argument, NULL, 'n'},
        {"seconds", required_argument, NULL, 't'}, {"trace", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};
    struct options options = {.seed = 1, .steps = 10000};
    int option;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (option == 's')
            options.seed = strtoull(optarg, NULL, 10);
        else if (option == 'n')
            options.steps = strtoull(optarg, NULL, 10);
        else if (option == 't')
            options.seconds = strtoull(optarg, NULL, 10);
        else if (option == 'v')
            options.is_traced = true;
        else {
            print_help();
            exit(option == 'h' ? 0 : 2);
        }
    }
    return options;
}

/* In a process of its own: what is static in weir begins anew, and a crash is only that run's. */
static bool run_apart(const struct options *options, uint64_t seed)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (options->is_traced)
            trace_open(stdout);
        exit(run_all(seed, options->steps));
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("sim");
        exit(2);
    }
    if (status != 0)
        fprintf(stderr, "sim: seed %" PRIu64 " failed: repeat it with --seed %" PRIu64 " --steps %" PRIu64 "\n", seed,
                seed, options->steps);
    return status == 0;
}

int main(int argc, char **argv)
{
    struct options options = parse(argc, argv);
    time_t end = time(NULL) + (time_t)options.seconds;
    clearenv();
    bool is_good = run_apart(&options, options.seed);
    for (uint64_t seed = options.seed + 1; is_good && options.seconds > 0 && time(NULL) < end; seed++)
        is_good = run_apart(&options, seed);
    return is_good ? 0 : 1;
}
