#include "run/topology/finder.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "upstream/login/auth_probe.h"
#include "upstream/node/backoff.h"

/* after this silence of an address the next address is dialled beside it (RFC 8305) */
#define NEXT_MS 250
#define ASK_NS NS_PER_S /* least time between two role questions, and between two lookups */
/*
 * longest interval of questions to a sole server that is a replica; the interval doubles from
 * ASK_NS
 */
#define ASK_REPLICA_NS (30 * NS_PER_S)
#define LINE_ROOM 1024

/* One node, and its control lane. */
struct dial {
    struct finder *finder;
    struct node *node;
    struct control *control; /* NULL: the node has no address */
    bool is_connected, is_greeted, is_settled;
    /* the last connection or attempt has ended, and there is no connection now */
    bool has_failed;
    unsigned failures; /* in a row, since the last greeting */
    uint64_t lost_ns;  /* time of the first of these failures */
    uint64_t said_ns;  /* when the node last reported its role; 0: never */
    char why[128];     /* reason of the last failure */
};

enum timer { STEP, LOOK, QUESTION, START, TIMERS };

struct finder {
    struct loop *loop;
    struct finder_settings settings;
    char *password, *before; /* as in struct credentials; heap */
    const struct finder_ops *ops;
    void *arg;
    char text[ADDRESS_TEXT];
    struct resolver *resolver; /* NULL: the address is no name */
    /* why the address may not be dialled (static); NULL: no reason */
    const char *refusal;
    struct resolved known; /* the addresses of the last successful lookup */
    /* address of the most recently demoted server; length 0: none */
    struct endpoint avoided;
    struct finder_try tries[RESOLVER_MOST]; /* results of the addresses in `known` */
    char failures[LINE_ROOM / 2];           /* failures of the last failed round, as logged */
    char name_error[128];                   /* error of the last lookup; "": success */
    struct dial *now;
    struct dial *trials[RESOLVER_MOST]; /* the dials of this round */
    unsigned n_trials;
    struct finder_word past; /* last report of the most recently demoted server */
    unsigned next;           /* index of the next address to dial in this round */
    uint64_t dialled_ns;     /* when the last address was dialled */
    uint64_t looked_ns, asked_ns;
    uint64_t ask_every_ns;
    uv_timer_t timers[TIMERS];
    uint64_t step_ns;  /* when the STEP timer is due, while it runs */
    unsigned n_timers; /* timers that are not closed yet */
    struct auth_probe *probe;
    bool probes;
    bool is_round;  /* addresses are being dialled */
    bool must_move; /* the node in use must be given up, whatever it answers */
    bool is_started, is_settled;
};

static void finder_wake(struct finder *finder, uint64_t ms);
static void finder_look_up(struct finder *finder);

/* ---- dials ---- */

static uint64_t time_of(const struct finder *finder, uint64_t ns)
{
    return upstream_time(finder->settings.upstream, ns);
}

static struct node *make_node(const struct finder *finder, const struct endpoint *endpoint,
                              const struct node *before)
{
    char address[ENDPOINT_TEXT] = "";
    if (endpoint->length > 0)
        endpoint_print(endpoint, address);
    return node_new(&(struct node_origin){.upstream = finder->settings.upstream,
                                          .text = finder->text,
                                          .server_name = finder->settings.address->host,
                                          .address = address,
                                          .endpoint = *endpoint,
                                          .before = before,
                                          .kin = finder->settings.kin});
}

/* Makes a dial without a connection. */
static struct dial *new_dial(struct finder *finder, const struct endpoint *endpoint)
{
    struct dial *dial = mem_zalloc(1, sizeof *dial);
    dial->finder = finder;
    dial->node = make_node(finder, endpoint, finder->now != NULL ? finder->now->node : NULL);
    return dial;
}

static void free_dial(struct dial *dial)
{
    if (dial->control != NULL)
        control_close(dial->control);
    node_put(dial->node);
    free(dial);
}

static bool is_now(const struct dial *dial)
{
    return dial->finder->now == dial;
}

