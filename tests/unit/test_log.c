/*
 * Tests of the log: the three forms of its lines, the rate limit of each site, and a sink that
 * cannot write.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_sink.h"
#include "base/text.h"

#define LONG_NS (20 * NS_PER_S)

static void check(enum log_format format, struct log_entry entry, const char *wanted)
{
    char line[LOG_LINE_MAX + 1];
    entry.at = (struct timespec){1000000000, 7654321};
    size_t len = log_form(line, format, &entry);
    assert_true(len <= LOG_LINE_MAX);
    line[len] = '\0';
    assert_string_equal(line, wanted);
}

static void test_forms(void **state)
{
    (void)state;
    const struct log_entry plain = {.level = LOG_INFO, .text = SLICE("ready")};
    check(LOG_AS_TEXT, plain, "2001-09-09T01:46:40.007Z info  ready\n");
    check(LOG_AS_LOGFMT, plain, "ts=2001-09-09T01:46:40.007Z level=info msg=\"ready\"\n");
    check(LOG_AS_JSON, plain,
          "{\"ts\":\"2001-09-09T01:46:40.007Z\",\"level\":\"info\",\"msg\":\"ready\"}\n");
    const struct log_entry hostile = {.level = LOG_ERROR,
                                      .site = LOG_SITE_ACCEPT,
                                      .suppressed = 3,
                                      .text = SLICE("a\"\\\n\x1b\xff\xc2\x9b\xc3\xa9")};
    check(LOG_AS_TEXT, hostile,
          "2001-09-09T01:46:40.007Z error a\"\\????\xc3\xa9 (3 similar lines suppressed)\n");
    check(LOG_AS_LOGFMT, hostile,
          "ts=2001-09-09T01:46:40.007Z level=error site=accept "
          "msg=\"a\\u0022\\u005c\\u000a\\u001b\\ufffd\xc2\x9b\xc3\xa9\" suppressed=3\n");
    check(LOG_AS_JSON, hostile,
          "{\"ts\":\"2001-09-09T01:46:40.007Z\",\"level\":\"error\",\"site\":\"accept\","
          "\"msg\":\"a\\u0022\\u005c\\u000a\\u001b\\ufffd\xc2\x9b\xc3\xa9\",\"suppressed\":3}\n");
}

static void test_what_is_too_long_is_cut_between_characters(void **state)
{
    (void)state;
    char text[3 * LOG_LINE_MAX];
    char line[LOG_LINE_MAX];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i % 2 == 0 ? '\xc3' : '\xa9';
    struct log_entry entry = {.text = slice_of(text, sizeof text), .suppressed = UINT64_MAX};
    for (int format = 0; format < LOG_FORMATS; format++) {
        size_t len = log_form(line, (enum log_format)format, &entry);
        assert_in_range(len, LOG_LINE_MAX - 70, LOG_LINE_MAX);
        assert_int_equal(line[len - 1], '\n');
        size_t end = len;
        while (line[end - 1] != '\xa9')
            end--;
        assert_int_equal(line[end - 2], '\xc3');
    }
}

static void test_json_fits_its_room(void **state)
{
    (void)state;
    char out[16];
    assert_int_equal(json_quote(out, 2, SLICE("abc")), 2);
    assert_memory_equal(out, "\"\"", 2);
    assert_int_equal(json_quote(out, 8, SLICE("\x01\x01")), 8);
    assert_memory_equal(out, "\"\\u0001\"", 8);
    assert_int_equal(json_quote(out, 9, SLICE("\x01\x01")), 8);
    assert_int_equal(json_quote(out, 4, SLICE("a\xc3\xa9")), 3);
    assert_int_equal(JSON_QUOTED_MAX(1), json_quote(out, sizeof out, SLICE("\xff")));
}

static void test_a_site_has_its_share(void **state)
{
    (void)state;
    uint64_t now_ns = 5 * NS_PER_S;
    uint64_t suppressed;
    for (int i = 0; i < LOG_SITE_BURST; i++) {
        assert_true(log_site_admits(LOG_SITE_CONTROL, now_ns, &suppressed));
        assert_int_equal(suppressed, 0);
    }
    for (int i = 0; i < 7; i++)
        assert_false(log_site_admits(LOG_SITE_CONTROL, now_ns, &suppressed));
    assert_int_equal(log_suppressed(LOG_SITE_CONTROL), 7);
    assert_true(log_site_admits(LOG_SITE_OPERATOR, now_ns, &suppressed));
    now_ns += LOG_SITE_INTERVAL_NS;
    assert_true(log_site_admits(LOG_SITE_CONTROL, now_ns, &suppressed));
    assert_int_equal(suppressed, 7);
    assert_false(log_site_admits(LOG_SITE_CONTROL, now_ns, &suppressed));
    for (int i = 0; i < 1000; i++)
        assert_true(log_site_admits(LOG_SITE_NONE, now_ns, &suppressed));
    assert_int_equal(log_suppressed(LOG_SITE_CONTROL), 8);
    for (int site = 0; site < LOG_SITE_COUNT; site++)
        assert_non_null(log_site_name((enum log_site)site));
}

/* ---- sinks ---- */

