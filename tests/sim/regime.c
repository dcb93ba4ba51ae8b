#include "tests/sim/regime.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/sim/loops.h"
#include "tests/sim/run.h"

#define CONFIG_FD 900
#define PASSWORD_FD 901 /* see PASSWORD_PATH */

#define PASSWORD_KNOWN_NS (11 * NS_PER_S)
/* iterations of each loop after which everything under way has arrived, chosen */
#define TURNS_LOST 20

enum stage { STAGE_CALM, STAGE_ORDERED, STAGE_WORKERS, STAGE_LOST };

static struct {
    enum stage stage;
    /* an operator's command, with a reply that tells when the change is done */
    bool is_operators;
    bool is_behind;       /* a reload for the password waits for the current change */
    uint64_t passwords;   /* run.passwords when the file was last written ... */
    uint64_t password_ns; /* ... and the time of that */
    bool is_bad;          /* the file is invalid */
    uint64_t filed_ns;    /* when the file was last made valid */
    unsigned now, next;
    uint64_t changed_ns; /* when `now` last changed */
    struct planned_limits limits, next_limits;
    uint64_t turns[LOOPS_MAX]; /* iterations of each loop at the last change */
} state;

/* ---- files ---- */

/* A file in memory, with a constant path. */
static void make_file(int as)
{
    int fd = memfd_create("weir", 0);
    if (fd < 0 || dup2(fd, as) < 0 || fchmod(as, 0600) != 0)
        abort();
    close(fd);
}

static void write_file(int fd, const char *text)
{
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, strlen(text), 0) != (ssize_t)strlen(text))
        abort();
}

static const char *config_of(unsigned which)
{
    return which == 0 ? run.plan.config : run.plan.others[which - 1].config;
}

static const struct planned_limits *limits_of(unsigned which)
{
    return which == 0 ? &run.plan.limits : &run.plan.others[which - 1].limits;
}

void regime_start(void)
{
    memset(&state, 0, sizeof state);
    make_file(CONFIG_FD);
    make_file(PASSWORD_FD);
    write_file(CONFIG_FD, run.plan.config);
    write_file(PASSWORD_FD, PASSWORD);
    state.limits = run.plan.limits;
    limits_use(&state.limits, run.plan.may_mix || run.plan.n_regimes > 1 || run.plan.has_operator);
}

/* ---- changes ---- */

static void remember_turns(void)
{
    for (unsigned i = 0; i < LOOPS_MAX; i++)
        state.turns[i] = loop_number(i) != NULL ? loop_number(i)->turns : 0;
}

static void begin(const struct planned_limits *to, bool is_operators)
{
    state.stage = STAGE_ORDERED;
    state.is_operators = is_operators;
    state.next_limits = *to;
    limits_changing(&state.next_limits);
    remember_turns();
}

/* Another reload before this reload is done would hide which file weir has read. */
static void signal_reload(unsigned next)
{
    state.next = next;
    begin(limits_of(next), false);
    loop_signal(SIGHUP);
}

static void write_config(const char *text, bool is_bad)
{
    if (state.is_bad)
        state.filed_ns = world.now_ns;
    state.is_bad = is_bad;
    write_file(CONFIG_FD, text);
}

void regime_reload(uint64_t pick)
{
    if (state.stage != STAGE_CALM || run.phase == RUN_STOPS) /* weir reads no file any more */
        return;
    unsigned next = (unsigned)(pick / 8 % run.plan.n_regimes);
    bool is_bad = pick % 8 == 7;
    write_config(is_bad ? "[weir]\nlisten = nowhere\nworkers = many\n" : config_of(next), is_bad);
    if (is_bad)
        loop_signal(SIGHUP); /* the configuration in force stays */
    else
        signal_reload(next);
}

static void reload_password(void)
{
    state.is_behind = state.stage != STAGE_CALM;
    if (state.is_behind || run.phase == RUN_STOPS)
        return;
    write_config(config_of(state.next), false);
    signal_reload(state.next);
}

/* Every other time there is no SIGHUP: weir finds the new password by itself. */
void regime_write_password(void)
{
    write_file(PASSWORD_FD, run.passwords % 2 == 0 ? PASSWORD : OTHER_PASSWORD);
    state.passwords = run.passwords;
    state.password_ns = world.now_ns;
    if ((run.passwords + 1) % 4 < 2)
        reload_password();
}

