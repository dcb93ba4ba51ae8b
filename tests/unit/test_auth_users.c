/* Tests of what proves a client's login, and of what ends the proof. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "upstream/login/auth_users.h"

static struct proven proven;
static struct auth_users users;
static struct login *old, *new, *token;
static struct auth_user *app;

static int begin(void **state)
{
    (void)state;
    proven_init(&proven);
    auth_users_init(&users, &proven);
    old = login_new(SLICE("app"), SLICE("P1"));
    new = login_new(SLICE("app"), SLICE("P2"));
    token = login_new(SLICE("app"), SLICE("P3"));
    app = auth_users_get(&users, SLICE("app"));
    return 0;
}

static int end(void **state)
{
    (void)state;
    auth_user_put(app);
    assert_int_equal(users.n, 0);
    auth_users_fini(&users);
    for (unsigned i = 0; i < PROVEN_BUCKETS; i++)
        assert_true(list_is_empty(&proven.buckets[i]));
    proven_fini(&proven);
    login_put(old);
    login_put(new);
    login_put(token);
    return 0;
}

static void a_proof_holds_while_a_connection_is_open(void **state)
{
    (void)state;
    struct auth_proof proof = {0}, other = {0};
    assert_false(auth_proof_holds(&proof, &users, old));
    auth_user_open(app, old);
    auth_proof_take(&proof, app);
    assert_true(auth_proof_is_witnessed(&proof, &users, old) && auth_user_needs_it(app));
    auth_user_open(app, new);
    assert_false(auth_user_needs_it(app));
    auth_user_close(app);
    assert_true(auth_proof_holds(&proof, &users, old));
    auth_user_close(app); /* the last connection, closed by weir */
    assert_false(auth_proof_holds(&proof, &users, old));
    auth_user_open(app, old);
    assert_false(auth_proof_holds(&proof, &users, old));
    auth_proof_copy(&other, &proof);
    assert_false(auth_proof_holds(&other, &users, old));
    auth_user_close(app);
    auth_proof_drop(&proof);
    auth_proof_drop(&other);
    assert_int_equal(app->n_proofs, 0);
}

static void a_connection_that_redis_closes_ends_all_proofs(void **state)
{
    (void)state;
    struct auth_proof proof = {0};
    auth_user_open(app, old);
    auth_user_open(app, old);
    auth_proof_take(&proof, app);
    auth_user_close(app);
    auth_user_kicked(app);
    assert_false(auth_proof_holds(&proof, &users, old));
    auth_proof_take(&proof, app);
    assert_true(auth_proof_is_witnessed(&proof, &users, old));
    auth_user_close(app);
    auth_user_kicked(app);
    assert_false(auth_proof_holds(&proof, &users, old));
    auth_proof_drop(&proof);
}

static void before_the_first_connection_only_its_own_words_are_proven(void **state)
{
    (void)state;
    struct auth_proof thief = {0}, owner = {0};
    auth_proof_take(&thief, app);
    auth_proof_take(&owner, app);
    assert_true(auth_proof_holds(&thief, &users, old) &&
                !auth_proof_is_witnessed(&thief, &users, old));
    auth_user_open(app, new);
    assert_false(auth_proof_holds(&thief, &users, old));
    assert_true(auth_proof_is_witnessed(&owner, &users, new));
    auth_user_close(app);
    auth_user_open(app, old); /* another first connection proves nothing of the time before */
    assert_false(auth_proof_holds(&thief, &users, old) || auth_proof_holds(&owner, &users, new));
    auth_user_close(app);
    auth_proof_drop(&thief);
    auth_proof_drop(&owner);
}

static void a_proof_is_of_one_node(void **state)
{
    (void)state;
    static struct auth_users elsewhere;
    struct auth_proof proof = {0};
    auth_users_init(&elsewhere, &proven);
    struct auth_user *there = auth_users_get(&elsewhere, SLICE("app"));
    auth_proof_take(&proof, there);
    auth_user_put(there);
    assert_true(auth_proof_holds(&proof, &elsewhere, old) &&
                !auth_proof_holds(&proof, &users, old));
    auth_users_fini(&elsewhere); /* the node is gone: the user lives as long as its proof */
    assert_false(auth_proof_holds(&proof, &elsewhere, old));
    auth_proof_drop(&proof);
}

static void the_newest_password_is_tried_first(void **state)
{
    (void)state;
    assert_null(auth_user_newest(app));
    auth_user_note(app, old);
    auth_user_note(app, new);
    auth_user_note(app, old); /* known already */
    assert_ptr_equal(auth_user_newest(app), new);
    struct login *same = login_new(SLICE("app"), SLICE("P2"));
    assert_true(auth_user_refuse(app, same));
    assert_ptr_equal(auth_user_newest(app), old);
    assert_false(auth_user_refuse(app, old));
    assert_null(auth_user_newest(app));
    login_put(same);
}

static void a_few_are_kept(void **state)
{
    (void)state;
    char text[2] = "a";
    for (; text[0] < 'a' + AUTH_PROVEN_MAX + 3; text[0]++) {
        struct login *login = login_new(SLICE("app"), slice_str(text));
        auth_user_note(app, login);
        login_put(login);
    }
    auth_user_note(app, token);
    assert_ptr_equal(auth_user_newest(app), token);
    unsigned n = 1;
    for (; auth_user_refuse(app, auth_user_newest(app)); n++)
        ;
    assert_int_equal(n, AUTH_PROVEN_MAX);
}

static void what_other_workers_know_comes_last(void **state)
{
    (void)state;
    static struct auth_users others;
    auth_users_init(&others, &proven);
    struct auth_user *there = auth_users_get(&others, SLICE("app"));
    auth_user_note(app, old);
    auth_user_note(there, token);
    auth_user_note(there, new);
    assert_true(auth_user_refuse(app, old));
    assert_true(login_same(auth_user_newest(app), new));
    /* reference counts are not atomic: each thread has its own copy */
    assert_true(auth_user_newest(app) != new);
    assert_false(auth_user_refuse(app, new));
    assert_true(auth_user_refuse(there, new));
    auth_user_note(there, token); /* again */
    assert_true(auth_user_refuse(app, old));
    auth_user_put(there);
    auth_users_fini(&others);
    assert_false(auth_user_refuse(app, token));
}

static void a_user_is_known_while_somebody_holds_it(void **state)
{
    (void)state;
    assert_null(auth_users_find(&users, SLICE("ap")));
    assert_ptr_equal(auth_users_find(&users, SLICE("app")), app);
    for (int i = 0; i < 2; i++) {
        struct auth_user *user = auth_users_get(&users, SLICE("an\0n"));
        assert_ptr_equal(auth_users_find(&users, SLICE("an\0n")), user);
        auth_user_put(user);
        assert_null(auth_users_find(&users, SLICE("an\0n")));
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_proof_holds_while_a_connection_is_open),
        TEST(a_connection_that_redis_closes_ends_all_proofs),
        TEST(before_the_first_connection_only_its_own_words_are_proven),
        TEST(a_proof_is_of_one_node),
        TEST(the_newest_password_is_tried_first),
        TEST(a_few_are_kept),
        TEST(what_other_workers_know_comes_last),
        TEST(a_user_is_known_while_somebody_holds_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