static void finder_on_connected(void *arg)
{
    struct dial *dial = arg;
    dial->is_connected = true;
    dial->has_failed = false;
}

static void on_greeted(void *arg)
{
    struct dial *dial = arg;
    dial->is_greeted = true;
    dial->failures = 0;
    dial->why[0] = '\0';
    finder_wake(dial->finder, 0);
}

static void on_role(void *arg)
{
    struct dial *dial = arg;
    struct finder *finder = dial->finder;
    bool is_left_alone =
        node_role(dial->node) == ROLE_REPLICA && finder->settings.kind == FINDER_ALONE;
    dial->said_ns = clock_ns();
    if (!is_now(dial))
        return;
    uint64_t longer_ns = 2 * finder->ask_every_ns;
    finder->ask_every_ns = !is_left_alone               ? ASK_NS
                           : longer_ns < ASK_REPLICA_NS ? longer_ns
                                                        : ASK_REPLICA_NS;
    if (node_is_demoted(dial->node))
        finder_wake(finder, 0);
    finder->ops->on_word(finder->arg);
}

static void finder_on_failed(void *arg, const char *why)
{
    struct dial *dial = arg;
    dial->has_failed = true;
    snprintf(dial->why, sizeof dial->why, "%s", why);
    if (dial->failures++ == 0)
        dial->lost_ns = clock_ns();
    finder_wake(dial->finder, 0);
    if (!is_now(dial))
        return;
    finder_look_up(dial->finder);
    dial->finder->ops->on_word(dial->finder->arg);
}

static void finder_settle(struct finder *finder)
{
    if (finder->is_settled)
        return;
    finder->is_settled = true;
    finder->ops->on_settled(finder->arg);
}

static void finder_on_settled(void *arg)
{
    struct dial *dial = arg;
    dial->is_settled = true;
    if (is_now(dial))
        finder_settle(dial->finder);
}

static void finder_on_table(void *arg, struct command_table *table)
{
    const struct dial *dial = arg;
    if (is_now(dial))
        dial->finder->ops->on_table(dial->finder->arg, table);
    else
        command_table_put(table);
}

static void finder_on_rejected(void *arg, const char *why)
{
    const struct dial *dial = arg;
    dial->finder->ops->on_rejected(dial->finder->arg, why);
}

static void finder_on_maxclients(void *arg)
{
    const struct dial *dial = arg;
    dial->finder->ops->on_maxclients(dial->finder->arg);
}

static void on_pulse(void *arg, enum log_level level, const char *line)
{
    const struct dial *dial = arg;
    char about[LINE_ROOM]; /* the line without the seconds in parentheses */
    snprintf(about, sizeof about, "%.*s", (int)strcspn(line, "("), line);
    if (is_now(dial))
        dial->finder->ops->on_news(dial->finder->arg, level, about, line);
}

static const struct control_ops control_ops = {
    .on_connected = finder_on_connected,
    .on_greeted = on_greeted,
    .on_role = on_role,
    .on_failed = finder_on_failed,
    .on_table = finder_on_table,
    .on_rejected = finder_on_rejected,
    .on_maxclients = finder_on_maxclients,
    .on_settled = finder_on_settled,
    .on_pulse = on_pulse,
};

static void connect_dial(struct dial *dial, bool is_trial)
{
    struct finder *finder = dial->finder;
    const struct credentials credentials = {finder->settings.credentials.user, finder->password,
                                            finder->before, finder->settings.credentials.number};
    dial->control =
        control_open(finder->loop, dial->node, &credentials, is_trial, &control_ops, dial);
}

/* ---- log lines ---- */

__attribute__((format(printf, 3, 4))) static void tell(const struct finder *finder,
                                                       enum log_level level, const char *format,
                                                       ...)
{
    char line[LINE_ROOM];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    finder->ops->on_news(finder->arg, level, line, line);
}

