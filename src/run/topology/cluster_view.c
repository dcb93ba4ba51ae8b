#include "run/topology/cluster_view.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define REDIRECTS_MOST 16
/* after this time nodes are asked again, or a redirect is forgotten */
#define ROUND_NS (5 * NS_PER_S)

struct slot_record {
    uint64_t epoch; /* a node with a lower epoch does not replace `owner` */
    uint16_t owner; /* number of a node, or CLUSTER_NOBODY */
    /* the node to which the owner migrates the slot; CLUSTER_NOBODY: an unknown node */
    uint16_t leaves_to;
    uint16_t comes_to; /* the node that says that it imports the slot; CLUSTER_NOBODY: none */
    bool is_known;     /* an answer has said which node owns the slot, or that no node does */
    bool is_leaving;   /* the owner says that the slot migrates */
};

struct redirect {
    char host[CLUSTER_HOST];
    uint16_t port;
    uint16_t slot;
    uint64_t since_ns;
};

/* An answer that contradicts the view, and the nodes that have confirmed it. */
struct challenge {
    struct cluster_node *nodes; /* copies; heap; NULL: no challenge */
    bool *has_backed;           /* by index of `nodes`: the node has confirmed; heap */
    size_t n;
    uint16_t owners[SLOT_COUNT]; /* indexes of `nodes` */
    uint64_t begun_ns;           /* when the first node of the challenge was asked */
};

struct cluster_view {
    struct cluster_view_node *nodes; /* heap; a node keeps its number */
    size_t n;
    struct slot_record slots[SLOT_COUNT];
    struct redirect redirects[REDIRECTS_MOST]; /* redirects that no answer has confirmed yet */
    size_t n_redirects;
    struct challenge challenge;
    /* since when all masters are to be asked because of a challenge; 0: no challenge */
    uint64_t disagreed_ns;
    uint64_t asked_ns; /* when a node was asked last */
    bool is_changed;   /* the present answer has changed the view */
};

/* An answer being processed. */
struct taking {
    struct cluster_view *view;
    const struct cluster_nodes *answer;
    const char *host;  /* the host that was asked */
    uint16_t *numbers; /* the view's numbers of the answer's nodes; CLUSTER_NOBODY: unknown; heap */
    uint64_t now_ns;
    bool is_stranger; /* the view has nodes, but none of the answer's */
    size_t n_contradictions;
};

/* ---- nodes ---- */

static uint16_t cluster_view_find_id(const struct cluster_view *view, const char *id)
{
    for (size_t i = 0; i < view->n; i++)
        if (strcmp(view->nodes[i].id, id) == 0)
            return (uint16_t)i;
    return CLUSTER_NOBODY;
}

static uint16_t cluster_view_add_node(struct cluster_view *view, const char *id)
{
    size_t number = cluster_view_find_id(view, ""); /* a free number */
    if (number == CLUSTER_NOBODY) {
        number = view->n++;
        view->nodes = mem_realloc(view->nodes, view->n, sizeof *view->nodes);
    }
    view->nodes[number] =
        (struct cluster_view_node){.master = CLUSTER_NOBODY, .is_candidate = true};
    memcpy(view->nodes[number].id, id, CLUSTER_ID);
    return (uint16_t)number;
}

static void remove_node(struct cluster_view *view, size_t number)
{
    for (size_t i = 0; i < view->n; i++)
        if (view->nodes[i].master == number)
            view->nodes[i].master = CLUSTER_NOBODY;
    for (size_t slot = 0; slot < SLOT_COUNT; slot++) {
        struct slot_record *record = &view->slots[slot];
        assert(record->owner != number);
        if (record->comes_to == number)
            record->comes_to = CLUSTER_NOBODY;
        if (record->leaves_to == number)
            record->leaves_to = CLUSTER_NOBODY;
    }
    view->is_changed = view->is_changed || !view->nodes[number].is_candidate;
    view->nodes[number] = (struct cluster_view_node){.master = CLUSTER_NOBODY};
}

static bool is_there(const struct cluster_view_node *node)
{
    return node->id[0] != '\0';
}

