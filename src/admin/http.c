#include "admin/http.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "admin/host.h"
#include "admin/metrics.h"
#include "admin/stats.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/process.h"
#include "base/slice.h"

/* above this number of connections, each connection gets less time (chosen) */
#define GUESTS_MANY (HTTP_GUESTS / 2)
#define GUEST_NS (10 * NS_PER_S) /* time for a request and its answer (chosen) */
/* time for a request and its answer, above GUESTS_MANY connections (chosen) */
#define HURRIED_GUEST_NS (1 * NS_PER_S)
#define GUEST_IDLE_S 10
#define GUEST_BYTES 8192         /* memory for the head of a request and of the answer (chosen) */
#define STALE_NS (10 * NS_PER_S) /* age of a snapshot that means the main thread hangs (chosen) */

struct guest {
    struct list in_http;
    int fd;
    uint64_t since_ns;
    bool is_ended;
};

struct http {
    struct MHD_Daemon *daemon;
    int fd;      /* the listening socket */
    char *hosts; /* host names that requests may name in Host */
    bool is_quiesced;
    pthread_mutex_t lock;    /* protects the fields below; held briefly */
    struct snapshot *latest; /* NULL: no snapshot yet */
    struct list guests;
    size_t n_guests;
};

/* ---- files of the page: the assembler includes them, and browsers get the exact content ---- */

#define FILE_OF(name) ".incbin \"src/admin/page/" name "\"\n"
#define EMBED(name, files)                                                                         \
    __asm__(".section .rodata\n"                                                                   \
            "page_" #name "_begin:\n" files "page_" #name "_end:\n"                                \
            ".text\n");                                                                            \
    extern const char page_##name##_begin[], page_##name##_end[];                                  \
    static struct slice page_##name(void)                                                          \
    {                                                                                              \
        return slice_of(page_##name##_begin, (size_t)(page_##name##_end - page_##name##_begin));   \
    }

EMBED(html, FILE_OF("page.html"))
EMBED(css, FILE_OF("page.css"))
EMBED(js, FILE_OF("figures.js") FILE_OF("charts.js") FILE_OF("table.js") FILE_OF("rows.js")
              FILE_OF("page.js"))

/* ---- pages ---- */

struct answer {
    struct text text;
    unsigned status;
    const char *type;
};

#define TYPE_PLAIN "text/plain; charset=utf-8"
#define TYPE_HTML "text/html; charset=utf-8"

static void http_fail(struct answer *answer, unsigned status, const char *text)
{
    answer->status = status;
    answer->type = TYPE_PLAIN;
    text_print(&answer->text, "%s\n", text);
}

static bool is_csv_wanted(struct MHD_Connection *connection)
{
    const char *format = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "format");
    return format != NULL && strcmp(format, "csv") == 0;
}

static void show_metrics(struct answer *answer, const struct snapshot *snapshot,
                         struct MHD_Connection *connection)
{
    const char *only = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "name");
    answer->type = "text/plain; version=0.0.4; charset=utf-8";
    metrics_write(&answer->text, snapshot, METRICS_TEXT, only);
}

/* Reads the query ?history=. False if the query is invalid. */
static bool find_history(struct MHD_Connection *connection, uint64_t *after)
{
    const char *wanted = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "history");
    int64_t number = 0;
    *after = STATS_NO_HISTORY;
    if (wanted == NULL)
        return true;
    if (!num_parse(slice_str(wanted), &number) || number < 0)
        return false;
    *after = (uint64_t)number;
    return true;
}

static void show_stats(struct answer *answer, const struct snapshot *snapshot,
                       struct MHD_Connection *connection)
{
    uint64_t after;
    bool is_csv = is_csv_wanted(connection);
    answer->type = is_csv ? "text/csv; charset=utf-8" : "application/json";
    if (is_csv)
        metrics_write(&answer->text, snapshot, METRICS_CSV, NULL);
    else if (find_history(connection, &after))
        stats_write(&answer->text, snapshot, after);
    else
        http_fail(answer, MHD_HTTP_BAD_REQUEST,
                  "history takes the number of a point, and returns the points after "
                  "it: 0 returns all");
}

