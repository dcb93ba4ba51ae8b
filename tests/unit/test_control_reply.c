/*
 * Tests of replies on the control lane: read in whole or not at all, and judged whatever they are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "upstream/control_reply.h"

/* The last reply in `text`, which the caller frees. NULL: none. */
static struct redisReply *read_text(const char *text)
{
    struct control_inbox inbox = {0};
    struct redisReply *reply = NULL;
    struct slice frame;
    size_t used;
    for (const char *at = text; *at; at++) { /* byte by byte */
        enum scan_result result = control_inbox_take(&inbox, at, 1, &used, &frame);
        if (result == SCAN_BAD)
            break;
        if (result == SCAN_FRAME)
            reply = control_read(frame);
    }
    control_inbox_fini(&inbox);
    return reply;
}

static void test_too_long(void **state)
{
    static char piece[65536];
    struct control_inbox inbox = {0};
    struct slice frame;
    size_t used;
    size_t taken = 0;
    enum scan_result result = control_inbox_take(&inbox, "$68719476736\r\n", 14, &used, &frame);
    (void)state;
    memset(piece, 'x', sizeof piece);
    for (; result == SCAN_MORE && taken <= CONTROL_REPLY_MAX; taken += used)
        result = control_inbox_take(&inbox, piece, sizeof piece, &used, &frame);
    assert_int_equal(result, SCAN_BAD);
    assert_true(inbox.bytes.room <= 2 * CONTROL_REPLY_MAX);
    control_inbox_fini(&inbox);
    assert_null(read_text("*2147483647\r\n:1\r\n"));
}

/* G good, N no login, D denied, B busy, U unfit, X barred */
static char letter_of(enum control_verdict verdict)
{
    static const char letters[] = {
        [CONTROL_GOOD] = 'G', [CONTROL_NOAUTH] = 'N', [CONTROL_DENIED] = 'D',
        [CONTROL_BUSY] = 'B', [CONTROL_UNFIT] = 'U',  [CONTROL_BARRED] = 'X'};
    return letters[verdict];
}

static enum control_verdict judge_hello(const struct redisReply *reply, const char **why)
{
    return control_judge_hello(reply, CONTROL_OF_SERVER, why);
}

static enum control_verdict judge_info(const struct redisReply *reply, const char **why)
{
    return control_judge_info(reply, CONTROL_OF_SERVER, why);
}