static bool can_be_asked(const struct cluster_view_node *node)
{
    return is_there(node) && node->host[0] != '\0' && node->port != 0;
}

/* Takes the facts of a node from its line of an answer. `host`: its address, "" if unknown. */
static void take_facts(struct cluster_view *view, uint16_t number, const struct cluster_node *said,
                       const char *host)
{
    struct cluster_view_node *node = &view->nodes[number], before = *node;
    if (host[0] != '\0')
        memcpy(node->host, host, strlen(host) + 1);
    else if (said->port == 0)
        node->host[0] = '\0'; /* the address is no longer known */
    memcpy(node->hostname, said->hostname, sizeof node->hostname);
    node->port = said->port;
    /*
     * An answer that is out of date may agree on all slots, so the epoch never falls. Exception: a
     * master that becomes a replica has the epoch of its new master from then on.
     */
    node->epoch = said->is_replica || said->epoch > node->epoch ? said->epoch : node->epoch;
    node->is_replica = said->is_replica;
    node->is_failed = said->is_failed;
    node->master = said->is_replica && said->master_id[0] != '\0'
                       ? cluster_view_find_id(view, said->master_id)
                       : CLUSTER_NOBODY;
    bool is_same = strcmp(before.host, node->host) == 0 &&
                   strcmp(before.hostname, node->hostname) == 0 && before.port == node->port &&
                   before.is_replica == node->is_replica && before.is_failed == node->is_failed &&
                   before.master == node->master;
    view->is_changed = view->is_changed || (!is_same && !node->is_candidate);
}

static const char *cluster_view_host_of(const struct taking *t, size_t i)
{
    const struct cluster_node *node = &t->answer->nodes[i];
    return node->host[0] == '\0' && i == t->answer->myself && node->port != 0 ? t->host
                                                                              : node->host;
}

/* ---- slots ---- */

static void set_owner(struct cluster_view *view, size_t slot, uint16_t owner, uint64_t epoch)
{
    struct slot_record *record = &view->slots[slot];
    record->is_known = true;
    record->epoch = epoch;
    if (record->owner == owner)
        return;
    if (record->owner != CLUSTER_NOBODY)
        view->nodes[record->owner].n_slots--;
    if (owner != CLUSTER_NOBODY) {
        view->nodes[owner].n_slots++;
        view->nodes[owner].is_candidate = false;
    }
    record->owner = owner;
    record->is_leaving = false;
    if (record->comes_to == owner)
        record->comes_to = CLUSTER_NOBODY;
    view->is_changed = true;
}

/* How an answer's owner of a slot relates to the known owner. */
enum verdict { AGREES, REPLACES, CONTRADICTS };

static enum verdict cluster_view_judge(const struct taking *t, const struct slot_record *record,
                                       uint16_t said)
{
    const struct cluster_nodes *answer = t->answer;
    uint16_t owner = said != CLUSTER_NOBODY ? t->numbers[said] : CLUSTER_NOBODY;
    uint64_t epoch = said != CLUSTER_NOBODY ? answer->nodes[said].epoch : 0;
    if (owner == record->owner && owner != CLUSTER_NOBODY)
        return epoch > record->epoch ? REPLACES : AGREES;
    if (said == CLUSTER_NOBODY && record->owner == CLUSTER_NOBODY)
        return AGREES;
    if (!record->is_known)
        return REPLACES;
    bool is_own_claim = said == answer->myself;
    if (said != CLUSTER_NOBODY &&
        (epoch > record->epoch || (epoch == record->epoch && is_own_claim)))
        return REPLACES;
    const struct cluster_node *myself = &answer->nodes[answer->myself];
    bool is_owner = record->owner != CLUSTER_NOBODY && t->numbers[answer->myself] == record->owner;
    return is_owner && myself->epoch >= t->view->nodes[record->owner].epoch ? REPLACES
                                                                            : CONTRADICTS;
}