static void add(struct log_sink *sink, unsigned n)
{
    char line[64];
    log_sink_add(sink, line,
                 (size_t)snprintf(line, sizeof line, "line %u, and some more for its length\n", n));
}

static void test_a_full_pipe_holds_nobody_up(void **state)
{
    (void)state;
    int ends[2];
    char text[128];
    assert_int_equal(pipe(ends), 0);
    struct log_sink *sink = log_sink_new(NULL, ends[1]);
    const unsigned n = 40000;
    for (unsigned i = 0; i < n; i++)
        add(sink, i);
    assert_false(log_sink_flush(sink, 1));
    uint64_t lost = log_sink_lost(sink);
    assert_in_range(lost, 1, n - 1);

    FILE *reader = fdopen(ends[0], "r");
    for (unsigned i = 0; i < n - lost; i++) {
        char wanted[32];
        snprintf(wanted, sizeof wanted, "line %u,", i);
        assert_non_null(fgets(text, sizeof text, reader));
        assert_memory_equal(text, wanted, strlen(wanted));
    }
    char told[64];
    snprintf(told, sizeof told, "warn  %llu log lines are lost here\n", (unsigned long long)lost);
    assert_non_null(fgets(text, sizeof text, reader));
    assert_non_null(strstr(text, told));
    add(sink, n);
    assert_non_null(fgets(text, sizeof text, reader));
    assert_memory_equal(text, "line 40000,", 11);
    assert_int_equal(log_sink_lost(sink), lost);
    log_sink_free(sink, LONG_NS);
    close(ends[1]);
    fclose(reader);
}

static void test_a_full_disk_loses_lines_and_counts_them(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    struct log_sink *sink = log_sink_new("/dev/full", -1);
    for (unsigned i = 0; i < 100; i++)
        add(sink, i);
    assert_true(log_sink_flush(sink, LONG_NS));
    assert_int_equal(log_sink_lost(sink), 100);
    log_sink_free(sink, LONG_NS);
}

/* Replaces stderr by a full pipe. Returns a copy of the old stderr. */
static int stderr_becomes_a_full_pipe(int ends[2])
{
    static const char much[4096];
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    while (write(ends[1], much, sizeof much) > 0)
        ;
    assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
    int before = dup(STDERR_FILENO);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    return before;
}

static void allow_file_size(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A failure that cannot be written to stderr does not delay a line of the file. */
static void test_a_full_disk_beside_a_full_stderr(void **state)
{
    (void)state;
    char path[] = "/tmp/weir-log-XXXXXX";
    int ends[2], fd = mkstemp(path), before = stderr_becomes_a_full_pipe(ends);
    signal(SIGXFSZ, SIG_IGN);
    struct log_sink *sink = log_sink_new(path, -1);
    allow_file_size(0);
    for (unsigned i = 0; i < 3; i++) {
        add(sink, i);
        bool is_flushed = log_sink_flush(sink, LONG_NS);
        assert_true(is_flushed);
    }
    allow_file_size(RLIM_INFINITY);
    add(sink, 3);
    bool is_flushed = log_sink_flush(sink, LONG_NS);
    log_sink_free(sink, LONG_NS);
    dup2(before, STDERR_FILENO);
    close(before);
    close(ends[0]);
    close(ends[1]);
    char text[256] = "";
    ssize_t n = read(fd, text, sizeof text - 1);
    unlink(path);
    close(fd);
    assert_true(is_flushed);
    assert_true(n > 0);
    assert_non_null(strstr(text, "3 log lines are lost here\n"));
    assert_non_null(strstr(text, "line 3,"));
}

static void test_no_folder_no_sink(void **state)
{
    (void)state;
    assert_null(log_sink_new("/nowhere/weir.log", -1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_what_is_too_long_is_cut_between_characters),
        cmocka_unit_test(test_json_fits_its_room),
        cmocka_unit_test(test_a_site_has_its_share),
        cmocka_unit_test(test_a_full_pipe_holds_nobody_up),
        cmocka_unit_test(test_a_full_disk_loses_lines_and_counts_them),
        cmocka_unit_test(test_a_full_disk_beside_a_full_stderr),
        cmocka_unit_test(test_no_folder_no_sink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