static void note_tries(struct finder *finder)
{
    for (unsigned i = 0; i < finder->n_trials; i++)
        for (unsigned j = 0; j < finder->known.n; j++)
            if (strcmp(finder->tries[j].address, finder->trials[i]->node->address) == 0)
                snprintf(finder->tries[j].why, sizeof finder->tries[j].why, "%s",
                         finder->trials[i]->why);
}

/* Prints "10.0.0.1:6379: connection refused, 10.0.0.2:6379: ...": the failed addresses. */
static void print_failures(const struct finder *finder, char *out, size_t room)
{
    size_t n = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < finder->n_trials; i++)
        if (finder->trials[i]->why[0] != '\0' && n < room)
            n += (size_t)snprintf(out + n, room - n, "%s%s: %s", n > 0 ? ", " : "",
                                  finder->trials[i]->node->address, finder->trials[i]->why);
}

/* ---- changing the node ---- */

static void probe_now(struct finder *finder)
{
    auth_probe_close(finder->probe);
    finder->probe = finder->probes && finder->now->control != NULL
                        ? auth_probe_open(finder->loop, finder->now->node)
                        : NULL;
}

static void finder_become(struct finder *finder, struct dial *dial)
{
    struct dial *before = finder->now;
    if (node_role(before->node) == ROLE_REPLICA && node_role(dial->node) == ROLE_MASTER)
        node_demote(before->node);
    finder->now = dial;
    finder->ask_every_ns = ASK_NS;
    probe_now(finder);
    finder->ops->on_node(finder->arg);
    free_dial(before);
}

static void end_round(struct finder *finder)
{
    note_tries(finder);
    for (unsigned i = 0; i < finder->n_trials; i++)
        free_dial(finder->trials[i]);
    finder->n_trials = 0;
    finder->is_round = false;
}

static void tell_moved(const struct finder *finder, const struct dial *dial)
{
    char failures[LINE_ROOM / 2];
    const char *before = finder->now->node->address;
    print_failures(finder, failures, sizeof failures);
    const char *role = node_role(dial->node) == ROLE_REPLICA ? ", a replica" : "";
    const char *tried = failures[0] != '\0' ? "; failed before: " : "";
    if (finder->settings.kind == FINDER_MEMBER && finder->resolver == NULL)
        return; /* a fixed address has not moved */
    if (strcmp(before, dial->node->address) == 0 || before[0] == '\0')
        tell(finder, LOG_INFO, "upstream %s is at %s%s%s%s", finder->text, dial->node->address,
             role, tried, failures);
    else
        tell(finder, LOG_WARN, "upstream %s has moved from %s to %s%s%s%s", finder->text, before,
             dial->node->address, role, tried, failures);
}

static void win(struct finder *finder, unsigned i)
{
    struct dial *dial = finder->trials[i];
    if (!dial->is_connected)
        log_at(LOG_SITE_CONTROL, LOG_WARN, "upstream %s: the control connection failed: %s",
               finder->text, dial->why);
    else
        tell_moved(finder, dial);
    note_tries(finder);
    finder->trials[i] = finder->trials[--finder->n_trials];
    finder->must_move = false;
    finder->failures[0] = '\0';
    end_round(finder);
    finder_become(finder, dial);
    control_adopt(dial->control);
    if (control_why(dial->control)[0] != '\0')
        finder_on_rejected(dial, control_why(dial->control));
    if (dial->is_settled)
        finder_settle(finder);
}

static void demote(struct finder *finder)
{
    const struct endpoint nowhere = {.length = 0};
    finder->past = finder_word(finder);
    if (finder->settings.kind == FINDER_ALONE)
        tell(finder, LOG_WARN,
             "upstream %s: %s is no longer a master but a replica: weir closes its connections "
             "there",
             finder->text, finder->now->node->address);
    end_round(finder);
    finder->must_move = true;
    finder->avoided = finder->now->node->endpoint;
    finder_become(finder, new_dial(finder, &nowhere));
    finder_look_up(finder);
}

void finder_give_up(struct finder *finder)
{
    node_demote(finder->now->node);
    demote(finder);
}

