/*
 * Tests of the replies of one client at several nodes: their order is that of the client's
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
#include "front/cluster/spread.h"

#define PLACES 4
#define NEVER UINT32_MAX

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);

static uint32_t mallocs_left = NEVER; /* number of allocations that succeed */

void *__wrap_malloc(size_t n)
{
    if (mallocs_left == 0)
        return NULL;
    mallocs_left -= mallocs_left != NEVER;
    return __real_malloc(n);
}

/* Parts of a place that these places do not have. */
void auth_lanes_forget(struct question *question)
{
    (void)question;
}

void login_put(struct login *login)
{
    (void)login;
}

void auth_proof_drop(struct auth_proof *proof)
{
    (void)proof;
}

void lease_drop(struct lease *lease)
{
    (void)lease;
}

static struct pool pool;
static struct replies replies;
static struct reply_source compound;
static struct spread *spread;
static struct place places[PLACES];
static struct place *rows[PLACES];
static char heard[1 << 16]; /* bytes sent to the client */
static size_t n_heard;
static size_t room; /* bytes that the client still accepts */

static void forget(void)
{
    spread_forget(spread, &replies);
    replies_clear(&replies);
}

/*
 * Like a client that is closed because of the bytes sent to it: the order is forgotten in the call.
 */
static bool hear(void *arg, const char *data, size_t n)
{
    (void)arg;
    if (n > room) {
        forget();
        return false;
    }
    room -= n;
    assert_in_range(n, 0, sizeof heard - n_heard);
    memcpy(heard + n_heard, data, n);
    n_heard += n;
    return true;
}

static const struct spread_outlet outlet = {hear, NULL};

/* ---- steps, false: out of memory ---- */

static bool ask_many(unsigned place, uint32_t n)
{
    return spread_expect(spread, &replies, &places[place], n);
}

static bool ask(unsigned place)
{
    return ask_many(place, 1);
}

/* Passes bytes like a place does. */
static bool take_bytes(unsigned place, const char *data, size_t n, bool is_whole)
{
    if (is_whole && spread_take_only(spread, &replies, &places[place])) {
        hear(NULL, data, n);
        return true;
    }
    return spread_take(spread, &replies, &places[place], slice_of(data, n), is_whole, &outlet);
}

static bool take(unsigned place, const char *text)
{
    return take_bytes(place, text, strlen(text), true);
}

static bool take_part(unsigned place, const char *text)
{
    return take_bytes(place, text, strlen(text), false);
}

static bool fill(struct early_piece *piece, const char *text)
{
    return replies_fill(&replies, piece, slice_str(text)) &&
           spread_go_on(spread, &replies, &outlet);
}

static bool say(const char *text)
{
    if (!spread_end_run(spread, &replies))
        return false;
    if (replies_are_idle(&replies))
        return hear(NULL, text, strlen(text));
    if (!replies_say(&replies, slice_str(text)))
        return false;
    replies_flush(&replies, hear, NULL);
    return true;
}

/* Like client_end_batch. */
static void end_batch(void)
{
    spread_end_batch(spread, &replies);
    replies_flush(&replies, hear, NULL);
}

static bool begin_compound(void)
{
    return spread_end_run(spread, &replies) && replies_begin(&replies, &compound, false);
}

static bool end_compound(const char *text)
{
    enum replies_verdict verdict = replies_take(&replies, &compound, text, strlen(text), true);
    if (verdict == REPLIES_FULL)
        return false;
    if (verdict == REPLIES_PASS)
        hear(NULL, text, strlen(text));
    replies_end(&replies, &compound);
    replies_flush(&replies, hear, NULL);
    return true;
}

/* All bytes sent to the client since the last call. */
static void assert_heard(const char *expected)
{
    assert_int_equal(n_heard, strlen(expected));
    assert_memory_equal(heard, expected, n_heard);
    n_heard = 0;
}

static void assert_done(void)
{
    assert_ptr_equal(spread->head, spread->tail);
    assert_true(replies_are_idle(&replies));
    assert_int_equal(replies_bytes(&replies), 0);
    for (unsigned i = 0; i < PLACES; i++) {
        assert_int_equal(places[i].n_owed, 0);
        assert_null(places[i].strand.first);
    }
}

