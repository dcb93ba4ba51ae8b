/* Tests of the choice of the master: by a list of servers, and by sentinels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/topology/mastership.h"

#define NOW_NS (1000 * NS_PER_S)
#define MOST 8

/*
 * Servers: "A=master B=replica C=lost:master D=untried E=mute F=stale:replica" in any order. mute:
 * connected, without a report of its role. stale: the report is older than any claim. lost: with
 * the last reported role. Claims: "1:A@5 2:B@6 3:-" by sentinel. "old 1:A@5" with ! behind: the
 * sentinel does not answer any more. With ~ behind: made just now.
 */
struct row {
    const char *what;
    enum mastership_form form;
    const char *servers, *claims;
    size_t n_sentinels;
    const char *named; /* the master before; NULL: none */
    uint64_t epoch;
    uint64_t ago_ms; /* ms since the last change; 0: there was none */
    const char *default_node, *named_now, *ask;
    enum mastership_why why;
    enum mastership_pace pace;
    uint64_t epoch_now;
    size_t rivals;
};

#define LIST MASTERSHIP_LIST
#define SENT MASTERSHIP_SENTINELS
#define GOOD MASTERSHIP_GOOD, PACE_CALM
#define GOOD_FAST MASTERSHIP_GOOD, PACE_HURRY
#define NO(why) MASTERSHIP_##why, PACE_HURRY

