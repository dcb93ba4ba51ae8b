/*
 * Tests of the first requests on a connection. Only the right replies in order give the connection
 * an owner.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "upstream/lane/lane.h"

static struct nonce nonce;

static struct glimpse glimpse_of(const char *text)
{
    struct glimpse glimpse;
    glimpse_reset(&glimpse);
    glimpse_feed(&glimpse, text, strlen(text));
    return glimpse;
}

/* Returns the requests of all stages, one stage a line, words without their lengths. */
static const char *said(struct greeting *greeting, const struct lane_key *key)
{
    static char out[1024];
    size_t n;
    char *at = out;
    char *bytes = greeting_say(greeting, key, &nonce, &n);
    for (const char *p = bytes; p < bytes + n;) {
        const char *end = memchr(p, '\n', (size_t)(bytes + n - p));
        bool is_word = *p != '*' && *p != '$';
        if (*p == '*' && at > out)
            at[-1] = ',';
        if (is_word)
            at += sprintf(at, "%.*s ", (int)(end - 1 - p), p);
        p = end + 1;
    }
    at[at > out ? -1 : 0] = '\0';
    free(bytes);
    return out;
}

static const char *nonce_answer(char quote)
{
    static char text[128];
    snprintf(text, sizeof text,
             "-ERR unknown command %cWEIR.NONCE%c, with args beginning with: %c%.*s%c%s\r\n", quote,
             quote, quote, NONCE_LEN, nonce.text, quote, quote == '`' ? ", " : " ");
    return text;
}

static enum greeting_verdict judge(struct greeting *greeting, const char *answer)
{
    struct glimpse glimpse = glimpse_of(answer);
    return greeting_judge(greeting, &nonce, &glimpse);
}

static struct lane_key key_of(struct login *login, uint32_t database, uint8_t protocol)
{
    return (struct lane_key){.protocol = protocol, .database = database, .login = login};
}

static void a_fresh_one_has_nothing_pending_when_it_logs_in(void **state)
{
    struct login *login = login_new(SLICE("u"), SLICE("p"));
    struct lane_key key = key_of(login, 3, 3);
    struct greeting greeting;
    (void)state;
    greeting_init(&greeting, &key, GREETING_OWNED, NULL);
    assert_string_equal(said(&greeting, &key), "sELECT 3");
    assert_false(greeting_goes_on(&greeting));
    assert_int_equal(judge(&greeting, "-NOAUTH Authentication required.\r\n"), GREETING_GOOD);
    assert_true(greeting_goes_on(&greeting));
    assert_string_equal(said(&greeting, &key), "aUTH u p,sELECT 3,hELLO 3");
    assert_int_equal(judge(&greeting, "+OK\r\n"), GREETING_GOOD);
    assert_int_equal(judge(&greeting, "+OK\r\n"), GREETING_GOOD);
    assert_int_equal(judge(&greeting, "%1\r\n$2\r\nid\r\n:7\r\n"), GREETING_TELLS_ID);
    assert_true(greeting_is_over(&greeting));
    assert_int_equal(judge(&greeting, "+OK\r\n"), GREETING_UNCLEAN);
    login_put(login);
}

static void what_a_fresh_one_may_hear(void **state)
{
    struct login *login = login_new(SLICE("u"), SLICE("p"));
    struct lane_key key = key_of(login, 0, 2);
    struct lane_key nobody = key_of(NULL, 0, 2);
    struct greeting greeting;
    static const struct {
        const char *answer;
        enum greeting_verdict verdict;
    } cases[] = {
        {"+OK\r\n", GREETING_GOOD},
        {"+QUEUED\r\n", GREETING_REFUSED},
        {"+OKAY\r\n", GREETING_REFUSED},
        {"-WRONGPASS no\r\n", GREETING_LOGIN_REFUSED},
        {"-ERR max number of clients reached\r\n", GREETING_TURNED_AWAY},
        {"-DENIED\r\n", GREETING_TURNED_AWAY},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        greeting_init(&greeting, &key, GREETING_FRESH, NULL);
        assert_string_equal(said(&greeting, &key), "aUTH u p");
        assert_int_equal(judge(&greeting, cases[i].answer), cases[i].verdict);
    }
    greeting_init(&greeting, &nobody, GREETING_FRESH, NULL);
    assert_string_equal(said(&greeting, &nobody), "hELLO");
    assert_int_equal(judge(&greeting, "-NOAUTH no\r\n"), GREETING_GOOD);
    assert_true(greeting.needs_auth && greeting_is_over(&greeting));
    login_put(login);
}

