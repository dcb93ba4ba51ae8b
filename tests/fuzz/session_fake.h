/*
 * A fake upstream, which answers what it is told to: each answer carries the mark of who has asked.
 */
#ifndef WEIR_FUZZ_SESSION_FAKE_H
#define WEIR_FUZZ_SESSION_FAKE_H

#include <stdbool.h>

#include "tests/fuzz/session_steps.h"

void fake_start(bool is_prompt);
void fake_play(const struct step *step);

/* Has weir learnt all that it asks at its start? */
bool fake_is_known(void);

/* It takes connections, ends those on which it has broken the protocol, and answers everything from now on. */
void fake_settle(void);

void fake_stop(void);

#endif
