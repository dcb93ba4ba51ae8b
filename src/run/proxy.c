#include "run/proxy.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/process.h"
#include "limit/figures/journal.h"
#include "net/tcp_peer.h"
#include "run/commands/config_manager.h"
#include "run/commands/handover.h"
#include "run/commands/admin_report.h"
#include "run/commands/upkeep.h"
#include "run/config/address.h"
#include "run/worker_pool.h"
#include "run/drain.h"
#include "run/listening.h"
#include "run/reporter.h"
#include "run/sd_notify.h"
#include "run/topology/controls.h"
#include "run/watch.h"

/* interval between reads of the limits' counters, and between snapshots */
#define LOOK_MS 1000
#define GIVE_UP_NS (30 * NS_PER_S) /* a successor ends if it may not serve within this time */

enum { ON_TERM, ON_INT, ON_HUP, ON_USR1, ON_USR2, SIGNALS };

static const int signal_numbers[SIGNALS] = {[ON_TERM] = SIGTERM,
                                            [ON_INT] = SIGINT,
                                            [ON_HUP] = SIGHUP,
                                            [ON_USR1] = SIGUSR1,
                                            [ON_USR2] = SIGUSR2};

struct proxy {
    const struct config *config;
    const struct program *program;
    struct loop loop; /* the main thread's loop: signals, control lanes, admin commands */
    struct upstream upstream;
    struct topology *topology; /* NULL before start_controls */
    struct front_settings settings;
    struct journal *journal;
    struct config_manager *manager;
    struct listening *listening;
    struct dialling *dialling;
    struct worker_pool *pool; /* NULL before start_workers */
    struct watch *watch;      /* NULL before start_workers */
    struct reporter reporter;
    struct history *history;
    uint64_t started_unix_ms;
    uint64_t started_ns;
    struct controls *controls; /* NULL before start_controls and after close_main */
    uv_signal_t signals[SIGNALS];
    uv_timer_t look;
    struct sd_notify service;
    struct watchdog watchdog;
    struct drain drain;
    struct memory memory;
    struct upkeep upkeep;
    struct upgrade upgrade;       /* a successor of this process, if one was started */
    struct succession succession; /* this process as the successor of an older one */
    char *nodes;                  /* nodes that the predecessor knew; heap; NULL: none */
    bool has_been_ready;          /* the log has said "ready" */
    bool has_told_why;            /* the log has said "ready", or why weir is not ready */
    bool is_settled;              /* each node has been tried once */
    bool is_wait_over;            /* the start no longer waits for the upstream */
    bool is_upgrade_kept;         /* SIGUSR2 came before weir served: carried out later */
    unsigned reloads_untold;      /* reloads by SIGHUP that not every worker has adopted yet */
    bool is_stopping;             /* a signal or a successor has asked for the stop */
    bool is_closing;              /* close_main has begun */
};

/* ---- the upstream ---- */

/* Returns how many file descriptors this process may have open. */
static uint32_t files_allowed(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT32_MAX)
        return INT32_MAX;
    return (uint32_t)limit.rlim_cur;
}

static void set_upstream(struct proxy *proxy)
{
    const struct config *config = proxy->config;
    upstream_init(&proxy->upstream);
    upstream_set_tls(&proxy->upstream, config->rules.upstream_tls);
    proxy->upstream.hurry = (uint32_t)num_of_environment("WEIR_HURRY", 1000);
    tcp_peer_hurry(proxy->upstream.hurry);
    atomic_store(&proxy->upstream.room.descriptors, files_allowed());
    proxy->upstream.connect_timeout_ns = config->connect_timeout_ns;
    proxy->upstream.timeout_ns = config->upstream_timeout_ns;
    proxy->upstream.dial_rate = config->dial_rate;
    proxy->upstream.check_ns = config->upstream_check_ns;
    proxy->upstream.lends_login = config->clients_as_upstream;
    proxy->upstream.is_replicated = sources_are_replicated(&config->sources);
    proxy->upstream.reads = config->reads;
    proxy->upstream.is_cluster = config->sources.form == SOURCES_CLUSTER;
    proxy->upstream.cross_slot = config->cross_slot;
    proxy->upstream.emulates_cluster = !config->refuses_cluster_commands;
    proxy->upstream.redirect_timeout_ns = config->redirect_timeout_ns;
    proxy->upstream.cluster_announce_host = config->cluster_announce.host;
    proxy->upstream.cluster_announce_port = config->cluster_announce.port;
    proxy->upstream.has_user = config->upstream_user != NULL;
}