static const struct row rows[] = {
    /* ---- a list: at a start ---- */
    {"one that says master", LIST, "A=master B=replica", "", 0, NULL, 0, 0, "A", "A", NULL, GOOD, 0,
     0},
    {"the second says master", LIST, "A=replica B=master", "", 0, NULL, 0, 0, "B", "B", NULL, GOOD,
     0, 0},
    {"one is away", LIST, "A=lost B=master", "", 0, NULL, 0, 0, "B", "B", NULL, GOOD, 0, 0},
    {"two say master", LIST, "A=master B=master", "", 0, NULL, 0, 0, NULL, NULL, NULL, NO(SEVERAL),
     0, 2},
    {"three say master", LIST, "A=master B=master C=master", "", 0, NULL, 0, 0, NULL, NULL, NULL,
     NO(SEVERAL), 0, 3},
    {"none says master", LIST, "A=replica B=replica", "", 0, NULL, 0, 0, NULL, NULL, NULL,
     NO(ALL_REPLICAS), 0, 0},
    {"none is there", LIST, "A=lost B=lost", "", 0, NULL, 0, 0, NULL, NULL, NULL, NO(NONE_ANSWERS),
     0, 0},
    {"one is mute", LIST, "A=mute B=lost", "", 0, NULL, 0, 0, NULL, NULL, NULL, NO(ALL_REPLICAS), 0,
     0},
    {"one is not tried yet", LIST, "A=master B=untried", "", 0, NULL, 0, 0, NULL, NULL, NULL,
     NO(STARTS), 0, 1},
    {"none is tried yet", LIST, "A=untried B=untried", "", 0, NULL, 0, 0, NULL, NULL, NULL,
     NO(STARTS), 0, 0},
    {"no servers", LIST, "", "", 0, NULL, 0, 0, NULL, NULL, NULL, NO(NONE_ANSWERS), 0, 0},
    {"a lost one that said master", LIST, "A=lost:master B=replica", "", 0, NULL, 0, 0, NULL, NULL,
     NULL, NO(ALL_REPLICAS), 0, 0},
    /* ---- a list: later ---- */
    {"home stays", LIST, "A=master B=replica", "", 0, "A", 0, 500, "A", "A", NULL, GOOD, 0, 0},
    {"home stays though another says master", LIST, "A=master B=master", "", 0, "A", 0, 500, "A",
     "A", NULL, GOOD, 0, 1},
    {"the second is home, and stays", LIST, "A=master B=master", "", 0, "B", 0, 500, "B", "B", NULL,
     GOOD, 0, 1},
    {"home is lost, another is master", LIST, "A=lost:master B=master", "", 0, "A", 0, 500, "B",
     "B", NULL, GOOD, 0, 0},
    {"home is lost, none is master", LIST, "A=lost:master B=replica", "", 0, "A", 0, 500, "A", "A",
     NULL, NO(LOST), 0, 0},
    {"home is lost, all are", LIST, "A=lost:master B=lost", "", 0, "A", 0, 500, "A", "A", NULL,
     NO(LOST), 0, 0},
    {"home is lost, two others say master", LIST, "A=lost:master B=master C=master", "", 0, "A", 0,
     500, "A", "A", NULL, NO(LOST), 0, 2},
    {"home is a replica now", LIST, "A=replica B=master", "", 0, "A", 0, 500, "B", "B", NULL, GOOD,
     0, 0},
    {"home is a replica, no other is there", LIST, "A=replica B=lost", "", 0, "A", 0, 500, NULL,
     NULL, NULL, NO(ALL_REPLICAS), 0, 0},
    {"home is a replica, two others say master", LIST, "A=replica B=master C=master", "", 0, "A", 0,
     500, NULL, NULL, NULL, NO(SEVERAL), 0, 2},
    {"the old one returns as a replica", LIST, "A=replica B=master", "", 0, "B", 0, 500, "B", "B",
     NULL, GOOD, 0, 0},
    {"the old one returns as a master", LIST, "A=master B=master", "", 0, "B", 0, 500, "B", "B",
     NULL, GOOD, 0, 1},
    {"after none, one that others do not hold up", LIST, "A=master B=untried", "", 0, NULL, 0, 500,
     "A", "A", NULL, GOOD, 0, 0},
    {"home has left the list", LIST, "B=master", "", 0, "A", 0, 500, "B", "B", NULL, GOOD, 0, 0},
    /* ---- sentinels that agree ---- */
    {"all agree at a start", SENT, "A=master B=replica", "1:A@5 2:A@5 3:A@5", 3, NULL, 0, 0, "A",
     "A", NULL, GOOD, 5, 0},
    {"epochs begin at 0", SENT, "A=master", "1:A@0 2:A@0", 2, NULL, 0, 0, "A", "A", NULL, GOOD, 0,
     0},
    {"one sentinel only", SENT, "A=master", "1:A@5", 1, NULL, 0, 0, "A", "A", NULL, GOOD, 5, 0},
    {"one of three answers at a start", SENT, "A=master", "1:A@5", 3, NULL, 0, 0, "A", "A", NULL,
     GOOD, 5, 0},
    {"home undisputed", SENT, "A=master B=replica", "1:A@5 2:A@5 3:A@5", 3, "A", 5, 9000, "A", "A",
     NULL, GOOD, 5, 0},
    {"no sentinel answers, home stays", SENT, "A=master", "1:A@5! 2:A@5!", 3, "A", 5, 9000, "A",
     "A", NULL, GOOD, 5, 0},
    {"no sentinel answers at a start", SENT, "", "", 3, NULL, 0, 0, NULL, NULL, NULL, NO(NO_CLAIM),
     0, 0},
    {"sentinels name none", SENT, "", "1:- 2:-", 2, NULL, 0, 0, NULL, NULL, NULL, NO(NO_CLAIM), 0,
     0},
    {"sentinels name none, home stays", SENT, "A=master", "1:- 2:-", 2, "A", 5, 9000, "A", "A",
     NULL, GOOD, 5, 0},
    {"home is lost, the sentinels stay with it", SENT, "A=lost:master B=replica", "1:A@5 2:A@5", 3,
     "A", 5, 9000, "A", "A", NULL, NO(LOST), 5, 0},
    {"the named one has said nothing for long", SENT, "A=mute", "1:A@5 2:A@5", 2, NULL, 0, 0, NULL,
     "A", "A", NO(AWAITED), 5, 0},
    {"the named one was just named", SENT, "A=mute", "1:A@5~ 2:A@5~", 2, NULL, 0, 0, NULL, NULL,
     "A", NO(AWAITED), 0, 2},
    {"the named one is not known yet", SENT, "", "1:A@5~ 2:A@5~", 2, NULL, 0, 0, NULL, NULL, "A",
     NO(AWAITED), 0, 2},
    {"all servers named are replicas", SENT, "A=replica", "1:A@5 2:A@5", 2, NULL, 0, 0, NULL, NULL,
     "A", NO(IS_REPLICA), 0, 0},
    {"home says that it is a replica", SENT, "A=replica B=replica", "1:A@5 2:A@5", 2, "A", 5, 9000,
     NULL, "A", "A", NO(IS_REPLICA), 5, 0},
    /* ---- a failover ---- */
    {"all follow", SENT, "A=lost:master B=master", "1:B@6 2:B@6 3:B@6", 3, "A", 5, 9000, "B", "B",
     NULL, GOOD, 6, 0},
    {"the first that follows is not enough", SENT, "A=lost:master B=master", "1:B@6 2:A@5 3:A@5", 3,
     "A", 5, 9000, "A", "A", NULL, NO(LOST), 5, 1},
    {"two of three follow", SENT, "A=master B=master", "1:B@6 2:B@6 3:A@5", 3, "A", 5, 9000, "B",
     "B", NULL, GOOD_FAST, 6, 1},
    {"at once, though the last change is young", SENT, "A=master B=master", "1:B@6 2:B@6", 3, "A",
     5, 10, "B", "B", NULL, GOOD, 6, 0},
    {"switched by hand, the old one calls itself master", SENT, "A=master B=master",
     "1:B@6 2:B@6 3:B@6", 3, "A", 5, 9000, "B", "B", NULL, GOOD, 6, 0},
    {"the new one has not said anything yet", SENT, "A=master", "1:B@6~ 2:B@6~ 3:A@5", 3, "A", 5,
     9000, "A", "A", "B", GOOD_FAST, 5, 2},
    {"the new one does not say anything", SENT, "A=master", "1:B@6 2:B@6 3:A@5", 3, "A", 5, 9000,
     NULL, "B", "B", NO(AWAITED), 6, 1},
    {"the new one was a replica when last asked", SENT, "A=master B=stale:replica", "1:B@6~ 2:B@6~",
     3, "A", 5, 9000, "A", "A", "B", GOOD_FAST, 5, 2},
    {"and does not answer since", SENT, "A=master B=stale:replica", "1:B@6 2:B@6", 3, "A", 5, 9000,
     NULL, "B", "B", NO(IS_REPLICA), 6, 0},
    {"the new one is lost", SENT, "A=master B=lost:replica", "1:B@6~ 2:B@6~", 3, "A", 5, 9000, NULL,
     "B", "B", NO(IS_REPLICA), 6, 0},
    {"the new one says master", SENT, "A=master B=master", "1:B@6 2:B@6", 3, "B", 6, 200, "B", "B",
     NULL, GOOD, 6, 0},
    {"one sentinel only follows", SENT, "A=master B=master", "1:B@6", 1, "A", 5, 9000, "B", "B",
     NULL, GOOD, 6, 0},
    {"one of three answers, with a newer epoch", SENT, "A=lost:master B=master",
     "1:B@6 2:A@5! 3:A@5!", 3, "A", 5, 9000, "B", "B", NULL, GOOD, 6, 0},
    {"the old one is named by a late sentinel alone", SENT, "A=master B=lost:master",
     "1:A@5 2:B@6! 3:B@6!", 3, "B", 6, 9000, "B", "B", NULL, NO(LOST), 6, 1},
    {"back to the first one", SENT, "A=master B=lost:master", "1:A@7 2:A@7 3:B@6", 3, "B", 6, 9000,
     "A", "A", NULL, GOOD_FAST, 7, 1},
    {"the old one returns as a replica", SENT, "A=replica B=master", "1:B@6 2:B@6 3:A@5", 3, "B", 6,
     9000, "B", "B", NULL, GOOD, 6, 0},
    /* ---- sentinels that disagree, or lie ---- */
    {"one each at a start", SENT, "A=master B=master", "1:A@5 2:B@5", 2, NULL, 0, 0, NULL, NULL,
     NULL, NO(DISAGREE), 0, 2},
    {"one each, home stays", SENT, "A=master B=master", "1:A@5 2:B@9", 2, "A", 5, 9000, "A", "A",
     NULL, GOOD_FAST, 5, 1},
    {"two against one", SENT, "A=master B=master", "1:A@5 2:A@5 3:B@5", 3, NULL, 0, 0, "A", "A",
     NULL, GOOD_FAST, 5, 1},
    {"a liar with a huge epoch", SENT, "A=master X=master", "1:A@5 2:A@5 3:X@999", 3, "A", 5, 9000,
     "A", "A", NULL, GOOD_FAST, 5, 1},
    {"a liar for home with a huge epoch", SENT, "A=master", "1:A@5 2:A@5 3:A@999", 3, "A", 5, 9000,
     "A", "A", NULL, GOOD, 5, 0},
    {"a liar was believed, the known epoch falls", SENT, "A=master", "1:A@5 2:A@5 3:A@999", 3, "A",
     999, 9000, "A", "A", NULL, GOOD, 5, 0},
    {"it does not fall for one of three", SENT, "A=master", "1:A@5", 3, "A", 999, 9000, "A", "A",
     NULL, GOOD, 999, 0},
    {"nor while another is named", SENT, "A=master B=master", "1:A@5 2:A@5 3:B@4", 3, "A", 9, 9000,
     "A", "A", NULL, GOOD_FAST, 9, 1},
    {"a liar's server was followed, most name another", SENT, "A=master X=master",
     "1:A@5 2:A@5 3:X@999", 3, "X", 999, 9000, "A", "A", NULL, GOOD_FAST, 5, 1},
    {"a failover under a liar for the old one", SENT, "A=lost:master B=master",
     "1:B@6 2:B@6 3:A@999", 3, "A", 5, 9000, "B", "B", NULL, GOOD_FAST, 6, 1},
    {"a claim for a replica", SENT, "A=master B=replica", "1:B@9", 1, "A", 5, 9000, "A", "A", NULL,
     GOOD, 5, 0},
    {"two claims for a replica", SENT, "A=master B=replica", "1:B@9 2:B@9 3:A@5", 3, "A", 5, 9000,
     "A", "A", NULL, GOOD, 5, 0},
    {"equal epochs, more for another", SENT, "A=master B=master", "1:B@5 2:B@5 3:A@5", 3, "A", 5,
     9000, "B", "B", NULL, GOOD_FAST, 5, 1},
    {"the same too soon after a change", SENT, "A=master B=master", "1:B@5 2:B@5 3:A@5", 3, "A", 5,
     400, "A", "A", NULL, GOOD_FAST, 5, 2},
    {"equal epochs, as many", SENT, "A=master B=master", "1:B@5 2:B@5 3:A@5 4:A@5", 4, "A", 5, 9000,
     "A", "A", NULL, GOOD_FAST, 5, 2},
    {"one sentinel under two addresses", SENT, "A=master B=master", "1:B@9 1:B@9 2:A@5", 3, "A", 5,
     9000, "A", "A", NULL, GOOD_FAST, 5, 1},
    /* ---- epochs that began anew ---- */
    {"a fresh deployment, all agree", SENT, "A=lost:master B=master", "1:B@0 2:B@0 3:B@0", 3, "A",
     7, 9000, "B", "B", NULL, GOOD, 0, 0},
    {"two of three have answered", SENT, "A=lost:master B=master", "1:B@0 2:B@0 3:A@7!", 3, "A", 7,
     9000, "B", "B", NULL, GOOD, 0, 0},
    {"one of three has answered", SENT, "A=lost:master B=master", "1:B@0", 3, "A", 7, 9000, "A",
     "A", NULL, NO(LOST), 7, 1},
    {"one sentinel only, fresh", SENT, "A=lost:master B=master", "1:B@0", 1, "A", 7, 9000, "B", "B",
     NULL, GOOD, 0, 0},
    {"too soon after a change", SENT, "A=lost:master B=master", "1:B@0 2:B@0", 2, "A", 7, 900, "A",
     "A", NULL, NO(LOST), 7, 2},
    {"fresh epochs for the same server", SENT, "A=master", "1:A@0 2:A@0 3:A@0", 3, "A", 7, 9000,
     "A", "A", NULL, GOOD, 0, 0},
    {"three late ones of five, two name home", SENT, "A=master B=master",
     "1:B@6 2:B@6 3:A@5 4:A@5 5:A@5", 5, "B", 6, 9000, "B", "B", NULL, GOOD_FAST, 6, 3},
};

