/*
 * Decodes sessions. libFuzzer's mutators here work step by step, so that a mutated session is a
 * session.
 */
#include "tests/fuzz/session_steps.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/random.h"

enum { FLAG_AT_ONCE = 128, FLAG_B = 64, KIND_MASK = 63 };

size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t n_one, const uint8_t *other,
                                 size_t n_other, uint8_t *out, size_t most, unsigned seed);

void session_decode(struct session *session, const uint8_t *data, size_t n)
{
    size_t head = n < SESSION_HEAD ? n : SESSION_HEAD;
    memset(session->head, 0, SESSION_HEAD);
    if (head > 0)
        memcpy(session->head, data, head);
    session->n = 0;
    for (size_t at = head; at + STEP_SIZE <= n && session->n < STEPS_MAX;) {
        const uint8_t *p = data + at;
        size_t left = n - at - STEP_SIZE;
        size_t len = p[3] < left ? p[3] : left;
        session->steps[session->n++] = (struct step){
            .kind = (enum step_kind)((p[0] & KIND_MASK) % STEP_KINDS),
            .is_b = (p[0] & FLAG_B) != 0,
            .is_at_once = (p[0] & FLAG_AT_ONCE) != 0,
            .a = p[1],
            .b = p[2],
            .bytes = slice_of((const char *)p + STEP_SIZE, len),
        };
        at += STEP_SIZE + len;
    }
}

/* Leaves out steps that do not fit. */
static size_t encode(const struct session *session, uint8_t *out, size_t most)
{
    size_t n = 0;
    if (most < SESSION_HEAD)
        return 0;
    memcpy(out, session->head, SESSION_HEAD);
    n = SESSION_HEAD;
    for (size_t i = 0; i < session->n; i++) {
        const struct step *step = &session->steps[i];
        if (n + STEP_SIZE + step->bytes.len > most)
            continue;
        out[n++] = (uint8_t)((unsigned)step->kind | (step->is_b ? FLAG_B : 0U) |
                             (step->is_at_once ? FLAG_AT_ONCE : 0U));
        out[n++] = step->a;
        out[n++] = step->b;
        out[n++] = (uint8_t)step->bytes.len;
        if (step->bytes.len > 0)
            memcpy(out + n, step->bytes.at, step->bytes.len);
        n += step->bytes.len;
    }
    return n;
}

/* ---- mutating ---- */

#define BYTES_MAX 200 /* bytes of a mutated step */

struct bench {
    struct random chance;
    struct session session;
    uint8_t bytes[STEPS_MAX][BYTES_MAX]; /* bytes of the mutated steps, each in its own row */
    size_t n_bytes;
};

static size_t pick(struct bench *bench, size_t n)
{
    return (size_t)random_below(&bench->chance, n);
}

/* Draws a kind of step: frequent kinds of real sessions are drawn often. */
static enum step_kind draw_kind(struct bench *bench)
{
    static const uint8_t often[] = {STEP_SAY,    STEP_SAY,    STEP_SAY,       STEP_SAY,
                                    STEP_ANSWER, STEP_ANSWER, STEP_ANSWER_ALL};
    size_t i = pick(bench, sizeof often + STEP_KINDS);
    return i < sizeof often ? (enum step_kind)often[i] : (enum step_kind)(i - sizeof often);
}

static void change_bytes(struct bench *bench, struct step *step)
{
    if (bench->n_bytes == STEPS_MAX)
        return;
    uint8_t *bytes = bench->bytes[bench->n_bytes++];
    size_t n = step->bytes.len < BYTES_MAX ? step->bytes.len : BYTES_MAX;
    if (n > 0)
        memcpy(bytes, step->bytes.at, n);
    step->bytes = slice_of((const char *)bytes, LLVMFuzzerMutate(bytes, n, BYTES_MAX));
}

static struct step draw_step(struct bench *bench)
{
    struct step step = {
        .kind = draw_kind(bench),
        .is_b = pick(bench, 2) == 0,
        .is_at_once = pick(bench, 4) == 0,
        .a = (uint8_t)pick(bench, pick(bench, 2) == 0 ? 4 : 256),
        .b = (uint8_t)pick(bench, 256),
    };
    if (step.kind == STEP_FORGE || step.kind == STEP_SAY_RAW || pick(bench, 16) == 0)
        change_bytes(bench, &step);
    return step;
}

