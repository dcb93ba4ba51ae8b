/*
 * The mode that CLIENT REPLY sets: a client hears all replies (ON), no replies (OFF), or all except
 * the next reply (SKIP).
 *
 * A mode takes effect when Redis has allowed CLIENT REPLY. Pure: touches only its own struct.
 */
#ifndef WEIR_FRONT_REPLY_MODE_H
#define WEIR_FRONT_REPLY_MODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* The argument of CLIENT REPLY. */
enum reply_word { REPLY_NONE, REPLY_ON, REPLY_OFF, REPLY_SKIP };

/* Returns the argument that `word` names. REPLY_NONE: the argument is invalid. */
enum reply_word reply_word_of(struct slice word);

enum hearing {
    HEARS_ALL,
    HEARS_NOT_NEXT, /* after SKIP, until the next request has been taken */
    HEARS_NOTHING,  /* since OFF */
};

/* Zeroed: all replies are heard. */
struct reply_mode {
    uint8_t hearing; /* enum hearing */
};

/*
 * Tells whether the client hears the reply to CLIENT REPLY itself. Redis answers CLIENT REPLY as if
 * the mode were ON.
 */
enum word_heard { WORD_IS_HEARD, WORD_IS_SILENT, WORD_IS_SILENT_ON_ERROR, WORD_IS_HEARD_ON_ERROR };

/* True if the replies to the next request are thrown away. */
static inline bool reply_mode_is_deaf(const struct reply_mode *mode)
{
    return mode->hearing != HEARS_ALL;
}

/* True if the mode is OFF. */
static inline bool reply_mode_is_off(const struct reply_mode *mode)
{
    return mode->hearing == HEARS_NOTHING;
}

/* True if SKIP came just before the next request. */
static inline bool reply_mode_skips(const struct reply_mode *mode)
{
    return mode->hearing == HEARS_NOT_NEXT;
}

/*
 * Notes that a request was taken or answered, and ends SKIP. Returns true if the replies to the
 * request are thrown away.
 */
bool reply_mode_take(struct reply_mode *mode);

/* The request that was taken after SKIP never became complete: SKIP counts for the next request. */
void reply_mode_untake(struct reply_mode *mode);

enum word_heard reply_mode_hears(const struct reply_mode *mode, enum reply_word word);

/* Sets the mode, after Redis has allowed CLIENT REPLY with this argument. */
void reply_mode_set(struct reply_mode *mode, enum reply_word word);

/* Ends OFF, for example at RESET. A SKIP stays in force for the next reply. */
void reply_mode_end_off(struct reply_mode *mode);

#endif
