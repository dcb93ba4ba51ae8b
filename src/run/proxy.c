#include "run/proxy.h"

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/listen.h"
#include "run/worker.h"
#include "upstream/control.h"

#define RESERVED_FILES 32 /* descriptors for listeners, lanes, loops and the log */
#define ADDRESS_TEXT 512

struct proxy {
    const struct config *config;
    struct loop loop; /* the main thread's: signals and the control lane */
    struct upstream upstream;
    char upstream_text[ADDRESS_TEXT];
    struct front_settings settings;
    struct command_table *commands;
    struct policies *policies;
    struct worker_listen *listens; /* worker by worker, n_listens each */
    struct worker **workers;
    struct control *control;
    uv_signal_t on_term;
    uv_signal_t on_int;
    bool is_settled;
    bool is_running;
    bool is_stopping;
};

/* ---- addresses ---- */

static int unix_endpoint(const struct address *address, struct endpoint *out)
{
    struct sockaddr_un *un = (void *)&out->address;
    size_t len = strlen(address->host);
    if (len >= sizeof un->sun_path)
        return -ENAMETOOLONG;
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, address->host, len + 1);
    out->length = sizeof *un;
    return 0;
}

/* NULL, or why the address has no endpoint. */
static const char *resolve(const struct address *address, struct endpoint *out)
{
    memset(out, 0, sizeof *out);
    if (address->is_unix)
        return unix_endpoint(address, out) == 0 ? NULL : "the path of the socket is too long";
    char port[8];
    snprintf(port, sizeof port, "%u", address->port);
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int error = getaddrinfo(address->host, port, &hints, &found);
    if (error != 0)
        return gai_strerror(error);
    memcpy(&out->address, found->ai_addr, found->ai_addrlen);
    out->length = found->ai_addrlen;
    freeaddrinfo(found);
    return NULL;
}

static bool find_upstream(struct proxy *proxy)
{
    const struct config *config = proxy->config;
    address_print(&config->upstream, proxy->upstream_text, sizeof proxy->upstream_text);
    const char *why = resolve(&config->upstream, &proxy->upstream.endpoint);
    if (why != NULL) {
        log_error("upstream %s: %s", proxy->upstream_text, why);
        return false;
    }
    proxy->upstream.text = proxy->upstream_text;
    proxy->upstream.connect_timeout_ns = config->connect_timeout_ns;
    proxy->upstream.timeout_ns = config->upstream_timeout_ns;
    return true;
}

/* ---- listening ---- */

static void say_cannot_listen(const char *where, int error)
{
    const char *remedy = "";
    if (error == EADDRINUSE)
        remedy = ": set listen= in [weir] or stop the other server";
    else if (error == EACCES)
        remedy = ": choose a port above 1023 or a folder that is yours";
    log_error("cannot listen on %s: %s%s", where, error == EADDRINUSE ? "it is in use" : strerror(error), remedy);
}

/* One socket for each worker, or for all of them when it is a unix socket. */
static bool listen_on(struct proxy *proxy, size_t i)
{
    const struct config *config = proxy->config;
    struct address shown = config->listens[i];
    struct endpoint at;
    char text[ADDRESS_TEXT];
    address_print(&shown, text, sizeof text);
    const char *why = resolve(&shown, &at);
    if (why != NULL) {
        log_error("cannot listen on %s: %s", text, why);
        return false;
    }
    int fd = -1;
    for (unsigned w = 0; w < config->workers; w++) {
        if (w == 0 || !shown.is_unix)
            fd = listen_open(&at);
        if (fd < 0) {
            say_cannot_listen(text, -fd);
            return false;
        }
        proxy->listens[w * config->n_listens + i] = (struct worker_listen){fd, shown.is_unix};
    }
    if (!shown.is_unix) {
        char port[8];
        getnameinfo((struct sockaddr *)&at.address, at.length, NULL, 0, port, sizeof port, NI_NUMERICSERV);
        shown.port = (uint16_t)atoi(port);
        address_print(&shown, text, sizeof text);
    }
    log_info("listening on %s", text);
    return true;
}

static bool listen_everywhere(struct proxy *proxy)
{
    const struct config *config = proxy->config;
    size_t n = config->workers * config->n_listens;
    proxy->listens = mem_zalloc(n, sizeof *proxy->listens);
    for (size_t i = 0; i < n; i++)
        proxy->listens[i].fd = -1;
    for (size_t i = 0; i < config->n_listens; i++)
        if (!listen_on(proxy, i))
            return false;
    return true;
}

static void stop_listening(struct proxy *proxy)
{
    const struct config *config = proxy->config;
    for (size_t i = 0; proxy->listens != NULL && i < config->workers * config->n_listens; i++) {
        bool is_first = i < config->n_listens;
        if (proxy->listens[i].fd >= 0 && (is_first || !proxy->listens[i].is_unix))
            close(proxy->listens[i].fd);
    }
    for (size_t i = 0; i < config->n_listens; i++)
        if (config->listens[i].is_unix)
            unlink(config->listens[i].host);
    free(proxy->listens);
}