static void proxy_on_table(void *arg, struct command_table *table)
{
    struct proxy *proxy = arg;
    config_manager_on_table(proxy->manager, table);
}

/* Ends the wait in start_controls: weir begins to serve, or stops without having served. */
static void proxy_end_wait(struct proxy *proxy)
{
    proxy->is_wait_over = true;
    uv_stop(&proxy->loop.uv);
}

/*
 * True if this process may serve: no predecessor exists, the upstream is up, or the predecessor is
 * not ready.
 */
static bool may_begin(const struct proxy *proxy)
{
    return proxy->succession.fd < 0 || proxy->succession.may_serve ||
           controls_is_up(proxy->controls);
}

static bool proxy_is_late(const struct proxy *proxy)
{
    uint64_t most_ns = upstream_time(&proxy->upstream, GIVE_UP_NS);
    return proxy->succession.fd >= 0 && clock_ns() - proxy->started_ns >= most_ns;
}

static void offer(struct proxy *proxy)
{
    if (!proxy->succession.is_waiting)
        log_warn(
            "upgrade: upstream %s is away for process %d, which takes over once the upstream answers, or once "
            "process %d is not ready either",
            topology_default_node(proxy->topology)->text, getpid(), getppid());
    succession_offer(&proxy->succession, &proxy->loop);
}

/*
 * Ends the wait of the start if weir may serve. Called after each event of the start, and every
 * second.
 */
static void consider_beginning(struct proxy *proxy)
{
    if (proxy->is_wait_over || proxy->controls == NULL)
        return;
    if ((proxy->is_settled && may_begin(proxy)) || proxy_is_late(proxy))
        proxy_end_wait(proxy);
    else if (proxy->is_settled)
        offer(proxy);
}

static void proxy_on_settled(void *arg)
{
    struct proxy *proxy = arg;
    proxy->is_settled = true;
    consider_beginning(proxy);
}

static void on_may_serve(void *arg)
{
    consider_beginning(arg);
}

static void proxy_report(struct proxy *proxy);

static void proxy_on_news(void *arg, enum log_level level, const char *about, const char *line)
{
    struct proxy *proxy = arg;
    log_at(LOG_SITE_CONTROL, level, "%s", line);
    journal_add_about(proxy->journal, clock_unix_ms(), "upstream", about, line);
    proxy_report(proxy);
}

static void publish(struct proxy *proxy);

static void on_topology(void *arg)
{
    struct proxy *proxy = arg;
    topology_put(proxy->topology);
    proxy->topology = controls_topology(proxy->controls);
    if (proxy->pool != NULL)
        publish(proxy);
}

static void sum_fates(void *arg, struct fates *sum)
{
    const struct proxy *proxy = arg;
    for (unsigned w = 0; proxy->pool != NULL && w < proxy->config->workers; w++)
        for (int fate = 0; fate < FATE_COUNT; fate++)
            sum->n[fate] += count_read(&worker_pool_front(proxy->pool, w)->counts.fates[fate]);
}

static const struct controls_ops controls_ops = {
    .on_topology = on_topology,
    .on_table = proxy_on_table,
    .on_settled = proxy_on_settled,
    .on_news = proxy_on_news,
    .sum_fates = sum_fates,
};

/* Returns weir's login. The strings stay owned by the configuration and by `password`. */
static struct credentials credentials_of(const struct proxy *proxy,
                                         const struct own_password *password)
{
    return (struct credentials){proxy->config->upstream_user, password->newest, password->before,
                                password->number};
}

static void set_dialling(struct proxy *proxy)
{
    struct heirloom socket;
    proxy->dialling = dialling_new(&proxy->config->upstream_map, &proxy->config->upstream_allow);
    for (size_t i = 0; (socket = listening_socket(proxy->listening, i)).fd >= 0; i++)
        dialling_add_own(proxy->dialling, socket.fd);
}

static void start_controls(struct proxy *proxy)
{
    const struct config *config = proxy->config;
    const struct controls_settings settings = {
        .finder = {.upstream = &proxy->upstream,
                   .dialling = proxy->dialling,
                   .resolve_ns = config->upstream_resolve_ns,
                   .credentials = credentials_of(proxy, &config->rules.upstream_password)},
        .sources = &config->sources,
        .sentinel_user = config->sentinel_user,
        .sentinel_password_path = config->sentinel_password_file,
        .nodes = proxy->nodes,
    };
    proxy->controls = controls_open(&proxy->loop, &settings, &controls_ops, proxy);
    proxy->topology = controls_topology(proxy->controls);
    controls_start(proxy->controls);
    consider_beginning(proxy); /* every node may have failed already */
    while (!proxy->is_wait_over)
        loop_run(&proxy->loop);
}

