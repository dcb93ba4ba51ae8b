/*
 * Tests of changes of the running configuration: reloads and admin commands, good and bad, and the
 * state of limits that survives.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "folder_kit.h"
#include "quota/decision_request.h"
#include "run/commands/config_manager.h"
#include "run/commands/handover.h"
#include "run/commands/admin_unsaved.h"
#include "run/commands/set_lines.h"
#include "run/config/config_build.h"

#define FREE "[policy free]\nmatch = user:free-*\n"

static struct journal *journal;
static struct config_file started_file;
static struct config *started;
static struct config_manager *manager;
static unsigned changes;

static void on_report(void *arg, bool is_error, const char *line)
{
    (void)arg;
    (void)is_error;
    fail_msg("%s", line);
}

static void on_change(void *arg)
{
    (void)arg;
    changes++;
}

static void write_file(const char *text)
{
    FILE *file = fopen("weir.conf", "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void start(const char *path)
{
    started_file = (struct config_file){.path = path, .report = on_report};
    started = config_read(&started_file, table);
    assert_non_null(started);
    journal = journal_new();
    manager = config_manager_new(started, &started_file, table, journal);
    config_manager_live(manager)->on_change = on_change;
    changes = 0;
}

static void start_with(const char *text)
{
    write_file(text);
    start("weir.conf");
}

static void stop(void)
{
    config_manager_free(manager);
    journal_free(journal);
    config_file_fini(&started_file);
    config_free(started);
}

static char *copy(const char *text)
{
    return text ? mem_strndup(text, strlen(text)) : NULL;
}

static struct admin_command *give(enum admin_kind kind, const char *policy, const char *what,
                                  const char *expression)
{
    struct admin_command *admin_command = admin_command_new(kind);
    admin_command->policy = copy(policy);
    admin_command->what = copy(what);
    admin_command->expression = copy(expression);
    config_manager_carry_out(manager, admin_command);
    return admin_command;
}

static void check(enum admin_kind kind, const char *policy, const char *what,
                  const char *expression, const char *error)
{
    struct admin_command *admin_command = give(kind, policy, what, expression);
    if (error)
        assert_string_equal(admin_command->error ? admin_command->error : "", error);
    else if (admin_command->error)
        fail_msg("%s", admin_command->error);
    admin_command_free(admin_command);
}

/* Checks the newest event of the journal. */
static void check_journal(const char *kind, const char *text)
{
    struct journal_event event;
    assert_int_equal(journal_last(journal, &event, 1), 1);
    assert_string_equal(event.text, text);
    assert_string_equal(event.kind, kind);
}

static const struct policy *policy(size_t i)
{
    return policies_at(config_manager_rules(manager)->policies, i);
}

static const struct limit *limit(size_t i)
{
    assert_true(i < policy(0)->n_limits);
    return &policy(0)->limits[i];
}

static void check_diff(size_t n, const char *section, const char *what, const char *running,
                       const char *in_file)
{
    struct admin_command *admin_command = give(ADMIN_DIFF, NULL, NULL, NULL);
    assert_null(admin_command->error);
    assert_int_equal(admin_command->n_differences, n);
    if (n > 0) {
        assert_string_equal(admin_command->differences[0].section, section);
        assert_string_equal(admin_command->differences[0].what, what);
        assert_string_equal(admin_command->differences[0].running, running);
        assert_string_equal(admin_command->differences[0].file, in_file);
    }
    admin_command_free(admin_command);
}

