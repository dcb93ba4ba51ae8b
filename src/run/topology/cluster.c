#include "run/topology/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/mem.h"
#include "run/topology/question_pace.h"
#include "upstream/control_reply.h"

/* time-out of a question, as for a sentinel; the list of 1,000 nodes takes less than 10 ms */
#define SILENT_NS (300 * NS_PER_MS)
#define NOBODY_NS (50 * NS_PER_MS) /* interval of retries while no member can be asked (chosen) */
#define URGENT_NS (30 * NS_PER_S)  /* how long lost slots are urgent (chosen) */
#define BROKEN_NS (1 * NS_PER_S)   /* interval of questions when lost slots are no longer urgent */
#define WHY_ROOM sizeof(((struct member *)0)->nodes_why)
#define LINE_ROOM (ADDRESS_TEXT + 256)

enum timer { ASK, TELL, TIMERS };

struct cluster {
    struct loop *loop;
    struct upstream *upstream;
    struct members *members;
    const struct cluster_ops *ops;
    void *arg;
    struct cluster_view *view;
    struct cluster_pace pace;
    struct member *asked; /* the member that was asked and has not answered yet; NULL: none */
    size_t next;          /* the member to ask next if the view names none */
    /* the member of each node of the view, from the last note_members; heap */
    struct member **sorted;
    size_t n_sorted;
    /* since when some slot has no reachable node; 0: all slots have a reachable node */
    uint64_t broken_ns;
    bool is_tls;
    bool is_known; /* a node has answered */
    bool is_started;
    uv_timer_t timers[TIMERS]; /* ASK: the next question, or the time-out of the present question */
    unsigned n_timers;         /* timers that are not closed yet */
};

static void cluster_go_on(struct cluster *cluster);

/* ---- the member of a node ---- */

/* Returns the host to dial; "": unknown. */
static const char *cluster_host_of(const struct cluster *cluster,
                                   const struct cluster_view_node *node)
{
    bool is_by_name = node->hostname[0] != '\0' && (cluster->is_tls || node->host[0] == '\0');
    return is_by_name ? node->hostname : node->host;
}

/* Sets the address of the node. False: the node has no address. */
static bool cluster_address_of(const struct cluster *cluster, const struct cluster_view_node *node,
                               struct address *address)
{
    *address = (struct address){.host = (char *)(uintptr_t)cluster_host_of(cluster, node),
                                .port = node->port,
                                .is_tls = cluster->is_tls};
    return address->host[0] != '\0' && address->port != 0;
}

struct member *cluster_member(const struct cluster *cluster, size_t number)
{
    return number < cluster->n_sorted ? cluster->sorted[number] : NULL;
}

/* Returns the node's member. NULL: the node has no address, or is not dialled. */
static struct member *find_member(const struct cluster *cluster,
                                  const struct cluster_view_node *node)
{
    struct address address;
    char key[ADDRESS_TEXT];
    if (node->id[0] == '\0' || !cluster_address_of(cluster, node, &address))
        return NULL;
    address_print(&address, key, sizeof key);
    return members_find(cluster->members, key);
}

bool cluster_reads(const struct cluster *cluster, const struct cluster_view_node *node)
{
    return cluster->upstream->reads.reads != READS_MASTER && node->id[0] != '\0' &&
           node->is_replica && node->n_slots == 0 && !node->is_failed && !node->is_candidate &&
           node->master != CLUSTER_NOBODY &&
           cluster_view_node(cluster->view, node->master)->n_slots > 0;
}

void cluster_note_redirect(struct cluster *cluster, uint16_t slot, struct slice host, uint16_t port)
{
    cluster_view_note_redirect(cluster->view, slot, host, port, clock_ns());
}

/* True if commands may go to the node, or if a challenge (cluster_view.h) needs its answer. */
static bool is_used(const struct cluster *cluster, const struct cluster_view_node *node)
{
    return node->id[0] != '\0' && (node->n_slots > 0 || (node->is_candidate && !node->is_replica) ||
                                   cluster_reads(cluster, node));
}

static bool cluster_has_row(const struct topology *topology, const struct member *member)
{
    for (size_t i = 0; i < topology->n_rows; i++)
        if (topology->rows[i].node == finder_node(member->finder))
            return true;
    return false;
}

static void note_members(struct cluster *cluster)
{
    cluster->n_sorted = cluster_view_count(cluster->view);
    cluster->sorted = mem_realloc(cluster->sorted, cluster->n_sorted + 1, sizeof(struct member *));
    for (size_t i = 0; i < cluster->n_sorted; i++)
        cluster->sorted[i] = find_member(cluster, cluster_view_node(cluster->view, i));
}