void finder_renew(struct finder *finder)
{
    struct dial *dial = new_dial(finder, &finder->now->node->endpoint);
    if (node_has_address(dial->node))
        connect_dial(dial, false);
    end_round(finder);
    finder_become(finder, dial);
}

/* ---- a round: dialling each address ---- */

static bool finder_is_same(const struct endpoint *a, const struct endpoint *b)
{
    return a->length == b->length && memcmp(&a->address, &b->address, a->length) == 0;
}

static bool finder_is_known(const struct finder *finder, const struct endpoint *endpoint)
{
    for (unsigned i = 0; i < finder->known.n; i++)
        if (finder_is_same(&finder->known.endpoints[i], endpoint))
            return true;
    return false;
}

/* True if the node in use may stay, by what is known. */
static bool finder_may_stay(const struct finder *finder)
{
    const struct dial *now = finder->now;
    return !finder->must_move && now->control != NULL &&
           finder_is_known(finder, &now->node->endpoint);
}

/*
 * Returns the i-th address to dial: in the order of the lookup, but the most recently demoted
 * server comes last.
 */
static const struct endpoint *in_order(const struct finder *finder, unsigned i)
{
    const struct resolved *known = &finder->known;
    unsigned avoided = 0;
    while (avoided < known->n && !finder_is_same(&known->endpoints[avoided], &finder->avoided))
        avoided++;
    if (avoided == known->n || i < avoided)
        return &known->endpoints[i];
    return &known->endpoints[i + 1 < known->n ? i + 1 : avoided];
}

/* Dials the next address that is not the present node's. False: no such address is left. */
static bool dial_next(struct finder *finder)
{
    while (finder->next < finder->known.n) {
        const struct endpoint *endpoint = in_order(finder, finder->next++);
        if (finder_may_stay(finder) && finder_is_same(endpoint, &finder->now->node->endpoint))
            continue;
        struct dial *dial = new_dial(finder, endpoint);
        finder->trials[finder->n_trials++] = dial;
        finder->dialled_ns = clock_ns();
        connect_dial(dial, true);
        return true;
    }
    return false;
}

/* Returns the index of the trial that becomes the node; n_trials: no trial has won yet. */
static unsigned finder_find_winner(const struct finder *finder, bool are_all_dialled,
                                   bool is_patience_over)
{
    unsigned best = finder->n_trials;
    unsigned n_pending = 0;
    for (unsigned i = finder->n_trials; i > 0; i--) {
        const struct dial *dial = finder->trials[i - 1];
        n_pending += !dial->has_failed && !dial->is_greeted;
        if (dial->is_greeted && !dial->has_failed && node_role(dial->node) != ROLE_REPLICA)
            return i - 1;
        /* second choice: a server that accepted the connection and then rejected weir */
        bool is_better =
            best == finder->n_trials || dial->is_greeted || !finder->trials[best]->is_greeted;
        if (dial->is_connected && is_better)
            best = i - 1;
    }
    return are_all_dialled && (n_pending == 0 || is_patience_over) ? best : finder->n_trials;
}

static bool has_pending(const struct finder *finder)
{
    for (unsigned i = 0; i < finder->n_trials; i++)
        if (!finder->trials[i]->has_failed)
            return true;
    return false;
}

static void give_up_round(struct finder *finder)
{
    char failures[LINE_ROOM / 2];
    print_failures(finder, failures, sizeof failures);
    if (finder->n_trials > 0 && strcmp(failures, finder->failures) != 0)
        log_at(LOG_SITE_CONTROL, LOG_WARN, "upstream %s: none of its other addresses answers: %s",
               finder->text, failures);
    snprintf(finder->failures, sizeof finder->failures, "%s", failures);
    end_round(finder);
    if (!finder_may_stay(finder))
        finder_wake(finder, time_of(finder, ASK_NS) / NS_PER_MS);
}