static void test_set_and_unset(void **state)
{
    (void)state;
    start_with(FREE "read = 10/s\nread = 100/m\nwrite = 5/s\n");
    check(ADMIN_SET, "FREE", "Read", " 7/s , 70/m per policy", NULL);
    check_journal("set", "[policy free] Read = 7/s , 70/m per policy (before: 10/s, 100/m)");
    assert_int_equal(changes, 1);
    assert_int_equal(policy(0)->n_limits, 3);
    assert_int_equal(limit(0)->rate.count, 7);
    assert_int_equal(limit(1)->scope, PER_POLICY);
    check(ADMIN_SET, "free", "all", "1k/s", NULL);
    check(ADMIN_UNSET, "free", "write", NULL, NULL);
    check_journal("unset", "[policy free] write removed (before: 5/s; now: none)");
    assert_int_equal(policy(0)->n_limits, 3);
    assert_int_equal(limit(0)->rate.count, 7);
    assert_int_equal(limit(2)->rate.count, 1000);
    assert_int_equal(changes, 3);
    check(ADMIN_UNSET, "free", "write", NULL, "ERR policy free has no limit write");
    check_diff(3, "policy free", "read", "7/s , 70/m per policy", "10/s, 100/m");
    stop();
}

static void test_bad_admin_commands_change_nothing(void **state)
{
    (void)state;
    start_with(FREE "read = 10/s\n");
    const struct rules *before = config_manager_rules(manager);
    check(ADMIN_SET, "fre", "read", "1/s", "ERR no policy fre (did you mean free?)");
    check(ADMIN_SET, "nobody", "read", "1/s", "ERR no policy nobody: there is free");
    check(ADMIN_SET, "free", "cmd.flushal", "deny",
          "ERR flushal is not a known command (did you mean flushall?)");
    check(ADMIN_SET, "free", "raed", "1/s",
          "ERR [policy free] raed: unknown class raed (did you mean read?)");
    check(ADMIN_SET, "free", "read", "0/s",
          "ERR [policy free] read: a rate of 0 never lets anything pass: give at least 1");
    check(ADMIN_SET, "free", "read", "", "ERR [policy free] read: a value is missing");
    check(ADMIN_SET, "free", "match", "ip:10.0.0.1",
          "ERR match is not a limit: change it in the file, then LIMIT RELOAD");
    check(ADMIN_UNSET, "free", "Admin", NULL,
          "ERR Admin is not a limit: change it in the file, then LIMIT RELOAD");
    check(ADMIN_SET, "free", "read", "1/s\r\n+OK",
          "ERR a configuration cannot contain control characters");
    check(ADMIN_MODE, NULL, NULL, "off", "ERR [weir] mode: \"off\" is neither enforce nor shadow");
    check(ADMIN_MODE, NULL, NULL, "a\nb", "ERR a mode is enforce or shadow");
    assert_ptr_equal(config_manager_rules(manager), before);
    assert_int_equal(changes, 0);
    check_diff(0, NULL, NULL, NULL, NULL);
    stop();
}

static void test_mode(void **state)
{
    (void)state;
    start_with(FREE "read = 10/s\n");
    check(ADMIN_MODE, NULL, NULL, "Shadow", NULL);
    check_journal("mode", "mode = shadow");
    assert_true(policies_is_shadow(config_manager_rules(manager)->policies));
    check_diff(1, "weir", "mode", "Shadow", "enforce");
    check(ADMIN_SET, "free", "read", "20/s", NULL);
    assert_true(policies_is_shadow(config_manager_rules(manager)->policies));
    config_manager_on_table(manager, command_table_builtin());
    assert_true(policies_is_shadow(config_manager_rules(manager)->policies));
    check(ADMIN_MODE, NULL, NULL, "enforce", NULL);
    assert_false(policies_is_shadow(config_manager_rules(manager)->policies));
    stop();
}

static void test_a_limit_keeps_its_slot_and_id(void **state)
{
    (void)state;
    start_with(FREE "read = 10/s\nwrite = 5/s, 9/m\n");
    uint16_t slot = limit(2)->slot, id = limit(2)->id;
    write_file("[policy first]\nmatch = user:a\nall = 3/s\n" FREE
               "all = 7/s\ncost = 3/s\nwrite = 50/h, 90/d\n");
    check(ADMIN_RELOAD, NULL, NULL, NULL, NULL);
    check_journal("reload", "configuration reloaded from weir.conf");
    const struct policy *free_policy = policy(1);
    assert_string_equal(free_policy->limits[3].label, "free/write");
    assert_int_equal(free_policy->limits[3].slot, slot);
    assert_int_equal(free_policy->limits[3].id, id);
    for (size_t i = 0; i < 3; i++)
        assert_int_not_equal(free_policy->limits[i].id, id);
    stop();
}

