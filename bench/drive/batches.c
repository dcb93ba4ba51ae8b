#include "batches.h"

#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* of all batches together, unless one batch alone is longer */
#define ROOM_BYTES ((size_t)32 << 20)
#define LEAST 64 /* batches: enough for keys to look random to Redis */
/* how often each key occurs, about, before the batches repeat */
#define VISITS 4
#define KEY_DIGITS "%07u"
#define KEY_ROOM 16

struct text {
    char *at;
    size_t len, room;
};

static void text_add(struct text *text, const char *bytes, size_t n)
{
    if (text->room - text->len < n) {
        text->room = (text->len + n) * 2;
        text->at = realloc(text->at, text->room);
        if (!text->at)
            err(1, "no memory for the requests");
    }
    memcpy(text->at + text->len, bytes, n);
    text->len += n;
}

static void text_add_header(struct text *text, char type, size_t n)
{
    char header[32];
    text_add(text, header, (size_t)snprintf(header, sizeof header, "%c%zu\r\n", type, n));
}

/* xorshift64*: the same seed gives the same batches. */
static uint32_t random_below(uint64_t *state, uint32_t n)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)(((*state * UINT64_C(0x2545F4914F6CDD1D)) >> 32) % n);
}

static void add_value(struct text *text, size_t n)
{
    static const char pattern[] =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
    text_add_header(text, '$', n);
    for (size_t done = 0; done < n;) {
        size_t piece = n - done < sizeof pattern - 1 ? n - done : sizeof pattern - 1;
        text_add(text, pattern, piece);
        done += piece;
    }
    text_add(text, "\r\n", 2);
}

static void add_word(struct text *text, const char *word, uint32_t key, size_t value_bytes)
{
    if (strcmp(word, "{v}") == 0) {
        add_value(text, value_bytes);
        return;
    }
    const char *place = strstr(word, "{k}");
    char number[KEY_ROOM] = "";
    size_t before = place ? (size_t)(place - word) : strlen(word);
    const char *after = place ? place + strlen("{k}") : "";
    if (place)
        snprintf(number, sizeof number, KEY_DIGITS, key);
    text_add_header(text, '$', before + strlen(number) + strlen(after));
    text_add(text, word, before);
    text_add(text, number, strlen(number));
    text_add(text, after, strlen(after));
    text_add(text, "\r\n", 2);
}

static bool is_divider(const char *word)
{
    return strcmp(word, "+") == 0;
}

/* Adds one request from words[from ...]. Returns the index of the next request's first word. */
static int add_request(struct text *text, const struct recipe *recipe, int from, uint32_t key)
{
    int end = from;
    while (end < recipe->n_words && !is_divider(recipe->words[end]))
        end++;
    text_add_header(text, '*', (size_t)(end - from));
    for (int i = from; i < end; i++)
        add_word(text, recipe->words[i], key, recipe->value_bytes);
    return end + 1 < recipe->n_words ? end + 1 : 0;
}

unsigned recipe_kinds(const struct recipe *recipe)
{
    unsigned kinds = 1;
    for (int i = 0; i < recipe->n_words; i++)
        kinds += is_divider(recipe->words[i]);
    return kinds;
}

static size_t batches_wanted(const struct recipe *recipe, size_t batch_bytes)
{
    size_t wanted = (size_t)recipe->keys * VISITS / recipe->per_batch;
    size_t most = ROOM_BYTES / batch_bytes;
    if (wanted < LEAST)
        wanted = LEAST;
    if (wanted > most)
        wanted = most;
    /* A multiple of the number of kinds, so that every kind is equally frequent. */
    size_t kinds = recipe_kinds(recipe);
    return wanted < kinds ? kinds : wanted / kinds * kinds;
}

void batches_init(struct batches *batches, const struct recipe *recipe)
{
    if (recipe->n_words == 0 || recipe->per_batch == 0 || recipe->keys == 0)
        errx(1, "nothing to send");
    struct text text = {0};
    uint64_t state = recipe->seed * 2 + 1;
    int kind = 0;
    *batches = (struct batches){.n = 1};
    for (size_t i = 0; i < batches->n; i++) {
        for (unsigned k = 0; k < recipe->per_batch; k++)
            kind = add_request(&text, recipe, kind, random_below(&state, recipe->keys));
        if (i == 0) {
            batches->n = batches_wanted(recipe, text.len);
            batches->starts = calloc(batches->n + 1, sizeof *batches->starts);
            if (!batches->starts)
                err(1, "no memory for the requests");
        }
        batches->starts[i + 1] = text.len;
    }
    batches->bytes = text.at;
}

void batches_fini(struct batches *batches)
{
    free(batches->bytes);
    free(batches->starts);
}