static void finder_go_on(struct finder *finder)
{
    uint64_t since_ns = clock_ns() - finder->dialled_ns;
    bool is_patience_over = since_ns >= NEXT_MS * NS_PER_MS;
    unsigned winner = finder_find_winner(finder, finder->next >= finder->known.n, is_patience_over);
    if (winner < finder->n_trials) {
        win(finder, winner);
        return;
    }
    bool is_next = !has_pending(finder) || is_patience_over;
    if ((is_next && dial_next(finder)) || has_pending(finder))
        finder_wake(finder, NEXT_MS);
    else if (finder->now->control == NULL && finder->n_trials > 0)
        win(finder, 0); /* workers then try the server, too */
    else
        give_up_round(finder);
}

static void begin_round(struct finder *finder)
{
    finder->is_round = true;
    finder->next = 0;
    finder->dialled_ns = 0;
    finder_go_on(finder);
}

/* Begins a round if there is a reason to dial. */
static void consider(struct finder *finder)
{
    const struct dial *now = finder->now;
    if (finder->is_round || finder->known.n == 0)
        return;
    /* a good connection that was lost is first retried by its control lane */
    uint64_t lost_ns = clock_ns() - now->lost_ns;
    bool is_young = now->failures <= 1 && lost_ns < NEXT_MS * NS_PER_MS;
    if (!finder_may_stay(finder) || (now->has_failed && !is_young && finder->known.n > 1))
        begin_round(finder);
    else if (now->has_failed && is_young)
        finder_wake(finder, NEXT_MS - lost_ns / NS_PER_MS);
}

static void on_step(uv_timer_t *timer)
{
    struct finder *finder = timer->data;
    if (node_is_demoted(finder->now->node))
        demote(finder);
    else if (finder->is_round)
        finder_go_on(finder);
    else
        consider(finder);
}

/* Starts the step timer. A timer that is due earlier stays. */
static void finder_wake(struct finder *finder, uint64_t ms)
{
    uv_timer_t *timer = &finder->timers[STEP];
    uint64_t due_ns = clock_ns() + ms * NS_PER_MS;
    if (!finder->is_started || (uv_is_active((uv_handle_t *)timer) && finder->step_ns <= due_ns))
        return;
    finder->step_ns = due_ns;
    uv_timer_start(timer, on_step, ms, 0);
}

/* ---- name lookup ---- */

static void finder_on_look(uv_timer_t *timer)
{
    finder_look_up(timer->data);
}

static void finder_look_in(struct finder *finder, uint64_t ns)
{
    uv_timer_start(&finder->timers[LOOK], finder_on_look, ns / NS_PER_MS + 1, 0);
}

/* Looks the name up now, or as soon as the interval allows. */
static void finder_look_up(struct finder *finder)
{
    if (finder->resolver == NULL) {
        finder_wake(finder, 0);
        return;
    }
    if (resolver_is_looking(finder->resolver))
        return;
    uint64_t now_ns = clock_ns();
    uint64_t due_ns = finder->looked_ns != 0 ? finder->looked_ns + time_of(finder, ASK_NS) : 0;
    if (now_ns < due_ns) {
        finder_look_in(finder, due_ns - now_ns);
        return;
    }
    finder->looked_ns = now_ns;
    resolver_look(finder->resolver);
}

static bool finder_has_changed(const struct finder *finder, const struct resolved *found)
{
    bool has = found->n != finder->known.n;
    for (unsigned i = 0; i < found->n && !has; i++)
        has = !finder_is_known(finder, &found->endpoints[i]);
    return has;
}

static void print_found(const struct finder *finder, char *out, size_t room)
{
    size_t n = 0;
    for (unsigned i = 0; i < finder->known.n && n < room; i++)
        n += (size_t)snprintf(out + n, room - n, "%s%s", i > 0 ? ", " : "",
                              finder->tries[i].address);
}

static void take_found(struct finder *finder, const struct resolved *found)
{
    bool is_news = finder_has_changed(finder, found);
    char line[LINE_ROOM / 2];
    finder->name_error[0] = '\0';
    finder->known = *found;
    if (!is_news)
        return; /* at most the order differs, which name servers vary */
    end_round(finder);
    for (unsigned i = 0; i < found->n; i++) {
        finder->tries[i].why[0] = '\0';
        endpoint_print(&found->endpoints[i], finder->tries[i].address);
    }
    print_found(finder, line, sizeof line);
    tell(finder, LOG_INFO, "upstream %s resolves to %s", finder->text, line);
}

