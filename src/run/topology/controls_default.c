/* Chooses the master of a replicated upstream. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "run/topology/controls.h"
#include "run/topology/controls_state.h"
#include "run/topology/mastership.h"
#include "run/topology/members.h"
#include "run/topology/sentinels.h"

/* least time between two role questions beside the polls: an answer may cause the next question */
#define ASK_NS (50 * NS_PER_MS)

/* ---- the choice ---- */

static struct mastership_server server_of(const struct member *member)
{
    struct finder_word word = finder_word(member->finder);
    enum mastership_reach reach = word.is_lost ? REACH_LOST : REACH_OK;
    return (struct mastership_server){
        .key = member->key,
        .reach = member->is_settled ? reach : REACH_UNTRIED,
        .role = word.role,
        .said_ns = word.said_ns,
    };
}

static const char *controls_default_word_of(const struct mastership_server *server,
                                            const struct member *member)
{
    static const char *const words[] = {[ROLE_UNKNOWN] = "does not report its role",
                                        [ROLE_MASTER] = "is a master",
                                        [ROLE_REPLICA] = "is a replica"};
    if (server->reach == REACH_OK && server->role == ROLE_UNKNOWN &&
        finder_word(member->finder).is_mute)
        return "does not report its role, because weir has no login there";
    return server->reach != REACH_OK ? "is away" : words[server->role];
}

/* Prints "10.0.0.1:6379 is a replica, 10.0.0.2:6379 is away". */
static size_t controls_default_print_words(const struct mastership_view *view,
                                           const struct members *members, char *out, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < view->n_servers && n < room; i++)
        n += (size_t)snprintf(out + n, room - n, "%s%.100s %s", i > 0 ? ", " : "",
                              view->servers[i].key,
                              controls_default_word_of(&view->servers[i], members->all[i]));
    return n;
}

/*
 * Returns the sentinels' reason for having no master; "": the reason is not one of the sentinels.
 */
static const char *sentinels_part(enum mastership_why why)
{
    switch (why) {
    case MASTERSHIP_NO_CLAIM:
        return "no sentinel names a master";
    case MASTERSHIP_DISAGREE:
        return "the sentinels disagree";
    case MASTERSHIP_AWAITED:
        return "the server that the sentinels name has not reported the role of a master";
    case MASTERSHIP_IS_REPLICA:
        return "the server that the sentinels name reports the role of a replica";
    default:
        return "";
    }
}

static void controls_default_explain(struct choice *choice, const struct mastership_view *view,
                                     const struct members *members)
{
    const char *part = sentinels_part(choice->made.why);
    choice->text[0] = '\0';
    if (choice->default_node != NULL)
        return;
    size_t n = (size_t)snprintf(choice->text, sizeof choice->text, "%s%s", part,
                                part[0] != '\0' && view->n_servers > 0 ? ": " : "");
    (void)controls_default_print_words(view, members, choice->text + n, sizeof choice->text - n);
}

/* The sentinels' answers at one moment, valid for this iteration. Zeroed: no sentinels. */
struct sentinel_view {
    struct mastership_claim claims[SENTINELS_MOST];
    /* the masters that the claims name; NULL: none */
    const struct address *masters[SENTINELS_MOST];
    size_t n;
    size_t n_sentinels; /* known sentinels */
    const struct address *replicas[SENTINELS_REPLICAS_MOST];
    size_t n_replicas;
};

/* Chooses the master anew. *choice: the last choice, or zeroed except its form. */
static void controls_default_choose(struct choice *choice, const struct members *members,
                                    const struct sentinel_view *told, uint64_t now_ns)
{
    struct mastership_server *servers = mem_zalloc(members->n, sizeof *servers);
    for (size_t i = 0; i < members->n; i++)
        servers[i] = server_of(members->all[i]);
    const struct mastership_view view = {
        .form = choice->form,
        .servers = servers,
        .n_servers = members->n,
        .claims = told->claims,
        .n_claims = told->n,
        .n_sentinels = told->n_sentinels,
        .before = {choice->named[0] != '\0' ? choice->named : NULL, choice->made.epoch,
                   choice->made.changed_ns},
        .now_ns = now_ns,
    };
    const struct mastership_choice made = mastership_choose(&view);
    choice->default_node = members_find(members, made.default_node);
    choice->asked = members_find(members, made.ask);
    if (made.named != choice->named)
        snprintf(choice->named, sizeof choice->named, "%s", made.named != NULL ? made.named : "");
    choice->made = made;
    controls_default_explain(choice, &view, members);
    free(servers);
}