static int set_up(void **state)
{
    (void)state;
    pool_init(&pool);
    compound = (struct reply_source){0};
    replies_init(&replies, &pool);
    spread = spread_new();
    memset(places, 0, sizeof places);
    for (unsigned i = 0; i < PLACES; i++) {
        rows[i] = &places[i];
        list_init(&places[i].in_retired);
    }
    spread->places = rows;
    spread->n_places = PLACES;
    n_heard = 0;
    room = SIZE_MAX;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    forget();
    free(spread);
    pool_fini(&pool);
    assert_int_equal(atomic_load(&pool.held), 0);
    return 0;
}

/* ---- a few cases ---- */

static void replies_go_in_the_order_of_requests(void **state)
{
    (void)state;
    assert_true(ask(0) && ask(1) && ask(1) && ask(2) && ask(0));
    assert_int_equal(spread->tail - spread->head, 4);
    assert_true(take(2, "+d\r\n") && take(1, "+b\r\n"));
    assert_heard("");
    assert_int_equal(replies_bytes(&replies), 8);
    assert_true(take(0, "+a\r\n"));
    assert_heard("+a\r\n+b\r\n");
    assert_true(take(0, "+e\r\n"));
    assert_heard("");
    assert_true(take(1, "+c\r\n"));
    assert_heard("+c\r\n+d\r\n+e\r\n");
    assert_done();
}

/* Replies that arrive together are split where the order gives the next reply to another place. */
static void what_comes_at_once_is_parted(void **state)
{
    (void)state;
    assert_true(ask(0) && ask(1) && ask(0) && ask(1) && ask(0));
    assert_true(take(0, "+a\r\n*2\r\n:1\r\n$1\r\nc\r\n$-1\r\n"));
    assert_heard("+a\r\n");
    assert_true(take(1, "$1\r\nb\r\n%1\r\n+d\r\n_\r\n"));
    assert_heard("$1\r\nb\r\n*2\r\n:1\r\n$1\r\nc\r\n%1\r\n+d\r\n_\r\n$-1\r\n");
    assert_done();
}

static void pieces_of_a_reply_pass_as_they_come(void **state)
{
    (void)state;
    assert_true(ask(0) && ask(1) && ask(0));
    assert_true(take_part(1, "$3\r\nb"));
    assert_true(take_part(0, "$2\r"));
    assert_heard("$2\r");
    assert_true(spread_is_in_frame(spread));
    assert_true(take_part(1, "b") && take_part(0, "\naa\r\n+"));
    assert_heard("\naa\r\n$3\r\nbb");
    assert_true(take(1, "b\r\n"));
    assert_heard("b\r\n+");
    assert_true(take(0, "c\r\n"));
    assert_heard("c\r\n");
    assert_false(spread_is_in_frame(spread));
    assert_done();
}

/* The rest of a reply that is due may bypass the spread. */
static void a_large_reply_passes_by(void **state)
{
    (void)state;
    assert_true(ask(0) && ask(1));
    assert_false(spread_may_pass(spread, &replies, &places[0]));
    assert_true(take_part(0, "$10\r\nab") && take_part(1, "$9\r\nx"));
    assert_true(spread_may_pass(spread, &replies, &places[0]));
    assert_false(spread_may_pass(spread, &replies, &places[1]));
    spread_passed(&places[0], 8);
    assert_true(take(0, "\r\n"));
    assert_heard("$10\r\nab\r\n$9\r\nx");
    assert_true(take(1, "12345678\r\n"));
    assert_heard("12345678\r\n");
    assert_done();
}

/*
 * With one call in flight its reply takes the fast path. With more calls in flight, or with an
 * answer of weir's own behind the reply, the reply takes the slow path.
 */