static void show_health(struct answer *answer, const struct snapshot *snapshot,
                        struct MHD_Connection *connection)
{
    (void)snapshot;
    (void)connection;
    text_add(&answer->text, SLICE("ok\n"));
}

static void show_readiness(struct answer *answer, const struct snapshot *snapshot,
                           struct MHD_Connection *connection)
{
    (void)connection;
    const char *why = snapshot->not_ready;
    if (clock_ns() > snapshot->taken_ns + STALE_NS)
        why = "the main thread has not reported for 10 s";
    answer->status = why[0] == '\0' ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE;
    if (why[0] == '\0' && snapshot->partly[0] != '\0')
        text_print(&answer->text, "ready: %s\n", snapshot->partly);
    else
        text_print(&answer->text, "%s\n", why[0] == '\0' ? "ready" : why);
}

static const struct page {
    const char *path;
    void (*show)(struct answer *answer, const struct snapshot *snapshot,
                 struct MHD_Connection *connection);
    struct slice (*file)(void); /* returns a constant file of type `type`; used instead of `show` */
    const char *type;
} pages[] = {
    {"/", .file = page_html, .type = TYPE_HTML},
    {"/page.css", .file = page_css, .type = "text/css; charset=utf-8"},
    {"/page.js", .file = page_js, .type = "text/javascript; charset=utf-8"},
    {"/metrics", .show = show_metrics},
    {"/healthz", .show = show_health},
    {"/readyz", .show = show_readiness},
    {"/api/v1/stats", .show = show_stats},
};

#define N_PAGES (sizeof pages / sizeof pages[0])

static const struct page *find_page(const char *path)
{
    for (size_t i = 0; i < N_PAGES; i++)
        if (strcmp(path, pages[i].path) == 0)
            return &pages[i];
    return NULL;
}

static struct snapshot *latest(struct http *http)
{
    pthread_mutex_lock(&http->lock);
    struct snapshot *snapshot = http->latest != NULL ? snapshot_get(http->latest) : NULL;
    pthread_mutex_unlock(&http->lock);
    return snapshot;
}

/* ---- requests ---- */

/* True if the request names a known host. A request without Host does not come from a browser. */
static bool http_is_meant(const struct http *http, struct MHD_Connection *connection)
{
    const char *host =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    return host == NULL || host_is_known(slice_str(host), slice_str(http->hosts));
}

