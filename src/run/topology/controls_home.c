/* Which member is the master of a replicated upstream. */
#include "run/topology/controls.h"
#include "run/topology/controls_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "run/topology/sentinel_view.h"

#define ASK_NS (50 * NS_PER_MS) /* between two questions beside the polls: an answer may be the reason for the next */

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

/* True if clients may read there, as far as its role goes. */
static bool is_replica(const struct controls *controls, const struct member *member, const struct member *home)
{
    const struct node *node = finder_node(member->finder);
    return reads_replicas(controls->upstream) && member != home && !member->is_leaving && node_has_address(node) &&
           !node_is_demoted(node) && node_role(node) == ROLE_REPLICA;
}

void controls_publish_home(struct controls *controls, struct member *home)
{
    const struct members *members = &controls->members;
    struct member **rows = mem_zalloc(members->n + 1, sizeof(struct member *));
    struct node **nodes = mem_zalloc(members->n + 1, sizeof(struct node *));
    struct node *first = controls_home_node(controls, home);
    size_t n = 1;
    rows[TOPOLOGY_HOME] = home;
    nodes[TOPOLOGY_HOME] = first;
    for (size_t i = 0; i < members->n; i++)
        if (is_replica(controls, members->all[i], home)) {
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

/* ---- which member is the master ---- */

static void on_choose(uv_timer_t *timer)
{
    controls_choose_home(timer->data);
}

/* Nothing is sent to the old master any more, whatever it says. */
static void change_home(struct controls *controls, struct member *home)
{
    struct member *before = controls_home(controls);
    struct node *node = node_get(topology_home(controls->topology));
    if (before != NULL)
        node_demote(node);
    controls_publish_home(controls, home);
    if (before != NULL && finder_node(before->finder) == node)
        finder_give_up(before->finder);
    node_put(node);
    if (home != NULL)
        controls_hand_table(controls, home);
}

static void tell_home(const struct controls *controls)
{
    char line[SOURCES_TEXT + CHOICE_TEXT + ADDRESS_TEXT];
    const struct member *home = controls_home(controls);
    if (home != NULL)
        snprintf(line, sizeof line, "upstream %s is the master", home->key);
    else
        snprintf(line, sizeof line, "upstream %s has no master: %s", controls->text, controls->choice.text);
    controls->ops->on_news(controls->arg, home != NULL ? LOG_INFO : LOG_WARN, line, line);
}

/* True if every server and sentinel that was configured has been heard, or has failed once. */
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
    struct sentinel_view view;
    struct members *members = &controls->members;
    if (controls->sentinels == NULL) {
        const struct choice_claims none = {NULL, 0, 0};
        choice_make(&controls->choice, members, &none, now_ns);
        return;
    }
    sentinel_view_look(&view, controls->sentinels);
    sentinel_view_admit(&view, members);
    const struct choice_claims claims = sentinel_view_claims(&view);
    choice_make(&controls->choice, members, &claims, now_ns);
    if (controls->choice.why == MASTERSHIP_NO_CLAIM)
        (void)sentinel_view_explain(&view, controls->choice.text, sizeof controls->choice.text);
    sentinel_view_dismiss(&view, members, &controls->choice);
    sentinels_set_pace(controls->sentinels, controls->choice.pace);
}

/* A master with a lost connection is missed, though nothing is known to be in its place. */
static void follow_story(struct controls *controls, const struct member *before, uint64_t now_ns)
{
    const struct member *home = controls_home(controls);
    struct finder_word word = {.lost_ns = 0};
    if (home != NULL)
        word = finder_word(home->finder);
    if (before != NULL && before != home)
        failover_story_miss(&controls->story, before->key, now_ns);
    else if (home != NULL && word.lost_ns != 0)
        failover_story_miss(&controls->story, home->key, word.lost_ns);
    if (home != NULL && word.lost_ns == 0)
        failover_story_find(&controls->story, home->key, now_ns);
}

void controls_tell_story(struct controls *controls, uint64_t now_ns)
{
    char line[FAILOVER_STORY_ROOM];
    struct fates fates = {{0}};
    uint64_t due_ns = failover_story_due_ns(&controls->story, upstream_time(controls->upstream, STORY_NS));
    controls->ops->sum_fates(controls->arg, &fates);
    if (due_ns != 0 && now_ns >= due_ns && failover_story_tell(&controls->story, &fates, line))
        controls->ops->on_news(controls->arg, LOG_WARN, line, line);
    failover_story_rest(&controls->story, &fates);
}

void controls_choose_home(struct controls *controls)
{
    const struct choice *choice = &controls->choice;
    struct member *before = controls_home(controls);
    enum mastership_why why = choice->why;
    uint64_t now_ns = clock_ns();
    make_choice(controls, now_ns);
    if (choice->home != before)
        change_home(controls, choice->home);
    else
        controls_publish_home(controls, before);
    ask_beside_polls(controls, now_ns);
    follow_story(controls, before, now_ns);
    controls_drop_leaving(controls);
    bool is_news = choice->home != before || (choice->home == NULL && choice->why != why);
    if (is_news && (controls->is_settled || are_heard(controls)))
        tell_home(controls);
    if (choice->again_ns > now_ns)
        uv_timer_start(&controls->timers[CHOOSE], on_choose, (choice->again_ns - now_ns) / NS_PER_MS + 1, 0);
    if (choice->home != NULL ? choice->home->is_settled : are_heard(controls))
        controls_settle(controls);
}