static void finder_take_error(struct finder *finder, const char *why)
{
    if (strcmp(finder->name_error, why) != 0)
        tell(finder, LOG_WARN, "upstream %s: its name cannot be resolved: %s%s%s", finder->text,
             why, finder->known.n > 0 ? "; weir keeps using the last address: " : "",
             finder->known.n > 0 ? finder->now->node->address : "");
    snprintf(finder->name_error, sizeof finder->name_error, "%s", why);
    if (finder->known.n == 0)
        finder_settle(finder); /* weir starts without the node */
}

static void finder_on_resolved(void *arg, const struct resolved *all)
{
    struct finder *finder = arg;
    const struct resolved left = dialling_allowed(finder->settings.dialling, all), *found = &left;
    uint64_t every_ns = finder->settings.resolve_ns;
    if (found->n > 0)
        take_found(finder, found);
    else
        finder_take_error(finder, found->why);
    if (finder->known.n == 0 && (every_ns == 0 || every_ns > ASK_NS))
        every_ns = ASK_NS;
    if (every_ns > 0)
        finder_look_in(finder, time_of(finder, every_ns));
    finder_wake(finder, 0);
}

/* ---- questions ---- */

static void finder_on_question(uv_timer_t *timer)
{
    finder_look(timer->data);
}

void finder_look(struct finder *finder)
{
    struct node *node = finder->now->node;
    if (node_is_demoted(node)) {
        finder_wake(finder, 0);
        return;
    }
    if (!atomic_load_explicit(&node->is_asked, memory_order_acquire))
        return;
    uint64_t now_ns = clock_ns();
    uint64_t due_ns =
        finder->asked_ns != 0 ? finder->asked_ns + time_of(finder, finder->ask_every_ns) : 0;
    if (now_ns < due_ns) {
        uv_timer_start(&finder->timers[QUESTION], finder_on_question,
                       (due_ns - now_ns) / NS_PER_MS + 1, 0);
        return;
    }
    atomic_store_explicit(&node->is_asked, false, memory_order_release);
    finder->asked_ns = now_ns;
    if (finder->now->control != NULL)
        control_ask_role(finder->now->control);
    if (finder->resolver != NULL)
        finder_look_up(finder);
}

/* ---- the life of a finder ---- */

struct finder *finder_open(struct loop *loop, const struct finder_settings *settings,
                           const struct finder_ops *ops, void *arg)
{
    struct finder *finder = mem_zalloc(1, sizeof *finder);
    const struct address *address = settings->address;
    const struct address *to = dialling_target(settings->dialling, address, &finder->refusal);
    struct endpoint endpoint = {.length = 0};
    finder->loop = loop;
    finder->settings = *settings;
    finder_set_password(finder, &settings->credentials);
    finder->ops = ops;
    finder->arg = arg;
    finder->ask_every_ns = ASK_NS;
    address_print(address, finder->text, sizeof finder->text);
    bool is_literal = to != NULL && address_is_literal(to, &endpoint);
    if (is_literal)
        finder->refusal = dialling_refusal(settings->dialling, &endpoint);
    if (finder->refusal != NULL) {
        endpoint.length = 0;
    } else if (is_literal) {
        finder->known = (struct resolved){.endpoints = {endpoint}, .n = 1};
        endpoint_print(&endpoint, finder->tries[0].address);
    } else {
        finder->resolver = resolver_new(loop, to->host, to->port, finder_on_resolved, finder);
    }
    finder->now = new_dial(finder, &endpoint);
    finder->n_timers = TIMERS;
    for (unsigned i = 0; i < TIMERS; i++) {
        uv_timer_init(&loop->uv, &finder->timers[i]);
        finder->timers[i].data = finder;
    }
    return finder;
}

