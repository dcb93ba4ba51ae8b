#include "tests/sim/scenario.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/sim/links.h"

#define LINE_ROOM 512
#define LAST_WORD_NS UINT64_C(1000000000) /* time for replies after the last line */
#define PATIENCE_NS (UINT64_C(60) * 1000000000)

/* ---- numbers of the plan ---- */

#define NUMBER(field)                                                                              \
    {                                                                                              \
#field, offsetof(struct plan, field), sizeof((struct plan *)NULL)->field                   \
    }

#define LIMIT(i)                                                                                   \
    NUMBER(limits.all[i].class), NUMBER(limits.all[i].count), NUMBER(limits.all[i].period_ms),     \
        NUMBER(limits.all[i].burst), NUMBER(limits.all[i].delay_ms)

#define OTHER_LIMIT(r, i)                                                                          \
    NUMBER(others[r].limits.all[i].class), NUMBER(others[r].limits.all[i].count),                  \
        NUMBER(others[r].limits.all[i].period_ms), NUMBER(others[r].limits.all[i].burst),          \
        NUMBER(others[r].limits.all[i].delay_ms)
#define OTHER_LIMITS(r)                                                                            \
    NUMBER(others[r].limits.n), OTHER_LIMIT(r, 0), OTHER_LIMIT(r, 1), OTHER_LIMIT(r, 2),           \
        OTHER_LIMIT(r, 3), NUMBER(others[r].limits.is_shadow)

static const struct number {
    const char *name;
    size_t offset, size;
} numbers[] = {
    NUMBER(seed),
    NUMBER(steps),
    NUMBER(clients),
    NUMBER(workers),
    NUMBER(pipeline),
    NUMBER(think_ns),
    NUMBER(tick_ns),
    NUMBER(turn_ns),
    NUMBER(command_ns),
    NUMBER(redis_turn),
    NUMBER(fault_ns),
    NUMBER(fault_steps),
    NUMBER(stops_amid),
    NUMBER(stops_at_once),
    NUMBER(has_limits),
    NUMBER(has_slow),
    NUMBER(has_huge),
    NUMBER(has_user_keys),
    NUMBER(gives_back),
    NUMBER(named),
    NUMBER(may_change_password),
    NUMBER(knows_password),
    NUMBER(redis.busy_us),
    NUMBER(value_max),
    NUMBER(memory.mode),
    NUMBER(memory.odds),
    NUMBER(memory.place),
    NUMBER(odds.cut_read),
    NUMBER(odds.cut_write),
    NUMBER(odds.again),
    NUMBER(odds.delay_ns),
    NUMBER(odds.window),
    NUMBER(odds.fds),
    NUMBER(odds.interrupted),
    NUMBER(redis.seed),
    NUMBER(redis.version),
    NUMBER(redis.is_valkey),
    NUMBER(redis.has_replica),
    NUMBER(redis.forges),
    NUMBER(redis.maxclients),
    NUMBER(has_password),
    NUMBER(operators),
    NUMBER(may_close),
    NUMBER(may_refuse),
    NUMBER(may_mix),
    NUMBER(identifies),
    NUMBER(n_regimes),
    NUMBER(has_operator),
    NUMBER(masters),
    NUMBER(has_pairs),
    NUMBER(redis.is_cluster),
    NUMBER(servers),
    NUMBER(has_sentinels),
    NUMBER(has_reads),
    NUMBER(is_pure),
    NUMBER(has_aborts),
    NUMBER(has_hangs),
    NUMBER(has_free),
    NUMBER(has_name),
    NUMBER(entrances),
    NUMBER(inflight),
    NUMBER(limits.n),
    LIMIT(0),
    LIMIT(1),
    LIMIT(2),
    LIMIT(3),
    NUMBER(limits.is_shadow),
    OTHER_LIMITS(0),
    OTHER_LIMITS(1),
};
#define N_NUMBERS (sizeof numbers / sizeof numbers[0])

static uint64_t get_number(const struct plan *plan, const struct number *number)
{
    uint64_t value = 0;
    /* little-endian, as every machine that runs this */
    memcpy(&value, (const char *)plan + number->offset, number->size);
    return value;
}