static void test_a_bad_file_changes_nothing(void **state)
{
    (void)state;
    start_with(FREE "read = 10/s\n");
    write_file(FREE "read = 0/s\nwriet = 1/s\n");
    check(
        ADMIN_RELOAD, NULL, NULL, NULL,
        "ERR configuration not reloaded: weir.conf:3: [policy free] read: a rate of 0 never lets anything pass: give "
        "at least 1");
    assert_int_equal(changes, 0);
    check(
        ADMIN_DIFF, NULL, NULL, NULL,
        "ERR the file cannot be compared: weir.conf:3: [policy free] read: a rate of 0 never lets anything pass: give "
        "at least 1");
    unlink("weir.conf");
    check(ADMIN_RELOAD, NULL, NULL, NULL,
          "ERR configuration not reloaded: weir.conf: cannot be opened: No such file or directory");
    assert_int_equal(limit(0)->rate.count, 10);
    stop();
}

static void test_a_reload_drops_what_was_only_set(void **state)
{
    (void)state;
    start_with(FREE "read = 10/s\nwrite = 5/s\n");
    check(ADMIN_SET, "free", "read", "20/s", NULL);
    check(ADMIN_SET, "free", "write", "6/s", NULL);
    write_file(FREE "read = 10/s\nwrite = 6/s\n");
    check(ADMIN_RELOAD, NULL, NULL, NULL, NULL);
    struct journal_event events[8];
    size_t n = journal_last(journal, events, 8);
    assert_int_equal(n, 4);
    assert_string_equal(
        events[1].text,
        "dropped at the reload, because it was only SET: [policy free] read = 20/s");
    assert_int_equal(limit(0)->rate.count, 10);
    assert_int_equal(limit(1)->rate.count, 6);
    check_diff(0, NULL, NULL, NULL, NULL);
    stop();
}

/* LIMIT SET LIMIT name line FOR key, and UNSET if `line` is NULL. */
static void check_key(const char *name, const char *line, const char *key, const char *lives,
                      const char *error)
{
    struct admin_command *admin_command = admin_command_new(line ? ADMIN_SET_KEY : ADMIN_UNSET_KEY);
    admin_command->policy = copy(name);
    admin_command->expression = copy(line);
    admin_command->key = copy(key);
    admin_command->key_len = strlen(key);
    admin_command->lives = copy(lives);
    config_manager_carry_out(manager, admin_command);
    if (error || admin_command->error)
        assert_string_equal(admin_command->error ? admin_command->error : "", error ? error : "");
    admin_command_free(admin_command);
}

/* The number of units for a key of the limit. */
static int64_t count_for(const char *name, const char *key)
{
    const struct named_limit *limit =
        named_find(config_manager_rules(manager)->named, slice_str(name));
    return named_rule(limit, slice_str(key), clock_ns()).rates[0].limit;
}

#define SIGNUP "[limit Signup]\nsliding = 5/60s\n"

static void test_rates_of_single_keys(void **state)
{
    (void)state;
    start_with(SIGNUP);
    check_key("signup", "sliding = 10/60s, 100/d", "ann", NULL, NULL);
    check_journal("set", "[limit Signup] sliding = 10/60s, 100/d for ann (before: none)");
    check_key("SIGNUP", "SLIDING 7/60s", "ann", "1h", NULL);
    check_journal("set",
                  "[limit Signup] sliding = 7/60s for ann, ends in 1h (before: 10/60s, 100/d)");
    assert_int_equal(changes, 2);
    assert_int_equal(count_for("signup", "ann"), 7);
    assert_int_equal(count_for("signup", "Ann"), 5);
    check_diff(1, "limit signup", "sliding for ann", "7/60s ex 3600s", "");
    check_key("signup", NULL, "ann", NULL, NULL);
    check_journal("unset", "[limit Signup] sliding for ann removed (before: 7/60s)");
    assert_int_equal(count_for("signup", "ann"), 5);
    check_key("signup", NULL, "ann", NULL, "ERR limit Signup has no rates for the key ann");
    check_diff(0, NULL, NULL, NULL, NULL);
    stop();
}

