/*
 * A fake upstream that answers as the input says. Each answer carries the mark of the client that
 * sent the request.
 */
#ifndef WEIR_FUZZ_SESSION_FAKE_H
#define WEIR_FUZZ_SESSION_FAKE_H

#include <stdbool.h>

#include "tests/fuzz/session_steps.h"

void fake_start(bool is_prompt);
void fake_play(const struct step *step);

/* True if weir has received the answers to all its start-up requests. */
bool fake_is_known(void);

/*
 * From now on the upstream accepts connections and answers every request. Lines with a broken
 * protocol are closed.
 */
void fake_settle(void);

void fake_stop(void);

#endif