static struct mastership_server read_server(char *word, const char *key)
{
    struct mastership_server server = {.key = key, .reach = REACH_OK, .said_ns = NOW_NS - 10};
    char *role = strchr(word, ':');
    role = role != NULL ? role + 1 : word;
    if (strncmp(word, "lost", 4) == 0)
        server.reach = REACH_LOST;
    if (strcmp(word, "untried") == 0)
        server.reach = REACH_UNTRIED;
    if (strncmp(word, "stale", 5) == 0 || server.reach == REACH_LOST)
        server.said_ns = NOW_NS - 60 * NS_PER_S;
    server.role = strcmp(role, "master") == 0    ? ROLE_MASTER
                  : strcmp(role, "replica") == 0 ? ROLE_REPLICA
                                                 : ROLE_UNKNOWN;
    return server;
}

static size_t read_servers(char *text, struct mastership_server *servers)
{
    size_t n = 0;
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        assert_true(n < MOST);
        word[1] = '\0';
        servers[n++] = read_server(word + 2, word);
    }
    return n;
}

static size_t read_claims(char *text, struct mastership_claim *claims)
{
    size_t n = 0;
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        assert_true(n < MOST);
        char last = word[strlen(word) - 1];
        uint64_t ago_ns = last == '~' ? 20 * NS_PER_MS : 5 * NS_PER_S;
        word[1] = word[3] = '\0';
        claims[n++] =
            (struct mastership_claim){.sentinel = word,
                                      .server = word[2] != '-' ? word + 2 : NULL,
                                      .epoch = word[2] != '-' ? strtoull(word + 4, NULL, 10) : 0,
                                      .since_ns = NOW_NS - ago_ns,
                                      .age = last == '!' ? CLAIM_OLD : CLAIM_FRESH};
    }
    return n;
}

