/*
 * What CLIENT REPLY has made of a client: it hears all replies, not the next one, or none.
 *
 * Asking for another mode changes nothing before Redis has let it be used. Touches nothing but its own struct.
 */
#ifndef WEIR_FRONT_REPLY_MODE_H
#define WEIR_FRONT_REPLY_MODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* What CLIENT REPLY asks for. */
enum reply_word { REPLY_NONE, REPLY_ON, REPLY_OFF, REPLY_SKIP };

/* REPLY_NONE: it is no word of its. */
enum reply_word reply_word_of(struct slice word);

enum hearing {
    HEARS_ALL,
    HEARS_NOT_NEXT, /* after SKIP, until the next request has been taken */
    HEARS_NOTHING,  /* after OFF */
};

/* Zeroed: all replies are heard. */
struct reply_mode {
    uint8_t hearing; /* enum hearing */
};

/* How the answer to the word itself is heard, which Redis gives as if it had been ON. */
enum word_heard { WORD_IS_HEARD, WORD_IS_SILENT, WORD_IS_SILENT_ON_ERROR, WORD_IS_HEARD_ON_ERROR };

/* Are the replies to the next request thrown away? */
static inline bool reply_mode_is_deaf(const struct reply_mode *mode)
{
    return mode->hearing != HEARS_ALL;
}

/* Has it said OFF? */
static inline bool reply_mode_is_off(const struct reply_mode *mode)
{
    return mode->hearing == HEARS_NOTHING;
}

/* Has it said SKIP just before? */
static inline bool reply_mode_skips(const struct reply_mode *mode)
{
    return mode->hearing == HEARS_NOT_NEXT;
}

/* A request has been taken, or answered: it was the one to skip, if one was. True: its replies are thrown away. */
bool reply_mode_take(struct reply_mode *mode);

/* The request that was taken after SKIP has never come whole: the next is skipped in its place. */
void reply_mode_untake(struct reply_mode *mode);

enum word_heard reply_mode_hears(const struct reply_mode *mode, enum reply_word word);

/* Redis has let the word be used. */
void reply_mode_set(struct reply_mode *mode, enum reply_word word);

/* RESET, and what else ends OFF: but whom SKIP has told not to listen does not hear the next reply either. */
void reply_mode_end_off(struct reply_mode *mode);

#endif
