/*
 * Tests of the replies of one client that several lanes answer: their order is that of the client's
 * requests, and all memory is given back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "dice.h"
#include "front/route/replies.h"

#define LANES 5

static struct pool pool;
static struct replies replies;
static struct reply_source lanes[LANES];
static struct chain heard; /* bytes sent to the client */
static size_t room;        /* bytes that the client still accepts */

static bool hear(void *arg, const char *data, size_t n)
{
    (void)arg;
    if (n > room)
        return false;
    room -= n;
    assert_true(chain_append(&heard, &pool, data, n));
    return true;
}

static void flush(void)
{
    replies_flush(&replies, hear, NULL);
}

static void begin(unsigned lane)
{
    assert_true(replies_begin(&replies, &lanes[lane], false));
    flush();
}

static void say(const char *text)
{
    assert_true(replies_say(&replies, slice_str(text)));
    flush();
}

static void end(unsigned lane)
{
    replies_end(&replies, &lanes[lane]);
    flush();
}

static void take_bytes(unsigned lane, const char *data, size_t n, bool is_whole)
{
    enum replies_verdict verdict = replies_take(&replies, &lanes[lane], data, n, is_whole);
    assert_int_not_equal(verdict, REPLIES_FULL);
    if (verdict == REPLIES_PASS)
        assert_true(hear(NULL, data, n));
    flush();
}

static void take(unsigned lane, const char *text)
{
    take_bytes(lane, text, strlen(text), true);
}

static void take_part(unsigned lane, const char *text)
{
    take_bytes(lane, text, strlen(text), false);
}

/* All bytes sent to the client since the last call. */
static void assert_heard(const char *expected)
{
    struct slice piece = slice_of("", 0);
    assert_int_equal(heard.bytes, strlen(expected));
    if (heard.bytes > 0)
        assert_int_equal(chain_peek(&heard, &piece, 1), 1);
    assert_memory_equal(piece.at, expected, piece.len);
    chain_clear(&heard, &pool);
}

static void assert_done(void)
{
    assert_true(replies_are_idle(&replies));
    assert_int_equal(replies_bytes(&replies), 0);
}

/* ---- a few cases ---- */

static void what_comes_early_waits_for_its_turn(void **state)
{
    (void)state;
    begin(0);
    begin(1);
    begin(2);
    take(2, "+c\r\n");
    end(2);
    take(1, "+b\r\n");
    end(1);
    assert_heard("");
    assert_int_equal(replies_bytes(&replies), 8);
    take(0, "+a\r\n");
    assert_heard("+a\r\n");
    end(0);
    assert_heard("+b\r\n+c\r\n");
    assert_done();
}

static void requests_of_one_lane_in_a_row_are_one_run(void **state)
{
    (void)state;
    begin(0);
    begin(1);
    begin(1);
    begin(1);
    assert_int_equal(lanes[1].n_runs, 1);
    begin(0);
    assert_int_equal(lanes[0].n_runs, 2);
    take(1, "+b\r\n+c\r\n+d\r\n");
    take(0, "+a\r\n");
    end(0);
    assert_heard("+a\r\n+b\r\n+c\r\n+d\r\n");
    take(0, "+e\r\n"); /* the run before has not ended and may get another reply */
    assert_heard("");
    end(1);
    assert_heard("+e\r\n");
    end(0);
    assert_done();
}

static void weirs_own_stand_where_they_were_said(void **state)
{
    (void)state;
    begin(0);
    say("-one\r\n");
    say("-two\r\n");
    begin(0);
    begin(1);
    say("-three\r\n");
    assert_heard("");
    take(1, "+b\r\n");
    end(1);
    take(0, "+a\r\n");
    end(0);
    assert_heard("+a\r\n-one\r\n-two\r\n");
    end(0); /* a request without a reply */
    assert_heard("+b\r\n-three\r\n");
    assert_done();
    begin(1);
    end(1);
    assert_heard("");
    assert_done();
}

static void what_is_said_behind_the_answered_goes_at_once(void **state)
{
    (void)state;
    begin(0);
    take(0, "+a\r\n");
    assert_heard("+a\r\n");
    assert_true(replies_say(&replies, slice_str("-x\r\n")));
    end(0);
    assert_heard("-x\r\n");
    assert_done();
}