static bool set_number(struct plan *plan, const char *name, uint64_t value)
{
    for (size_t i = 0; i < N_NUMBERS; i++)
        if (strcmp(numbers[i].name, name) == 0) {
            memcpy((char *)plan + numbers[i].offset, &value, numbers[i].size);
            return true;
        }
    return false;
}

/* ---- reading and writing ---- */

static struct line *add_line(struct scenario *scenario)
{
    if (scenario->n == scenario->room) {
        scenario->room = scenario->room > 0 ? 2 * scenario->room : 1024;
        scenario->lines = mem_realloc(scenario->lines, scenario->room, sizeof *scenario->lines);
    }
    struct line *line = &scenario->lines[scenario->n++];
    *line = (struct line){.party = SCENARIO_FAULTS};
    return line;
}

static bool add_text(char *out, const char *text)
{
    size_t len = strlen(out);
    return (size_t)snprintf(out + len, PLAN_CONFIG - len, "%s", text) < PLAN_CONFIG - len;
}

/* "1: write = ..." */
static bool add_other_text(struct plan *plan, const char *text)
{
    size_t which = (size_t)(text[0] - '1');
    return which < REGIMES_MAX - 1 && strncmp(text + 1, ": ", 2) == 0 &&
           add_text(plan->others[which].config, text + 3);
}

static const char *const sides[] = {"nobody", "client", "lane", "operator"}; /* enum conn_side */
static const char *const meters[] = {"weir", "redis"};                       /* enum fault_meter */
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static bool read_word(const char *const *words, size_t n, const char *word, uint64_t *out)
{
    for (*out = 0; *out < n; (*out)++)
        if (strcmp(words[*out], word) == 0)
            return true;
    return false;
}

static bool read_link(struct line *line, const char *text)
{
    char side[16], direction;
    uint64_t *n = line->numbers;
    line->party = SCENARIO_LINKS;
    if (sscanf(text,
               "link %15s %" SCNu64 " %" SCNu64 " %c %" SCNu64 " %" SCNu64 " %" SCNu64
               " %23s %" SCNu64 " %" SCNu64,
               side, &n[1], &n[2], &direction, &n[4], &n[5], &n[6], line->name, &n[7], &n[8]) != 10)
        return false;
    n[3] = direction == '>';
    return read_word(sides, COUNT_OF(sides), side, &n[0]);
}

static bool read_fault(struct line *line, const char *text)
{
    char meter[16];
    uint64_t *n = line->numbers;
    line->party = SCENARIO_FAULTS;
    return sscanf(text,
                  "fault %15s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %23s %" SCNu64
                  " %" SCNu64,
                  meter, &n[1], &n[2], &n[3], &n[4], line->name, &n[5], &n[6]) == 8 &&
           read_word(meters, COUNT_OF(meters), meter, &n[0]);
}

static bool read_line(struct scenario *scenario, const char *text)
{
    char name[64];
    uint64_t value;
    if (text[0] == '#' || text[0] == '\n')
        return true;
    if (strncmp(text, "config ", 7) == 0)
        return add_text(scenario->plan.config, text + 7);
    if (strncmp(text, "after ", 6) == 0)
        return add_other_text(&scenario->plan, text + 6);
    if (sscanf(text, "end %" SCNu64 " %" SCNu64, &scenario->end_step, &scenario->end_ns) == 2)
        return true;
    if (sscanf(text, "plan %63s %" SCNu64, name, &value) == 2)
        return set_number(&scenario->plan, name, value);
    struct line *line = add_line(scenario);
    if (sscanf(text, "act %" SCNu32 " %23s %" SCNu64 " %" SCNu64 " %" SCNu64, &line->party,
               line->name, &line->numbers[0], &line->numbers[1], &line->numbers[2]) == 5)
        return line->party < scenario->plan.clients;
    line->party = SCENARIO_ABORTS;
    if (sscanf(text, "abort %" SCNu64 " %" SCNu64, &line->numbers[0], &line->numbers[1]) == 2)
        return true;
    line->party = SCENARIO_OPERATOR;
    if (sscanf(text, "operate %23s %" SCNu64 " %" SCNu64 " %" SCNu64, line->name, &line->numbers[0],
               &line->numbers[1], &line->numbers[2]) == 4)
        return true;
    line->party = SCENARIO_MEMORY;
    if (sscanf(text, "memory %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
               &line->numbers[0], &line->numbers[1], &line->numbers[2], &line->numbers[3],
               &line->numbers[4], &line->numbers[5]) >= 3)
        return true;
    return read_link(line, text) || read_fault(line, text);
}

