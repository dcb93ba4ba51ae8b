/*
 * Random calls of LIMIT: as the words that a client sends, and as the input of the model of the
 * algorithms.
 */
#ifndef WEIR_SIM_EXACT_SAY_H
#define WEIR_SIM_EXACT_SAY_H

#include "tests/sim/exact.h"
#include "tests/sim/random.h"
#include "tests/sim/reply.h"

#define SAID_WORDS 64
#define SAID_ROOM 48

enum said_form { FORM_ANY, FORM_ARRAY, FORM_MAP };

/* How a key is used in all calls of a run. */
struct asked_key {
    enum exact_kind kind;
    const struct named_limit *named; /* used by LIMIT CHECK; NULL: used by its algorithm */
    bool is_punished;                /* calls may have PENALTY or BAN, and have no WAIT */
    char name[SAID_ROOM];            /* the key as the client writes it */
};

struct said {
    struct exact_call calls[EXACT_PARTS];
    unsigned n_parts;
    bool is_several; /* ALL or AND: the reply has refused_by */
    bool is_shadow;
    /* on a funnel the decision includes the wait; calls on other keys are tried again */
    int64_t wait_ms;
    enum said_form form;
    char words[SAID_WORDS][SAID_ROOM];
    unsigned n_words;
};

/* Draws one call on these keys with the dice. Either all keys are named limits, or none is. */
void said_make(struct said *said, const struct asked_key *const *keys, unsigned n_keys,
               uint64_t dice_state);

/*
 * Reads the integers of the reply, in order, and what refused the call. False: the reply has
 * another shape.
 */
bool said_read(const struct said *said, const struct reply *reply, bool is_resp3,
               int64_t fields[EXACT_FIELDS], struct reply *refused_by);

/* Draws how a key is used. `config` says which named limits there are. */
void asked_key_draw(struct asked_key *key, const char *config, uint64_t dice_state);

/*
 * The algorithm's words for LIMIT BAN and UNBAN: one word, or CHECK and the limit's name. Returns
 * how many.
 */
unsigned asked_key_algorithm(const struct asked_key *key, char words[2][SAID_ROOM]);

/* True if the key's limit is in shadow mode and refuses nothing. */
bool asked_key_is_shadow(const struct asked_key *key);

/* True if weir counts the key while Redis is away. */
bool asked_key_is_local(const struct asked_key *key);

/* The rates of a key that is a named limit. Returns how many. */
unsigned asked_key_rates(const struct asked_key *key, const struct exact_rate **all);

/* A section of the configuration; a run draws some of the sections. NULL: no more sections. */
const char *named_limit_lines(unsigned i);

#endif
