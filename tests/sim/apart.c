#include "tests/sim/apart.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "tests/sim/trace.h"

#define SECONDS_MAX 120 /* of the processor: it runs in circles */

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

static char *blame; /* of BLAME_ROOM bytes, which runs write */

static void clear_blame(void)
{
    if (blame == NULL)
        blame = mmap(NULL, BLAME_ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (blame == MAP_FAILED) {
        perror("sim");
        exit(2);
    }
    blame[0] = '\0';
    run_share_blame(blame);
}

const char *apart_blame(void)
{
    return blame;
}

/* In the child. */
static void begin(bool is_traced, bool is_quiet)
{
    const struct itimerval most = {.it_value.tv_sec = SECONDS_MAX};
    setitimer(ITIMER_PROF, &most, NULL);
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
    clear_blame();
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

bool apart_run(const struct plan *plan, bool is_traced, const char *record)
{
    char place[32] = "";
    if (run_one(plan, is_traced, NULL))
        return true;
    if (plan->memory.mode == MEMORY_ONE_PLACE)
        snprintf(place, sizeof place, " --fail-site %" PRIu32, plan->memory.place);
    fprintf(stderr, "sim: seed %" PRIu64 " failed: repeat it with --seed %" PRIu64 " --steps %" PRIu64 "%s\n",
            plan->seed, plan->seed, plan->steps, place);
    if (record != NULL && !run_one(plan, false, record)) /* the same again, by construction */
        fprintf(stderr, "sim: kept in %s\n", record);
    return false;
}

bool apart_replay(const struct scenario *scenario, bool is_traced, bool is_quiet)
{
    fflush(NULL);
    clear_blame();
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