static void the_only_reply_takes_the_short_way(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        assert_true(ask(i));
        assert_true(spread_take_only(spread, &replies, &places[i]));
        assert_done();
    }
    assert_true(ask(0) && take_part(0, "$2\r\na"));
    assert_true(spread_take_only(spread, &replies, &places[0]));
    assert_false(places[0].is_in_frame);
    assert_int_equal(places[0].scan.open, 0);
    n_heard = 0;
    assert_true(ask_many(0, 2));
    assert_false(spread_take_only(spread, &replies, &places[0]));
    assert_true(take(0, "+a\r\n") && ask(1));
    assert_false(spread_take_only(spread, &replies, &places[0]));
    assert_false(spread_take_only(spread, &replies, &places[1]));
    assert_true(take(0, "+b\r\n") && take(1, "+c\r\n") && ask(2) && say("-x\r\n"));
    assert_false(spread_take_only(spread, &replies, &places[2]));
    assert_true(take(2, "+d\r\n"));
    assert_heard("+a\r\n+b\r\n+c\r\n+d\r\n-x\r\n");
    assert_done();
}

static void what_weir_says_stands_where_it_was_said(void **state)
{
    (void)state;
    assert_true(say("-zero\r\n"));
    assert_heard("-zero\r\n");
    assert_true(ask(0) && ask(1) && say("-one\r\n") && ask(1) && begin_compound() && ask(0) &&
                say("-two\r\n"));
    assert_true(take(1, "+b\r\n+c\r\n"));
    assert_true(end_compound("*0\r\n"));
    assert_heard("");
    assert_true(take(0, "+a\r\n"));
    assert_heard("+a\r\n+b\r\n-one\r\n+c\r\n*0\r\n");
    assert_true(take(0, "+d\r\n"));
    assert_heard("+d\r\n-two\r\n");
    assert_done();
}

/*
 * weir answers a request itself while a reply is half sent. struct replies was idle, and does not
 * know of the half reply.
 */
static void a_reply_in_part_ends_before_what_weir_says(void **state)
{
    (void)state;
    assert_true(ask(0) && take_part(0, "$2\r\na") && say("-x\r\n"));
    assert_heard("$2\r\na");
    assert_true(take(0, "a\r\n"));
    assert_heard("a\r\n-x\r\n");
    assert_done();
}

/* At the end of a batch replies become idle, and later requests need no run. */
static void replies_fall_idle(void **state)
{
    (void)state;
    assert_true(ask(0) && say("-x\r\n") && ask(1));
    end_batch();
    assert_true(take(1, "+b\r\n") && take(0, "+a\r\n"));
    assert_heard("+a\r\n-x\r\n+b\r\n");
    assert_done();
    assert_true(ask(1) && ask(0));
    assert_true(replies_are_idle(&replies));
    assert_true(take(0, "+d\r\n") && take(1, "+c\r\n"));
    assert_heard("+c\r\n+d\r\n");
    assert_done();
}

/* A request is sent again elsewhere: its reply keeps its position. */
static void a_reply_that_is_held_back_has_its_position(void **state)
{
    (void)state;
    assert_true(ask_many(0, 4) && ask(1) && take(0, "+a\r\n"));
    assert_heard("+a\r\n");
    assert_int_equal(spread_order_of(spread, &places[0]), 1);
    struct early_piece *first = strand_hold(&replies, &places[0].strand);
    assert_true(take(0, "+c\r\n"));
    assert_int_equal(spread_order_of(spread, &places[0]), 3);
    struct early_piece *second = strand_hold(&replies, &places[0].strand);
    assert_int_equal(spread_order_of(spread, &places[0]), 5);
    assert_int_equal(spread_order_of(spread, &places[1]), 4);
    assert_true(take(1, "+e\r\n") && fill(second, "+d\r\n"));
    assert_heard("");
    assert_true(fill(first, "*1\r\n+b\r\n"));
    assert_heard("*1\r\n+b\r\n+c\r\n+d\r\n+e\r\n");
    assert_done();
}

/* A held-back reply stays empty, or is ready before it is due. */
static void a_reply_that_is_held_back_leaves_no_gap(void **state)
{
    (void)state;
    assert_true(ask(0) && ask(1) && ask(0) && ask(1));
    struct early_piece *none = strand_hold(&replies, &places[0].strand);
    struct early_piece *early = strand_hold(&replies, &places[1].strand);
    assert_true(fill(early, "+b\r\n") && take(1, "+d\r\n") && take(0, "+c\r\n"));
    assert_heard("");
    assert_true(fill(none, ""));
    assert_heard("+b\r\n+c\r\n+d\r\n");
    assert_done();
}

