#include "front/compound.h"

#include "front/account.h"
#include "front/answer.h"
#include "limit/keys.h"

#define CROSSING SLICE("-CROSSSLOT Keys in request don't hash to the same slot\r\n")

bool compound_takes(const struct client *client, const struct request *request)
{
    return !transaction_is_open(&client->transaction) && !pin_has(client, PIN_PASSTHROUGH) &&
           keys_slot(request->command, request->bytes, request->argc) == KEYS_CROSSING;
}

enum route compound_run(struct client *client, struct request *request)
{
    struct verdict verdict;
    enum route result = answer_unless_passed(client, NULL, request, &verdict);
    if (result != ROUTE_GOES_ON)
        return result;
    account_answered(client, verdict.counted);
    return answer_error(client, NULL, request, CROSSING);
}