static void pieces_of_a_reply_pass_as_they_come(void **state)
{
    (void)state;
    begin(0);
    begin(1);
    take_part(1, "$3\r\nb");
    take_part(0, "$2\r");
    assert_heard("$2\r");
    take_part(1, "b");
    take(0, "\naa\r\n");
    assert_heard("\naa\r\n");
    end(0);
    assert_heard("$3\r\nbb");
    take(1, "b\r\n");
    assert_heard("b\r\n");
    end(1);
    assert_done();
}

/* A huge reply is never buffered in whole, neither when its run is due nor before. */
static void a_huge_reply_is_not_kept_in_its_turn(void **state)
{
    static char bytes[65536];
    (void)state;
    begin(0);
    say("-x\r\n");
    uint64_t before = atomic_load(&pool.held);
    for (int i = 0; i < 100; i++) {
        enum replies_verdict verdict =
            replies_take(&replies, &lanes[0], bytes, sizeof bytes, i == 99);
        assert_int_equal(verdict, REPLIES_PASS);
        flush();
        assert_int_equal(atomic_load(&pool.held), before);
    }
    end(0);
    assert_heard("-x\r\n");
    assert_done();
}

static void early_bytes_are_counted_and_given_back(void **state)
{
    static char bytes[100000];
    (void)state;
    begin(0);
    begin(1);
    say("-x\r\n");
    for (int i = 0; i < 10; i++)
        take_bytes(1, bytes, sizeof bytes, i == 9);
    begin(2);
    take(2, "+c\r\n");
    assert_int_equal(replies_bytes(&replies), 1000008);
    assert_in_range(atomic_load(&pool.held), 1000008, 1030000);
    end(1);
    end(0);
    assert_int_equal(replies_bytes(&replies), 0);
    assert_int_equal(heard.bytes, 1000008);
    chain_clear(&heard, &pool);
    end(2);
    assert_done();
}

/* Many short early replies take the memory they need, not a page each. */
static void short_early_replies_take_little(void **state)
{
    (void)state;
    begin(0);
    for (unsigned i = 0; i < 1000; i++) {
        begin(1 + i % 2);
        take(1 + i % 2, "$5\r\nabcde\r\n");
        end(1 + i % 2);
    }
    assert_int_equal(replies_bytes(&replies), 11000);
    assert_in_range(atomic_load(&pool.held), 11000, 400000);
    end(0);
    assert_int_equal(heard.bytes, 11000);
    chain_clear(&heard, &pool);
    assert_done();
}

static void a_message_passes_between_two_frames(void **state)
{
    (void)state;
    begin(0);
    take(1, ">message\r\n"); /* a lane without requests */
    assert_heard(">message\r\n");
    take_part(0, "$2\r\n");
    take(1, ">one\r\n");
    take_part(2, ">tw");
    take(1, ">three\r\n");
    assert_heard("$2\r\n");
    take(0, "aa\r\n");
    assert_heard("aa\r\n>one\r\n>three\r\n>tw");
    take(0, "+b\r\n"); /* the run is due, but a message is half sent */
    assert_heard("");
    take(2, "o\r\n");
    assert_heard("o\r\n+b\r\n");
    end(0);
    assert_done();
}

static void a_message_in_part_ends_before_anything_else(void **state)
{
    (void)state;
    begin(0);
    take_part(1, ">mess");
    end(0);
    assert_false(replies_are_idle(&replies));
    begin(1); /* requested after the message */
    take(1, "age\r\n");
    assert_heard(">message\r\n");
    take(1, "+a\r\n");
    end(1);
    assert_heard("+a\r\n");
    assert_done();
}

/*
 * A message waits for the earlier replies of its lane: an invalidation must not arrive before its
 * value.
 */
static void a_message_does_not_overtake_its_own_lane(void **state)
{
    (void)state;
    begin(0);
    begin(1);
    take(1, "+value\r\n");
    end(1);
    take(1, ">gone\r\n");
    take_part(1, ">again ");
    assert_heard("");
    end(0);
    assert_heard("+value\r\n>gone\r\n>again ");
    begin(0);
    take(0, "+a\r\n");
    assert_heard("");
    take(1, "gone\r\n");
    assert_heard("gone\r\n+a\r\n");
    end(0);
    assert_done();
}

/* A half-sent frame of a run that began before replies had an order to keep. */
static void a_frame_half_sent_ends_first(void **state)
{
    (void)state;
    assert_true(replies_begin(&replies, &lanes[0], true));
    begin(1);
    take(2, ">message\r\n");
    assert_heard("");
    take(0, "aa\r\n");
    assert_heard("aa\r\n>message\r\n");
    end(0);
    end(1);
    assert_done();
}