/* ---- log lines about limits ---- */

static void on_said(void *arg, enum log_level level, const char *kind, const char *about,
                    const char *line)
{
    struct proxy *proxy = arg;
    log_line(level, "%s", line);
    journal_add_about(proxy->journal, clock_unix_ms(), kind, about, line);
}

static void begin_upgrade(struct proxy *proxy)
{
    proxy->is_upgrade_kept = false;
    char nodes[NODES_LISTED];
    controls_list_nodes(proxy->controls, nodes);
    upgrade_start(&proxy->upgrade, &proxy->loop, nodes);
}

/* Logs once that weir is ready: people and scripts wait for this line. */
static void tell_ready(struct proxy *proxy, const struct stats_collector *collector)
{
    char why[NOT_READY_ROOM];
    const char *name = proxy->config->name;
    if (proxy->has_been_ready || proxy->pool == NULL || proxy->is_stopping)
        return;
    proxy->has_been_ready = collector_is_ready(collector, why);
    if (proxy->has_been_ready && proxy->succession.fd >= 0)
        log_info("upgrade: process %d serves in place of process %d", getpid(), getppid());
    if (proxy->has_been_ready)
        log_info("%s%sready", name != NULL ? name : "", name != NULL ? " is " : "");
    else if (!proxy->has_told_why)
        log_warn("listening, but not ready: %s; %s", why, collector_clients_get(collector));
    proxy->has_told_why = true;
}

static struct stats_collector make_collector(struct proxy *proxy)
{
    return (struct stats_collector){
        .config = proxy->config,
        .topology = proxy->topology,
        .settings = &proxy->settings,
        .listening = proxy->listening,
        .manager = proxy->manager,
        .pool = proxy->pool,
        .controls = proxy->controls,
        .memory = &proxy->memory,
        .journal = proxy->journal,
        .history = proxy->history,
        .started_unix_ms = proxy->started_unix_ms,
        .is_stopping = proxy->is_stopping,
    };
}

static void proxy_report(struct proxy *proxy)
{
    char why[NOT_READY_ROOM];
    const struct stats_collector collector = make_collector(proxy);
    reporter_tell(&proxy->reporter, &collector);
    sd_notify_tell(&proxy->service, &collector);
    tell_ready(proxy, &collector);
    if (proxy->pool != NULL && !proxy->is_stopping && !collector_is_ready(&collector, why))
        upgrade_let_serve(&proxy->upgrade);
}

static void look_at_limits(struct proxy *proxy)
{
    uint64_t now_ns = clock_ns();
    const struct rules *rules = config_manager_rules(proxy->manager);
    watch_look(proxy->watch, rules->policies,
               rules->unauthenticated > 0 ? &rules->unbound_limit : NULL, now_ns);
    watch_look_at_subjects(proxy->watch,
                           subjects_overflows(proxy->settings.subjects) +
                               subjects_overflows(proxy->settings.key_subjects),
                           now_ns);
}

static void proxy_on_look(uv_timer_t *timer)
{
    struct proxy *proxy = timer->data;
    if (proxy->watch != NULL)
        look_at_limits(proxy);
    consider_beginning(proxy);
    proxy_report(proxy);
}

/* ---- signals ---- */

/* Closes everything on the main loop, which then ends. */
static void close_main(void *arg)
{
    struct proxy *proxy = arg;
    if (proxy->is_closing)
        return;
    proxy->is_closing = true;
    /*
     * Signals stay blocked: without a handler a signal would end the process with a wrong exit
     * status.
     */
    signals_block(NULL);
    if (proxy->pool != NULL)
        worker_pool_stop(proxy->pool);
    controls_close(proxy->controls);
    proxy->controls = NULL;
    for (size_t i = 0; i < SIGNALS; i++)
        uv_close((uv_handle_t *)&proxy->signals[i], NULL);
    uv_close((uv_handle_t *)&proxy->look, NULL);
    watchdog_close(&proxy->watchdog);
    memory_close(&proxy->memory);
    upkeep_close(&proxy->upkeep);
    drain_close(&proxy->drain);
    upgrade_close(&proxy->upgrade);
    succession_close(&proxy->succession);
    loop_close(&proxy->loop);
}

