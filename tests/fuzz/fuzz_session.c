/*
 * A session as an input: two clients, one fake upstream, and the real weir between them. The
 * simulator provides network, clocks and loops. Invariants:
 *
 * - no byte of an answer to one client reaches the other client;
 * - replies arrive in order, one for each request;
 * - an upstream connection that closes also closes the clients with requests on it;
 * - no client waits for ever once the upstream has answered everything;
 * - at the end everything is closed.
 *
 * weir starts anew for each input, and no state is kept for the next input. An input always gives
 * the same run.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "limit/command/command.h"
#include "run/config/config_build.h"
#include "run/config/config_file.h"
#include "run/proxy.h"
#include "tests/fuzz/session_fake.h"
#include "tests/fuzz/session_must.h"
#include "tests/fuzz/session_pair.h"
#include "tests/fuzz/session_steps.h"
#include "tests/sim/kernel.h"
#include "tests/sim/loops.h"
#include "tests/sim/trace.h"

#define MS UINT64_C(1000000)
#define WAITS_MOST_NS (6000 * MS) /* waits of one input, in all */
#define SHORT_NS (5 * MS)         /* a shorter wait closes no client */
#define SETTLE_NS (60000 * MS)    /* no client waits longer once everything is answered */
#define STOP_NS (70000 * MS)      /* drain-timeout and a margin */
#define STEPS_LIMIT 100000        /* steps of the world: many times the steps of an input */
/* one of so many inputs is played twice, and both runs must be equal */
#define PLAYED_AGAIN_OF 16
#define CONFIG_FD 900
#define CONFIG_PATH "/proc/self/fd/900"
#define HURRY "30" /* factor of time: a minute of silence takes two seconds */

#define CONFIG "[weir]\nlisten = 127.0.0.1:6380\nupstream = 127.0.0.1:6379\nlog-level = error\n"

static const char *const configs[] = {
    CONFIG "workers = 1\n",
    CONFIG "workers = 1\nlanes = private\n",
    CONFIG "workers = 2\noutput-limit = 64kb\n",
    CONFIG
    "workers = 1\nmax-lanes = 3\nupstream-timeout = 1s\n[policy default]\nadmin = no\nwrite = 2/s burst 1 over delay 5s\n"
    "inflight = 4 per connection\nread = 100/s burst 3\n",
};
#define CONFIGS (sizeof configs / sizeof configs[0])

enum { HEAD_CONFIG, HEAD_LINKS, HEAD_ORDER, HEAD_END };
enum {
    LINKS_CUT_READ = 1,
    LINKS_CUT_WRITE = 2,
    LINKS_AGAIN = 4,
    LINKS_NARROW = 8,
    LINKS_PROMPT = 16
};

enum phase {
    STARTS,  /* weir's start-up requests */
    PLAYS,   /* the steps */
    SETTLES, /* the upstream answers everything */
    STOPS,
};

static struct play {
    struct session session;
    size_t at;
    enum phase phase;
    uint64_t until_ns;  /* no step is played before */
    uint64_t waited_ns; /* waits of the input, in all */
    uint64_t since_ns;  /* start of the phase */
    uint64_t digest;
    size_t given; /* bytes of memory in use before weir started */
} play;

static struct command_table *builtin;
static struct config_file files[CONFIGS];
static struct config *started[CONFIGS]; /* parsed once; read-only */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* ---- the configuration ---- */

static void write_config(size_t i)
{
    size_t n = strlen(configs[i]);
    MUST(pwrite(CONFIG_FD, configs[i], n, 0) == (ssize_t)n && ftruncate(CONFIG_FD, (off_t)n) == 0);
}

static void report(void *arg, bool is_error, const char *line)
{
    (void)arg;
    if (is_error)
        fprintf(stderr, "%s\n", line);
    MUST(!is_error);
}

static void on_death(void)
{
    trace_tell(stderr, TOLD_OF_EACH);
}

void __sanitizer_set_death_callback(void (*callback)(void));

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    setenv("WEIR_HURRY", HURRY, 1);
    int fd = memfd_create("weir", 0);
    MUST(fd >= 0 && dup2(fd, CONFIG_FD) >= 0 && fchmod(CONFIG_FD, 0600) == 0);
    close(fd);
    builtin = command_table_builtin();
    for (size_t i = 0; i < CONFIGS; i++) {
        write_config(i);
        files[i] = (struct config_file){.path = CONFIG_PATH, .report = report};
        started[i] = config_read(&files[i], builtin);
        MUST(started[i] != NULL);
    }
    return 0;
}

/* ---- memory ---- */

size_t __real_mem_given(void); /* NOLINT(bugprone-reserved-identifier) */
size_t __wrap_mem_given(void); /* NOLINT(bugprone-reserved-identifier) */

/*
 * weir counts memory that was in use before its start as its configuration's. Only newer memory
 * counts.
 */
size_t __wrap_mem_given(void) /* NOLINT(bugprone-reserved-identifier) */
{
    return __real_mem_given() - play.given;
}

