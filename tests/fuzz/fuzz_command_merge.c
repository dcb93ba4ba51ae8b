/*
 * Any bytes as the answer to COMMAND and its subcommands. The answer is passed on unchanged, or the
 * merged answer is one reply.
 */
#include "quota/command_merge.h"
#include "resp/scan.h"

#include "pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char *const requests[] = {
    "*1\r\n$7\r\nCOMMAND\r\n",
    "*2\r\n$7\r\nCOMMAND\r\n$5\r\nCOUNT\r\n",
    "*2\r\n$7\r\nCOMMAND\r\n$4\r\nDOCS\r\n",
    "*2\r\n$7\r\nCOMMAND\r\n$4\r\nLIST\r\n",
    "*5\r\n$7\r\nCOMMAND\r\n$4\r\nLIST\r\n$8\r\nFILTERBY\r\n$7\r\nPATTERN\r\n$2\r\nl*\r\n",
    "*4\r\n$7\r\nCOMMAND\r\n$4\r\nINFO\r\n$5\r\nlimit\r\n$3\r\nget\r\n",
    "*4\r\n$7\r\nCOMMAND\r\n$4\r\nDOCS\r\n$5\r\nlimit\r\n$3\r\nget\r\n",
    "*5\r\n$7\r\nCOMMAND\r\n$7\r\nGETKEYS\r\n$5\r\nlimit\r\n$5\r\nreset\r\n$1\r\nk\r\n",
};

#define N_REQUESTS (sizeof requests / sizeof requests[0])

static bool is_one_frame(const char *at, size_t n)
{
    struct reply_scan scan = {0};
    size_t used;
    return n > 0 && reply_scan(&scan, at, n, &used) == SCAN_FRAME && used == n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 1)
        return 0;
    const char *request = requests[data[0] / 2 % N_REQUESTS];
    char *copy = piece_copy(data + 1, n - 1);
    struct build out;
    build_init(&out, data[0] % 2 == 1);
    bool is_merged = command_merge(slice_str(request), slice_of(copy, n - 1), data[0] < 128, &out);
    if (is_merged && is_one_frame(copy, n - 1))
        REQUIRE(is_one_frame(out.at, out.len));
    build_fini(&out);
    free(copy);
    return 0;
}