/* Descriptors for every client, and in lanes = private for its lane too. */
static unsigned fit_clients(const struct config *config)
{
    rlim_t each = config->lanes_private ? 2 : 1;
    rlim_t need = config->max_clients * each + RESERVED_FILES;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
        return config->max_clients;
    limit.rlim_cur = limit.rlim_max < need ? limit.rlim_max : need;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
        return config->max_clients;
    rlim_t fits = limit.rlim_cur > RESERVED_FILES + each ? (limit.rlim_cur - RESERVED_FILES) / each : 1;
    log_warn("max-clients is lowered from %u to %lu: the system allows this process %lu open files (ulimit -n)",
             config->max_clients, (unsigned long)fits, (unsigned long)limit.rlim_cur);
    return (unsigned)fits;
}

/* ---- the upstream, as the control lane sees it ---- */

static void on_table(void *arg, struct command_table *table)
{
    struct proxy *proxy = arg;
    struct policies *policies = policies_rebind(proxy->policies, table);
    command_table_put(proxy->commands);
    policies_put(proxy->policies);
    proxy->commands = table;
    proxy->policies = policies;
    for (unsigned w = 0; proxy->is_running && w < proxy->config->workers; w++)
        worker_adopt(proxy->workers[w], command_table_get(table), policies_get(policies));
}

static void on_barred(void *arg, const char *why)
{
    struct proxy *proxy = arg;
    if (!proxy->is_running)
        log_error("upstream %s cannot be served: %s", proxy->upstream_text, why);
}

static void on_settled(void *arg)
{
    struct proxy *proxy = arg;
    proxy->is_settled = true;
    uv_stop(&proxy->loop.uv);
}

static const struct control_ops control_ops = {
    .on_table = on_table,
    .on_barred = on_barred,
    .on_settled = on_settled,
};

static void start_control(struct proxy *proxy)
{
    const struct credentials credentials = {proxy->config->upstream_user, proxy->config->upstream_password};
    proxy->control = control_open(&proxy->loop, &proxy->upstream, &credentials, &control_ops, proxy);
    while (!proxy->is_settled)
        loop_run(&proxy->loop);
}

/* ---- the life of the process ---- */

/* The main loop ends once all this is closed. */
static void close_main(struct proxy *proxy)
{
    for (unsigned w = 0; proxy->is_running && w < proxy->config->workers; w++)
        worker_stop(proxy->workers[w]);
    control_close(proxy->control);
    uv_close((uv_handle_t *)&proxy->on_term, NULL);
    uv_close((uv_handle_t *)&proxy->on_int, NULL);
    loop_close(&proxy->loop);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct proxy *proxy = handle->data;
    if (proxy->is_stopping)
        return;
    log_info("stopping: %s", number == SIGTERM ? "SIGTERM" : "SIGINT");
    proxy->is_stopping = true;
    if (proxy->is_running)
        close_main(proxy);
    else
        on_settled(proxy);
}

static void watch_signals(struct proxy *proxy)
{
    signal(SIGPIPE, SIG_IGN);
    uv_signal_init(&proxy->loop.uv, &proxy->on_term);
    uv_signal_init(&proxy->loop.uv, &proxy->on_int);
    proxy->on_term.data = proxy;
    proxy->on_int.data = proxy;
    uv_signal_start(&proxy->on_term, on_signal, SIGTERM);
    uv_signal_start(&proxy->on_int, on_signal, SIGINT);
}

static void make_settings(struct proxy *proxy)
{
    const struct config *config = proxy->config;
    proxy->settings = (struct front_settings){
        .lanes_private = config->lanes_private,
        .max_clients = fit_clients(config),
        .output_limit_bytes = config->output_limit_bytes,
        .error_prefix = slice_str(config->error_prefix),
        .identity = config->identity,
        .subjects = subjects_new(config->max_subjects),
        .upstream = &proxy->upstream,
    };
}

static void start_workers(struct proxy *proxy)
{
    const struct config *config = proxy->config;
    proxy->workers = mem_zalloc(config->workers, sizeof *proxy->workers);
    for (unsigned w = 0; w < config->workers; w++)
        proxy->workers[w] = worker_start(&proxy->settings, proxy->listens + w * config->n_listens, config->n_listens,
                                         command_table_get(proxy->commands), policies_get(proxy->policies));
    proxy->is_running = true;
    log_info("forwarding to %s with %u worker%s, lanes %s", proxy->upstream_text, config->workers,
             config->workers == 1 ? "" : "s", config->lanes_private ? "private" : "shared");
    log_info("ready");
}

static int serve(struct proxy *proxy)
{
    loop_init(&proxy->loop);
    watch_signals(proxy);
    start_control(proxy);
    bool is_barred = atomic_load(&proxy->upstream.is_barred);
    if (is_barred || proxy->is_stopping) {
        close_main(proxy);
    } else {
        make_settings(proxy);
        start_workers(proxy);
    }
    loop_run(&proxy->loop);
    for (unsigned w = 0; proxy->is_running && w < proxy->config->workers; w++)
        worker_join(proxy->workers[w]);
    if (proxy->is_running)
        subjects_free(proxy->settings.subjects);
    free(proxy->workers);
    loop_fini(&proxy->loop);
    return is_barred ? 1 : 0;
}

int proxy_run(const struct config *config, struct command_table *builtin)
{
    struct proxy *proxy = mem_zalloc(1, sizeof *proxy);
    proxy->config = config;
    proxy->commands = command_table_get(builtin);
    proxy->policies = policies_get(config->policies);
    int status = find_upstream(proxy) && listen_everywhere(proxy) ? serve(proxy) : 1;
    stop_listening(proxy);
    command_table_put(proxy->commands);
    policies_put(proxy->policies);
    free(proxy);
    return status;
}