/*
 * A WAIT-coverage write goes before the client's login, under weir's own login if there is one. The
 * reply to the write only tells whether weir may write.
 */
static void a_covering_one_writes_first(void **state)
{
    struct login *login = login_new(SLICE("u"), SLICE("p"));
    struct login *own = login_new(SLICE("weir"), SLICE("w"));
    struct lane_key key = key_of(login, 0, 2);
    struct lane_key nobody = key_of(NULL, 0, 2);
    const struct greeting_cover cover = {"c", own};
    struct greeting greeting;
    (void)state;
    greeting_init(&greeting, &key, GREETING_OWNED, &cover);
    assert_string_equal(said(&greeting, &key), "aUTH weir w,sET c  PX 1");
    assert_int_equal(judge(&greeting, "+OK\r\n"), GREETING_GOOD);
    assert_false(greeting_goes_on(&greeting));
    assert_int_equal(judge(&greeting, "+OK\r\n"), GREETING_GOOD);
    assert_true(greeting_goes_on(&greeting) && greeting.is_covered);
    assert_string_equal(said(&greeting, &key), "aUTH u p,hELLO");
    assert_int_equal(judge(&greeting, "-WRONGPASS no\r\n"), GREETING_LOGIN_REFUSED);
    greeting_init(&greeting, &key, GREETING_OWNED, &cover);
    (void)said(&greeting, &key);
    assert_int_equal(judge(&greeting, "-WRONGPASS no\r\n"), GREETING_GOOD);
    assert_int_equal(judge(&greeting, "-NOAUTH no\r\n"), GREETING_GOOD);
    assert_false(greeting.is_covered);
    greeting_init(&greeting, &nobody, GREETING_OWNED, &cover);
    assert_string_equal(said(&greeting, &nobody), "sET c  PX 1,hELLO");
    assert_int_equal(judge(&greeting, "-ERR max number of clients reached\r\n"),
                     GREETING_TURNED_AWAY);
    login_put(login);
    login_put(own);
}

/* After RESET. Whatever the reply to the write is, the nonce must be at its position. */
static void a_used_one_that_covers_writes_behind_reset(void **state)
{
    struct login *login = login_new(SLICE("u"), SLICE("p"));
    struct login *own = login_new(SLICE("weir"), SLICE("w"));
    struct lane_key key = key_of(login, 0, 3);
    const struct greeting_cover cover = {"c", own};
    struct greeting greeting;
    (void)state;
    assert_true(nonce_draw(&nonce, NONCE_UNKNOWN));
    const char *right[] = {
        "+RESET\r\n",      "+OK\r\n", "+OK\r\n", "+OK\r\n", "%1\r\n$2\r\nid\r\n:7\r\n",
        nonce_answer('\'')};
    for (unsigned writes = 0; writes < 2; writes++) {
        right[2] = writes ? "+OK\r\n" : "-NOPERM no\r\n";
        greeting_init(&greeting, &key, GREETING_AGAIN, &cover);
        assert_non_null(strstr(said(&greeting, &key),
                               "rESET,aUTH weir w,sET c  PX 1,aUTH u p,hELLO 3,WEIR.NONCE "));
        for (size_t i = 0; i < 6; i++)
            assert_int_equal(judge(&greeting, right[i]), GREETING_GOOD);
        assert_true(greeting_is_over(&greeting) && greeting.is_covered == writes);
    }
    /* without the reply to AUTH the lane is unclean */
    greeting_init(&greeting, &key, GREETING_AGAIN, &cover);
    (void)said(&greeting, &key);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(judge(&greeting, right[i]), GREETING_GOOD);
    assert_int_equal(judge(&greeting, right[4]), GREETING_UNCLEAN);
    login_put(login);
    login_put(own);
}

