#include "tests/sim/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "tests/sim/arena.h"
#include "tests/sim/fresh.h"
#include "tests/sim/heap.h"
#include "tests/sim/trace.h"

/* processor time of one run, chosen: a run beyond it is in an endless loop */
#define SECONDS_MAX 120

static bool wait_for(pid_t child)
{
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("sim");
        exit(2);
    }
    if (WIFSIGNALED(status))
        fprintf(stderr, "sim: ended by signal %d%s\n", WTERMSIG(status),
                WTERMSIG(status) == SIGPROF ? ": it runs in circles" : "");
    return status == 0;
}

/* the outcome of the last run, in memory that the process of the run shares */
static struct outcome *outcome;

static void clear_outcome(void)
{
    if (outcome == NULL)
        outcome =
            mmap(NULL, sizeof *outcome, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (outcome == MAP_FAILED) {
        perror("sim");
        exit(2);
    }
    *outcome = (struct outcome){0};
    run_share_outcome(outcome);
}

const struct outcome *apart_outcome(void)
{
    return outcome;
}

/* Called in the child before each run. */
static void set_alarm(void)
{
    const struct itimerval most = {.it_value.tv_sec = SECONDS_MAX};
    setitimer(ITIMER_PROF, &most, NULL);
}

static void begin(bool is_traced, bool is_quiet)
{
    set_alarm();
    if (is_quiet) {
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDOUT_FILENO);
        dup2(nowhere, STDERR_FILENO);
    }
    if (is_traced)
        trace_open(stdout);
}

static bool run_one(const struct plan *plan, bool is_traced, const char *record)
{
    fflush(NULL);
    clear_outcome();
    pid_t child = fork();
    if (child == 0) {
        FILE *file = record != NULL ? fopen(record, "w") : NULL;
        begin(is_traced, record != NULL);
        if (file != NULL)
            scenario_record(plan, file);
        exit(run_all(plan));
    }
    return wait_for(child);
}

static void tell_failed(const struct plan *plan, const char *record)
{
    char place[32] = "";
    if (plan->memory.mode == MEMORY_ONE_SITE)
        snprintf(place, sizeof place, " --fail-site %" PRIu32, plan->memory.place);
    /* Another build inlines other calls, and so numbers the allocation sites otherwise. */
    fprintf(stderr,
            "sim: seed %" PRIu64 " failed: repeat it with %s --seed %" PRIu64 " --steps %" PRIu64
            "%s%s\n",
            plan->seed, program_invocation_name, plan->seed, plan->steps,
            plan->masters > 0 ? " --cluster" : "", place);
    if (record != NULL && !run_one(plan, false, record)) /* the identical run, by construction */
        fprintf(stderr, "sim: kept in %s\n", record);
    else if (record != NULL)
        fprintf(stderr,
                "sim: on its own it does not fail: it has seen what a run before it left behind\n");
}

bool apart_record(const struct plan *plan, const char *record)
{
    return run_one(plan, false, record);
}

bool apart_run(const struct plan *plan, bool is_traced, const char *record)
{
    if (run_one(plan, is_traced, NULL))
        return true;
    tell_failed(plan, record);
    return false;
}

/* ---- many in one process ---- */

#define RUNS_OF_ONE 256

static struct worker {
    pid_t pid; /* 0: no process */
    unsigned runs;
    FILE *plans, *results; /* pipes to and from the process */
} worker;

static FILE *must_open(int fd, const char *mode)
{
    FILE *file = fdopen(fd, mode);
    if (file == NULL) {
        perror("sim");
        exit(2);
    }
    setvbuf(file, NULL, strcmp(mode, "r") == 0 ? _IOFBF : _IONBF, BUFSIZ);
    return file;
}

static _Noreturn void work(FILE *plans, FILE *results)
{
    struct plan *plan = mem_alloc(sizeof *plan);
    bool is_first = true;
    int status = 0;
    if (fread(plan, sizeof *plan, 1, plans) == 0)
        exit(0);
    arena_mark();
    fresh_keep();
    do {
        if (!is_first)
            fresh_again();
        is_first = false;
        set_alarm();
        status = run_all(plan);
        fflush(stdout);
        if (status == 0 && !arena_rewind())
            run_fail(0, "memory of this run is kept in the place of what was there before");
        if (status == 0)
            fputc('.', results);
    } while (status == 0 && fread(plan, sizeof *plan, 1, plans) > 0);
    exit(status);
}

static void hire(void)
{
    int plans[2];
    int results[2];
    fflush(NULL);
    if (pipe(plans) != 0 || pipe(results) != 0) {
        perror("sim");
        exit(2);
    }
    worker.pid = fork();
    if (worker.pid == 0) {
        close(plans[1]);
        close(results[0]);
        work(must_open(plans[0], "r"), must_open(results[1], "w"));
    }
    close(plans[0]);
    close(results[1]);
    worker.runs = 0;
    worker.plans = must_open(plans[1], "w");
    worker.results = must_open(results[0], "r");
}

bool apart_end(void)
{
    if (worker.pid == 0)
        return true;
    fclose(worker.plans);
    fclose(worker.results);
    pid_t pid = worker.pid;
    worker.pid = 0;
    return wait_for(pid);
}

bool apart_run_next(const struct plan *plan, const char *record)
{
    if (!heap_is_counted())
        return apart_run(plan, false, record);
    if (worker.runs == RUNS_OF_ONE && !apart_end())
        return false;
    clear_outcome();
    if (worker.pid == 0)
        hire();
    worker.runs++;
    if (fwrite(plan, sizeof *plan, 1, worker.plans) == 1 && fgetc(worker.results) == '.')
        return true;
    (void)apart_end();
    tell_failed(plan, record);
    return false;
}

bool apart_replay(const struct scenario *scenario, bool is_traced, bool is_quiet)
{
    fflush(NULL);
    clear_outcome();
    pid_t child = fork();
    if (child == 0) {
        struct scenario copy = *scenario;
        begin(is_traced, is_quiet);
        scenario_replay(&copy);
        int status = run_all(&copy.plan);
        free(copy.next);
        exit(status);
    }
    return wait_for(child);
}