static void cluster_view_take_slots(struct taking *t)
{
    for (size_t slot = 0; slot < SLOT_COUNT; slot++) {
        struct slot_record *record = &t->view->slots[slot];
        uint16_t said = t->answer->owners[slot];
        enum verdict verdict = cluster_view_judge(t, record, said);
        t->n_contradictions += verdict == CONTRADICTS;
        if (verdict != REPLACES)
            continue;
        uint64_t epoch = said != CLUSTER_NOBODY ? t->answer->nodes[said].epoch : 0;
        set_owner(t->view, slot, said != CLUSTER_NOBODY ? t->numbers[said] : CLUSTER_NOBODY,
                  epoch > record->epoch ? epoch : record->epoch);
    }
}

/* Takes the slots that migrate. An answer lists such slots only for the node that answers. */
static void take_moves(struct taking *t)
{
    struct cluster_view *view = t->view;
    uint16_t me = t->numbers[t->answer->myself];
    struct slot_record *before = mem_alloc(sizeof view->slots);
    memcpy(before, view->slots, sizeof view->slots);
    for (size_t slot = 0; slot < SLOT_COUNT; slot++) {
        if (view->slots[slot].owner == me)
            view->slots[slot].is_leaving = false;
        if (view->slots[slot].comes_to == me)
            view->slots[slot].comes_to = CLUSTER_NOBODY;
    }
    for (size_t i = 0; i < t->answer->n_moves; i++) {
        const struct cluster_move *move = &t->answer->moves[i];
        struct slot_record *record = &view->slots[move->slot];
        if (move->is_import && record->owner != me) {
            record->comes_to = me;
        } else if (!move->is_import && record->owner == me) {
            record->is_leaving = true;
            record->leaves_to = cluster_view_find_id(view, move->other);
        }
    }
    for (size_t slot = 0; slot < SLOT_COUNT && !view->is_changed; slot++)
        view->is_changed = before[slot].is_leaving != view->slots[slot].is_leaving ||
                           before[slot].comes_to != view->slots[slot].comes_to;
    free(before);
}

/* ---- the nodes of an answer ---- */

static void admit_nodes(struct taking *t)
{
    for (size_t i = 0; i < t->answer->n; i++)
        if (t->numbers[i] == CLUSTER_NOBODY)
            t->numbers[i] = cluster_view_add_node(t->view, t->answer->nodes[i].id);
    /* the node that answered counts as asked, even if another node was meant */
    t->view->nodes[t->numbers[t->answer->myself]].asked_ns = t->view->asked_ns;
}

/*
 * True if the facts of node i are taken. From an answer that contradicts the view, only news about
 * nodes is taken.
 */
static bool is_believed(const struct taking *t, size_t i)
{
    const struct cluster_view_node *node = &t->view->nodes[t->numbers[i]];
    bool is_news =
        node->is_candidate || node->host[0] == '\0' || t->answer->nodes[i].epoch > node->epoch;
    return is_news || (!t->is_stranger && t->n_contradictions == 0);
}

static void take_nodes(struct taking *t)
{
    for (size_t i = 0; i < t->answer->n; i++)
        if (is_believed(t, i))
            take_facts(t->view, t->numbers[i], &t->answer->nodes[i], cluster_view_host_of(t, i));
}

/*
 * Takes the nodes of an accepted answer as the nodes of the cluster. A node that the answer does
 * not list stays only if it serves slots.
 */
static void settle_nodes(struct taking *t)
{
    struct cluster_view *view = t->view;
    for (size_t i = 0; i < view->n; i++) {
        struct cluster_view_node *node = &view->nodes[i];
        if (!is_there(node))
            continue;
        bool is_listed = cluster_nodes_find(t->answer, node->id) != CLUSTER_NOBODY;
        view->is_changed = view->is_changed || (is_listed && node->is_candidate);
        node->is_candidate = node->is_candidate && !is_listed;
        if (!is_listed && node->n_slots == 0)
            remove_node(view, i);
    }
}

/* ---- challenges ---- */

static void end_challenge(struct cluster_view *view)
{
    free(view->challenge.nodes);
    free(view->challenge.has_backed);
    view->challenge.nodes = NULL;
    view->challenge.has_backed = NULL;
    view->disagreed_ns = 0;
}