static void test_bad_rates_of_single_keys(void **state)
{
    (void)state;
    char long_key[QUOTA_KEY_MAX + 2] = "";
    start_with(SIGNUP);
    memset(long_key, 'k', QUOTA_KEY_MAX + 1);
    check_key("singup", "sliding = 1/s", "a", NULL,
              "ERR no limit is named singup (did you mean Signup?)");
    check_key("singup", NULL, "a", NULL, "ERR no limit is named singup (did you mean Signup?)");
    check_key(
        "signup", "fixed = 1/s", "a", NULL,
        "ERR [limit Signup] has the algorithm sliding, also for single keys: write sliding = 5/60s");
    check_key("signup", "over = shadow", "a", NULL,
              "ERR [limit Signup] over: a single key takes only rates: write sliding = 5/60s");
    check_key("signup", "sliding = 0/s", "a", NULL,
              "ERR [limit Signup] sliding: a rate of 0 never lets anything pass: give at least 1");
    check_key("signup", "sliding", "a", NULL,
              "ERR write a key and its value, like sliding = 5/60s");
    check_key("signup", "sliding = 1/s", "a\nb", NULL,
              "ERR a command cannot contain control characters");
    check_key("signup", "sliding = 1/s", long_key, NULL,
              "ERR the key is too long: at most 1024 bytes");
    check_key("signup", "sliding = 1/s", "a", "0", "ERR EX: the time must be longer than 0");
    check_key("signup", "sliding = 1/s", "a", "60",
              "ERR EX: \"60\" is not a time: write ms, s, m, h or d, or a number of them (60s)");
    assert_int_equal(changes, 0);
    check_diff(0, NULL, NULL, NULL, NULL);
    stop();
}

/*
 * Rates of single keys survive a change of a policy or of the limit. A reload keeps only rates with
 * an end. Another algorithm removes all rates of single keys.
 */
static void test_what_becomes_of_rates_of_single_keys(void **state)
{
    (void)state;
    struct journal_event events[3];
    start_with(SIGNUP FREE "read = 10/s\n");
    check_key("signup", "sliding = 7/60s", "ann", NULL, NULL);
    check_key("signup", "sliding = 8/60s", "bob", "1h", NULL);
    check(ADMIN_SET, "free", "read", "20/s", NULL);
    check(ADMIN_SET_LIMIT, "signup", NULL, "sliding = 6/60s", NULL);
    assert_int_equal(count_for("signup", "ann"), 7);
    assert_int_equal(count_for("signup", "bob"), 8);
    assert_int_equal(count_for("signup", "cyd"), 6);
    check(ADMIN_RELOAD, NULL, NULL, NULL, NULL);
    assert_int_equal(count_for("signup", "ann"), 5);
    assert_int_equal(count_for("signup", "bob"), 8);
    assert_int_equal(journal_last(journal, events, 3), 3);
    check_diff(1, "limit signup", "sliding for bob", "8/60s ex 3600s", "");
    check(ADMIN_SET_LIMIT, "signup", NULL, "fixed = 6/60s", NULL);
    assert_int_equal(count_for("signup", "bob"), 6);
    assert_int_equal(journal_last(journal, events, 3), 3);
    assert_string_equal(events[2].text,
                        "dropped at the reload, because it was only SET: [limit Signup] sliding = "
                        "8/60s for bob");
    stop();
}