/* A wrong reply at any position, or a reply too many, leaves the lane unclean. */
static void a_used_one_answers_exactly_or_is_not_clean(void **state)
{
    struct login *login = login_new(SLICE("u"), SLICE("p"));
    struct lane_key key = key_of(login, 0, 3);
    struct greeting greeting;
    static const char *const forged[] = {"+RESET\r\n",   "+OK\r\n", "+QUEUED\r\n", ":1\r\n",
                                         "$2\r\nOK\r\n", "*0\r\n",  "-ERR x\r\n",  "%0\r\n",
                                         "+OK \r\n",     "_\r\n",   "+PONG\r\n"};
    (void)state;
    assert_true(nonce_draw(&nonce, NONCE_UNKNOWN));
    const char *right[] = {"+RESET\r\n", "+OK\r\n", "%1\r\n$2\r\nid\r\n:7\r\n", nonce_answer('\'')};
    greeting_init(&greeting, &key, GREETING_AGAIN, NULL);
    assert_non_null(strstr(said(&greeting, &key), "rESET,aUTH u p,hELLO 3,WEIR.NONCE "));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(judge(&greeting, right[i]), GREETING_GOOD);
    assert_true(greeting_is_over(&greeting));
    for (size_t at = 0; at < 4; at++)
        for (size_t f = 0; f < sizeof forged / sizeof forged[0]; f++) {
            if (strcmp(forged[f], right[at]) == 0 || (at == 2 && forged[f][0] == '%'))
                continue;
            greeting_init(&greeting, &key, GREETING_AGAIN, NULL);
            (void)said(&greeting, &key);
            enum greeting_verdict verdict = GREETING_GOOD;
            for (size_t i = 0; i < at; i++)
                assert_int_equal(judge(&greeting, right[i]), GREETING_GOOD);
            verdict = judge(&greeting, forged[f]);
            assert_int_equal(verdict,
                             at == 0 && forged[f][0] == '-' ? GREETING_NO_RESET : GREETING_UNCLEAN);
        }
    login_put(login);
}

/*
 * A lane without a known client id asks for the id when its next owner logs in. The id is trusted
 * once the nonce is right.
 */
static void a_used_one_without_an_id_is_asked_for_it(void **state)
{
    struct login *login = login_new(SLICE("u"), SLICE("p"));
    struct lane_key key = key_of(login, 0, 2);
    struct greeting greeting;
    (void)state;
    assert_true(nonce_draw(&nonce, NONCE_UNKNOWN));
    greeting_init(&greeting, &key, GREETING_NAMED, NULL);
    assert_non_null(strstr(said(&greeting, &key), "rESET,aUTH u p,hELLO,WEIR.NONCE "));
    assert_int_equal(judge(&greeting, "+RESET\r\n"), GREETING_GOOD);
    assert_int_equal(judge(&greeting, "+OK\r\n"), GREETING_GOOD);
    assert_int_equal(judge(&greeting, "*2\r\n$2\r\nid\r\n:7\r\n"), GREETING_TELLS_ID);
    assert_int_equal(judge(&greeting, nonce_answer('\'')), GREETING_GOOD);
    assert_true(greeting_is_over(&greeting));
    greeting_init(&greeting, &key, GREETING_NAMED, NULL);
    (void)said(&greeting, &key);
    assert_int_equal(judge(&greeting, "+RESET\r\n"), GREETING_GOOD);
    assert_int_equal(judge(&greeting, "+OK\r\n"), GREETING_GOOD);
    assert_int_equal(judge(&greeting, "-NOAUTH x\r\n"), GREETING_UNCLEAN);
    login_put(login);
}