/* A node leaves the topology: the replies to its earlier requests keep their order. */
static void a_place_that_goes_keeps_its_turn(void **state)
{
    (void)state;
    assert_true(ask(0) && ask(1) && ask(0) && take(1, "+b\r\n"));
    rows[1] = NULL;
    list_push(&spread->retired, &places[1].in_retired);
    assert_true(take_part(0, "+a\r\n+"));
    assert_heard("+a\r\n+b\r\n+");
    assert_int_equal(places[1].n_owed, 0);
    assert_true(ask(0) && take(0, "c\r\n+d\r\n"));
    assert_heard("c\r\n+d\r\n");
    assert_done();
    list_take(&places[1].in_retired);
}

/*
 * A client closes at any point: all memory is given back, also of retired places. The next requests
 * start afresh.
 */
static void whatever_is_kept_can_be_forgotten(void **state)
{
    (void)state;
    assert_true(ask(0) && ask(1) && say("-x\r\n") && ask(2) && begin_compound() && ask(3));
    assert_true(take_part(0, "$2\r\na") && take_part(1, "$9\r\nb") && take(2, "+c\r\n"));
    assert_non_null(strand_hold(&replies, &places[3].strand));
    rows[2] = NULL;
    list_push(&spread->retired, &places[2].in_retired);
    forget();
    assert_heard("$2\r\na");
    assert_done();
    list_take(&places[2].in_retired);
    compound = (struct reply_source){0};
    assert_true(ask(1) && ask(0) && take(0, "+b\r\n") && take(1, "+a\r\n"));
    assert_heard("+a\r\n+b\r\n");
    assert_done();
}

static void a_client_closed_by_what_it_is_sent_hears_no_more(void **state)
{
    (void)state;
    room = 8;
    assert_true(ask(0) && ask(1) && ask(2) && ask(0));
    assert_true(take(1, "+b\r\n") && take(2, "+c\r\n"));
    assert_true(take(0, "+a\r\n+d\r\n"));
    assert_heard("+a\r\n+b\r\n");
    assert_done();
}

/* The ring grows, and is freed when it is empty. */
static void many_turns_are_given_back(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        assert_true(ask(i % 2));
    assert_int_equal(spread->capacity, 1024);
    for (unsigned i = 0; i < 500; i++)
        assert_true(take(1, ":2\r\n"));
    assert_heard("");
    for (unsigned i = 0; i < 500; i++)
        assert_true(take(0, ":1\r\n"));
    assert_int_equal(n_heard, 4000);
    n_heard = 0;
    assert_int_equal(spread->capacity, 0);
    assert_done();
}

/* ---- out of memory ---- */

static bool everything(void)
{
    for (unsigned i = 0; i < 40; i++)
        if (!ask(i % 2))
            return false;
    if (!say("-x\r\n") || !ask(2) || !begin_compound() || !ask(0))
        return false;
    char early[400];
    snprintf(early, sizeof early, "$300\r\n%0300d\r\n", 0);
    for (unsigned i = 0; i < 20; i++)
        if (!take(1, early))
            return false;
    struct early_piece *piece = strand_hold(&replies, &places[2].strand);
    return piece != NULL && fill(piece, "+held\r\n") && end_compound("*0\r\n");
}

/* Memory may run out anywhere: the failure is reported, and all memory can be given back. */
static void memory_may_end_anywhere(void **state)
{
    bool is_done = false;
    for (uint32_t n = 0; !is_done; n++) {
        assert_in_range(n, 0, 1000);
        mallocs_left = n;
        is_done = everything();
        mallocs_left = NEVER;
        forget();
        assert_int_equal(replies_bytes(&replies), 0);
        tear_down(state);
        set_up(state);
    }
}

/* ---- anything ---- */

#define REQUESTS 300
#define STREAM 16384

/* The bytes of a place: its replies, and the end of each. */
struct stream {
    char bytes[STREAM];
    uint32_t len, given;
    uint32_t ends[REQUESTS];
    uint32_t n, n_given;
};

static struct stream streams[PLACES];
static char expected[STREAM];

static size_t print_reply(uint64_t *seed, char *at, unsigned number)
{
    switch (dice_below(seed, 4)) {
    case 0:
        return (size_t)sprintf(at, ":%u\r\n", number);
    case 1:
        return (size_t)sprintf(at, "*2\r\n$4\r\n%04u\r\n*0\r\n", number);
    case 2:
        return (size_t)sprintf(at, "-ERR %u\r\n", number);
    default:
        return (size_t)sprintf(at, "$9\r\n\r\n%05u\r\n\r\n", number);
    }
}