void cluster_sort_members(struct cluster *cluster, const struct topology *now)
{
    struct members *members = cluster->members;
    if (!cluster->is_known)
        return;
    for (size_t i = 0; i < members->n; i++)
        members->all[i]->is_leaving =
            !members->all[i]->is_entry && !cluster_has_row(now, members->all[i]);
    for (size_t i = 0; i < cluster_view_count(cluster->view); i++) {
        const struct cluster_view_node *node = cluster_view_node(cluster->view, i);
        struct address address;
        char key[ADDRESS_TEXT];
        if (!is_used(cluster, node) || !cluster_address_of(cluster, node, &address))
            continue;
        address_print(&address, key, sizeof key);
        struct member *member = members_find(members, key);
        if (member == NULL)
            member = members_add(members, key, &address);
        member->is_leaving = false;
    }
    note_members(cluster);
}

/* ---- answers ---- */

static void on_tell(uv_timer_t *timer)
{
    struct cluster *cluster = timer->data;
    cluster->ops->on_answer(cluster->arg);
}

/* Calls on_answer in a later iteration: no member may be dropped in a callback of its finder. */
static void tell_soon(struct cluster *cluster)
{
    uv_timer_start(&cluster->timers[TELL], on_tell, 0, 0);
}

/* Ends the question to this member, if one is under way. */
static void cluster_end_question(struct cluster *cluster, const struct member *member,
                                 enum cluster_pace_news news)
{
    if (cluster->asked != member)
        return;
    cluster->asked = NULL;
    cluster_pace_note_answer(&cluster->pace, news);
}

/* Rejects the member's answer, and logs the reason when it changes. */
static void blame(const struct cluster *cluster, struct member *member, const char *why)
{
    char line[LINE_ROOM];
    bool is_news = strncmp(member->nodes_why, why, WHY_ROOM - 1) != 0;
    snprintf(member->nodes_why, sizeof member->nodes_why, "%s", why);
    snprintf(line, sizeof line, "upstream %s does not list the nodes of the cluster: %s",
             member->key, member->nodes_why);
    if (is_news)
        cluster->ops->on_news(cluster->arg, LOG_WARN, line, line);
}

static void cluster_fail(struct cluster *cluster, struct member *member, const char *why)
{
    blame(cluster, member, why);
    cluster_end_question(cluster, member, PACE_SILENT);
}

/*
 * True if the member has answered, all nodes have been asked, and the member is none of the known
 * nodes.
 */
static bool is_foreign(const struct cluster *cluster, const struct member *member)
{
    if (member->node_id[0] == '\0' || cluster_view_wants_another(cluster->view))
        return false;
    for (size_t i = 0; i < cluster_view_count(cluster->view); i++) {
        const struct cluster_view_node *node = cluster_view_node(cluster->view, i);
        if (strcmp(node->id, member->node_id) == 0 && !node->is_candidate)
            return false;
    }
    return true;
}

static void blame_foreign(const struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->members->n; i++)
        if (cluster->members->all[i]->is_entry && is_foreign(cluster, cluster->members->all[i]))
            blame(cluster, cluster->members->all[i],
                  "it belongs to a different cluster than the one that weir serves");
}

static void cluster_take(struct cluster *cluster, struct member *member,
                         const struct cluster_nodes *answer)
{
    bool is_news = cluster_view_take(cluster->view, answer, member->address.host, clock_ns());
    enum cluster_pace_news same =
        cluster_view_wants_another(cluster->view) ? PACE_AGAIN : PACE_SAME;
    cluster->is_known = true;
    memcpy(member->node_id, answer->nodes[answer->myself].id, CLUSTER_ID);
    if (!is_foreign(cluster, member))
        member->nodes_why[0] = '\0';
    blame_foreign(cluster);
    cluster_end_question(cluster, member, is_news ? PACE_NEWS : same);
    if (cluster_view_wants_another(cluster->view))
        cluster_pace_want(&cluster->pace);
}

/* Returns the member of the node. NULL: the member is dropped, or has a new node. */
static struct member *cluster_member_at(const struct cluster *cluster, const struct node *node)
{
    for (size_t i = 0; i < cluster->members->n; i++)
        if (finder_node(cluster->members->all[i]->finder) == node)
            return cluster->members->all[i];
    return NULL;
}

static void cluster_note_lack(struct node *node, enum control_verdict verdict)
{
    if (verdict == CONTROL_DENIED || verdict == CONTROL_NOAUTH)
        node_lacks(node, verdict == CONTROL_NOAUTH ? LACK_USER : LACK_NODES);
    else if (verdict == CONTROL_GOOD)
        node_lacks_no_more(node, LACK_NODES);
}