static void test_so_many_keys_have_rates_of_their_own(void **state)
{
    (void)state;
    char key[32];
    start_with(SIGNUP "[limit other]\nfixed = 1/d\n");
    log_set_level(LOG_ERROR);
    for (int i = 0; i < OVERRIDES_MAX; i++) {
        snprintf(key, sizeof key, "key:%d", i);
        check_key(i % 2 > 0 ? "other" : "signup", i % 2 > 0 ? "fixed = 2/d" : "sliding = 2/d", key,
                  NULL, NULL);
    }
    check_key("other", "fixed = 2/d", "one more", NULL,
              "ERR 10000 keys have rates of their own, the maximum: UNSET some, or use EX");
    check_key("other", "fixed = 3/d", "key:9999", NULL, NULL);
    assert_int_equal(count_for("other", "key:9999"), 3);
    check_key("signup", NULL, "key:0", NULL, NULL);
    check_key("other", "fixed = 2/d", "one more", NULL, NULL);
    write_file("[limit other]\nfixed = 1/d\n");
    check(ADMIN_RELOAD, NULL, NULL, NULL, NULL);
    assert_int_equal(count_for("other", "one more"), 1);
    stop();
}

static void check_block(const char *subject, const char *lives, const char *reason,
                        const char *error)
{
    struct admin_command *admin_command = admin_command_new(ADMIN_BLOCK);
    admin_command->key = copy(subject);
    admin_command->key_len = strlen(subject);
    admin_command->lives = copy(lives);
    admin_command->expression = copy(reason);
    config_manager_carry_out(manager, admin_command);
    assert_string_equal(admin_command->error ? admin_command->error : "", error ? error : "");
    admin_command_free(admin_command);
}

static const struct block *blocked(const char *subject)
{
    return blocks_find(exceptions_blocks(config_manager_rules(manager)->exceptions),
                       slice_str(subject));
}

static void test_blocks(void **state)
{
    (void)state;
    start_with(FREE "read = 10/s\n");
    assert_null(config_manager_rules(manager)->exceptions);
    check_block("user:free-1", "1h", "scans", NULL);
    check_journal("block", "user:free-1 is blocked for 1h (scans)");
    check_block("user:bob", NULL, NULL, NULL);
    check_journal("block", "user:bob is blocked");
    assert_int_equal(changes, 2);
    uint64_t end_ns = config_manager_next_end(manager);
    assert_true(end_ns > clock_ns() + 3500 * NS_PER_S && end_ns <= clock_ns() + 3600 * NS_PER_S);
    config_manager_end(manager, end_ns - 1);
    assert_int_equal(changes, 2);
    write_file(FREE "read = 11/s\n");
    check(ADMIN_RELOAD, NULL, NULL, NULL, NULL);
    assert_true(slice_eq(blocked("user:free-1")->reason, SLICE("scans")));
    check_diff(2, "block", "user:bob", "blocked", "");
    config_manager_end(manager, end_ns);
    check_journal("unblock", "user:free-1 is no longer blocked: its time is over");
    assert_null(blocked("user:free-1"));
    assert_non_null(blocked("user:bob"));
    assert_int_equal(config_manager_next_end(manager), 0);
    struct admin_command *admin_command = admin_command_new(ADMIN_UNBLOCK);
    admin_command->key = copy("user:bob");
    admin_command->key_len = strlen(admin_command->key);
    config_manager_carry_out(manager, admin_command);
    assert_null(admin_command->error);
    admin_command_free(admin_command);
    check_journal("unblock", "user:bob is no longer blocked");
    assert_null(config_manager_rules(manager)->exceptions);
    stop();
}

static void test_so_many_are_blocked(void **state)
{
    (void)state;
    struct shared_set *all = NULL, *next = NULL;
    struct identity identity;
    char name[32];
    assert_true(identity_parse(&identity, SLICE("user, ip"), name, sizeof name));
    for (int i = 0; i < BLOCKS_MAX; i++) {
        snprintf(name, sizeof name, "user:%d", i);
        const struct block one = {.subject = slice_str(name)};
        next = blocks_with(all, &one);
        shared_set_put(all);
        all = next;
    }
    struct admin_command admin_command = {.kind = ADMIN_BLOCK, .key = copy("user:x"), .key_len = 6};
    char *error = admin_block_next(&admin_command, &identity, all, 0, &next);
    assert_string_equal(error,
                        "ERR 10000 subjects are blocked, the maximum: unblock some, or use EX");
    free(error);
    admin_command.key[5] = '7';
    assert_null(admin_block_next(&admin_command, &identity, all, 0, &next));
    assert_int_equal(shared_set_count(next), BLOCKS_MAX);
    free(admin_command.key);
    shared_set_put(all);
    shared_set_put(next);
}