/*
 * Stops the process. Before weir serves, the start ends and the function serve closes everything.
 * After that weir drains, and close_main ends the workers and the main loop. is_at_once skips the
 * drain.
 */
static void proxy_stop(struct proxy *proxy, bool is_at_once, bool has_successor)
{
    proxy->is_stopping = true;
    proxy_report(proxy);
    if (proxy->pool == NULL)
        proxy_end_wait(proxy);
    else if (is_at_once)
        close_main(proxy);
    else
        drain_begin(&proxy->drain, &proxy->loop, has_successor);
}

/* SIGINT and a second SIGTERM stop at once: a person waits. */
static void on_stop(uv_signal_t *handle, int number)
{
    struct proxy *proxy = handle->data;
    bool is_at_once = number == SIGINT || proxy->is_stopping;
    log_info("stopping%s: %s", is_at_once ? " at once" : "",
             number == SIGTERM ? "SIGTERM" : "SIGINT");
    upgrade_call_off(&proxy->upgrade);
    proxy_stop(proxy, is_at_once, false);
}

/*
 * Reports that the limits of a reload bind every client from now on. Operators, scripts and systemd
 * rely on the report.
 */
static void on_adopted(void *arg)
{
    struct proxy *proxy = arg;
    for (; proxy->reloads_untold > 0; proxy->reloads_untold--)
        config_manager_tell_reloaded(proxy->manager);
    sd_notify_reloaded(&proxy->service);
}

static void on_hup(uv_signal_t *handle, int number)
{
    (void)number;
    struct proxy *proxy = handle->data;
    if (proxy->is_stopping) {
        log_info("SIGHUP: weir does not reload the configuration, because weir stops");
        return;
    }
    sd_notify_reloading(&proxy->service);
    proxy->reloads_untold += config_manager_reload(proxy->manager);
    if (proxy->pool != NULL)
        worker_pool_when_adopted(proxy->pool, on_adopted, proxy);
    else
        on_adopted(proxy);
}

/* ---- upgrade: one process takes over from another ---- */

static void on_replaced(void *arg)
{
    proxy_stop(arg, false, true);
}

static void on_usr2(uv_signal_t *handle, int number)
{
    struct proxy *proxy = handle->data;
    (void)number;
    if (proxy->is_stopping) {
        log_info("upgrade: weir ignores SIGUSR2, because weir stops");
    } else if (proxy->pool != NULL) {
        begin_upgrade(proxy);
    } else {
        proxy->is_upgrade_kept = true;
        log_info("upgrade: SIGUSR2 takes effect once weir serves");
    }
}

static void on_alone(void *arg)
{
    struct proxy *proxy = arg;
    sd_notify_hold(false);
    proxy->service = (struct sd_notify){0};
    proxy_report(proxy);
}

static void on_usr1(uv_signal_t *handle, int number)
{
    (void)handle;
    (void)number;
    log_reopen();
}

static void watch_signals(struct proxy *proxy)
{
    static const uv_signal_cb acts[SIGNALS] = {[ON_TERM] = on_stop,
                                               [ON_INT] = on_stop,
                                               [ON_HUP] = on_hup,
                                               [ON_USR1] = on_usr1,
                                               [ON_USR2] = on_usr2};
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < SIGNALS; i++) {
        if (uv_signal_init(&proxy->loop.uv, &proxy->signals[i]) != 0) {
            log_error("cannot watch signals: out of file descriptors");
            exit(EXIT_SYSTEM);
        }
        proxy->signals[i].data = proxy;
        uv_signal_start(&proxy->signals[i], acts[i], signal_numbers[i]);
    }
    signals_unblock();
    uv_timer_init(&proxy->loop.uv, &proxy->look);
    proxy->look.data = proxy;
    uv_timer_start(&proxy->look, proxy_on_look, 0, LOOK_MS);
    proxy->upkeep = (struct upkeep){
        .manager = proxy->manager, .upstream = &proxy->upstream, .journal = proxy->journal};
    upkeep_open(&proxy->upkeep, &proxy->loop);
}

/* ---- the workers ---- */

/* Returns the newest tables. The struct holds no references. */
static struct tables tables_now(const struct proxy *proxy)
{
    return (struct tables){.commands = config_manager_live(proxy->manager)->commands,
                           .rules = config_manager_rules(proxy->manager),
                           .topology = proxy->topology};
}

