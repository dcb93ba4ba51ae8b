/*
 * Any bytes as replies of a sentinel. However the bytes are cut, the same replies are read. Each
 * reply is parsed as the answer to each request.
 */
#include "upstream/control_reply.h"

#include "pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void read_all(const struct said *value, uint64_t *sum)
{
    struct sentinel_server server;
    struct slice text, rest = value->inside;
    struct said element;
    digest(sum, (uint64_t)value->kind);
    digest(sum, value->text.len);
    digest(sum, sentinel_read_message(value, "+switch-master", &text));
    digest(sum, said_field(value, "mode", &text));
    digest(sum, (uint64_t)sentinel_judge_error(value->text));
    if (sentinel_read_server(value, &server)) {
        REQUIRE(server.port > 0 && server.host[0] != '\0');
        REQUIRE(memchr(server.host, '\0', sizeof server.host) != NULL);
        REQUIRE(memchr(server.run_id, '\0', sizeof server.run_id) != NULL);
        digest(sum, server.epoch + server.port + server.is_down + server.is_failing_over);
    }
    while (said_next(&rest, &element)) /* a frame that was read has only valid elements */
        read_all(&element, sum);
    REQUIRE(rest.len == 0);
}

static void judge(struct slice frame, uint64_t *sum)
{
    char *copy = piece_copy((const uint8_t *)frame.at, frame.len);
    struct slice rest = slice_of(copy, frame.len);
    struct said value;
    bool is_read = said_next(&rest, &value);
    digest(sum, is_read);
    if (is_read) {
        REQUIRE(rest.len == 0);
        read_all(&value, sum);
    }
    free(copy);
}

/* A digest of all results for this input. */
static uint64_t trace(const uint8_t *data, size_t n, enum cut cut)
{
    struct control_inbox inbox = {.most = SENTINEL_REPLY_MAX};
    uint64_t dice = digest_of(data, n);
    uint64_t sum = 0;
    enum scan_result result = SCAN_MORE;
    for (size_t at = 0, size; at < n && result != SCAN_BAD; at += size) {
        size = piece_size(cut, &dice, n - at);
        char *piece = piece_copy(data + at, size);
        for (size_t off = 0, used; off < size && result != SCAN_BAD; off += used) {
            struct slice frame;
            result = control_inbox_take(&inbox, piece + off, size - off, &used, &frame);
            REQUIRE(used <= size - off);
            if (result == SCAN_FRAME)
                judge(frame, &sum);
        }
        free(piece);
    }
    digest(&sum, result == SCAN_BAD);
    control_inbox_fini(&inbox);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    require_one_trace(trace, data, n);
    return 0;
}