static void finder_take_refusal(struct finder *finder)
{
    tell(finder, LOG_WARN, "upstream %s: weir does not connect: %s", finder->text, finder->refusal);
    snprintf(finder->name_error, sizeof finder->name_error, "%s", finder->refusal);
    finder_settle(finder);
}

/* The lookup takes long: weir starts without the node. */
static void on_start(uv_timer_t *timer)
{
    struct finder *finder = timer->data;
    if (finder->known.n == 0)
        finder_settle(finder);
}

void finder_start(struct finder *finder)
{
    finder->is_started = true;
    if (node_has_address(finder->now->node)) {
        connect_dial(finder->now, false);
        return;
    }
    if (finder->refusal != NULL) {
        finder_take_refusal(finder);
        return;
    }
    finder_look_up(finder);
    uv_timer_start(&finder->timers[START], on_start,
                   finder->settings.upstream->connect_timeout_ns / NS_PER_MS, 0);
}

void finder_probe(struct finder *finder)
{
    finder->probes = true;
    probe_now(finder);
}

static void finder_keep(char **kept, const char *password)
{
    if (*kept != NULL)
        explicit_bzero(*kept, strlen(*kept));
    free(*kept);
    *kept = mem_strdup(password);
}

void finder_set_password(struct finder *finder, const struct credentials *credentials)
{
    finder_keep(&finder->password, credentials->password);
    finder_keep(&finder->before, credentials->before);
    finder->settings.credentials.number = credentials->number;
    if (finder->now != NULL && finder->now->control != NULL)
        control_set_password(finder->now->control, credentials);
    for (unsigned i = 0; i < finder->n_trials; i++)
        control_set_password(finder->trials[i]->control, credentials);
}

struct node *finder_node(const struct finder *finder)
{
    return finder->now->node;
}

const struct control *finder_control(const struct finder *finder)
{
    return finder->now->control;
}

struct finder_word finder_word(const struct finder *finder)
{
    const struct dial *now = finder->now;
    if (now->control == NULL && finder->past.role == ROLE_REPLICA)
        return finder->past; /* the address is about to be dialled anew */
    return (struct finder_word){
        .role = node_role(now->node),
        .is_lost =
            !now->is_greeted || (now->has_failed && now->failures > 1) || node_is_silent(now->node),
        .said_ns = now->said_ns,
        .is_mute =
            (atomic_load_explicit(&now->node->lacks, memory_order_relaxed) >> LACK_USER & 1) != 0,
        .lost_ns = now->has_failed ? now->lost_ns : 0,
    };
}

void finder_ask_role(struct finder *finder)
{
    if (finder->now->control != NULL)
        control_ask_role(finder->now->control);
}

bool finder_ask(struct finder *finder, const struct slice *words, size_t n,
                const struct control_question *question)
{
    struct control *control = finder->now->control;
    return control != NULL && control_ask(control, words, n, question);
}

const char *finder_name_error(const struct finder *finder)
{
    return finder->name_error;
}

bool finder_try(const struct finder *finder, unsigned i, struct finder_try *out)
{
    if (i >= finder->known.n)
        return false;
    endpoint_print(&finder->known.endpoints[i], out->address);
    out->why[0] = '\0';
    for (unsigned j = 0; j < finder->known.n; j++)
        if (strcmp(finder->tries[j].address, out->address) == 0)
            *out = finder->tries[j];
    if (strcmp(out->address, finder->now->node->address) == 0)
        snprintf(out->why, sizeof out->why, "%s", finder->now->why);
    return true;
}

static void finder_on_timer_closed(uv_handle_t *handle)
{
    struct finder *finder = handle->data;
    if (--finder->n_timers > 0)
        return;
    free(finder);
}

void finder_close(struct finder *finder)
{
    end_round(finder);
    free_dial(finder->now);
    finder->now = NULL;
    auth_probe_close(finder->probe);
    resolver_close(finder->resolver);
    finder_set_password(finder, &(struct credentials){0});
    for (unsigned i = 0; i < TIMERS; i++)
        uv_close((uv_handle_t *)&finder->timers[i], finder_on_timer_closed);
}