static void ask_costs(const struct proxy *proxy)
{
    bool is_shared = config_manager_rules(proxy->manager)->has_shares;
    controls_ask_costs(proxy->controls,
                       is_shared ? config_manager_live(proxy->manager)->commands : NULL);
}

/* Applies the part of the rules that concerns the main thread. */
static void apply_rules(struct proxy *proxy)
{
    const struct rules *rules = config_manager_rules(proxy->manager);
    upstream_set_tls(&proxy->upstream, rules->upstream_tls);
    const struct credentials credentials = credentials_of(proxy, &rules->upstream_password);
    controls_set_password(proxy->controls, &credentials);
    memory_set_limit(&proxy->memory, rules->memory_limit_bytes);
    ask_costs(proxy);
}

static void publish(struct proxy *proxy)
{
    const struct tables tables = tables_now(proxy);
    worker_pool_publish(proxy->pool, &tables);
}

static void on_change(void *arg)
{
    struct proxy *proxy = arg;
    apply_rules(proxy);
    publish(proxy);
}

static void proxy_settle(void *arg)
{
    struct proxy *proxy = arg;
    struct subjects *const tables[] = {proxy->settings.subjects, proxy->settings.key_subjects};
    live_rules_settle(config_manager_live(proxy->manager), tables);
}

static void proxy_on_admin_command(void *arg, struct admin_command *admin_command)
{
    struct proxy *proxy = arg;
    const struct stats_collector collector = make_collector(proxy);
    if (admin_command_is_report(admin_command))
        admin_report(admin_command, &collector, clock_ns());
    else
        config_manager_carry_out(proxy->manager, admin_command);
    if (admin_command->kind == ADMIN_DIFF)
        admin_report_differences(admin_command);
    upkeep_await(&proxy->upkeep);
}

static void start_workers(struct proxy *proxy)
{
    const struct config *config = proxy->config;
    worker_pool_settings_init(&proxy->settings, config);
    proxy->settings.journal = proxy->journal;
    proxy->settings.unlimited = config_manager_live(proxy->manager)->unlimited;
    const struct tables tables = tables_now(proxy);
    proxy->pool = worker_pool_start(&proxy->loop, &proxy->settings, proxy->listening, &tables);
    worker_pool_obey(proxy->pool, proxy_on_admin_command, proxy);
    worker_pool_watch(proxy->pool, proxy_settle, proxy);
    config_manager_live(proxy->manager)->on_change = on_change;
    config_manager_live(proxy->manager)->arg = proxy;
    proxy->watch = watch_new(proxy->settings.limit_counters, proxy->settings.all_offenders,
                             proxy->settings.stopping, config->workers, on_said, proxy);
    controls_probe(proxy->controls);
    ask_costs(proxy);
    proxy->drain = (struct drain){.pool = proxy->pool,
                                  .listening = proxy->listening,
                                  .timeout_ns = config->drain_timeout_ns,
                                  .clients = &proxy->settings.clients,
                                  .on_over = close_main,
                                  .arg = proxy};
    proxy->upgrade = (struct upgrade){.program = proxy->program,
                                      .listening = proxy->listening,
                                      .reporter = &proxy->reporter,
                                      .manager = proxy->manager,
                                      .journal = proxy->journal,
                                      .on_replaced = on_replaced,
                                      .arg = proxy};
    watchdog_start(&proxy->watchdog, &proxy->loop, proxy->pool);
    memory_open(&proxy->memory, &proxy->loop, proxy->pool, &proxy->settings, proxy->journal);
    apply_rules(proxy); /* a reload may have come before the workers started */
    const char *text = controls_text(proxy->controls);
    log_info("forwarding to %s with %u worker%s, lanes %s", text, config->workers,
             config->workers == 1 ? "" : "s", config->lanes_private ? "private" : "shared");
    proxy_report(proxy);
    upkeep_await(&proxy->upkeep);
    succession_serve(&proxy->succession, &proxy->loop);
    if (proxy->is_upgrade_kept)
        begin_upgrade(proxy);
}

static void end_workers(struct proxy *proxy)
{
    worker_pool_join(proxy->pool);
    watch_free(proxy->watch);
    worker_pool_settings_fini(&proxy->settings);
}

/* ---- the life of the process ---- */