/* ---- members named by sentinels ---- */

static void controls_default_admit(struct members *members, const struct address *address)
{
    char key[ADDRESS_TEXT];
    address_print(address, key, sizeof key);
    if (members_find(members, key) == NULL)
        (void)members_add(members, key, address);
}

/* Adds a member for each master and replica that sentinels name. */
static void admit_told(const struct sentinel_view *view, struct members *members)
{
    for (size_t i = 0; i < view->n; i++)
        if (view->masters[i] != NULL && view->claims[i].age == CLAIM_FRESH)
            controls_default_admit(members, view->masters[i]);
    for (size_t i = 0; i < view->n_replicas; i++)
        controls_default_admit(members, view->replicas[i]);
}

static bool controls_default_is_told_of(const struct sentinel_view *view,
                                        const struct member *member)
{
    for (size_t i = 0; i < view->n; i++)
        if (view->claims[i].server != NULL && strcmp(view->claims[i].server, member->key) == 0)
            return true;
    for (size_t i = 0; i < view->n_replicas; i++) {
        char key[ADDRESS_TEXT];
        address_print(view->replicas[i], key, sizeof key);
        if (strcmp(key, member->key) == 0)
            return true;
    }
    return false;
}

/*
 * Sets is_leaving of members that no sentinel names any more. While no sentinel answers no member
 * leaves. The default node stays, and so does the member that is expected to become the default
 * node.
 */
static void dismiss_untold(const struct sentinel_view *view, struct members *members,
                           const struct choice *choice)
{
    bool is_any_fresh = false;
    for (size_t i = 0; i < view->n; i++)
        is_any_fresh = is_any_fresh || view->claims[i].age == CLAIM_FRESH;
    for (size_t i = 0; is_any_fresh && i < members->n; i++) {
        struct member *member = members->all[i];
        bool is_chosen = member == choice->default_node || strcmp(member->key, choice->named) == 0;
        member->is_leaving = !is_chosen && !controls_default_is_told_of(view, member);
    }
}

/* ---- the topology ---- */

static bool is_same_topology(const struct controls *controls, const struct topology *topology)
{
    if (controls->topology->n_rows != topology->n_rows)
        return false;
    for (size_t i = 0; i < topology->n_rows; i++)
        if (controls->topology->rows[i].node != topology->rows[i].node)
            return false;
    return true;
}

static bool reads_replicas(const struct upstream *upstream)
{
    return upstream->reads.reads != READS_MASTER;
}

/* True if clients may read from the member, by its role. */
static bool is_replica(const struct controls *controls, const struct member *member,
                       const struct member *default_node)
{
    const struct node *node = finder_node(member->finder);
    return reads_replicas(controls->upstream) && member != default_node && !member->is_leaving &&
           node_has_address(node) && !node_is_demoted(node) && node_role(node) == ROLE_REPLICA;
}

void controls_publish_default_node(struct controls *controls, struct member *default_node)
{
    const struct members *members = &controls->members;
    struct member **rows = mem_zalloc(members->n + 1, sizeof(struct member *));
    struct node **nodes = mem_zalloc(members->n + 1, sizeof(struct node *));
    struct node *first = controls_default_node(controls, default_node);
    size_t n = 1;
    rows[TOPOLOGY_DEFAULT] = default_node;
    nodes[TOPOLOGY_DEFAULT] = first;
    for (size_t i = 0; i < members->n; i++)
        if (is_replica(controls, members->all[i], default_node)) {
            rows[n] = members->all[i];
            nodes[n++] = finder_node(members->all[i]->finder);
        }
    struct topology *topology = topology_new(nodes, n);
    free(nodes);
    node_put(first);
    if (!is_same_topology(controls, topology)) {
        controls_set_topology(controls, topology, rows);
        return;
    }
    free(controls->rows);
    controls->rows = rows;
    topology_put(topology);
}

/* ---- the master ---- */

static void controls_default_on_choose(uv_timer_t *timer)
{
    controls_choose_default_node(timer->data);
}

/* Changes the default node. No more requests go to the old master, whatever role it reports. */
static void change_default_node(struct controls *controls, struct member *default_node)
{
    struct member *before = controls_default(controls);
    struct node *node = node_get(topology_default_node(controls->topology));
    if (before != NULL)
        node_demote(node);
    controls_publish_default_node(controls, default_node);
    if (before != NULL && finder_node(before->finder) == node)
        finder_give_up(before->finder);
    node_put(node);
    if (default_node != NULL)
        controls_hand_table(controls, default_node);
}