static bool is_same_table(const struct challenge *challenge, const struct cluster_nodes *answer)
{
    for (size_t slot = 0; slot < SLOT_COUNT; slot++) {
        uint16_t a = challenge->owners[slot], b = answer->owners[slot];
        bool is_alone = a == CLUSTER_NOBODY || b == CLUSTER_NOBODY;
        if (is_alone ? a != b : strcmp(challenge->nodes[a].id, answer->nodes[b].id) != 0)
            return false;
    }
    return true;
}

static void begin_challenge(struct taking *t)
{
    struct challenge *challenge = &t->view->challenge;
    free(challenge->nodes);
    free(challenge->has_backed);
    challenge->n = t->answer->n;
    challenge->nodes = mem_zalloc(challenge->n, sizeof *challenge->nodes);
    challenge->has_backed = mem_zalloc(challenge->n, sizeof *challenge->has_backed);
    challenge->begun_ns = t->view->asked_ns;
    memcpy(challenge->nodes, t->answer->nodes, challenge->n * sizeof *challenge->nodes);
    memcpy(challenge->owners, t->answer->owners, sizeof challenge->owners);
}

/* Notes that the answering node confirms the challenge. */
static void back(struct taking *t)
{
    struct challenge *challenge = &t->view->challenge;
    const struct cluster_node *myself = &t->answer->nodes[t->answer->myself];
    for (size_t i = 0; i < challenge->n; i++)
        if (strcmp(challenge->nodes[i].id, myself->id) == 0) {
            challenge->has_backed[i] = true;
            challenge->nodes[i] = *myself;
            memcpy(challenge->nodes[i].host, cluster_view_host_of(t, t->answer->myself),
                   strlen(cluster_view_host_of(t, t->answer->myself)) + 1);
        }
}

static bool has_backed(const struct challenge *challenge, const char *id)
{
    for (size_t i = 0; i < challenge->n; i++)
        if (strcmp(challenge->nodes[i].id, id) == 0)
            return challenge->has_backed[i];
    return false;
}

static bool has_won(const struct cluster_view *view)
{
    const struct challenge *challenge = &view->challenge;
    size_t n_masters = 0, n_backers = 0;
    for (size_t i = 0; i < challenge->n; i++) {
        bool is_serving = challenge->nodes[i].n_slots > 0;
        n_masters += is_serving;
        n_backers += is_serving && challenge->has_backed[i];
    }
    if (2 * n_backers <= n_masters)
        return false;
    for (size_t i = 0; i < view->n; i++) {
        const struct cluster_view_node *node = &view->nodes[i];
        if (node->n_slots > 0 && can_be_asked(node) && node->asked_ns < challenge->begun_ns &&
            !has_backed(challenge, node->id))
            return false;
    }
    return true;
}

/* Replaces the whole view by the challenge. */
static void follow_challenge(struct cluster_view *view)
{
    struct challenge *challenge = &view->challenge;
    uint16_t *numbers = mem_alloc(challenge->n * sizeof *numbers);
    for (size_t i = 0; i < challenge->n; i++) {
        uint16_t number = cluster_view_find_id(view, challenge->nodes[i].id);
        numbers[i] =
            number != CLUSTER_NOBODY ? number : cluster_view_add_node(view, challenge->nodes[i].id);
    }
    for (size_t slot = 0; slot < SLOT_COUNT; slot++) {
        uint16_t said = challenge->owners[slot];
        set_owner(view, slot, said != CLUSTER_NOBODY ? numbers[said] : CLUSTER_NOBODY,
                  said != CLUSTER_NOBODY ? challenge->nodes[said].epoch : 0);
    }
    for (size_t i = 0; i < challenge->n; i++) {
        view->nodes[numbers[i]].epoch = 0;
        take_facts(view, numbers[i], &challenge->nodes[i], challenge->nodes[i].host);
        view->nodes[numbers[i]].is_candidate = false;
    }
    for (size_t i = 0; i < view->n; i++) {
        bool is_listed = false;
        for (size_t j = 0; j < challenge->n; j++)
            is_listed = is_listed || numbers[j] == i;
        if (!is_listed && is_there(&view->nodes[i]))
            remove_node(view, i);
    }
    free(numbers);
    view->is_changed = true;
    end_challenge(view);
}

