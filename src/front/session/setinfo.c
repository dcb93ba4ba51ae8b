#include "front/session/setinfo.h"

#include "front/client/session.h"
#include "resp/argv.h"
#include "resp/emit.h"
#include "upstream/lane/own_words.h"

/* ---- CLIENT SETINFO ---- */

enum word { WORD_NAME, WORD_VERSION, WORD_NEITHER };

static enum word setinfo_word_of(struct slice word)
{
    if (slice_is_word(word, SLICE("lib-name")))
        return WORD_NAME;
    return slice_is_word(word, SLICE("lib-ver")) ? WORD_VERSION : WORD_NEITHER;
}

/* True if Redis would accept the text, and the text has at most LIBRARY_TEXT_MAX bytes. */
static bool is_text(struct slice value)
{
    for (size_t i = 0; i < value.len; i++)
        if (value.at[i] < '!' || value.at[i] > '~')
            return false;
    return value.len <= LIBRARY_TEXT_MAX;
}

/* `client` is the command's first word: CLIENT, or weir's own spelling of it (own_words.h). */
static void send_setinfo(struct lane *lane, const struct lane_user *lane_user, struct slice client,
                         struct slice word, struct slice value)
{
    const struct slice words[] = {client, SLICE("SETINFO"), word, value};
    char out[LIBRARY_TEXT_MAX + 64 + 5 * EMIT_HEADER_MAX];
    lane_send(lane, lane_user, out, emit_array(out, words, 4));
}

/*
 * True if the lane will not serve another client: the client keeps the lane, or the lane is not
 * reusable already.
 */
static bool is_for_good(const struct client *client, const struct lane *lane)
{
    return client_has_own_lane(client) &&
           (lane->is_not_reusable || transaction_is_open(&client->transaction) ||
            client->front->settings->lanes_private);
}

/*
 * Sends CLIENT SETINFO with weir's own text on a shared lane, with an empty text on a private lane.
 * Redis decides whether the client may use the command, and checks the word. The client's text is
 * not set on the lane.
 */
static void send_stand_in(struct client *client, struct lane *lane, struct slice word)
{
    struct slice ours = setinfo_word_of(word) == WORD_NAME ? SLICE("weir") : SLICE(WEIR_VERSION);
    send_setinfo(lane, &client->lane_user, SLICE("CLIENT"), word,
                 client_has_own_lane(client) ? SLICE("") : ours);
}

/* Reads the words of CLIENT SETINFO. True if the words are valid. */
static bool read_setinfo(const struct request *request, struct slice words[4], enum word *word)
{
    struct argv_walk walk;
    argv_walk_init(&walk, request->bytes);
    for (size_t i = 0; i < 4 && argv_next(&walk, &words[i]); i++)
        ;
    *word = setinfo_word_of(words[2]);
    return request->argc == 4 && *word != WORD_NEITHER && is_text(words[3]);
}

bool setinfo_note(struct client *client, const struct request *request)
{
    struct slice words[4] = {{NULL, 0}};
    enum word word;
    bool is_good = read_setinfo(request, words, &word);
    return !is_good || session_set_library(client, word == WORD_VERSION, words[3]);
}

bool setinfo_send(struct client *client, struct lane *lane, const struct request *request)
{
    struct slice words[4] = {{NULL, 0}};
    enum word word;
    bool is_good = read_setinfo(request, words, &word);
    bool is_as_it_is = !is_good || is_for_good(client, lane);
    bool is_queued = transaction_is_open(&client->transaction);
    if (is_queued && is_good && !session_ask_library(client, word == WORD_VERSION, words[3]))
        return false;
    /* if Redis refuses a valid command, library_answered of stateful.c forgets the library */
    calls_newest(&lane->calls)->argument = is_good;
    if (is_as_it_is && client_has_own_lane(client))
        lane_forbid_reuse(lane);
    if (!is_as_it_is)
        send_stand_in(client, lane, words[2]);
    else
        lane_send(lane, &client->lane_user, request->bytes.at, request->bytes.len);
    return true;
}

/* ---- telling ---- */

bool setinfo_is_asked(const struct request *request)
{
    return request->command->pins ||
           slice_eq(slice_str(request->command->name), SLICE("client|list"));
}

static bool tell(struct client *client, struct lane *lane, struct slice word, struct slice value)
{
    if (value.len == 0)
        return true;
    struct call *call = lane_call_flow(lane, &client->lane_user, FLOW_ONE, 1, 0);
    if (call == NULL)
        return false;
    call->flags = CALL_MUTE;
    call->arrived_ns = 0;
    send_setinfo(lane, &client->lane_user, SLICE(OWN_CLIENT), word, value);
    return true;
}

bool setinfo_tell(struct client *client, struct lane *lane)
{
    const struct library *library = session_library(client);
    if (library == NULL || lane->has_library)
        return true;
    lane_note_library(lane);
    return tell(client, lane, SLICE("lib-name"), library_name(library)) &&
           tell(client, lane, SLICE("lib-ver"), library_version(library));
}