struct scenario *scenario_load(const char *path)
{
    char text[LINE_ROOM];
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        perror(path);
        return NULL;
    }
    struct scenario *scenario = mem_zalloc(1, sizeof *scenario);
    scenario->end_step = scenario->end_ns = UINT64_MAX;
    bool is_good = true;
    for (unsigned number = 1; is_good && fgets(text, sizeof text, file) != NULL; number++) {
        is_good = read_line(scenario, text);
        if (!is_good)
            fprintf(stderr, "%s:%u: it is no line of a scenario: %s", path, number, text);
    }
    fclose(file);
    if (is_good)
        return scenario;
    scenario_free(scenario);
    return NULL;
}

static void write_config(FILE *file, const char *head, const char *config)
{
    while (*config != '\0') {
        int len = (int)strcspn(config, "\n");
        fprintf(file, "%s%.*s\n", head, len, config);
        config += len + (config[len] == '\n');
    }
}

static void write_line(FILE *file, const struct line *line)
{
    const uint64_t *n = line->numbers;
    if (line->party == SCENARIO_FAULTS)
        fprintf(file,
                "fault %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s %" PRIu64 " %" PRIu64
                "\n",
                meters[n[0]], n[1], n[2], n[3], n[4], line->name, n[5], n[6]);
    else if (line->party == SCENARIO_LINKS)
        fprintf(file,
                "link %s %" PRIu64 " %" PRIu64 " %c %" PRIu64 " %" PRIu64 " %" PRIu64 " %s %" PRIu64
                " %" PRIu64 "\n",
                sides[n[0]], n[1], n[2], n[3] != 0 ? '>' : '<', n[4], n[5], n[6], line->name, n[7],
                n[8]);
    else if (line->party == SCENARIO_OPERATOR)
        fprintf(file, "operate %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", line->name, n[0], n[1],
                n[2]);
    else if (line->party == SCENARIO_ABORTS)
        fprintf(file, "abort %" PRIu64 " %" PRIu64 "\n", n[0], n[1]);
    else if (line->party == SCENARIO_MEMORY)
        fprintf(file,
                "memory %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
                n[0], n[1], n[2], n[3], n[4], n[5]);
    else
        fprintf(file, "act %" PRIu32 " %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", line->party,
                line->name, n[0], n[1], n[2]);
}

static void write_plan(FILE *file, const struct plan *plan)
{
    for (size_t i = 0; i < N_NUMBERS; i++)
        fprintf(file, "plan %s %" PRIu64 "\n", numbers[i].name, get_number(plan, &numbers[i]));
    write_config(file, "config ", plan->config);
    for (unsigned i = 0; i < REGIMES_MAX - 1; i++) {
        const char head[] = {'a', 'f', 't', 'e', 'r', ' ', (char)('1' + i), ':', ' ', '\0'};
        write_config(file, head, plan->others[i].config);
    }
}

static void write_end(FILE *file, uint64_t step, uint64_t ns)
{
    fprintf(file, "end %" PRIu64 " %" PRIu64 "\n", step, ns);
}

bool scenario_save(const struct scenario *scenario, const char *path)
{
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        perror(path);
        return false;
    }
    write_plan(file, &scenario->plan);
    for (size_t i = 0; i < scenario->n; i++)
        write_line(file, &scenario->lines[i]);
    if (scenario->end_step != UINT64_MAX)
        write_end(file, scenario->end_step, scenario->end_ns);
    return fclose(file) == 0;
}

