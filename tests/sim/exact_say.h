/*
 * Calls of LIMIT, drawn: as the words that a client says and as what the model of the algorithms takes.
 */
#ifndef WEIR_SIM_EXACT_SAY_H
#define WEIR_SIM_EXACT_SAY_H

#include "tests/sim/exact.h"
#include "tests/sim/random.h"
#include "tests/sim/reply.h"

#define SAID_WORDS 64
#define SAID_ROOM 48

enum said_form { FORM_ANY, FORM_ARRAY, FORM_MAP };

/* What one key is asked with, always. */
struct asked_key {
    enum exact_kind kind;
    const struct named_limit *named; /* by LIMIT CHECK; NULL: by its algorithm */
    bool is_punished;                /* calls may say PENALTY or BAN; they say no WAIT */
    char name[SAID_ROOM];            /* as the client writes it */
};

struct said {
    struct exact_call calls[EXACT_PARTS];
    unsigned n_parts;
    bool is_several; /* ALL or AND: the reply has refused_by */
    bool is_shadow;
    int64_t wait_ms; /* a funnel's turn is its call's; others are tried again */
    enum said_form form;
    char words[SAID_WORDS][SAID_ROOM];
    unsigned n_words;
};

/* Of these keys one call, which the dice choose; all are named, or none is. */
void said_make(struct said *said, const struct asked_key *const *keys, unsigned n_keys, uint64_t dice_state);

/* The integers that it must be answered with, in order; then what refused it. False: it is not of this shape. */
bool said_read(const struct said *said, const struct reply *reply, bool is_resp3, int64_t fields[EXACT_FIELDS],
               struct reply *refused_by);

/* How a key is asked that the dice choose. `config` says which limits are named. */
void asked_key_draw(struct asked_key *key, const char *config, uint64_t dice_state);

/* As LIMIT BAN and UNBAN call its algorithm: one word, or CHECK and its name. */
unsigned asked_key_algorithm(const struct asked_key *key, char words[2][SAID_ROOM]);

/* Refuses it nothing, whatever it says? */
bool asked_key_is_shadow(const struct asked_key *key);

/* Is it counted by weir while Redis is away? */
bool asked_key_is_local(const struct asked_key *key);

/* Of one that is named; how many. */
unsigned asked_key_rates(const struct asked_key *key, const struct exact_rate **all);

/* Sections of the configuration, some of which a run draws; NULL: no more. */
const char *named_limit_lines(unsigned i);

#endif
