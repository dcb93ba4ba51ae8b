#include "front/client/reply_mode.h"

enum reply_word reply_word_of(struct slice word)
{
    if (slice_is_word(word, SLICE("on")))
        return REPLY_ON;
    if (slice_is_word(word, SLICE("off")))
        return REPLY_OFF;
    return slice_is_word(word, SLICE("skip")) ? REPLY_SKIP : REPLY_NONE;
}

bool reply_mode_take(struct reply_mode *mode)
{
    bool is_deaf = reply_mode_is_deaf(mode);
    if (mode->hearing == HEARS_NOT_NEXT)
        mode->hearing = HEARS_ALL;
    return is_deaf;
}

void reply_mode_untake(struct reply_mode *mode)
{
    if (mode->hearing == HEARS_ALL)
        mode->hearing = HEARS_NOT_NEXT;
}

enum word_heard reply_mode_hears(const struct reply_mode *mode, enum reply_word word)
{
    if (word == REPLY_ON)
        return reply_mode_is_off(mode) ? WORD_IS_SILENT_ON_ERROR : WORD_IS_HEARD;
    return reply_mode_is_off(mode) ? WORD_IS_SILENT : WORD_IS_HEARD_ON_ERROR;
}

void reply_mode_set(struct reply_mode *mode, enum reply_word word)
{
    switch (word) {
    case REPLY_NONE:
        break;
    case REPLY_ON:
        mode->hearing = HEARS_ALL;
        break;
    case REPLY_OFF:
        mode->hearing = HEARS_NOTHING;
        break;
    case REPLY_SKIP: /* in mode OFF no reply would be sent that could be skipped */
        if (mode->hearing != HEARS_NOTHING)
            mode->hearing = HEARS_NOT_NEXT;
        break;
    }
}

void reply_mode_end_off(struct reply_mode *mode)
{
    if (mode->hearing == HEARS_NOTHING)
        mode->hearing = HEARS_ALL;
}
