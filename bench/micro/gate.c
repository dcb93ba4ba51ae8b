/*
 * Microbenchmark: the gate's decisions on GETs of one client, under policies of none to three
 * binding limits, with room or without.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

#define fail_msg(...) errx(1, __VA_ARGS__)
#include "../../tests/unit/policy_kit.h"
#include "limit/refusal.h"
#include "micro.h"

#define STEP_NS 100 /* between two commands: longer than a unit's time, so there is always room */
#define START_NS UINT64_C(1000000000000)
#define PLENTY "100m/s"
#define NEVER "1/1d"
#define LINES_MAX 3

/* A client bound by a policy of its own. */
struct scene {
    const char *lines[LINES_MAX][2];
    struct charge_target target;
    uint64_t now_ns;
};

static struct scene free_of = {.lines = {{"write", PLENTY}}};
static struct scene one = {.lines = {{"all", PLENTY}}};
static struct scene one_refused = {.lines = {{"all", NEVER}}};
static struct scene three = {.lines = {{"read", PLENTY}, {"@string", PLENTY}, {"all", PLENTY}}};
static struct scene three_refused = {
    .lines = {{"read", PLENTY}, {"@string", PLENTY}, {"all", NEVER}}};
static struct scene three_plainly = {
    .lines = {{"read", PLENTY}, {"@string", PLENTY}, {"all", PLENTY}}};
static struct scene three_alike = {
    .lines = {{"read", PLENTY}, {"@string", PLENTY}, {"all", PLENTY}}};
static struct scene mixed = {
    .lines = {{"read", PLENTY}, {"cost", PLENTY}, {"all", PLENTY " per connection"}}};
static struct scene bytes = {.lines = {{"bytes-out", "1gb/s"}}};

static struct command_table *table;
static const struct command *get;
static struct registry *registry;
static struct subjects *subjects;
static struct limit_counters *limit_counters;

static void prepare_world(void)
{
    if (table)
        return;
    table = command_table_builtin();
    get = kit_command(table, "get");
    registry = registry_new();
    subjects = subjects_new(1000);
    limit_counters = limit_counters_new();
}

static void prepare(struct scene *scene)
{
    prepare_world();
    struct policies *policies = policies_new(classes_new());
    struct policy *policy = kit_policy(policies, "free");
    for (size_t i = 0; i < LINES_MAX && scene->lines[i][0]; i++)
        kit_limit(policies, policy, table, scene->lines[i][0], scene->lines[i][1]);
    kit_bind(policies, registry, table);
    char name[32];
    snprintf(name, sizeof name, "user:%p", (void *)scene);
    scene->target = kit_target(subjects, policy, name, START_NS);
    scene->now_ns = START_NS;
}

static enum gate ask(struct scene *scene, struct verdict *verdict)
{
    const struct gate_request ask = {.command = get,
                                     .amount = one_of_each(),
                                     .now_ns = scene->now_ns,
                                     .headed_ns = scene->now_ns,
                                     .may_wait = true};
    return gate_ask(&scene->target, &ask, limit_counters, verdict);
}

static void pass(struct scene *scene, uint64_t n)
{
    struct verdict verdict;
    while (n-- > 0) {
        scene->now_ns += STEP_NS;
        if (ask(scene, &verdict) != GATE_PASS)
            abort();
    }
}

/* Decides as the hot path does for a policy that is known to be plain. */
static void pass_plainly(struct scene *scene, uint64_t n)
{
    const struct charge_target *target = &scene->target;
    struct verdict verdict;
    while (n-- > 0) {
        scene->now_ns += STEP_NS;
        if (gate_ask_plainly(target->policy, target->holders[PER_SUBJECT], get, 1, scene->now_ns,
                             limit_counters, &verdict) == 0)
            abort();
    }
}

/* commands of a pipeline that one decision covers */
#define PIPELINE 64

static void pass_alike(struct scene *scene, uint64_t n)
{
    const struct charge_target *target = &scene->target;
    struct verdict verdict;
    for (; n > 0; n -= n < PIPELINE ? n : PIPELINE) {
        scene->now_ns += PIPELINE * STEP_NS;
        uint32_t asked = n < PIPELINE ? (uint32_t)n : PIPELINE;
        if (gate_ask_plainly(target->policy, target->holders[PER_SUBJECT], get, asked,
                             scene->now_ns, limit_counters, &verdict) != asked)
            abort();
    }
}

static void refuse(struct scene *scene, uint64_t n)
{
    struct verdict verdict;
    if (scene->now_ns == START_NS) { /* the first command of the day passes */
        (void)!ask(scene, &verdict);
        scene->now_ns++;
    }
    while (n-- > 0)
        if (ask(scene, &verdict) != GATE_REFUSE)
            abort();
}

static void owe_bytes(uint64_t n)
{
    while (n-- > 0)
        gate_owe_bytes(&bytes.target, UNIT_BYTES_OUT, 23, 0, bytes.now_ns += STEP_NS,
                       limit_counters);
}

static void refusal(uint64_t n)
{
    char out[REFUSAL_ROOM];
    struct verdict verdict;
    refuse(&one_refused, 1);
    if (ask(&one_refused, &verdict) != GATE_REFUSE)
        abort();
    while (n-- > 0)
        micro_use(refusal_text(out, SLICE("THROTTLED"), &verdict));
}

#define SCENE(scene, does)                                                                         \
    static void prepare_##scene(void)                                                              \
    {                                                                                              \
        if (!scene.target.policy)                                                                  \
            prepare(&scene);                                                                       \
    }                                                                                              \
    static void run_##scene(uint64_t n)                                                            \
    {                                                                                              \
        does(&scene, n);                                                                           \
    }

SCENE(free_of, pass)
SCENE(one, pass)
SCENE(one_refused, refuse)
SCENE(three, pass)
SCENE(three_refused, refuse)
SCENE(three_plainly, pass_plainly)
SCENE(three_alike, pass_alike)
SCENE(mixed, pass)

static void prepare_bytes(void)
{
    prepare(&bytes);
}

const struct micro *micro_gate(void)
{
    static const struct micro rows[] = {
        {"gate/no limit binds", prepare_free_of, run_free_of},
        {"gate/one limit", prepare_one, run_one},
        {"gate/one limit, refused", prepare_one_refused, run_one_refused},
        {"gate/three limits", prepare_three, run_three},
        {"gate/three limits, plainly", prepare_three_plainly, run_three_plainly},
        {"gate/three limits, 64 at once", prepare_three_alike, run_three_alike},
        {"gate/three limits, refused", prepare_three_refused, run_three_refused},
        {"gate/three of other kinds", prepare_mixed, run_mixed},
        {"gate/owe bytes", prepare_bytes, owe_bytes},
        {"gate/refusal as text", prepare_one_refused, refusal},
        {0},
    };
    return rows;
}