static char *set_for(const char *policy_name, const char *subject, const char *lives)
{
    struct admin_command *admin_command = admin_command_new(ADMIN_SET);
    admin_command->policy = copy(policy_name);
    admin_command->what = copy("read");
    admin_command->expression = copy("7/s");
    admin_command->key = copy(subject);
    admin_command->lives = copy(lives);
    config_manager_carry_out(manager, admin_command);
    char *error = copy(admin_command->error);
    admin_command_free(admin_command);
    return error;
}

static void test_lines_for_one_or_for_a_time(void **state)
{
    (void)state;
    start_with(FREE "read = 10/s\n");
    assert_null(set_for("FREE", "user:free-1", "1h"));
    check_journal("set", "[policy free] read = 7/s for user:free-1, ends in 1h (before: none)");
    assert_null(set_for("free", NULL, "2h"));
    check_journal("set", "[policy free] read = 7/s, ends in 2h (before: 10/s)");
    assert_int_equal(limit(0)->rate.count, 7);
    uint64_t end_ns = config_manager_next_end(manager);
    assert_true(end_ns <= clock_ns() + 3600 * NS_PER_S);
    config_manager_end(manager, end_ns);
    check_journal("unset", "[policy free] read = 7/s for user:free-1 has ended: its time is over");
    assert_null(config_manager_rules(manager)->exceptions);
    assert_int_equal(limit(0)->rate.count, 7);
    config_manager_end(manager, config_manager_next_end(manager));
    assert_int_equal(limit(0)->rate.count, 10);
    assert_int_equal(config_manager_next_end(manager), 0);
    check_diff(0, NULL, NULL, NULL, NULL);
    stop();
}

static void carry_out(void *arg, struct admin_command *const *admin_commands, size_t n)
{
    (void)arg;
    config_manager_carry_out_all(manager, admin_commands, n);
}

static void test_what_is_handed_over(void **state)
{
    (void)state;
    start_with(FREE "read = 10/s\n");
    check_block("user:free-1", "1h", "scans", NULL);
    char *before = config_manager_hand_over(manager);
    handover_log(before, before, "dropped", "never", journal);
    check_journal("block", "user:free-1 is blocked for 1h (scans)");
    handover_log("weir orders 1\nblock\x1f"
                 "b\nblock\x1f"
                 "a\nblock\x1f"
                 "b\n",
                 "weir orders 1\nblock\x1f"
                 "a\nblock\x1f"
                 "b\n",
                 "dropped", "never, in whatever order", journal);
    check_journal("block", "user:free-1 is blocked for 1h (scans)");
    handover_log(before, NULL, "dropped", "the new process takes no orders over", journal);
    check_journal(
        "upgrade",
        "upgrade: dropped: LIMIT BLOCK user:free-1 REASON scans: the new process takes no orders over");
    assert_null(set_for("free", "user:free-2", "1h"));
    char *text = config_manager_hand_over(manager);
    handover_log(text, before, "dropped", "give it again", journal);
    check_journal("upgrade",
                  "upgrade: dropped: LIMIT SET free read 7/s FOR user:free-2: give it again");
    stop();

    start_with(FREE "read = 10/s\n");
    assert_false(handover_read("something else", journal, carry_out, NULL));
    assert_true(handover_read(text, journal, carry_out, NULL));
    check_journal("upgrade", "upgrade: 2 operator settings taken over");
    assert_true(slice_eq(blocked("user:free-1")->reason, SLICE("scans")));
    assert_true(config_manager_next_end(manager) > clock_ns() + 3500 * NS_PER_S);
    assert_true(
        handover_read("weir orders 1\nfuture\x1fx\nblock\x1fuser:y\n", journal, carry_out, NULL));
    check_journal("upgrade",
                  "upgrade: dropped: LIMIT BLOCK user:y: this version of weir does not support it");
    free(before);
    free(text);
    stop();
}