static void test_judgements(void **state)
{
    static enum control_verdict (*const judges[])(const struct redisReply *, const char **) = {
        judge_hello, control_judge_auth, judge_info, control_judge_command, control_judge_ping};
    static const struct {
        const char *text;
        const char *verdicts; /* verdicts as the answer to HELLO, AUTH, INFO, COMMAND, PING */
    } rows[] = {
        {"*2\r\n$6\r\nserver\r\n$5\r\nredis\r\n", "GDUDG"},
        {"*4\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n", "GDUDG"},
        {"*2\r\n$4\r\nmode\r\n$8\r\nsentinel\r\n", "XDUDG"},
        {"*2\r\n$4\r\nmode\r\n$7\r\ncluster\r\n", "XDUDG"},
        {"*2\r\n$7\r\nversion\r\n$5\r\n6.0.9\r\n", "XDUDG"},
        {"*3\r\n$4\r\nmode\r\n$-1\r\n$7\r\nversion\r\n", "GDUDG"},
        {"+OK\r\n", "UGUDG"},
        {"+PONG\r\n", "UDUDG"},
        {"-NOAUTH Authentication required.\r\n", "NDNNN"},
        {"-NOPERM x\r\n", "DDDDD"},
        {"-ERR unknown command 'INFO', with args beginning with: \r\n", "DDDDD"},
        {"-BUSY Redis is busy running a script.\r\n", "DDBBB"},
        {"-WRONGPASS invalid username-password pair\r\n", "DDUDU"},
        {"-LOADING Redis is loading the dataset in memory\r\n", "UUUUU"},
        {"-MASTERDOWN Link with MASTER is down\r\n", "UUUUU"},
        {"-ERR max number of clients reached\r\n", "UUUUU"},
        {"-DENIED x\r\n", "UUUUU"},
        {"-\r\n", "DDUDU"},
        {":1\r\n", "UDUDG"},
        {"$-1\r\n", "UDUDG"},
        {"*-1\r\n", "UDUDG"},
        {"*0\r\n", "GDUDG"},
        {"*1\r\n$-1\r\n", "GDUDG"},
        {"$0\r\n\r\n", "UDGDG"},
        {"$19\r\nredis_version:7.0.0\r\n", "UDGDG"},
        {"$19\r\nredis_version:6.0.9\r\n", "UDXDG"},
        {"$18\r\nredis_mode:cluster\r\n", "UDXDG"},
        {"$19\r\nredis_mode:sentinel\r\n", "UDXDG"},
        {"$19\r\nserver_mode:cluster\r\n", "UDXDG"},
        {"$22\r\nserver_mode:standalone\r\n", "UDGDG"},
        {"$14\r\nredis_version:\r\n", "UDGDG"},
        {"$3\r\n::\n\r\n", "UDGDG"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char verdicts[sizeof judges / sizeof judges[0] + 1] = "";
        struct redisReply *reply = read_text(rows[i].text);
        if (reply == NULL)
            fail_msg("%s", rows[i].text);
        for (size_t k = 0; k < sizeof judges / sizeof judges[0]; k++) {
            const char *why = NULL;
            verdicts[k] = letter_of(judges[k](reply, &why));
            assert_int_equal(why != NULL, verdicts[k] == 'U' || verdicts[k] == 'X');
        }
        if (strcmp(verdicts, rows[i].verdicts) != 0)
            fail_msg("%s: %s", rows[i].text, verdicts);
        assert_int_equal(control_is_idle(reply), strncmp(rows[i].text, "-LOADING", 8) == 0 ||
                                                     strncmp(rows[i].text, "-MASTERDOWN", 11) == 0);
        control_reply_free(reply);
    }
}

static struct command_table *table_of(const char *text)
{
    struct redisReply *reply = read_text(text);
    struct command_table *table = reply != NULL ? control_read_commands(reply) : NULL;
    control_reply_free(reply);
    return table;
}

#define REST ":2\r\n*1\r\n+write\r\n:1\r\n:1\r\n:1\r\n*0\r\n"

static void test_commands(void **state)
{
    struct command_table *empty = table_of("*0\r\n");
    size_t none = command_table_count(empty);
    (void)state;
    command_table_put(empty);
    static const struct {
        const char *text;
        size_t more;
    } rows[] = {
        {"*1\r\n*7\r\n$3\r\nabc\r\n" REST, 1},
        {"*1\r\n*7\r\n+abc\r\n" REST, 1},
        {"*1\r\n*6\r\n$3\r\nabc\r\n:2\r\n*0\r\n:1\r\n:1\r\n:1\r\n", 0},
        {"*1\r\n*7\r\n$0\r\n\r\n" REST, 0},
        {"*1\r\n*7\r\n$3\r\na c\r\n" REST, 0},
        {"*1\r\n*7\r\n$3\r\na\r\n\r\n" REST, 0},
        {"*1\r\n*7\r\n$-1\r\n" REST, 0},
        {"*1\r\n*7\r\n*0\r\n" REST, 0},
        {"*2\r\n$-1\r\n:1\r\n", 0},
        {"*1\r\n*7\r\n$3\r\nabc\r\n*0\r\n:1\r\n$1\r\nx\r\n*0\r\n+x\r\n:1\r\n", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct command_table *table = table_of(rows[i].text);
        if (table == NULL)
            fail_msg("%s", rows[i].text);
        assert_int_equal(command_table_count(table), none + rows[i].more);
        command_table_put(table);
    }
    assert_null(table_of(":1\r\n"));
    assert_null(table_of("-ERR no\r\n"));
}

static void test_many_commands(void **state)
{
    char *text;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    (void)state;
    fprintf(out, "*%d\r\n", 3 * CONTROL_COMMANDS_MAX);
    for (unsigned i = 0; i < 3 * CONTROL_COMMANDS_MAX; i++)
        fprintf(out, "*7\r\n$6\r\n%06u\r\n" REST, i);
    fclose(out);
    struct command_table *table = table_of(text);
    assert_non_null(table);
    assert_in_range(command_table_count(table), CONTROL_COMMANDS_MAX, CONTROL_COMMANDS_MAX + 100);
    command_table_put(table);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_judgements),
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_many_commands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