/* weir checks the file every 10 s. */
bool regime_is_password_known(uint64_t since_ns)
{
    return state.passwords == run.passwords &&
           (run.passwords == 0 || since_ns > state.password_ns + PASSWORD_KNOWN_NS);
}

bool regime_is_filed(void)
{
    return !state.is_bad;
}

bool regime_was_filed(uint64_t since_ns)
{
    return !state.is_bad && state.filed_ns < since_ns;
}

const struct planned_limits *regime_filed(void)
{
    return limits_of(state.next);
}

const struct planned_limits *regime_limits(void)
{
    return &state.limits;
}

bool regime_order(const struct planned_limits *to)
{
    if (state.stage != STAGE_CALM)
        return false;
    state.next = state.now;
    begin(to, true);
    return true;
}

static void publish(void)
{
    state.stage = STAGE_WORKERS;
    remember_turns();
}

static void change(void)
{
    state.stage = STAGE_CALM;
    if (state.now != state.next)
        state.changed_ns = world.now_ns;
    state.now = state.next;
    state.limits = state.next_limits;
    limits_changed();
    if (state.is_behind)
        reload_password();
}

/* OK comes once every worker has the change. */
void regime_order_done(void)
{
    if (state.stage == STAGE_ORDERED && state.is_operators)
        change();
}

void regime_order_refused(void)
{
    if (state.stage != STAGE_ORDERED || !state.is_operators)
        return;
    state.next_limits = state.limits;
    limits_changing(&state.limits);
    change();
}

void regime_order_lost(void)
{
    if (state.stage != STAGE_ORDERED || !state.is_operators)
        return;
    limits_changing(NULL);
    state.stage = STAGE_LOST;
    remember_turns();
}

/*
 * The refusal may belong to an earlier reload of an invalid file. Either configuration may be in
 * force until the next reload.
 */
void regime_reload_refused(void)
{
    if ((state.stage != STAGE_ORDERED && state.stage != STAGE_WORKERS) || state.is_operators)
        return;
    limits_changing(NULL);
    state.stage = STAGE_LOST;
    remember_turns();
}

static bool has_had_turns(unsigned i, uint64_t n)
{
    const struct sim_loop *loop = loop_number(i);
    return loop == NULL || loop->has_ended || !loop->is_running ||
           loop->turns >= state.turns[i] + n;
}

/*
 * Whether the command was carried out is unknown. The file is reloaded to settle the question,
 * except while weir stops.
 */
static void look_at_lost(void)
{
    if (run.phase == RUN_STOPS)
        return;
    bool is_over = true;
    for (unsigned i = 0; i < LOOPS_MAX; i++)
        if (!has_had_turns(i, TURNS_LOST)) {
            is_over = false;
            world_wake(&loop_number(i)->party);
        }
    if (!is_over)
        return;
    state.stage = STAGE_CALM;
    reload_password();
}

static bool have_workers_had_turns(void)
{
    for (unsigned i = 1; i < LOOPS_MAX; i++)
        if (!has_had_turns(i, 1))
            return false;
    return true;
}

static void settle(void)
{
    if (have_workers_had_turns())
        change();
}

void regime_reload_told(void)
{
    bool is_under_way = state.stage == STAGE_ORDERED || state.stage == STAGE_WORKERS;
    if (state.is_operators || !is_under_way || have_workers_had_turns())
        return;
    run_blame("reload", "told before every worker has it");
    run_fail(0,
             "the log says that the configuration is reloaded, and a worker does not have it yet");
}

void regime_look(void)
{
    if (state.stage == STAGE_ORDERED && !state.is_operators && has_had_turns(0, 1))
        publish();
    else if (state.stage == STAGE_LOST)
        look_at_lost();
    else if (state.stage == STAGE_WORKERS)
        settle();
}

bool regime_says(const char *line)
{
    return strstr(config_of(state.now), line) != NULL &&
           strstr(config_of(state.next), line) != NULL;
}

bool regime_says_since(const char *line, uint64_t since_ns)
{
    return state.changed_ns < since_ns && regime_says(line);
}

bool regime_may_say(const char *line)
{
    for (unsigned i = 0; i < run.plan.n_regimes; i++)
        if (strstr(config_of(i), line) != NULL)
            return true;
    return false;
}