static const struct policy *bound(const char *subject)
{
    return exceptions_bind(config_manager_rules(manager)->exceptions, policy(0),
                           slice_str(subject));
}

/* All lines are handed over in one step. A wrong line does not affect the other lines. */
static void test_many_lines_are_handed_over_at_once(void **state)
{
    (void)state;
    char text[4096] = "weir orders 1\n";
    start_with(FREE "read = 10/s\nwrite = 5/s\n");
    for (int i = 0; i < 20; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "set\x1f%s\x1fread\x1f%d/s\x1fuser:free-%d\x1f"
                 "0\n",
                 i == 9 ? "gone" : "free", i + 1, i);
    strcat(text, "mode\x1fshadow\n");
    assert_true(handover_read(text, journal, carry_out, NULL));
    assert_int_equal(changes, 1);
    check_journal("upgrade", "upgrade: 20 operator settings taken over");
    assert_true(policies_is_shadow(config_manager_rules(manager)->policies));
    assert_int_equal(bound("user:free-7")->limits[1].rate.count, 8);
    assert_ptr_equal(bound("user:free-9"), policy(0));

    assert_true(handover_read("weir orders 1\nset\x1f"
                              "free\x1fread\x1f"
                              "1/s\x1f\x1f"
                              "0\n"
                              "set\x1f"
                              "free\x1fwrite\x1f"
                              "fast\x1f\x1f"
                              "0\nunset\x1f"
                              "free\x1f"
                              "all\n"
                              "set\x1f"
                              "free\x1fread\x1f"
                              "2/s\x1fuser:free-1\x1f"
                              "0\n",
                              journal, carry_out, NULL));
    check_journal("upgrade", "upgrade: 2 operator settings taken over");
    struct journal_event events[3];
    assert_int_equal(journal_last(journal, events, 3), 3);
    assert_string_equal(events[1].text,
                        "upgrade: dropped: LIMIT UNSET free all: policy free has no limit all");
    assert_string_equal(
        events[2].text,
        "upgrade: dropped: LIMIT SET free write fast: [policy free] write: \"fast\" is not a rate: write "
        "COUNT/PERIOD, like 1000/s or 5/60s");
    assert_int_equal(limit(0)->rate.count, 1);
    assert_int_equal(limit(1)->rate.count, 5);
    assert_int_equal(bound("user:free-1")->limits[1].rate.count, 2);
    stop();
}

/* Clients of other subjects are not bound anew. */
static void test_a_block_leaves_what_binds_others(void **state)
{
    (void)state;
    start_with(FREE "read = 10/s\n");
    assert_null(set_for("free", "user:free-1", NULL));
    check_block("user:free-2", NULL, NULL, NULL);
    const struct policy *own = bound("user:free-1"), *denied = bound("user:free-2");
    check_block("user:free-3", NULL, NULL, NULL);
    assert_ptr_equal(bound("user:free-1"), own);
    assert_ptr_equal(bound("user:free-2"), denied);
    assert_ptr_equal(bound("user:free-3"), denied);
    stop();
}