/* Takes an answer, even after its time-out. */
static void on_nodes(void *arg, struct node *node, struct slice frame, uint64_t asked_ns)
{
    struct cluster *cluster = arg;
    struct cluster_nodes answer;
    char why[WHY_ROOM];
    struct slice text;
    enum control_verdict verdict = control_judge_text(frame, &text);
    (void)asked_ns;
    cluster_note_lack(node, verdict);
    struct member *member = cluster_member_at(cluster, node);
    if (member == NULL)
        return;
    member->has_told = true;
    member->is_mute = false;
    if (verdict != CONTROL_GOOD) {
        snprintf(why, sizeof why, "%.*s", (int)text.len, text.at);
        cluster_fail(cluster, member, why);
    } else if (!cluster_nodes_read(&answer, text, (struct why){why, sizeof why})) {
        cluster_fail(cluster, member, why);
    } else {
        cluster_take(cluster, member, &answer);
        cluster_nodes_fini(&answer);
    }
    tell_soon(cluster);
    cluster_go_on(cluster);
}

/* ---- questions ---- */

static void on_silent(uv_timer_t *timer)
{
    struct cluster *cluster = timer->data;
    struct member *member = cluster->asked;
    if (member != NULL) {
        member->has_told = member->is_mute = true;
        cluster_end_question(cluster, member, PACE_SILENT);
        tell_soon(cluster);
    }
    cluster_go_on(cluster);
}

static uint16_t cluster_number_of(const struct cluster *cluster, const struct member *member)
{
    for (size_t i = 0; i < cluster->n_sorted; i++)
        if (cluster->sorted[i] == member)
            return (uint16_t)i;
    return CLUSTER_NOBODY;
}

/*
 * Asks the member. False: the member is not connected, another question is under way, or the last
 * question is unanswered.
 */
static bool cluster_ask(struct cluster *cluster, struct member *member)
{
    static const struct slice words[] = {SLICE("CLUSTER"), SLICE("NODES")};
    const struct control_question question = {on_nodes, cluster, "CLUSTER NODES"};
    if (!finder_ask(member->finder, words, 2, &question))
        return false;
    cluster->asked = member;
    cluster_view_note_asked(cluster->view, cluster_number_of(cluster, member), clock_ns());
    atomic_store_explicit(&cluster->upstream->is_topology_asked, false, memory_order_release);
    cluster_pace_note_question(&cluster->pace, clock_ns());
    uv_timer_start(&cluster->timers[ASK], on_silent, SILENT_NS / NS_PER_MS, 0);
    return true;
}

/*
 * Asks the next untried entry point. At the start each entry point is asked, so that the log can
 * name wrong entry points.
 */
static bool ask_entry(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->members->n; i++) {
        struct member *member = cluster->members->all[i];
        if (member->is_entry && !member->has_told && cluster_ask(cluster, member))
            return true;
    }
    return false;
}

/* True if the member is connected and will be free for a question soon. */
static bool cluster_is_busy(const struct member *member)
{
    const struct control *control = finder_control(member->finder);
    return control != NULL && control_is_up(control) && !member->is_mute;
}

/* Asks the next node in the order of the view. Nodes that cannot be asked are noted as asked. */
static bool ask_known(struct cluster *cluster)
{
    for (size_t i = cluster_view_count(cluster->view); i > 0; i--) {
        uint16_t number = cluster_view_next(cluster->view);
        if (number == CLUSTER_NOBODY)
            return false;
        struct member *member = cluster_member(cluster, number);
        if (member != NULL && cluster_ask(cluster, member))
            return true;
        if (member != NULL && cluster_is_busy(member))
            return false;
        cluster_view_note_asked(cluster->view, number, clock_ns());
    }
    return false;
}

static bool ask_any(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->members->n; i++) {
        struct member *member = cluster->members->all[cluster->next++ % cluster->members->n];
        if (cluster_ask(cluster, member))
            return true;
    }
    return false;
}

/* True if some slot has no node, or only an unreachable node. */
static bool is_broken(const struct cluster *cluster)
{
    for (size_t i = 0; i < cluster_view_count(cluster->view); i++) {
        const struct cluster_view_node *node = cluster_view_node(cluster->view, i);
        const struct member *member = cluster_member(cluster, i);
        if (node->id[0] != '\0' && node->n_slots > 0 &&
            (node->is_failed || member == NULL || finder_word(member->finder).lost_ns != 0))
            return true;
    }
    return cluster_view_served(cluster->view) < SLOT_COUNT;
}