static void take_challenge(struct taking *t)
{
    struct cluster_view *view = t->view;
    if (view->challenge.nodes == NULL || !is_same_table(&view->challenge, t->answer))
        begin_challenge(t);
    back(t);
    if (view->disagreed_ns == 0 || t->now_ns - view->disagreed_ns >= ROUND_NS)
        view->disagreed_ns = view->asked_ns;
    if (has_won(view))
        follow_challenge(view);
}

/* ---- redirects ---- */

static bool cluster_view_is_at(const struct cluster_view_node *node, struct slice host,
                               uint16_t port)
{
    return is_there(node) && node->port == port &&
           ((node->host[0] != '\0' && slice_eq_nocase(slice_str(node->host), host)) ||
            (node->hostname[0] != '\0' && slice_eq_nocase(slice_str(node->hostname), host)));
}

static bool is_borne_out(const struct cluster_view *view, const struct redirect *redirect)
{
    const struct slot_record *record = &view->slots[redirect->slot];
    struct slice host = slice_str(redirect->host);
    const uint16_t nodes[] = {record->owner,
                              record->is_leaving ? record->leaves_to : CLUSTER_NOBODY};
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++)
        if (nodes[i] != CLUSTER_NOBODY &&
            cluster_view_is_at(&view->nodes[nodes[i]], host, redirect->port))
            return true;
    return false;
}

static void forget_redirects(struct cluster_view *view, uint64_t now_ns)
{
    size_t n = 0;
    for (size_t i = 0; i < view->n_redirects; i++)
        if (!is_borne_out(view, &view->redirects[i]) &&
            now_ns - view->redirects[i].since_ns < ROUND_NS)
            view->redirects[n++] = view->redirects[i];
    view->n_redirects = n;
}

void cluster_view_note_redirect(struct cluster_view *view, uint16_t slot, struct slice host,
                                uint16_t port, uint64_t now_ns)
{
    struct redirect redirect = {.port = port, .slot = slot, .since_ns = now_ns};
    if (host.len == 0 || host.len >= sizeof redirect.host || slot >= SLOT_COUNT)
        return;
    memcpy(redirect.host, host.at, host.len);
    for (size_t i = 0; i < view->n_redirects; i++)
        if (view->redirects[i].slot == slot && view->redirects[i].port == port &&
            strcmp(view->redirects[i].host, redirect.host) == 0)
            return;
    if (view->n_redirects < REDIRECTS_MOST && !is_borne_out(view, &redirect))
        view->redirects[view->n_redirects++] = redirect;
}

/* ---- answers ---- */

static void find_numbers(struct taking *t)
{
    bool is_any_known = false;
    for (size_t i = 0; i < t->answer->n; i++) {
        t->numbers[i] = cluster_view_find_id(t->view, t->answer->nodes[i].id);
        is_any_known = is_any_known || (t->numbers[i] != CLUSTER_NOBODY &&
                                        !t->view->nodes[t->numbers[i]].is_candidate);
    }
    t->is_stranger = !is_any_known && cluster_view_served(t->view) > 0;
}

static void take(struct taking *t)
{
    struct cluster_view *view = t->view;
    find_numbers(t);
    admit_nodes(t);
    if (!t->is_stranger)
        cluster_view_take_slots(t);
    take_nodes(t);
    if (!t->is_stranger)
        take_moves(t);
    if (t->is_stranger || t->n_contradictions > 0) {
        take_challenge(t);
    } else {
        end_challenge(view);
        settle_nodes(t);
    }
    forget_redirects(view, t->now_ns);
}

bool cluster_view_take(struct cluster_view *view, const struct cluster_nodes *answer,
                       const char *host, uint64_t now_ns)
{
    struct taking t = {.view = view, .answer = answer, .host = host, .now_ns = now_ns};
    t.numbers = mem_alloc(answer->n * sizeof *t.numbers);
    view->is_changed = false;
    take(&t);
    free(t.numbers);
    return view->is_changed;
}

/* ---- the node to ask next ---- */

void cluster_view_note_asked(struct cluster_view *view, uint16_t node, uint64_t now_ns)
{
    view->asked_ns = now_ns;
    if (node < view->n)
        view->nodes[node].asked_ns = now_ns;
}

