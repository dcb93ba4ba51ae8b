/*
 * Any bytes as replies on the control lane. However the bytes are cut, the same replies are read.
 * Each reply is parsed as the answer to each of the control lane's requests.
 */
#include "limit/command/keys.h"
#include "upstream/control_reply.h"

#include "pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Looks up commands in the table, and finds the keys of a request. */
static void look_up(const struct command_table *table)
{
    static const char request[] = "*3\r\n$3\r\nGET\r\n$1\r\nk\r\n$1\r\nv\r\n";
    size_t count = command_table_count(table);
    REQUIRE(count > 0 && count <= UINT16_MAX + 1);
    REQUIRE(command_table_categories(table) <= 64);
    for (size_t i = 0; i < count; i++) {
        const struct command *row = command_table_row(table, i);
        struct slice key;
        if (keys_first(row, slice_of(request, sizeof request - 1), 3, &key))
            REQUIRE(key.at > request && key.at + key.len < request + sizeof request);
        REQUIRE(keys_count(row, slice_of(request, sizeof request - 1), 3) <= 3);
        REQUIRE(i == 0 || command_by_name(table, slice_of(row->name, row->name_len)) == row);
        REQUIRE(command_kind_name(row->kind) != NULL);
    }
}

static enum control_verdict judge_hello(const struct redisReply *reply, const char **why)
{
    return control_judge_hello(reply, CONTROL_OF_SERVER, why);
}

static enum control_verdict judge_info(const struct redisReply *reply, const char **why)
{
    return control_judge_info(reply, CONTROL_OF_CLUSTER, why);
}

static void judge(struct slice frame, uint64_t *sum)
{
    static enum control_verdict (*const judges[])(const struct redisReply *, const char **) = {
        judge_hello, control_judge_auth, judge_info, control_judge_command, control_judge_ping};
    char *copy = piece_copy((const uint8_t *)frame.at, frame.len);
    struct slice text;
    digest(sum, (uint64_t)control_judge_text(slice_of(copy, frame.len), &text));
    REQUIRE(text.len == 0 || text.at != NULL);
    struct redisReply *reply = control_read(slice_of(copy, frame.len));
    free(copy);
    digest(sum, reply != NULL);
    if (reply == NULL)
        return;
    for (size_t i = 0; i < sizeof judges / sizeof judges[0]; i++) {
        const char *why = NULL;
        enum control_verdict verdict = judges[i](reply, &why);
        REQUIRE((why != NULL) == (verdict == CONTROL_UNFIT || verdict == CONTROL_BARRED));
        digest(sum, (uint64_t)verdict);
    }
    digest(sum, control_is_idle(reply));
    struct command_table *table = control_read_commands(reply);
    if (table != NULL) {
        digest(sum, command_table_count(table));
        look_up(table);
        command_table_put(table);
    }
    control_reply_free(reply);
}

/* A digest of all results for this input. */
static uint64_t trace(const uint8_t *data, size_t n, enum cut cut)
{
    struct control_inbox inbox = {0};
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
    uint64_t whole = trace(data, n, CUT_NOT);
    REQUIRE(trace(data, n, CUT_RANDOM) == whole);
    return 0;
}