static const char *text_of(const char *key)
{
    return key != NULL ? key : "-";
}

static struct mastership_choice choose(const struct row *row)
{
    struct mastership_server servers[MOST];
    struct mastership_claim claims[MOST];
    static char server_text[256], claim_text[256]; /* the choice points into these texts */
    snprintf(server_text, sizeof server_text, "%s", row->servers);
    snprintf(claim_text, sizeof claim_text, "%s", row->claims);
    struct mastership_view view = {
        .form = row->form,
        .servers = servers,
        .n_servers = read_servers(server_text, servers),
        .claims = claims,
        .n_claims = read_claims(claim_text, claims),
        .n_sentinels = row->n_sentinels,
        .before = {row->named, row->epoch, row->ago_ms != 0 ? NOW_NS - row->ago_ms * NS_PER_MS : 0},
        .now_ns = NOW_NS,
    };
    return mastership_choose(&view);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        struct mastership_choice choice = choose(row);
        char is[128], should[128];
        snprintf(is, sizeof is, "%s: home %s named %s ask %s why %d pace %d epoch %llu rivals %zu",
                 row->what, text_of(choice.default_node), text_of(choice.named),
                 text_of(choice.ask), (int)choice.why, (int)choice.pace,
                 (unsigned long long)choice.epoch, choice.rivals);
        snprintf(should, sizeof should,
                 "%s: home %s named %s ask %s why %d pace %d epoch %llu rivals %zu", row->what,
                 text_of(row->default_node), text_of(row->named_now), text_of(row->ask),
                 (int)row->why, (int)row->pace, (unsigned long long)row->epoch_now, row->rivals);
        assert_string_equal(is, should);
    }
}