static void insert(struct bench *bench, size_t at, struct step step)
{
    struct session *session = &bench->session;
    if (session->n == STEPS_MAX)
        session->n--;
    at = at < session->n ? at : session->n;
    memmove(session->steps + at + 1, session->steps + at, (session->n - at) * sizeof step);
    session->steps[at] = step;
    session->n++;
}

static struct step take_out(struct bench *bench, size_t at)
{
    struct session *session = &bench->session;
    struct step step = session->steps[at];
    session->n--;
    memmove(session->steps + at, session->steps + at + 1, (session->n - at) * sizeof step);
    return step;
}

static void change(struct bench *bench, struct step *step)
{
    switch (pick(bench, 7)) {
    case 0:
        step->kind = draw_kind(bench);
        break;
    case 1:
        step->is_b = !step->is_b;
        break;
    case 2:
        step->is_at_once = !step->is_at_once;
        break;
    case 3:
        step->a = (uint8_t)pick(bench, 256);
        break;
    case 4:
        step->b = (uint8_t)pick(bench, 256);
        break;
    case 5:
        step->a = (uint8_t)(step->a + (pick(bench, 2) == 0 ? 1 : 255));
        break;
    default:
        change_bytes(bench, step);
    }
}

/* Repeats a few consecutive steps with the other client. */
static void echo(struct bench *bench)
{
    struct session *session = &bench->session;
    size_t from = pick(bench, session->n);
    size_t n = 1 + pick(bench, 4);
    size_t to = pick(bench, session->n + 1);
    bool is_other = pick(bench, 2) == 0;
    struct step steps[4];
    n = n < session->n - from ? n : session->n - from;
    memcpy(steps, session->steps + from, n * sizeof steps[0]);
    for (size_t i = 0; i < n; i++) {
        steps[i].is_b ^= is_other;
        insert(bench, to + i, steps[i]);
    }
}

static void mutate(struct bench *bench)
{
    struct session *session = &bench->session;
    size_t n = session->n;
    size_t what = n == 0 ? 0 : pick(bench, 12);
    if (what < 3) {
        insert(bench, pick(bench, n + 1), draw_step(bench));
    } else if (what == 3) {
        (void)take_out(bench, pick(bench, n));
    } else if (what == 4) {
        struct step step = take_out(bench, pick(bench, n));
        insert(bench, pick(bench, n), step);
    } else if (what == 5) {
        size_t i = pick(bench, n), j = pick(bench, n);
        struct step step = session->steps[i];
        session->steps[i] = session->steps[j];
        session->steps[j] = step;
    } else if (what == 6) {
        echo(bench);
    } else if (what == 7 && pick(bench, 4) == 0) {
        session->head[pick(bench, SESSION_HEAD)] = (uint8_t)pick(bench, 256);
    } else {
        change(bench, &session->steps[pick(bench, n)]);
    }
}

static size_t finish(struct bench *bench, uint8_t *out, size_t most)
{
    uint8_t *made = malloc(most);
    if (made == NULL)
        abort();
    size_t n = encode(&bench->session, made, most);
    memcpy(out, made, n);
    free(made);
    return n;
}

static struct bench bench;

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned seed)
{
    random_init(&bench.chance, seed, 0);
    bench.n_bytes = 0;
    session_decode(&bench.session, data, n);
    for (size_t i = 1 + pick(&bench, 4); i > 0; i--)
        mutate(&bench);
    return finish(&bench, data, most);
}

/* Joins the beginning of one session and the end of the other, or interleaves the steps of both. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t n_one, const uint8_t *other,
                                 size_t n_other, uint8_t *out, size_t most, unsigned seed)
{
    static struct session second;
    random_init(&bench.chance, seed, 1);
    bench.n_bytes = 0;
    session_decode(&bench.session, one, n_one);
    session_decode(&second, other, n_other);
    if (pick(&bench, 2) == 0) {
        bench.session.n = pick(&bench, bench.session.n + 1);
        for (size_t i = pick(&bench, second.n + 1); i < second.n && bench.session.n < STEPS_MAX;
             i++)
            bench.session.steps[bench.session.n++] = second.steps[i];
    } else {
        for (size_t i = 0, at = 0; i < second.n && bench.session.n < STEPS_MAX;
             i++, at += 1 + pick(&bench, 3))
            insert(&bench, at, second.steps[i]);
    }
    return finish(&bench, out, most);
}
