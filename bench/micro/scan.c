/*
 * Microbenchmark: the ends of requests and replies, in a buffer full of one kind of frame, as in a
 * pipeline.
 */
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"
#include "micro.h"
#include "resp/scan.h"

#define FRAMES 256

#define GET "*2\r\n$3\r\nGET\r\n$13\r\nget16:0000123\r\n"
#define SET "*3\r\n$3\r\nSET\r\n$13\r\nset16:0000123\r\n$16\r\n0123456789abcdef\r\n"
#define MGET "*5\r\n$4\r\nMGET\r\n$2\r\nk1\r\n$2\r\nk2\r\n$2\r\nk3\r\n$2\r\nk4\r\n"
#define BULK "$16\r\n0123456789abcdef\r\n"
#define OK "+OK\r\n"
#define INTEGER ":1234567\r\n"
#define ARRAY "*4\r\n" BULK BULK ":17\r\n$-1\r\n"
#define MAP "%2\r\n$4\r\nname\r\n" BULK "$5\r\ncount\r\n:17\r\n"

/* A buffer of repeated frames; made at first use, never freed. */
struct flood {
    struct slice frame;
    char *bytes;
};

static const char *flood_bytes(struct flood *flood)
{
    if (!flood->bytes) {
        flood->bytes = malloc(flood->frame.len * FRAMES);
        if (!flood->bytes)
            abort();
        for (size_t i = 0; i < FRAMES; i++)
            memcpy(flood->bytes + i * flood->frame.len, flood->frame.at, flood->frame.len);
    }
    return flood->bytes;
}

static void scan_requests(struct flood *flood, uint64_t n)
{
    const char *bytes = flood_bytes(flood), *end = bytes + flood->frame.len * FRAMES, *at = bytes;
    struct request_scan scan = {0};
    while (n-- > 0) {
        size_t used;
        if (request_scan(&scan, &request_limits_normal, at, (size_t)(end - at), &used) !=
            SCAN_FRAME)
            abort();
        at = at + used == end ? bytes : at + used;
        micro_use(scan.argc);
    }
}

static void scan_replies(struct flood *flood, uint64_t n)
{
    const char *bytes = flood_bytes(flood), *end = bytes + flood->frame.len * FRAMES, *at = bytes;
    struct reply_scan scan = {0};
    while (n-- > 0) {
        size_t used;
        if (reply_scan(&scan, at, (size_t)(end - at), &used) != SCAN_FRAME)
            abort();
        at = at + used == end ? bytes : at + used;
        micro_use(scan.kind);
    }
}

/* A request in two pieces, cut in its key. */
static void scan_cut(uint64_t n)
{
    static const char get[] = GET;
    const size_t cut = 27, len = sizeof get - 1;
    struct request_scan scan = {0};
    while (n-- > 0) {
        size_t used;
        if (request_scan(&scan, &request_limits_normal, get, cut, &used) != SCAN_MORE ||
            request_scan(&scan, &request_limits_normal, get + cut, len - cut, &used) != SCAN_FRAME)
            abort();
        micro_use(scan.argc);
    }
}

#define ROW(function, scanner, text)                                                               \
    static void function(uint64_t n)                                                               \
    {                                                                                              \
        static struct flood flood = {.frame = {text, sizeof text - 1}};                            \
        scanner(&flood, n);                                                                        \
    }

ROW(scan_get, scan_requests, GET)
ROW(scan_set, scan_requests, SET)
ROW(scan_mget, scan_requests, MGET)
ROW(scan_bulk, scan_replies, BULK)
ROW(scan_ok, scan_replies, OK)
ROW(scan_integer, scan_replies, INTEGER)
ROW(scan_array, scan_replies, ARRAY)
ROW(scan_map, scan_replies, MAP)

const struct micro *micro_scan(void)
{
    static const struct micro rows[] = {
        {"scan/request GET", NULL, scan_get},        {"scan/request SET", NULL, scan_set},
        {"scan/request MGET of 4", NULL, scan_mget}, {"scan/request in two pieces", NULL, scan_cut},
        {"scan/reply bulk", NULL, scan_bulk},        {"scan/reply +OK", NULL, scan_ok},
        {"scan/reply integer", NULL, scan_integer},  {"scan/reply array of 4", NULL, scan_array},
        {"scan/reply map of 2", NULL, scan_map},     {0},
    };
    return rows;
}