void scenario_free(struct scenario *scenario)
{
    if (scenario == NULL)
        return;
    free(scenario->lines);
    free(scenario->next);
    free(scenario);
}

/* ---- in a run ---- */

static struct scenario *replay;
static FILE *record;
static size_t n_taken;    /* of the lines of the replay */
static uint64_t taken_ns; /* time at which the last line was taken */

void scenario_replay(struct scenario *scenario)
{
    replay = scenario;
    replay->next = mem_zalloc(replay->plan.clients + 4, sizeof *replay->next);
}

void scenario_record(const struct plan *plan, FILE *file)
{
    record = file;
    write_plan(file, plan);
}

static void on_end(struct bell *bell)
{
    (void)bell; /* scenario_is_over checks it */
}

void scenario_begin(void)
{
    static struct bell end = {.ring = on_end};
    if (replay != NULL && replay->end_ns != UINT64_MAX)
        world_ring_at(&end, SIM_START_NS + replay->end_ns);
}

bool scenario_is_replayed(void)
{
    return replay != NULL;
}

static size_t *next_of(uint32_t party)
{
    unsigned n = replay->plan.clients;
    if (party == SCENARIO_MEMORY || party == SCENARIO_ABORTS)
        return &replay->next[n + (party == SCENARIO_MEMORY ? 2 : 3)];
    return &replay->next[party == SCENARIO_FAULTS ? n : party == SCENARIO_OPERATOR ? n + 1 : party];
}

const struct line *scenario_peek(uint32_t party)
{
    size_t *next = next_of(party);
    while (*next < replay->n && replay->lines[*next].party != party)
        (*next)++;
    return *next < replay->n ? &replay->lines[*next] : NULL;
}

void scenario_take(uint32_t party)
{
    (*next_of(party))++;
    n_taken++;
    taken_ns = world.now_ns;
}

static bool has_reached_end(void)
{
    return world.steps >= replay->end_step && world.now_ns - SIM_START_NS >= replay->end_ns;
}

/* A shrunk scenario with fewer steps ends at the time of the original scenario. */
bool scenario_is_over(void)
{
    if (replay->end_step != UINT64_MAX)
        return has_reached_end() ||
               (world.now_ns - taken_ns > PATIENCE_NS &&
                world.now_ns - SIM_START_NS >= replay->end_ns && !links_are_waiting());
    if (n_taken == replay->n)
        return world.now_ns - taken_ns > LAST_WORD_NS && !links_are_waiting();
    return world.now_ns - taken_ns > PATIENCE_NS && scenario_peek(SCENARIO_FAULTS) == NULL;
}

void scenario_arm_links(void)
{
    for (size_t i = 0; i < replay->n; i++) {
        const struct line *line = &replay->lines[i];
        const uint64_t *n = line->numbers;
        if (line->party != SCENARIO_LINKS)
            continue;
        struct link_fault fault = {.whose = {(enum conn_side)n[0], (unsigned)n[1], (unsigned)n[2]},
                                   .to_weir = n[3] != 0,
                                   .upto = n[4],
                                   .wait_ns = n[5],
                                   .wait_steps = n[6],
                                   .us = n[7],
                                   .pick = n[8]};
        n_taken++;
        if (link_kind_named(line->name, &fault.kind))
            links_add(&fault);
    }
}

void scenario_note_line(const struct line *line)
{
    if (record == NULL)
        return;
    write_line(record, line);
    fflush(record);
}

static void note_end(uint64_t step, uint64_t at_ns)
{
    if (record == NULL)
        return;
    write_end(record, step, at_ns - SIM_START_NS);
    fflush(record);
    record = NULL;
}

void scenario_note_end(void)
{
    note_end(world.steps, world.now_ns);
}

void scenario_note_failure(void)
{
    note_end(world.steps + 1, world.now_ns + 1);
}

void scenario_note(uint32_t party, const char *name, uint64_t a, uint64_t b, uint64_t c)
{
    if (record == NULL)
        return;
    struct line line = {.party = party, .numbers = {a, b, c}};
    snprintf(line.name, sizeof line.name, "%s", name);
    scenario_note_line(&line);
}
