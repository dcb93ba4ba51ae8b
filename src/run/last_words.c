#include "run/last_words.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "run/environment.h"

static bool is_heard; /* the main thread's */
static pthread_t main_thread;

/* What does not fit into the socket pair is lost: the old process must not be waited for. */
static void tell(enum log_level level, const char *text, bool is_logged)
{
    char line[LAST_WORDS_MAX + 2];
    if (level < LOG_WARN || !pthread_equal(pthread_self(), main_thread))
        return; /* another thread may log when the socket pair is closed already */
    int printed = snprintf(line, sizeof line - 1, "%c%c%s", is_logged ? LAST_WORDS_LOGGED : LAST_WORDS_TOLD,
                           level >= LOG_ERROR ? 'e' : 'w', text);
    size_t len = (size_t)printed < sizeof line - 2 ? (size_t)printed : sizeof line - 2;
    for (size_t i = 2; i < len; i++)
        if ((unsigned char)line[i] < ' ')
            line[i] = ' ';
    line[len++] = '\n';
    (void)!send(LAST_WORDS_FD, line, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void last_words_open(void)
{
    int64_t parent = getppid();
    if (environment_number(LAST_WORDS_TO, INT32_MAX) != parent)
        return;
    is_heard = true;
    main_thread = pthread_self();
    log_set_witness(tell);
}

bool last_words_are_heard(void)
{
    return is_heard;
}

void last_words_close(void)
{
    is_heard = false;
    log_set_witness(NULL);
}

bool last_words_read(struct last_words *words, char byte, last_words_line *on_line, void *arg)
{
    bool is_mark = byte == LAST_WORDS_TOLD || byte == LAST_WORDS_LOGGED;
    if (is_mark) {
        words->mark = byte;
        words->len = 0;
    } else if (words->mark == 0) {
        return false;
    } else if (byte != '\n') {
        if (words->len < sizeof words->line - 1)
            words->line[words->len++] = byte;
    } else {
        words->line[words->len] = '\0';
        if (words->len > 0)
            on_line(arg, words->mark == LAST_WORDS_LOGGED, words->line[0] == 'e' ? LOG_ERROR : LOG_WARN,
                    words->line + 1);
        words->mark = 0;
    }
    return true;
}