static void tell_not_taking_over(const struct proxy *proxy)
{
    const char *text = topology_default_node(proxy->topology)->text;
    const char *why = controls_why(proxy->controls);
    const char *no_master = controls_why_no_master(proxy->controls);
    const struct finder *finder = controls_finder(proxy->controls, TOPOLOGY_DEFAULT);
    if (no_master[0] != '\0')
        log_error("upstream %s has no master: %s: not taking over", text, no_master);
    else if (finder != NULL && finder_name_error(finder)[0] != '\0')
        log_error("upstream %s: its name cannot be resolved: %s: not taking over", text,
                  finder_name_error(finder));
    else
        log_error("upstream %s %s%s: not taking over", text,
                  why[0] != '\0' ? "cannot be served: " : "is away", why);
}

/* True if this process may take over. False: the predecessor goes on serving. */
static bool can_take_over(struct proxy *proxy)
{
    if (proxy->succession.fd < 0)
        return true;
    if (!may_begin(proxy)) {
        tell_not_taking_over(proxy);
        return false;
    }
    return reporter_start(&proxy->reporter) && listening_take_over(proxy->listening);
}

static int serve(struct proxy *proxy)
{
    loop_init(&proxy->loop);
    watch_signals(proxy);
    set_dialling(proxy);
    start_controls(proxy);
    bool has_failed = !proxy->is_stopping && !can_take_over(proxy);
    if (has_failed || proxy->is_stopping)
        close_main(proxy);
    else
        start_workers(proxy);
    loop_run(&proxy->loop);
    if (proxy->pool != NULL)
        end_workers(proxy);
    loop_fini(&proxy->loop);
    return has_failed ? EXIT_SYSTEM : 0;
}

static void proxy_carry_out(void *arg, struct admin_command *const *admin_commands, size_t n)
{
    config_manager_carry_out_all(arg, admin_commands, n);
}

/* Carries out the admin commands that the predecessor has handed over. */
static void take_admin_commands(struct proxy *proxy, const struct inherited *inherited)
{
    const char *admin_commands = inherited->admin_commands;
    proxy->succession.has_admin_commands =
        admin_commands != NULL &&
        handover_read(admin_commands, proxy->journal, proxy_carry_out, proxy->manager);
}

/* Opens or inherits all listening sockets. Returns 0, or the exit status. */
static int open_sockets(struct proxy *proxy)
{
    struct inherited *inherited = inherit_find();
    if (inherited == NULL)
        return EXIT_CONFIG;
    proxy->succession.has_answers = inherited->has_answers;
    proxy->succession.fd = inherited->predecessor;
    take_admin_commands(proxy, inherited);
    proxy->nodes = inherited->nodes;
    inherited->nodes = NULL;
    sd_notify_hold(proxy->succession.fd >= 0);
    proxy->listening = listening_open(proxy->config, inherited);
    int status = EXIT_SYSTEM;
    if (proxy->listening != NULL && reporter_open(&proxy->reporter, proxy->config, inherited)) {
        bool is_known = inherit_check(inherited);
        bool is_open = is_known && (proxy->succession.fd >= 0 || reporter_start(&proxy->reporter));
        status = !is_known ? EXIT_CONFIG : is_open ? 0 : EXIT_SYSTEM;
    }
    inherit_free(inherited);
    return status;
}

int proxy_run(const struct config *config, const struct config_file *file,
              struct command_table *builtin, const struct program *program)
{
    struct proxy *proxy = mem_zalloc(1, sizeof *proxy);
    int status = EXIT_SYSTEM;
    proxy->config = config;
    proxy->program = program;
    proxy->reporter.fd = -1;
    proxy->succession = (struct succession){
        .fd = -1, .on_alone = on_alone, .on_may_serve = on_may_serve, .arg = proxy};
    proxy->journal = journal_new();
    proxy->history = history_new();
    proxy->manager = config_manager_new(config, file, builtin, proxy->journal);
    set_upstream(proxy);
    proxy->started_unix_ms = clock_unix_ms();
    proxy->started_ns = clock_ns();
    /*
     * SIGTERM stays blocked until its handler exists. Without the handler SIGTERM would end the
     * process, and the files of unix sockets would stay.
     */
    signals_block(NULL);
    status = open_sockets(proxy);
    if (status == 0)
        status = serve(proxy);
    reporter_close(&proxy->reporter);
    listening_close(proxy->listening);
    dialling_free(proxy->dialling);
    config_manager_free(proxy->manager);
    topology_put(proxy->topology);
    upstream_fini(&proxy->upstream);
    upgrade_fini(&proxy->upgrade);
    history_free(proxy->history);
    journal_free(proxy->journal);
    free(proxy->nodes);
    free(proxy);
    return status;
}