/*
 * Makes questions urgent while slots have been lost for less than URGENT_NS. Returns the interval
 * of questions without a reason to ask, in ns.
 */
static uint64_t note_urgency(struct cluster *cluster, uint64_t now_ns)
{
    bool is_broken_now = is_broken(cluster);
    uint64_t urgent_ns = upstream_time(cluster->upstream, URGENT_NS);
    if (!is_broken_now)
        cluster->broken_ns = 0;
    else if (cluster->broken_ns == 0)
        cluster->broken_ns = now_ns;
    cluster->pace.is_urgent = is_broken_now && now_ns - cluster->broken_ns < urgent_ns;
    return upstream_time(cluster->upstream, is_broken_now ? BROKEN_NS : CLUSTER_PACE_CALM_NS);
}

static void cluster_on_ask(uv_timer_t *timer)
{
    cluster_go_on(timer->data);
}

/* Asks the next member, or waits until a question is due. */
static void cluster_go_on(struct cluster *cluster)
{
    uint64_t now_ns = clock_ns();
    uint64_t calm_ns = note_urgency(cluster, now_ns);
    if (cluster->asked != NULL || !cluster->is_started)
        return;
    uint64_t due_ns = cluster_pace_due(&cluster->pace, calm_ns, now_ns);
    uint64_t wait_ns = due_ns > now_ns ? due_ns - now_ns : 0;
    if (wait_ns == 0)
        cluster->ops->on_question(cluster->arg);
    if (wait_ns == 0 && (ask_entry(cluster) || ask_known(cluster) || ask_any(cluster)))
        return;
    uv_timer_start(&cluster->timers[ASK], cluster_on_ask,
                   ns_to_ms_up(wait_ns > 0 ? wait_ns : NOBODY_NS), 0);
}

/* True if some entry point is connected and has not been asked yet. */
static bool has_entry_left(const struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->members->n; i++) {
        const struct member *member = cluster->members->all[i];
        if (member->is_entry && !member->has_told && finder_control(member->finder) != NULL &&
            control_is_up(finder_control(member->finder)))
            return true;
    }
    return false;
}

/* Checks whether the next question is due earlier than planned. */
static void cluster_hasten(struct cluster *cluster)
{
    if (has_entry_left(cluster))
        cluster_pace_want(&cluster->pace);
    cluster_go_on(cluster);
}

void cluster_want(struct cluster *cluster)
{
    cluster_pace_want(&cluster->pace);
    cluster_hasten(cluster);
}

void cluster_note_member(struct cluster *cluster, const struct member *member)
{
    const struct control *control = finder_control(member->finder);
    if (cluster->asked == member && (control == NULL || !control_is_up(control)))
        cluster_end_question(cluster, member, PACE_SILENT);
    cluster_hasten(cluster);
}

void cluster_forget(struct cluster *cluster, const struct member *member)
{
    cluster_end_question(cluster, member, PACE_SILENT);
    for (size_t i = 0; i < cluster->n_sorted; i++)
        if (cluster->sorted[i] == member)
            cluster->sorted[i] = NULL;
}

/* ---- the present view ---- */

const struct cluster_view *cluster_known(const struct cluster *cluster)
{
    return cluster->view;
}

/* True if the member's first attempt is over, and the member has been asked or is not connected. */
static bool is_tried(const struct member *member)
{
    const struct control *control = finder_control(member->finder);
    return member->is_settled && (member->has_told || control == NULL || !control_is_up(control));
}

bool cluster_is_settled(const struct cluster *cluster)
{
    bool are_tried = true;
    for (size_t i = 0; i < cluster->members->n; i++) {
        const struct member *member = cluster->members->all[i];
        are_tried = are_tried && (cluster->is_known ? member->is_settled : is_tried(member));
    }
    return are_tried;
}

/* ---- words for people ---- */

static bool is_away(const struct cluster *cluster, size_t number)
{
    const struct member *member = cluster_member(cluster, number);
    return member == NULL || finder_word(member->finder).is_lost;
}

static bool serves(const struct cluster_view_node *node)
{
    return node->id[0] != '\0' && node->n_slots > 0;
}

struct cluster_service cluster_words_look(const struct cluster *cluster)
{
    const struct cluster_view *view = cluster_known(cluster);
    struct cluster_service service = {.n_served = cluster_view_served(view)};
    for (size_t i = 0; i < cluster_view_count(view); i++) {
        const struct cluster_view_node *node = cluster_view_node(view, i);
        if (!serves(node))
            continue;
        service.n_masters++;
        if (is_away(cluster, i))
            continue;
        service.n_up += node->n_slots;
    }
    return service;
}