/* A client closes at any point: all memory is given back, and the next client starts afresh. */
static void whatever_is_kept_can_be_cleared(void **state)
{
    (void)state;
    begin(0);
    begin(1);
    say("-x\r\n");
    begin(2);
    take_part(0, "$2\r\na");
    take_part(1, "$9\r\nb");
    take(2, "+c\r\n");
    end(2);
    take_part(3, ">m");
    replies_clear(&replies);
    assert_heard("$2\r\na");
    assert_done();
    begin(1);
    begin(0);
    take(0, "+b\r\n");
    take(1, "+a\r\n");
    end(1);
    end(0);
    take(3, ">m\r\n");
    assert_heard("+a\r\n+b\r\n>m\r\n");
    assert_done();
}

static void a_client_closed_by_what_it_is_sent_hears_no_more(void **state)
{
    (void)state;
    begin(0);
    begin(1);
    say("-x\r\n");
    begin(2);
    take(1, "+b\r\n");
    take(2, "+c\r\n");
    end(1);
    room = 6;
    end(0);
    assert_heard("+b\r\n");
    replies_clear(&replies);
    assert_done();
}

static void positions_wrap(void **state)
{
    (void)state;
    replies.head = replies.tail = UINT32_MAX - 2;
    for (unsigned i = 0; i < 9; i++)
        begin(i % 3);
    for (unsigned i = 9; i-- > 0;)
        take(i % 3, "+x\r\n"); /* a lane's replies come in its order, all alike */
    for (unsigned i = 0; i < 9; i++)
        end(i % 3);
    assert_int_equal(heard.bytes, 36);
    chain_clear(&heard, &pool);
    assert_done();
}

/* ---- random requests against a list of the expected bytes ---- */

#define REQUESTS 60
#define FRAMES 400
#define FRAME 40

/* "<lane>:<number>:<payload>;": the bytes name the frame. */
struct frame {
    char text[FRAME];
    unsigned len;
    bool ends_run; /* the last byte of this frame answers the oldest run of its lane */
};

/* The frames that a lane still has to send, in its own order. */
struct stream {
    struct frame frames[FRAMES];
    unsigned n, at; /* frames made, and the index of the frame being sent */
    unsigned sent;  /* bytes of the current frame that were sent */
    unsigned n_messages;
};

static struct stream streams[LANES];
static char expected[REQUESTS * FRAME * 2]; /* all replies, in order */
static char all[FRAMES * FRAME * 2];        /* all bytes that the client got */

static void add_frame(uint64_t *seed, unsigned lane, char kind, unsigned number)
{
    struct stream *stream = &streams[lane];
    struct frame *frame = &stream->frames[stream->n++];
    static const char payload[] = "abcdefghijklmnop";
    assert_true(stream->n < FRAMES);
    frame->ends_run = false;
    int len = snprintf(frame->text, FRAME, "%c%u:%u:%.*s;", kind, lane, number,
                       (int)dice_below(seed, 16), payload);
    frame->len = (unsigned)len;
}

/*
 * Adds a message between frames, on a lane without unanswered requests. On another lane the message
 * would count as a reply.
 */
static void add_message(uint64_t *seed, unsigned lane)
{
    struct stream *stream = &streams[lane];
    if (stream->at == stream->n && stream->n_messages < FRAMES / 4)
        add_frame(seed, lane, '>', stream->n_messages++);
}

/* Like front: the last call of a run is marked when another run begins behind it. */
static void close_run(unsigned lane)
{
    struct stream *stream = &streams[lane];
    if (lanes[lane].n_runs == 0)
        return;
    if (stream->at == stream->n)
        replies_end(&replies, &lanes[lane]);
    else
        stream->frames[stream->n - 1].ends_run = true;
}

static void ask(uint64_t *seed, unsigned *last, unsigned number)
{
    unsigned lane = (unsigned)dice_below(seed, LANES);
    if (*last < LANES && *last != lane)
        close_run(*last);
    begin(lane);
    add_frame(seed, lane, '+', number);
    strcat(expected, streams[lane].frames[streams[lane].n - 1].text);
    *last = lane;
}

static void say_own(unsigned *last, unsigned number)
{
    char text[FRAME];
    if (*last == LANES)
        return;
    snprintf(text, sizeof text, "-w:%u:;", number);
    strcat(expected, text);
    assert_true(replies_say(&replies, slice_str(text)));
    close_run(*last);
    *last = LANES;
    flush();
}

