#include "run/commands/plain_reply.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/num.h"
#include "base/split.h"

/* Take the type and the number of the next header, "*3\r\n", off *rest. */
static char take_header(struct slice *rest, int64_t *number)
{
    const char *end = memchr(rest->at, '\r', rest->len);
    char type = rest->at[0];
    if (!num_parse(slice_of(rest->at + 1, (size_t)(end - rest->at) - 1), number))
        *number = 0;
    split_take(rest, (size_t)(end - rest->at) + 2);
    return type;
}

static struct slice take_text(struct slice *rest, int64_t len)
{
    struct slice text = split_take(rest, (size_t)len);
    split_take(rest, 2);
    return text;
}

/* Whatever is no aggregate. */
static void print_scalar(struct slice *rest, FILE *out)
{
    int64_t number;
    char type = take_header(rest, &number);
    struct slice text = type == '$' ? take_text(rest, number) : SLICE("none");
    if (type == ':')
        fprintf(out, "%" PRId64, number);
    else
        fprintf(out, "%.*s", (int)text.len, text.at);
}

/* "name value, name value" */
static void print_row(struct slice *rest, FILE *out)
{
    int64_t pairs;
    take_header(rest, &pairs);
    for (int64_t i = 0; i < pairs; i++) {
        fputs(i > 0 ? ", " : "  ", out);
        print_scalar(rest, out);
        fputc(' ', out);
        print_scalar(rest, out);
    }
    fputc('\n', out);
}

static void print_array(struct slice *rest, FILE *out)
{
    int64_t n;
    take_header(rest, &n);
    bool has_rows = n > 0 && rest->at[0] == '%';
    for (int64_t i = 0; i < n && !has_rows; i++) {
        fputc(' ', out);
        print_scalar(rest, out);
    }
    fputc('\n', out);
    for (int64_t i = 0; i < n && has_rows; i++)
        print_row(rest, out);
}

void plain_reply_print(struct slice reply, FILE *out)
{
    int64_t pairs;
    take_header(&reply, &pairs);
    for (int64_t i = 0; i < pairs; i++) {
        print_scalar(&reply, out);
        if (reply.at[0] == '*') {
            print_array(&reply, out);
            continue;
        }
        fputc(' ', out);
        print_scalar(&reply, out);
        fputc('\n', out);
    }
}