static void test_so_many_lines_are_set(void **state)
{
    (void)state;
    struct set_lines lines = {0};
    struct identity identity;
    char name[32];
    assert_true(identity_parse(&identity, SLICE("user, ip"), name, sizeof name));
    for (int i = 0; i < SET_LINES_MAX; i++) {
        snprintf(name, sizeof name, "user:%d", i);
        set_lines_put(&lines, &(struct set_line){"free", "read", "1/s", name, 0});
    }
    struct admin_command admin_command = {
        .kind = ADMIN_SET, .what = copy("read"), .expression = copy("2/s"), .key = copy("user:x")};
    const struct line_name line = {SECTION_POLICY, SLICE("free"), SLICE("read")};
    char *error = admin_lines_set(&admin_command, &line, &identity, &lines, 0);
    assert_string_equal(
        error,
        "ERR 1000 limits are set for one subject or for a time, the maximum: UNSET some, or use EX");
    free(error);
    admin_command.key[5] = '7';
    assert_null(admin_lines_set(&admin_command, &line, &identity, &lines, 0));
    assert_int_equal(lines.n, SET_LINES_MAX);
    set_lines_fini(&lines);
    free(admin_command.what);
    free(admin_command.expression);
    free(admin_command.key);
}

static void test_settings_that_need_a_restart(void **state)
{
    (void)state;
    start_with("[weir]\nlisten = 127.0.0.1:0\nmax-clients = 50\n" FREE "read = 10/s\n");
    write_file(
        "[weir]\nlisten = 127.0.0.1:1\nworkers = 7\nmax-clients = 60\nerror-prefix = SLOW\nidentity = ip\n"
        "output-limit = 1mb\n" FREE
        "read = 11/s\n[admin]\nsocket = /tmp/none.sock\nhost = a\nhost = b\n");
    for (int i = 0; i < 2; i++) {
        check(ADMIN_RELOAD, NULL, NULL, NULL, NULL);
        struct journal_event events[2];
        assert_int_equal(journal_last(journal, events, 2), 2);
        assert_string_equal(
            events[1].text,
            "changed in the file, but needs a restart: listen, workers, [admin] socket, [admin] host");
    }
    const struct rules *rules = config_manager_rules(manager);
    assert_int_equal(rules->max_clients, 60);
    assert_int_equal(rules->output_limit_bytes, 1 << 20);
    assert_int_equal(rules->identity.count, 1);
    assert_string_equal(rules->error_prefix, "SLOW");
    assert_int_equal(limit(0)->rate.count, 11);
    check_diff(4, "weir", "listen", "127.0.0.1:0", "127.0.0.1:1");
    stop();
}

static void test_without_a_file(void **state)
{
    (void)state;
    start(NULL);
    check(ADMIN_RELOAD, NULL, NULL, NULL,
          "ERR configuration not reloaded: weir was started without a file (-c FILE)");
    check(ADMIN_DIFF, NULL, NULL, NULL,
          "ERR weir was started without a file (-c FILE): there is no file to compare with");
    check(ADMIN_SET, "default", "read", "1/s", "ERR no policy default: there is none at all");
    check(ADMIN_MODE, NULL, NULL, "shadow", NULL);
    assert_false(config_manager_reload(manager));
    assert_true(policies_is_shadow(config_manager_rules(manager)->policies));
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_and_unset),
        cmocka_unit_test(test_bad_admin_commands_change_nothing),
        cmocka_unit_test(test_mode),
        cmocka_unit_test(test_a_limit_keeps_its_slot_and_id),
        cmocka_unit_test(test_a_bad_file_changes_nothing),
        cmocka_unit_test(test_a_reload_drops_what_was_only_set),
        cmocka_unit_test(test_rates_of_single_keys),
        cmocka_unit_test(test_bad_rates_of_single_keys),
        cmocka_unit_test(test_what_becomes_of_rates_of_single_keys),
        cmocka_unit_test(test_so_many_keys_have_rates_of_their_own),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_so_many_are_blocked),
        cmocka_unit_test(test_lines_for_one_or_for_a_time),
        cmocka_unit_test(test_what_is_handed_over),
        cmocka_unit_test(test_many_lines_are_handed_over_at_once),
        cmocka_unit_test(test_a_block_leaves_what_binds_others),
        cmocka_unit_test(test_so_many_lines_are_set),
        cmocka_unit_test(test_settings_that_need_a_restart),
        cmocka_unit_test(test_without_a_file),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