/*
 * Returns since when each master is to be asked once, because nodes disagree; 0: no disagreement.
 */
static uint64_t to_be_asked_since(const struct cluster_view *view)
{
    uint64_t since_ns = view->disagreed_ns;
    for (size_t i = 0; i < view->n_redirects; i++)
        if (view->redirects[i].since_ns > since_ns)
            since_ns = view->redirects[i].since_ns;
    return since_ns;
}

static bool cluster_view_is_wanted(const struct cluster_view_node *node, uint64_t since_ns)
{
    return can_be_asked(node) && !node->is_replica && node->asked_ns < since_ns;
}

bool cluster_view_wants_another(const struct cluster_view *view)
{
    uint64_t since_ns = to_be_asked_since(view);
    for (size_t i = 0; i < view->n; i++)
        if (cluster_view_is_wanted(&view->nodes[i], since_ns))
            return true;
    return false;
}

/* True if `a` is to be asked before `b`. */
static bool cluster_view_is_before(const struct cluster_view_node *a,
                                   const struct cluster_view_node *b, uint64_t since_ns)
{
    bool a_wanted = cluster_view_is_wanted(a, since_ns),
         b_wanted = cluster_view_is_wanted(b, since_ns);
    if (a_wanted != b_wanted)
        return a_wanted;
    if (a->is_failed != b->is_failed)
        return b->is_failed;
    return a->asked_ns < b->asked_ns;
}

uint16_t cluster_view_next(const struct cluster_view *view)
{
    uint64_t since_ns = to_be_asked_since(view);
    uint16_t next = CLUSTER_NOBODY;
    for (size_t i = 0; i < view->n_redirects; i++) {
        const struct redirect *redirect = &view->redirects[i];
        uint16_t node = cluster_view_find(view, slice_str(redirect->host), redirect->port);
        if (node != CLUSTER_NOBODY && can_be_asked(&view->nodes[node]) &&
            view->nodes[node].asked_ns < redirect->since_ns)
            return node;
    }
    for (size_t i = 0; i < view->n; i++)
        if (can_be_asked(&view->nodes[i]) &&
            (next == CLUSTER_NOBODY ||
             cluster_view_is_before(&view->nodes[i], &view->nodes[next], since_ns)))
            next = (uint16_t)i;
    return next;
}

/* ---- the present view ---- */

struct cluster_view *cluster_view_new(void)
{
    struct cluster_view *view = mem_zalloc(1, sizeof *view);
    for (size_t slot = 0; slot < SLOT_COUNT; slot++)
        view->slots[slot] = (struct slot_record){
            .owner = CLUSTER_NOBODY, .leaves_to = CLUSTER_NOBODY, .comes_to = CLUSTER_NOBODY};
    return view;
}

void cluster_view_free(struct cluster_view *view)
{
    if (view == NULL)
        return;
    end_challenge(view);
    free(view->nodes);
    free(view);
}

size_t cluster_view_count(const struct cluster_view *view)
{
    return view->n;
}

const struct cluster_view_node *cluster_view_node(const struct cluster_view *view, size_t number)
{
    return &view->nodes[number];
}

uint16_t cluster_view_find(const struct cluster_view *view, struct slice host, uint16_t port)
{
    for (size_t i = 0; i < view->n; i++)
        if (cluster_view_is_at(&view->nodes[i], host, port))
            return (uint16_t)i;
    return CLUSTER_NOBODY;
}

uint16_t cluster_view_owner(const struct cluster_view *view, uint16_t slot)
{
    return view->slots[slot].owner;
}

enum slot_state cluster_view_state(const struct cluster_view *view, uint16_t slot, uint16_t *other)
{
    const struct slot_record *record = &view->slots[slot];
    *other = record->is_leaving ? record->leaves_to : record->comes_to;
    if (record->is_leaving)
        return SLOT_MIGRATING;
    return record->comes_to != CLUSTER_NOBODY ? SLOT_IMPORTING : SLOT_STABLE;
}

size_t cluster_view_served(const struct cluster_view *view)
{
    size_t n = 0;
    for (size_t i = 0; i < view->n; i++)
        n += view->nodes[i].n_slots;
    return n;
}