static void tell_default_node(struct controls *controls)
{
    char line[SOURCES_TEXT + CHOICE_TEXT + ADDRESS_TEXT];
    const struct member *default_node = controls_default(controls);
    if (default_node != NULL)
        snprintf(line, sizeof line, "upstream %s is the master", default_node->key);
    else
        snprintf(line, sizeof line, "upstream %s has no master: %s", controls->text,
                 controls->choice.text);
    controls_tell(controls, default_node != NULL ? LOG_INFO : LOG_WARN, line, line);
}

/* True if every configured server and sentinel has answered, or failed once. */
static bool are_heard(const struct controls *controls)
{
    return members_are_settled(&controls->members) &&
           (controls->sentinels == NULL || sentinels_are_settled(controls->sentinels));
}

static void ask_beside_polls(struct controls *controls, uint64_t now_ns)
{
    const struct member *asked = controls->choice.asked;
    if (asked == NULL || now_ns < controls->asked_ns + ASK_NS)
        return;
    controls->asked_ns = now_ns;
    finder_ask_role(asked->finder);
}

static void make_choice(struct controls *controls, uint64_t now_ns)
{
    struct choice *choice = &controls->choice;
    struct members *members = &controls->members;
    const struct sentinels *sentinels = controls->sentinels;
    struct sentinel_view view = {.n = 0};
    if (sentinels == NULL) {
        controls_default_choose(choice, members, &view, now_ns);
        return;
    }
    view.n = sentinels_claims(sentinels, view.claims, view.masters);
    view.n_sentinels = sentinels_count(sentinels);
    view.n_replicas = sentinels_replicas(sentinels, view.replicas);
    admit_told(&view, members);
    controls_default_choose(choice, members, &view, now_ns);
    if (choice->made.why == MASTERSHIP_NO_CLAIM)
        sentinels_explain(sentinels, choice->text, sizeof choice->text);
    dismiss_untold(&view, members, choice);
    sentinels_set_pace(controls->sentinels, choice->made.pace);
}

/*
 * Updates the failover story. A master with a lost connection is missed, even if no other master is
 * known.
 */
static void follow_story(struct controls *controls, const struct member *before, uint64_t now_ns)
{
    const struct member *default_node = controls_default(controls);
    struct finder_word word = {.lost_ns = 0};
    if (default_node != NULL)
        word = finder_word(default_node->finder);
    if (before != NULL && before != default_node)
        failover_story_miss(&controls->story, before->key, now_ns);
    else if (default_node != NULL && word.lost_ns != 0)
        failover_story_miss(&controls->story, default_node->key, word.lost_ns);
    if (default_node != NULL && word.lost_ns == 0)
        failover_story_find(&controls->story, default_node->key, now_ns);
}

void controls_tell_story(struct controls *controls, uint64_t now_ns)
{
    char line[FAILOVER_STORY_ROOM];
    struct fates fates = {{0}};
    uint64_t due_ns =
        failover_story_due_ns(&controls->story, upstream_time(controls->upstream, STORY_NS));
    controls->ops->sum_fates(controls->arg, &fates);
    if (due_ns != 0 && now_ns >= due_ns && failover_story_tell(&controls->story, &fates, line))
        controls_tell(controls, LOG_WARN, line, line);
    failover_story_rest(&controls->story, &fates);
}

void controls_choose_default_node(struct controls *controls)
{
    const struct choice *choice = &controls->choice;
    struct member *before = controls_default(controls);
    enum mastership_why why = choice->made.why;
    uint64_t now_ns = clock_ns();
    make_choice(controls, now_ns);
    if (choice->default_node != before)
        change_default_node(controls, choice->default_node);
    else
        controls_publish_default_node(controls, before);
    ask_beside_polls(controls, now_ns);
    follow_story(controls, before, now_ns);
    controls_drop_leaving(controls);
    bool is_news =
        choice->default_node != before || (choice->default_node == NULL && choice->made.why != why);
    if (is_news && (controls->is_settled || are_heard(controls)))
        tell_default_node(controls);
    if (choice->made.again_ns > now_ns)
        uv_timer_start(&controls->timers[CHOOSE], controls_default_on_choose,
                       (choice->made.again_ns - now_ns) / NS_PER_MS + 1, 0);
    if (choice->default_node != NULL ? choice->default_node->is_settled : are_heard(controls))
        controls_settle(controls);
}