/*
 * Passes some bytes of a place, cut anywhere; or holds back its next reply, and fills that reply at
 * once or later.
 */
static void give(uint64_t *seed, unsigned place, struct early_piece **held, struct slice *kept)
{
    struct stream *stream = &streams[place];
    if (stream->given == stream->len)
        return;
    uint32_t begin = stream->n_given == 0 ? 0 : stream->ends[stream->n_given - 1];
    if (stream->given == begin && *held == NULL && dice_below(seed, 8) == 0) {
        *held = strand_hold(&replies, &places[place].strand);
        *kept = slice_of(stream->bytes + begin, stream->ends[stream->n_given] - begin);
        stream->given = stream->ends[stream->n_given++];
        return;
    }
    uint32_t n = 1 + (uint32_t)dice_below(seed, stream->len - stream->given);
    uint32_t from = stream->given;
    stream->given += n;
    while (stream->n_given < stream->n && stream->ends[stream->n_given] <= stream->given)
        stream->n_given++;
    bool is_whole = stream->n_given > 0 && stream->ends[stream->n_given - 1] == stream->given;
    assert_true(take_bytes(place, stream->bytes + from, n, is_whole));
}

static size_t request(uint64_t *seed, unsigned number, size_t len)
{
    char text[64];
    size_t n = print_reply(seed, text, number);
    text[n] = '\0';
    if (dice_below(seed, 16) == 0) {
        assert_true(say(text));
    } else {
        unsigned place = (unsigned)dice_below(seed, PLACES);
        struct stream *stream = &streams[place];
        assert_true(ask(place));
        memcpy(stream->bytes + stream->len, text, n);
        stream->len += (uint32_t)n;
        stream->ends[stream->n++] = stream->len;
    }
    memcpy(expected + len, text, n);
    return len + n;
}

static void play(uint64_t seed)
{
    struct early_piece *held[PLACES] = {NULL};
    struct slice kept[PLACES];
    memset(streams, 0, sizeof streams);
    size_t len = 0;
    bool is_left = true;
    for (unsigned number = 0; number < REQUESTS || is_left;) {
        unsigned place = (unsigned)dice_below(&seed, PLACES);
        if (number < REQUESTS && dice_below(&seed, 2) == 0)
            len = request(&seed, number++, len);
        else if (held[place] != NULL && dice_below(&seed, 2) == 0) {
            assert_true(replies_fill(&replies, held[place], kept[place]));
            held[place] = NULL;
            assert_true(spread_go_on(spread, &replies, &outlet));
        } else {
            give(&seed, place, &held[place], &kept[place]);
        }
        if (dice_below(&seed, 20) == 0)
            end_batch();
        is_left = false;
        for (unsigned i = 0; i < PLACES; i++)
            is_left |= held[i] != NULL || streams[i].given < streams[i].len;
    }
    end_batch();
    assert_int_equal(n_heard, len);
    assert_memory_equal(heard, expected, len);
    n_heard = 0;
    assert_done();
}

static void any_order_comes_out_as_it_was_asked(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= dice_rounds(200); seed++) {
        play(seed);
    }
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(replies_go_in_the_order_of_requests),
        CASE(what_comes_at_once_is_parted),
        CASE(pieces_of_a_reply_pass_as_they_come),
        CASE(a_large_reply_passes_by),
        CASE(the_only_reply_takes_the_short_way),
        CASE(what_weir_says_stands_where_it_was_said),
        CASE(a_reply_in_part_ends_before_what_weir_says),
        CASE(replies_fall_idle),
        CASE(a_reply_that_is_held_back_has_its_position),
        CASE(a_reply_that_is_held_back_leaves_no_gap),
        CASE(a_place_that_goes_keeps_its_turn),
        CASE(whatever_is_kept_can_be_forgotten),
        CASE(a_client_closed_by_what_it_is_sent_hears_no_more),
        CASE(many_turns_are_given_back),
        CASE(memory_may_end_anywhere),
        CASE(any_order_comes_out_as_it_was_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