/* A postponed choice is made on time without another event. */
static void test_again(void **state)
{
    (void)state;
    struct row row = {
        "", SENT, "A=master B=master", "1:B@5 2:B@5 3:A@5", 3, "A", 5, 400, 0, 0, 0, GOOD, 0, 0};
    assert_int_equal(choose(&row).again_ns, NOW_NS + 600 * NS_PER_MS);
    row.servers = "A=master B=stale:replica";
    row.claims = "1:B@6~ 2:B@6~";
    assert_int_equal(choose(&row).again_ns, NOW_NS + 280 * NS_PER_MS);
    row.claims = "1:A@6~ 2:A@6~";
    assert_int_equal(choose(&row).again_ns, 0);
}

/*
 * Sentinels that never agree, with any claims, change the master at most once a second without a
 * newer epoch.
 */
static void test_never_flaps(void **state)
{
    (void)state;
    static const char *const keys[] = {"A", "B", "C"};
    struct mastership_server servers[3];
    struct mastership_claim claims[5];
    struct mastership_before before = {"A", 5, NOW_NS - NS_PER_S};
    uint64_t now_ns = NOW_NS;
    unsigned changes = 0;
    srand(7);
    for (size_t i = 0; i < 3; i++)
        servers[i] = (struct mastership_server){keys[i], REACH_OK, ROLE_MASTER, NOW_NS};
    for (unsigned step = 0; step < 4000; step++, now_ns += 25 * NS_PER_MS) {
        for (size_t i = 0; i < 5; i++)
            claims[i] = (struct mastership_claim){&"1\0002\0003\0004\0005"[2 * i], keys[rand() % 3],
                                                  5, 0, CLAIM_FRESH};
        struct mastership_choice choice = mastership_choose(&(struct mastership_view){
            MASTERSHIP_SENTINELS, servers, 3, claims, 5, 5, before, now_ns});
        assert_non_null(choice.default_node);
        changes += strcmp(choice.named, before.named) != 0;
        before = (struct mastership_before){choice.named, choice.epoch, choice.changed_ns};
    }
    assert_in_range(changes, 1, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_again),
                                       cmocka_unit_test(test_never_flaps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