static void check_form(enum nonce_form form, const char *question, const char *begin,
                       const char *end)
{
    char request[NONCE_REQUEST_ROOM], answer[256], wanted[256];
    struct nonce drawn;
    assert_true(nonce_draw(&drawn, form));
    size_t n = nonce_request(&drawn, request);
    snprintf(wanted, sizeof wanted, "%s$22\r\n%.*s\r\n", question, NONCE_LEN, drawn.text);
    assert_int_equal(n, strlen(wanted));
    assert_memory_equal(request, wanted, n);
    snprintf(answer, sizeof answer, "%s%.*s%s\r\n", begin, NONCE_LEN, drawn.text, end);
    struct glimpse right = glimpse_of(answer);
    assert_true(nonce_is_answered(&drawn, &right));
    snprintf(answer, sizeof answer, "+%.*s\r\n", NONCE_LEN, drawn.text);
    struct glimpse wrong = glimpse_of(answer);
    assert_false(nonce_is_answered(&drawn, &wrong));
}

/* Nonces for servers that do not repeat the arguments of an unknown command. */
static void other_forms(void **state)
{
    (void)state;
    check_form(NONCE_HELLO, "*3\r\n$5\r\nhELLO\r\n$1\r\n2\r\n",
               "-ERR Syntax error in HELLO option '", "'");
    check_form(NONCE_ECHO, "*2\r\n$4\r\neCHO\r\n", "$22\r\n", "");
    struct nonce none;
    assert_false(nonce_draw(&none, NONCE_NONE));
}

static void nonces(void **state)
{
    (void)state;
    struct nonce other;
    char request[NONCE_REQUEST_ROOM + 1] = {0};
    assert_true(nonce_draw(&nonce, NONCE_UNKNOWN));
    assert_true(nonce_draw(&other, NONCE_UNKNOWN));
    assert_memory_not_equal(nonce.text, other.text, NONCE_LEN);
    size_t n = nonce_request(&nonce, request);
    assert_int_equal(n, strlen(request));
    assert_non_null(strstr(request, "WEIR.NONCE"));
    struct glimpse answer = glimpse_of(nonce_answer('\''));
    struct glimpse before_7 = glimpse_of(nonce_answer('`'));
    assert_true(nonce_is_answered(&nonce, &answer) && nonce_is_answered(&nonce, &before_7));
    assert_false(nonce_is_answered(&other, &answer));
    char bulk[64];
    snprintf(bulk, sizeof bulk, "$%d\r\n%.*s\r\n", NONCE_LEN, NONCE_LEN, nonce.text);
    struct glimpse echoed = glimpse_of(bulk);
    assert_false(nonce_is_answered(&nonce, &echoed));
}

static void ids(void **state)
{
    (void)state;
    assert_int_equal(
        greeting_id(slice_str("%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$2\r\nid\r\n:42\r\n")), 42);
    assert_int_equal(greeting_id(slice_str("*2\r\n$2\r\nid\r\n:9\r\n")), 9);
    assert_int_equal(greeting_id(slice_str("*0\r\n")), 0);
    assert_int_equal(greeting_id(slice_str("*2\r\n$2\r\nid\r\n:")), 0);
    assert_int_equal(greeting_id(slice_str("*2\r\n$2\r\nid\r\n:-3\r\n")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fresh_one_has_nothing_pending_when_it_logs_in),
        cmocka_unit_test(what_a_fresh_one_may_hear),
        cmocka_unit_test(a_covering_one_writes_first),
        cmocka_unit_test(a_used_one_that_covers_writes_behind_reset),
        cmocka_unit_test(a_used_one_answers_exactly_or_is_not_clean),
        cmocka_unit_test(a_used_one_without_an_id_is_asked_for_it),
        cmocka_unit_test(nonces),
        cmocka_unit_test(other_forms),
        cmocka_unit_test(ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
