/*
 * Tests of the slot map that weir makes of the answers of several nodes: stories of a few steps.
 *
 * Nodes are letters, with the addresses 10.0.0.97:7000 for `a` and so on. Clusters have ten slots.
 * Steps:
 *   a: a1=0-4 b2=5-9 c1/a    a has answered: a has epoch 1 and slots 0 to 4 ..., c replicates a.
 *                            Behind an epoch `!` is failed, `@` at 10.0.1.x, `?` has no address.
 *                            `3>b` and `3<b`: slot 3 leaves a for b, or comes from b
 *   ask a                    a request was sent to a, without an answer yet
 *   moved 3 b                a redirect of slot 3 to b
 *   wait 1000                1000 ms pass
 *   is a=0-4 b=5-9           the expected slot map
 *   news, same               the last answer has changed the view, or not
 *   wants, quiet             the view wants another answer at once, or not
 *   next a                   the next node to ask is a
 *   a STATE                  gone, candidate, master, replica-of-b, failed, or at 10.0.1.97
 *   slot 3 STATE             stable, to-b, from-b
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/topology/cluster_view.h"

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])
#define STEPS 24
#define SLOTS 10
#define PICTURE "a1=0-2 b2=3-5 c3=6-9"

static const struct story {
    const char *about;
    const char *steps[STEPS];
} stories[] = {
    /* ---- one answer ---- */
    {"nothing is known at first", {"is", "quiet", "next -"}},
    {"the first answer is taken whole", {"a: " PICTURE, "news", "is a=0-2 b=3-5 c=6-9", "quiet"}},
    {"the same again is no news", {"a: " PICTURE, "a: " PICTURE, "same", "quiet"}},
    {"the same from another node is no news", {"a: " PICTURE, "b: " PICTURE, "same", "quiet"}},
    {"a cluster without epochs yet",
     {"a: a0=0-4 b0=5-9", "news", "is a=0-4 b=5-9", "b: a0=0-4 b0=5-9", "same"}},
    {"a node that serves nothing", {"a: a0", "news", "is", "a master", "next a"}},
    {"replicas", {"a: a1=0-9 b1/a", "b replica-of-a", "b: a1=0-9 b1/a", "same"}},
    {"a replica answers first", {"b: a1=0-9 b1/a", "is a=0-9", "b replica-of-a"}},
    {"a failed master keeps its slots",
     {"a: a1!=0-4 b2=5-9", "is a=0-4 b=5-9", "a failed", "b master"}},
    {"the node that answers has no address of its own", {"a: a1?=0-9", "a at 10.0.0.97"}},
    {"another has none", {"a: a1=0-4 b2?=5-9", "is a=0-4 b=5-9", "next a"}},
    /* ---- newer and older epochs ---- */
    {"a newer epoch replaces an older one",
     {"a: " PICTURE, "b: a1=0-1 b4=2-5 c3=6-9", "news", "is a=0-1 b=2-5 c=6-9", "quiet"}},
    {"an older epoch replaces nothing",
     {"b: a1=0-1 b4=2-5 c3=6-9", "a: " PICTURE, "is a=0-1 b=2-5 c=6-9", "wants"}},
    {"another node is asked then, and ends it",
     {"b: a1=0-1 b4=2-5 c3=6-9", "c: " PICTURE, "wants", "next a", "a: a1=0-1 b4=2-5 c3=6-9",
      "quiet"}},
    {"a failover",
     {"a: a1=0-4 b2=5-9 c1/a", "b: a1!=0 b2=5-9 c3=1-4", "is a=0 b=5-9 c=1-4", "a failed",
      "c master"}},
    {"an old master comes back, and knows nothing of it",
     {"a: a1=0-4 b2=5-9 c1/a", "b: b2=5-9 c3=0-4 a1!", "a: a1=0-4 b2=5-9 c1/a", "is b=5-9 c=0-4",
      "wants"}},
    {"and is its successor's replica then",
     {"a: a1=0-4 b2=5-9 c1/a", "b: b2=5-9 c3=0-4 a1!", "a: a1=0-4 b2=5-9 c1/a",
      "a: a3/c b2=5-9 c3=0-4", "is b=5-9 c=0-4", "a replica-of-c", "quiet"}},
    {"an owner whose epoch alone grows",
     {"a: a1=0-9 b2", "a: a3=0-9 b2", "same", "b: a1=0-8 b2=9", "is a=0-9", "wants"}},
    {"with one epoch the one that is there stays",
     {"a: a1=0-4 b1=5-9", "c: a1=0-3 b1=4-9 c0", "is a=0-4 b=5-9", "wants"}},
    {"but an owner knows what it serves",
     {"a: a1=0-4 b1=5-9", "b: a1=0-3 b1=4-9", "is a=0-3 b=4-9", "quiet"}},
    {"slots that nobody served", {"a: a1=0-3", "a: a1=0-5 b2=6-9", "is a=0-5 b=6-9", "quiet"}},
    {"a slot that was known with an epoch",
     {"a: a5=0-9 b2", "a: a5=0-8 b2", "is a=0-8", "b: a5=0-9 b2", "is a=0-8", "wants"}},
    /* ---- what a node says about its own slots ---- */
    {"a source has given a slot away before its target has a new epoch",
     {"a: a5=0-4 b2=5-9", "a: a5=0-3 b2=4-9", "news", "is a=0-3 b=4-9", "quiet"}},
    {"and who has not heard of it changes nothing",
     {"a: a5=0-4 b2=5-9", "a: a5=0-3 b2=4-9", "c: a5=0-4 b2=5-9 c1", "is a=0-3 b=4-9", "wants"}},
    {"the target's new epoch then",
     {"a: a5=0-4 b2=5-9", "a: a5=0-3 b2=4-9", "b: a5=0-3 b6=4-9", "is a=0-3 b=4-9", "quiet"}},
    {"a node that lags says that it serves less",
     {"b: a7=0-5 b2=6-9", "a: a5=0-3 b2=4-9", "is a=0-5 b=6-9", "wants"}},
    {"and another that lags has agreed before",
     {"b: a7=0-5 b2=6-9 c0", "c: a5=0-5 b2=6-9 c0", "same", "a: a5=0-3 b2=4-9", "is a=0-5 b=6-9",
      "wants"}},
    {"slots that are given up",
     {"a: a1=0-4 b2=5-9", "a: a1=0-3 b2=5-9", "news", "is a=0-3 b=5-9", "quiet"}},
    {"another forgets them first",
     {"a: a1=0-4 b2=5-9", "b: a1=0-3 b2=5-9", "is a=0-4 b=5-9", "wants", "next a",
      "a: a1=0-3 b2=5-9", "is a=0-3 b=5-9", "quiet"}},
    {"a node that was reset, and kept its name",
     {"a: a1=0-4 b2=5-9", "a: a1", "is b=5-9", "wants"}},
    {"to and fro",
     {"a: a1=0-4 b2=5-9", "b: a1=0-3 b3=4-9", "is a=0-3 b=4-9", "a: a4=0-4 b3=5-9",
      "is a=0-4 b=5-9", "b: a1=0-3 b3=4-9", "is a=0-4 b=5-9", "wants"}},
    /* ---- the minority side ---- */
    {"a minority of one",
     {"a: " PICTURE, "b: b2=3-5 c4=0-2,6-9 a1!", "a: " PICTURE, "a: " PICTURE, "a: " PICTURE,
      "is b=3-5 c=0-2,6-9"}},
    {"a minority that is all that answers",
     {"a: " PICTURE, "b: b2=3-5 c4=0-2,6-9 a1!", "a: " PICTURE, "ask b", "ask c", "a: " PICTURE,
      "is b=3-5 c=0-2,6-9", "quiet"}},
    {"after some seconds it is asked again",
     {"a: " PICTURE, "b: b2=3-5 c4=0-2,6-9 a1!", "a: " PICTURE, "ask b", "ask c", "quiet",
      "wait 6000", "a: " PICTURE, "wants", "is b=3-5 c=0-2,6-9"}},
    {"two of five",
     {"a: a1=0-1 b2=2-3 c3=4-5 d4=6-7 e5=8-9", "c: a1! b2! c6=0-5 d4=6-7 e5=8-9",
      "a: a1=0-1 b2=2-3 c3=4-5 d4=6-7 e5=8-9", "b: a1=0-1 b2=2-3 c3=4-5 d4=6-7 e5=8-9", "ask c",
      "ask d", "ask e", "b: a1=0-1 b2=2-3 c3=4-5 d4=6-7 e5=8-9", "is c=0-5 d=6-7 e=8-9"}},
    {"three of five that agree, while the others are silent",
     {"a: a1=0-1 b2=2-3 c3=4-5 d4=6-7 e9=8-9", "a: a1=0-1 b2=2-3 c3=4-5 d4=6-7 e9=8-9",
      "b: a1=0-1 b2=2-3 c3=4-5,8-9 d4=6-7", "wants", "c: a1=0-1 b2=2-3 c3=4-5,8-9 d4=6-7",
      "d: a1=0-1 b2=2-3 c3=4-5,8-9 d4=6-7", "is a=0-1 b=2-3 c=4-5 d=6-7 e=8-9", "ask e",
      "a: a1=0-1 b2=2-3 c3=4-5,8-9 d4=6-7", "news", "is a=0-1 b=2-3 c=4-5,8-9 d=6-7", "e gone",
      "quiet"}},
    {"one that is not silent",
     {"a: a1=0-1 b2=2-3 c3=4-5 d4=6-7 e9=8-9", "b: a1=0-1 b2=2-3 c3=4-5,8-9 d4=6-7",
      "c: a1=0-1 b2=2-3 c3=4-5,8-9 d4=6-7", "e: a1=0-1 b2=2-3 c3=4-5 d4=6-7 e9=8-9", "quiet",
      "is a=0-1 b=2-3 c=4-5 d=6-7 e=8-9", "d: a1=0-1 b2=2-3 c3=4-5,8-9 d4=6-7",
      "is a=0-1 b=2-3 c=4-5 d=6-7 e=8-9"}},
    /* ---- a cluster that was built anew ---- */
    {"all agree on it",
     {"a: a5=0-4 b6=5-9", "x: x1=0-4 y2=5-9", "is a=0-4 b=5-9", "x candidate", "wants", "ask a",
      "ask b", "y: x1=0-4 y2=5-9", "news", "is x=0-4 y=5-9", "a gone", "b gone", "x master",
      "quiet"}},
    {"the old one still answers",
     {"a: a5=0-4 b6=5-9", "x: x9=0-4 y9=5-9", "a: a5=0-4 b6=5-9", "x gone", "quiet",
      "y: x9=0-4 y9=5-9", "is a=0-4 b=5-9", "wants"}},
    {"not all have been asked",
     {"a: a5=0-4 b6=5-9", "x: x1=0-4 y2=5-9", "y: x1=0-4 y2=5-9", "is a=0-4 b=5-9", "wants"}},
    {"one node alone, reset and used for itself",
     {"a: a5=0-4 b6=5-9", "x: x1=0-9", "is a=0-4 b=5-9", "wants", "ask a", "b: a5=0-4 b6=5-9",
      "is a=0-4 b=5-9", "x gone", "quiet"}},
    {"one node alone that is all there is now",
     {"a: a5=0-9", "x: x0=0-9", "is a=0-9", "wants", "ask a", "x: x0=0-9", "is x=0-9", "a gone",
      "quiet"}},
    {"a stranger that serves nothing",
     {"a: a5=0-9", "x: x0", "is a=0-9", "ask a", "x: x0", "is a=0-9"}},
    {"a stranger where nothing was served", {"a: a0", "x: x1=0-9", "is x=0-9", "a gone"}},
    {"epochs that start anew at nodes of the same names",
     {"a: a5=0-4 b6=5-9", "a: a1=0-4 b1=5-9", "same", "is a=0-4 b=5-9"}},
    {"the half of two",
     {"a: a5=0-4 b6=5-9", "a: a1=0-5 b1=6-9", "ask b", "a: a1=0-5 b1=6-9", "is a=0-4 b=5-9"}},
    /* ---- nodes ---- */
    {"a node that has left", {"a: a1=0-9 b0", "b master", "a: a1=0-9", "news", "b gone"}},
    {"a node that has left stays while it serves",
     {"a: a1=0-4 b2=5-9", "b: b2=5-9", "is a=0-4 b=5-9", "wants", "a master"}},
    {"a new address",
     {"a: a1=0-4 b2=5-9", "a: a1=0-4 b2@=5-9", "news", "b at 10.0.1.98", "a at 10.0.0.97"}},
    {"an old answer tells no address",
     {"a: a1=0-4 b2@=5-9", "b: a5=0-4 b2@=5-9", "a: a1=0-3 b2=4-9", "b at 10.0.1.98"}},
    {"a role that changes without an epoch",
     {"a: a1=0-9 b7", "b master", "a: a1=0-9 b1/a", "news", "b replica-of-a"}},
    {"the one asked longest ago is next",
     {"a: " PICTURE, "next b", "ask b", "next c", "ask c", "next a"}},
    {"failed ones are last",
     {"a: a1=0-2 b2!=3-5 c3=6-9", "next c", "ask c", "next a", "ask a", "next c"}},
    {"but they are asked where nodes disagree",
     {"b: a1=0-1 b4!=2-5 c3=6-9", "a: " PICTURE, "wants", "next c", "c: " PICTURE, "wants",
      "next b", "ask b", "quiet"}},
    /* ---- redirects ---- */
    {"the node that it names is asked first",
     {"a: " PICTURE, "moved 0 c", "wants", "next c", "c: a1=1-2 b2=3-5 c4=0,6-9",
      "is a=1-2 b=3-5 c=0,6-9", "quiet"}},
    {"an answer contradicts it",
     {"a: " PICTURE, "moved 0 c", "c: " PICTURE, "wants", "next b", "b: a1=1-2 b2=3-5 c4=0,6-9",
      "is a=1-2 b=3-5 c=0,6-9", "quiet"}},
    {"all contradict it",
     {"a: " PICTURE, "moved 0 c", "c: " PICTURE, "b: " PICTURE, "wants", "a: " PICTURE, "quiet",
      "is a=0-2 b=3-5 c=6-9"}},
    {"it is forgotten", {"a: " PICTURE, "moved 0 c", "wait 6000", "a: " PICTURE, "quiet"}},
    {"it says what is known", {"a: " PICTURE, "moved 0 a", "quiet"}},
    {"to a node that nobody knows",
     {"a: " PICTURE, "moved 0 z", "wants", "next b", "b: " PICTURE, "c: " PICTURE, "wants",
      "a: " PICTURE, "quiet", "z gone"}},
    {"ASK, of a slot on its way there", {"a: " PICTURE " 0>c", "moved 0 c", "quiet"}},
    /* ---- slots on their way ---- */
    {"a slot leaves",
     {"a: " PICTURE, "slot 0 stable", "a: " PICTURE " 0>c", "news", "slot 0 to-c", "slot 1 stable",
      "b: " PICTURE, "same", "slot 0 to-c", "a: " PICTURE, "news", "slot 0 stable"}},
    {"a slot comes",
     {"c: " PICTURE " 0<a", "slot 0 from-c", "a: " PICTURE " 0>c", "slot 0 to-c", "c: " PICTURE,
      "slot 0 to-c", "a: " PICTURE, "slot 0 stable"}},
    {"it has arrived", {"a: " PICTURE " 0>c", "c: a1=1-2 b2=3-5 c4=0,6-9", "slot 0 stable"}},
};