/* Prints "10.0.0.3:7000, 10.0.0.4:7000": masters that cannot be reached. */
static void print_away(const struct cluster *cluster, char *out, size_t room)
{
    const struct cluster_view *view = cluster_known(cluster);
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < cluster_view_count(view) && n < room; i++) {
        const struct cluster_view_node *node = cluster_view_node(view, i);
        if (serves(node) && is_away(cluster, i))
            n += (size_t)snprintf(out + n, room - n, "%s%.100s:%u", n > 0 ? ", " : "",
                                  node->host[0] != '\0' ? node->host : node->hostname,
                                  (unsigned)node->port);
    }
}

static const char *cluster_why_of(const struct member *member)
{
    const struct control *control = finder_control(member->finder);
    if (finder_name_error(member->finder)[0] != '\0')
        return finder_name_error(member->finder);
    if (control != NULL && control_why(control)[0] != '\0')
        return control_why(control);
    if (member->nodes_why[0] != '\0')
        return member->nodes_why;
    return control != NULL && control_is_up(control) ? "it does not answer CLUSTER NODES"
                                                     : "it is away";
}

/* Prints why the nodes are unknown: "10.0.0.1:7000 is away, 10.0.0.2:7000: NOPERM ...". */
static void cluster_explain(const struct cluster *cluster, char *out, size_t room)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < cluster->members->n && n < room; i++)
        n += (size_t)snprintf(out + n, room - n, "%s%.100s: %.160s", i > 0 ? ", " : "",
                              cluster->members->all[i]->key,
                              cluster_why_of(cluster->members->all[i]));
}

bool cluster_words_print(const struct cluster *cluster, char out[CLUSTER_WORDS_ROOM])
{
    char away[CLUSTER_WORDS_ROOM / 2];
    struct cluster_service service = cluster_words_look(cluster);
    if (!cluster->is_known) {
        size_t n = (size_t)snprintf(out, CLUSTER_WORDS_ROOM,
                                    "no node has listed the nodes of the cluster: ");
        cluster_explain(cluster, out + n, CLUSTER_WORDS_ROOM - n);
        return false;
    }
    if (service.n_up == SLOT_COUNT) {
        snprintf(out, CLUSTER_WORDS_ROOM, "%zu master%s serve%s all %d slots", service.n_masters,
                 service.n_masters == 1 ? "" : "s", service.n_masters == 1 ? "s" : "", SLOT_COUNT);
        return true;
    }
    size_t n = (size_t)snprintf(out, CLUSTER_WORDS_ROOM, "%zu of %d slots are served", service.n_up,
                                SLOT_COUNT);
    if (service.n_served < SLOT_COUNT)
        n += (size_t)snprintf(out + n, CLUSTER_WORDS_ROOM - n, "; no node serves %zu",
                              SLOT_COUNT - service.n_served);
    print_away(cluster, away, sizeof away);
    if (away[0] != '\0')
        snprintf(out + n, CLUSTER_WORDS_ROOM - n, "; %zu slots are away with %s",
                 service.n_served - service.n_up, away);
    return false;
}

/* ---- the life of a cluster ---- */

static uint64_t cluster_draw_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        seed = clock_ns();
    return seed | 1;
}

struct cluster *cluster_open(struct loop *loop, struct upstream *upstream, struct members *members,
                             const struct cluster_ops *ops, void *arg)
{
    struct cluster *cluster = mem_zalloc(1, sizeof *cluster);
    cluster->loop = loop;
    cluster->upstream = upstream;
    cluster->members = members;
    cluster->ops = ops;
    cluster->arg = arg;
    cluster->view = cluster_view_new();
    cluster->pace.random = cluster_draw_seed();
    cluster->is_tls = members->all[0]->address.is_tls;
    for (size_t i = 0; i < members->n; i++)
        members->all[i]->is_entry = true;
    cluster->n_timers = TIMERS;
    for (unsigned i = 0; i < TIMERS; i++) {
        uv_timer_init(&loop->uv, &cluster->timers[i]);
        cluster->timers[i].data = cluster;
    }
    return cluster;
}

void cluster_start(struct cluster *cluster)
{
    cluster->is_started = true;
    cluster_go_on(cluster);
}

static void cluster_on_timer_closed(uv_handle_t *handle)
{
    struct cluster *cluster = handle->data;
    if (--cluster->n_timers > 0)
        return;
    cluster_view_free(cluster->view);
    free(cluster->sorted);
    free(cluster);
}

void cluster_close(struct cluster *cluster)
{
    for (unsigned i = 0; i < TIMERS; i++)
        uv_close((uv_handle_t *)&cluster->timers[i], cluster_on_timer_closed);
}
