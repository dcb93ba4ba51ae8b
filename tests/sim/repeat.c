#include "tests/sim/repeat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/apart.h"
#include "tests/sim/scenario.h"

struct end {
    bool is_good;
    struct outcome outcome;
};

static struct end end_of(bool is_good)
{
    return (struct end){is_good, *apart_outcome()};
}

static bool is_same(const struct end *a, const struct end *b)
{
    return a->is_good == b->is_good && a->outcome.digest == b->outcome.digest &&
           strcmp(a->outcome.blame, b->outcome.blame) == 0;
}

static void tell(const struct plan *plan, const char *how, const struct end *one,
                 const struct end *other)
{
    fprintf(stderr,
            "sim: seed %" PRIu64 " steps %" PRIu64 " place %" PRIu32
            " is another run %s: digest %016" PRIx64 " (%s) and %016" PRIx64 " (%s)\n",
            plan->seed, plan->steps, plan->memory.place, how, one->outcome.digest,
            one->outcome.blame, other->outcome.digest, other->outcome.blame);
}

bool repeat_run(const struct plan *plan)
{
    char path[] = "/tmp/sim-repeat-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0) {
        perror(path);
        exit(2);
    }
    close(fd);
    struct end among = end_of(apart_run_next(plan, NULL));
    struct end alone = end_of(apart_record(plan, path));
    struct scenario *scenario = scenario_load(path);
    struct end again = end_of(scenario != NULL && apart_replay(scenario, false, true));
    scenario_free(scenario);
    if (!is_same(&among, &alone))
        tell(plan, "on its own", &among, &alone);
    if (!is_same(&alone, &again)) {
        tell(plan, "as a scenario", &alone, &again);
        fprintf(stderr, "sim: kept in %s\n", path);
        return false;
    }
    unlink(path);
    return is_same(&among, &alone);
}