/* ---- answers of nodes ---- */

static void name_of(char letter, char id[CLUSTER_ID])
{
    memset(id, letter, CLUSTER_ID - 1);
    id[CLUSTER_ID - 1] = '\0';
}

static uint16_t add_said(struct cluster_nodes *answer, char letter)
{
    char id[CLUSTER_ID];
    name_of(letter, id);
    uint16_t found = cluster_nodes_find(answer, id);
    if (found != CLUSTER_NOBODY)
        return found;
    struct cluster_node *node = &answer->nodes[answer->n];
    memset(node, 0, sizeof *node);
    memcpy(node->id, id, sizeof id);
    return (uint16_t)answer->n++;
}

/* "0-2,5" */
static void add_slots(struct cluster_nodes *answer, uint16_t number, const char *text)
{
    while (*text != '\0') {
        char *end;
        long first = strtol(text, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (; first <= last; first++, answer->nodes[number].n_slots++)
            answer->owners[first] = number;
        text = *end == ',' ? end + 1 : end;
    }
}

/* "a1!=0-2", "b1/a" */
static void add_node(struct cluster_nodes *answer, const char *word)
{
    char *end;
    uint16_t number = add_said(answer, word[0]);
    struct cluster_node *node = &answer->nodes[number];
    node->epoch = strtoull(word + 1, &end, 10);
    node->is_master = true;
    node->port = 7000;
    snprintf(node->host, sizeof node->host, "10.0.0.%d", word[0]);
    for (; *end != '\0' && *end != '='; end++) {
        node->is_failed = node->is_failed || *end == '!';
        if (*end == '@')
            snprintf(node->host, sizeof node->host, "10.0.1.%d", word[0]);
        if (*end == '?')
            node->host[0] = '\0';
        if (*end == '/') {
            node->is_master = false;
            node->is_replica = true;
            name_of(*++end, node->master_id);
        }
    }
    if (*end == '=')
        add_slots(answer, number, end + 1);
}

/* "3>b", "3<b" */
static void add_move(struct cluster_nodes *answer, const char *word)
{
    char *end;
    struct cluster_move *move = &answer->moves[answer->n_moves++];
    move->slot = (uint16_t)strtol(word, &end, 10);
    move->is_import = *end == '<';
    name_of(end[1], move->other);
}

struct play {
    struct cluster_view *view;
    uint64_t now_ns;
    bool is_news;
};

static uint16_t number_of(const struct cluster_view *view, char letter)
{
    char id[CLUSTER_ID];
    name_of(letter, id);
    for (size_t i = 0; i < cluster_view_count(view); i++)
        if (strcmp(cluster_view_node(view, i)->id, id) == 0)
            return (uint16_t)i;
    return CLUSTER_NOBODY;
}

static void answer(struct play *play, const char *step)
{
    static struct cluster_node nodes[16];
    static struct cluster_move moves[16];
    static struct cluster_nodes said;
    char text[256], host[32], *save, *word;
    said = (struct cluster_nodes){.nodes = nodes, .moves = moves};
    memset(said.owners, 0xff, sizeof said.owners);
    snprintf(text, sizeof text, "%s", step + 2);
    for (word = strtok_r(text, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save))
        if (word[0] >= '0' && word[0] <= '9')
            add_move(&said, word);
        else
            add_node(&said, word);
    said.myself = add_said(&said, step[0]);
    snprintf(host, sizeof host, "10.0.0.%d", step[0]);
    cluster_view_note_asked(play->view, number_of(play->view, step[0]), play->now_ns);
    play->is_news = cluster_view_take(play->view, &said, host, play->now_ns + 1000000);
}

/* ---- the resulting view ---- */

static void print_owners(const struct cluster_view *view, char *out, size_t size)
{
    size_t n = 0;
    out[0] = '\0';
    for (char letter = 'a'; letter <= 'z'; letter++) {
        const char *between = "=";
        uint16_t number = number_of(view, letter);
        for (uint16_t slot = 0, last; number != CLUSTER_NOBODY && slot < SLOTS; slot++) {
            if (cluster_view_owner(view, slot) != number)
                continue;
            for (last = slot;
                 last + 1 < SLOTS && cluster_view_owner(view, (uint16_t)(last + 1)) == number;
                 last++)
                ;
            if (between[0] == '=')
                n += (size_t)snprintf(out + n, size - n, "%s%c", n > 0 ? " " : "", letter);
            n += (size_t)snprintf(out + n, size - n, "%s%d", between, slot);
            if (last > slot)
                n += (size_t)snprintf(out + n, size - n, "-%d", last);
            between = ",";
            slot = last;
        }
    }
}

static bool is_state(const struct cluster_view *view, char letter, const char *word)
{
    uint16_t number = number_of(view, letter);
    if (number == CLUSTER_NOBODY || strcmp(word, "gone") == 0)
        return number == CLUSTER_NOBODY && strcmp(word, "gone") == 0;
    const struct cluster_view_node *node = cluster_view_node(view, number);
    if (strncmp(word, "at ", 3) == 0)
        return strcmp(node->host, word + 3) == 0;
    if (strcmp(word, "candidate") == 0 || strcmp(word, "failed") == 0)
        return word[0] == 'c' ? node->is_candidate : node->is_failed;
    if (strcmp(word, "master") == 0)
        return !node->is_replica && !node->is_candidate;
    return node->is_replica && node->master == number_of(view, word[strlen("replica-of-")]);
}

static bool is_slot_state(const struct cluster_view *view, const char *text)
{
    char *word, letter;
    uint16_t other;
    enum slot_state state = cluster_view_state(view, (uint16_t)strtol(text, &word, 10), &other);
    word++;
    if (strcmp(word, "stable") == 0)
        return state == SLOT_STABLE && other == CLUSTER_NOBODY;
    letter = word[strlen(word) - 1];
    return state == (word[0] == 't' ? SLOT_MIGRATING : SLOT_IMPORTING) &&
           other == number_of(view, letter);
}

static void moved(struct play *play, const char *text)
{
    char *end, host[32];
    uint16_t slot = (uint16_t)strtol(text, &end, 10);
    snprintf(host, sizeof host, "10.0.0.%d", end[1]);
    cluster_view_note_redirect(play->view, slot, slice_str(host), 7000, play->now_ns);
}

/* Plays a step. False: the view is not as the step expects. */
static bool step(struct play *play, const char *text)
{
    char owners[256];
    play->now_ns += 100000000;
    if (text[1] == ':') {
        answer(play, text);
    } else if (strncmp(text, "ask ", 4) == 0) {
        cluster_view_note_asked(play->view, number_of(play->view, text[4]), play->now_ns);
    } else if (strncmp(text, "moved ", 6) == 0) {
        moved(play, text + 6);
    } else if (strncmp(text, "wait ", 5) == 0) {
        play->now_ns += strtoull(text + 5, NULL, 10) * 1000000;
    } else if (strncmp(text, "is", 2) == 0) {
        print_owners(play->view, owners, sizeof owners);
        return strcmp(owners, text[2] == ' ' ? text + 3 : "") == 0;
    } else if (strcmp(text, "news") == 0 || strcmp(text, "same") == 0) {
        return play->is_news == (text[0] == 'n');
    } else if (strcmp(text, "wants") == 0 || strcmp(text, "quiet") == 0) {
        return cluster_view_wants_another(play->view) == (text[0] == 'w');
    } else if (strncmp(text, "next ", 5) == 0) {
        return cluster_view_next(play->view) == number_of(play->view, text[5]);
    } else if (strncmp(text, "slot ", 5) == 0) {
        return is_slot_state(play->view, text + 5);
    } else {
        return is_state(play->view, text[0], text + 2);
    }
    return true;
}

static void test_stories(void **state)
{
    (void)state;
    size_t failed = 0;
    for (size_t i = 0; i < COUNT_OF(stories); i++) {
        struct play play = {.view = cluster_view_new(), .now_ns = 1000000000};
        for (size_t s = 0; s < STEPS && stories[i].steps[s] != NULL; s++) {
            if (step(&play, stories[i].steps[s]))
                continue;
            char owners[256];
            print_owners(play.view, owners, sizeof owners);
            print_error("%s: step %zu, \"%s\", does not hold: %s, %s, next is %d\n",
                        stories[i].about, s + 1, stories[i].steps[s], owners,
                        cluster_view_wants_another(play.view) ? "wants" : "quiet",
                        cluster_view_next(play.view));
            failed++;
        }
        cluster_view_free(play.view);
    }
    assert_int_equal(failed, 0);
}

/* Finds known addresses, and no others. */
static void test_find(void **state)
{
    (void)state;
    struct play play = {.view = cluster_view_new()};
    answer(&play, "a: a1=0-4 b2=5-9");
    assert_int_equal(cluster_view_find(play.view, SLICE("10.0.0.98"), 7000),
                     number_of(play.view, 'b'));
    assert_int_equal(cluster_view_find(play.view, SLICE("10.0.0.98"), 7001), CLUSTER_NOBODY);
    assert_int_equal(cluster_view_find(play.view, SLICE(""), 7000), CLUSTER_NOBODY);
    assert_int_equal(cluster_view_served(play.view), 10);
    cluster_view_free(play.view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stories),
        cmocka_unit_test(test_find),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