static void send_some(uint64_t *seed, unsigned lane)
{
    struct stream *stream = &streams[lane];
    if (stream->at == stream->n)
        return;
    struct frame *frame = &stream->frames[stream->at];
    unsigned n = 1 + (unsigned)dice_below(seed, frame->len - stream->sent);
    bool is_whole = stream->sent + n == frame->len;
    const char *from = frame->text + stream->sent;
    stream->sent = is_whole ? 0 : stream->sent + n;
    stream->at += is_whole;
    take_bytes(lane, from, n, is_whole);
    if (is_whole && frame->ends_run)
        end(lane);
}

static void collect(void)
{
    struct slice piece;
    while (chain_peek(&heard, &piece, 1) > 0 && piece.len > 0) {
        strncat(all, piece.at, piece.len);
        chain_drop(&heard, &pool, piece.len);
    }
}

/*
 * Checks that replies are as expected, messages are whole and in order for each lane, and nothing
 * else was sent.
 */
static void judge_heard(void)
{
    const char *reply = expected;
    unsigned next[LANES] = {0};
    for (char *at = all; *at != '\0';) {
        char *end_of = strchr(at, ';');
        assert_non_null(end_of);
        size_t len = (size_t)(end_of - at) + 1;
        if (*at == '>') {
            unsigned lane, number;
            assert_int_equal(sscanf(at, ">%u:%u:", &lane, &number), 2);
            assert_int_equal(number, next[lane]++);
        } else {
            assert_memory_equal(at, reply, len);
            reply += len;
        }
        at += len;
    }
    assert_string_equal(reply, "");
    for (unsigned lane = 0; lane < LANES; lane++)
        assert_int_equal(next[lane], streams[lane].n_messages);
}

static void random_lanes_keep_the_order(void **state)
{
    (void)state;
    for (uint64_t round = 0; round < dice_rounds(2000); round++) {
        uint64_t seed = round;
        unsigned last = LANES;
        memset(streams, 0, sizeof streams);
        expected[0] = all[0] = '\0';
        replies.head = replies.tail = (uint32_t)dice(&seed);
        for (unsigned asked = 0; asked < REQUESTS;) {
            switch (dice_below(&seed, 8)) {
            case 0:
            case 1:
                ask(&seed, &last, asked++);
                break;
            case 2:
                say_own(&last, asked++);
                break;
            case 3:
                add_message(&seed, (unsigned)dice_below(&seed, LANES));
                break;
            default:
                send_some(&seed, (unsigned)dice_below(&seed, LANES));
                break;
            }
        }
        for (unsigned left = 1; left > 0;) {
            send_some(&seed, (unsigned)dice_below(&seed, LANES));
            left = 0;
            for (unsigned lane = 0; lane < LANES; lane++)
                left += streams[lane].n - streams[lane].at;
        }
        if (last < LANES)
            end(last);
        collect();
        judge_heard();
        assert_done();
        replies_clear(&replies);
    }
}

static int set_up(void **state)
{
    (void)state;
    pool_init(&pool);
    memset(lanes, 0, sizeof lanes);
    replies_init(&replies, &pool);
    room = SIZE_MAX;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    replies_clear(&replies);
    chain_clear(&heard, &pool);
    pool_shed(&pool);
    assert_int_equal(atomic_load(&pool.held), 0);
    pool_fini(&pool);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_comes_early_waits_for_its_turn),
        TEST(requests_of_one_lane_in_a_row_are_one_run),
        TEST(weirs_own_stand_where_they_were_said),
        TEST(what_is_said_behind_the_answered_goes_at_once),
        TEST(pieces_of_a_reply_pass_as_they_come),
        TEST(a_huge_reply_is_not_kept_in_its_turn),
        TEST(early_bytes_are_counted_and_given_back),
        TEST(short_early_replies_take_little),
        TEST(a_message_passes_between_two_frames),
        TEST(a_message_in_part_ends_before_anything_else),
        TEST(a_message_does_not_overtake_its_own_lane),
        TEST(a_frame_half_sent_ends_first),
        TEST(whatever_is_kept_can_be_cleared),
        TEST(a_client_closed_by_what_it_is_sent_hears_no_more),
        TEST(positions_wrap),
        TEST(random_lanes_keep_the_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