bool __wrap_mem_would_give(size_t bytes); /* NOLINT(bugprone-reserved-identifier) */

/*
 * Memory never runs out here: the check would cost the sanitizer more than an input takes.
 * tests/sim tests refusals.
 */
bool __wrap_mem_would_give(size_t bytes) /* NOLINT(bugprone-reserved-identifier) */
{
    (void)bytes;
    return true;
}

/* ---- life cycle ---- */

static void begin(enum phase phase)
{
    play.phase = phase;
    play.since_ns = world.now_ns;
}

/* True if no party can run at this moment. */
static bool is_quiet(void)
{
    const struct due *first = due_first(&world.bells);
    return world.n_ready == 0 && (first == NULL || first->at > world.now_ns);
}

static void let_pass(uint8_t row)
{
    static const uint64_t times[] = {MS, 20 * MS, 200 * MS, 1000 * MS, 3000 * MS};
    uint64_t ns = times[row % (sizeof times / sizeof times[0])];
    if (play.waited_ns + ns > WAITS_MOST_NS)
        return;
    play.waited_ns += ns;
    play.until_ns = world.now_ns + ns;
    if (play.waited_ns > SHORT_NS)
        pair_doubt();
}

static void carry_out(const struct step *step)
{
    if (step->kind == STEP_WAIT) {
        let_pass(step->a);
    } else if (step->kind == STEP_RELOAD) {
        write_config(step->a % CONFIGS);
        loop_signal(SIGHUP);
    } else if (step->kind <= STEP_BLIND) {
        pair_play(step);
    } else {
        fake_play(step);
    }
}

/*
 * The head of the input chooses the network faults. Their random numbers depend on the whole input,
 * so no part of an input can predict them.
 */
static void begin_steps(void)
{
    uint8_t links = play.session.head[HEAD_LINKS];
    kernel.odds.cut_read = (links & LINKS_CUT_READ) != 0 ? 300000 : 0;
    kernel.odds.cut_write = (links & LINKS_CUT_WRITE) != 0 ? 300000 : 0;
    kernel.odds.again = (links & LINKS_AGAIN) != 0 ? 200000 : 0;
    random_init(&kernel.chance, play.digest, 1);
    begin(PLAYS);
    pair_start();
}

static void play_on(void)
{
    const struct step *step;
    pair_judge();
    if (world.now_ns < play.until_ns) {
        const struct due *first = due_first(&world.bells);
        if (first == NULL || first->at > play.until_ns)
            world.now_ns = play.until_ns;
        else
            return;
    }
    do {
        if (play.at == play.session.n) {
            begin(SETTLES);
            fake_settle();
            pair_settle();
            return;
        }
        step = &play.session.steps[play.at++];
        carry_out(step);
    } while (step->is_at_once && step->kind != STEP_WAIT);
}

static void stop(void)
{
    begin(STOPS);
    pair_leave();
    loop_signal(play.session.head[HEAD_END] % 2 == 0 ? SIGTERM : SIGINT);
}

static void on_step(void)
{
    MUST(world.steps < STEPS_LIMIT);
    if (play.phase == STOPS)
        MUST(world.now_ns - play.since_ns < STOP_NS);
    else if (!is_quiet())
        return;
    else if (play.phase == STARTS && fake_is_known())
        begin_steps();
    else if (play.phase == PLAYS)
        play_on();
    else if (play.phase == SETTLES && pair_waiting() == 0)
        stop();
    else
        MUST(world.now_ns - play.since_ns < SETTLE_NS);
}

static void run(void)
{
    char *arguments[] = {NULL};
    const struct program program = {"weir", arguments};
    const uint8_t *head = play.session.head;
    size_t variant = head[HEAD_CONFIG] % CONFIGS;
    world_init(head[HEAD_ORDER]);
    kernel_init(head[HEAD_ORDER]);
    trace_clear();
    kernel.odds = (struct odds){.window = (head[HEAD_LINKS] & LINKS_NARROW) != 0 ? 2048 : 1 << 18,
                                .fds = 1024};
    write_config(variant);
    fake_start((head[HEAD_LINKS] & LINKS_PROMPT) != 0);
    on_world_step = on_step;
    MUST(proxy_run(started[variant], &files[variant], builtin, &program) == 0);
    pair_stop();
    fake_stop();
    MUST(kernel.n_open == 0);
    kernel_fini();
    MUST(kernel.n_live == 0);
    world_fini();
}

/* Returns the digest of all events. */
static uint64_t play_all(const uint8_t *data, size_t n)
{
    sigset_t mask;
    play = (struct play){.digest = digest_of(data, n), .given = __real_mem_given()};
    session_decode(&play.session, data, n);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    run();
    pthread_sigmask(SIG_SETMASK, &mask, NULL); /* weir returns with all signals blocked */
    return trace_digest();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    __sanitizer_set_death_callback(on_death);
    uint64_t trace = play_all(data, n);
    if (digest_of(data, n) % PLAYED_AGAIN_OF == 0)
        MUST(play_all(data, n) == trace);
    return 0;
}