static void http_make(struct answer *answer, struct http *http, struct MHD_Connection *connection,
                      const char *path, const char *method)
{
    const struct page *page = find_page(path);
    struct snapshot *snapshot = latest(http);
    if (!http_is_meant(http, connection))
        http_fail(
            answer, MHD_HTTP_MISDIRECTED_REQUEST,
            "weir does not serve this host name: use an address, or set host = NAME in [admin]");
    else if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        http_fail(answer, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are supported");
    else if (page == NULL)
        http_fail(answer, MHD_HTTP_NOT_FOUND,
                  "no such page: try /, /metrics, /healthz, /readyz or /api/v1/stats");
    else if (snapshot == NULL && page->show != show_health)
        http_fail(answer, MHD_HTTP_SERVICE_UNAVAILABLE, "starting");
    else if (page->show != NULL)
        page->show(answer, snapshot, connection);
    else {
        answer->type = page->type;
        text_add(&answer->text, page->file());
    }
    snapshot_put(snapshot);
}

#define NOTHING "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/*
 * Returns the Content-Security-Policy of an answer of this type. Only the page may load and run
 * code, and only weir's own style and script, no inline code. The script can write only text
 * (trusted types).
 */
static const char *http_policy_of(const char *type)
{
    return strcmp(type, TYPE_HTML) != 0 ? NOTHING
                                        : NOTHING
               "; style-src 'self'; script-src 'self'; connect-src 'self'; img-src "
               "data:; require-trusted-types-for 'script'; trusted-types 'none'";
}

static enum MHD_Result send_answer(struct MHD_Connection *connection, struct answer *answer)
{
    static const char *const headers[][2] = {
        {MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"},
        {MHD_HTTP_HEADER_CONNECTION, "close"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
    };
    struct MHD_Response *response =
        MHD_create_response_from_buffer(answer->text.len, answer->text.at, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        text_fini(&answer->text);
        return MHD_NO;
    }
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        MHD_add_response_header(response, headers[i][0], headers[i][1]);
    MHD_add_response_header(response, "Content-Security-Policy", http_policy_of(answer->type));
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type);
    if (answer->status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    enum MHD_Result result = MHD_queue_response(connection, answer->status, response);
    MHD_destroy_response(response);
    return result;
}

/* Answers when the header of a request has been read. The server does not read a body. */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **context)
{
    (void)version;
    (void)upload;
    (void)upload_size;
    (void)context;
    struct answer answer = {.status = MHD_HTTP_OK, .type = TYPE_PLAIN};
    http_make(&answer, arg, connection, url, method);
    if (!answer.text.is_broken)
        return send_answer(connection, &answer);
    text_fini(&answer.text);
    return MHD_NO; /* out of memory: the connection is closed */
}

/* ---- connections ---- */

static void come(struct http *http, struct MHD_Connection *connection, void **context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    int fd = info != NULL ? info->connect_fd : -1;
    struct guest *guest = calloc(1, sizeof *guest);
    if (guest == NULL) {
        shutdown(fd, SHUT_RDWR); /* out of memory: end_slow could not close this connection */
        return;
    }
    guest->fd = fd;
    guest->since_ns = clock_ns();
    pthread_mutex_lock(&http->lock);
    list_push(&http->guests, &guest->in_http);
    http->n_guests++;
    pthread_mutex_unlock(&http->lock);
    *context = guest;
}

/*
 * Forgets the connection. The descriptor is still open, so no other connection has the same number.
 */
static void http_go(struct http *http, void **context)
{
    struct guest *guest = *context;
    pthread_mutex_lock(&http->lock);
    list_take(&guest->in_http);
    http->n_guests--;
    pthread_mutex_unlock(&http->lock);
    free(guest);
    *context = NULL;
}

static void on_connection(void *arg, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        come(arg, connection, context);
    else if (*context != NULL)
        http_go(arg, context);
}

/* Closes connections that are open for too long. The list is ordered by age. */
static void end_slow(struct http *http, uint64_t now_ns)
{
    uint64_t may_ns = http->n_guests > GUESTS_MANY ? HURRIED_GUEST_NS : GUEST_NS;
    for (struct list *at = http->guests.next; at != &http->guests; at = at->next) {
        struct guest *guest = container_of(at, struct guest, in_http);
        if (guest->is_ended || now_ns < guest->since_ns + may_ns)
            continue;
        guest->is_ended = true;
        shutdown(guest->fd, SHUT_RDWR);
    }
}

/* ---- start and stop ---- */

void http_publish(struct http *http, struct snapshot *snapshot)
{
    pthread_mutex_lock(&http->lock);
    struct snapshot *older = http->latest;
    http->latest = snapshot;
    end_slow(http, clock_ns());
    pthread_mutex_unlock(&http->lock);
    snapshot_put(older);
}

struct http *http_start(int fd, const char *hosts)
{
    struct http *http = mem_zalloc(1, sizeof *http);
    http->fd = fd;
    http->hosts = mem_strndup(hosts != NULL ? hosts : "", hosts != NULL ? strlen(hosts) : 0);
    list_init(&http->guests);
    pthread_mutex_init(&http->lock, NULL);
    sigset_t before;
    signals_block(&before);
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC, 0, NULL, NULL, on_request, http,
        MHD_OPTION_LISTEN_SOCKET, (MHD_socket)fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)HTTP_GUESTS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)GUEST_IDLE_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)GUEST_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_END);
    signals_restore(&before);
    if (http->daemon != NULL)
        return http;
    close(fd);
    pthread_mutex_destroy(&http->lock);
    free(http->hosts);
    free(http);
    return NULL;
}

void http_quiesce(struct http *http)
{
    if (!http->is_quiesced)
        (void)MHD_quiesce_daemon(http->daemon);
    http->is_quiesced = true;
}

void http_stop(struct http *http)
{
    if (http == NULL)
        return;
    /*
     * without http_quiesce, MHD_stop_daemon would shut the socket down, also for processes that
     * share the socket
     */
    http_quiesce(http);
    MHD_stop_daemon(http->daemon);
    close(http->fd);
    snapshot_put(http->latest);
    pthread_mutex_destroy(&http->lock);
    free(http->hosts);
    free(http);
}
