/*
 * Feeds inih one key line at a time.
 *
 * Problem: inih's buffer is 200 bytes in most builds. inih cuts a longer line silently and reads
 * the rest as another line. inih takes an indented key as a second value of the key on the line
 * before. The handler of inih gets no line numbers, and inih reports the position of only the first
 * malformed line.
 *
 * Mechanism: this file counts and measures lines, strips leading blanks, and handles comments and
 * section headings. inih divides the other lines into key and value and cuts off the comment after
 * the value.
 */
#include "run/config/inifile.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/slice.h"
#include "base/why.h"

#define WHAT_ROOM 160

struct reader {
    FILE *file;
    const struct inifile_events *events;
    size_t bytes;    /* bytes of the file that were read so far */
    unsigned line;   /* number of the current line */
    bool is_unsplit; /* the current line went to inih, and no key came back yet */
    size_t len;      /* bytes of the current line, without leading blanks and line end */
    int bad;         /* a byte of the line that is not allowed, or -1 */
    char text[INIFILE_LINE_MAX + 1];
};

static void inifile_complain(const struct reader *r, const char *what)
{
    r->events->on_error(r->events->arg, r->line, what);
}

static bool inifile_is_blank(int c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static int inifile_next_byte(struct reader *r)
{
    if (r->bytes >= INIFILE_BYTES_MAX)
        return EOF;
    r->bytes++;
    return getc_unlocked(r->file);
}

static void skip_byte_order_mark(struct reader *r)
{
    static const char mark[] = "\xef\xbb\xbf";
    if (r->line == 1 && r->len == 3 && memcmp(r->text, mark, 3) == 0)
        r->len = 0;
}

/*
 * Reads one line of any length; false at the end of the file. Of a long line only the length is
 * kept.
 */
static bool fetch_line(struct reader *r)
{
    int c = inifile_next_byte(r);
    if (c == EOF)
        return false;
    r->line++;
    r->len = 0;
    r->bad = -1;
    size_t end = 0;
    for (; c != EOF && c != '\n'; c = inifile_next_byte(r)) {
        if (r->len == 0 && inifile_is_blank(c))
            continue;
        if ((c < ' ' && !inifile_is_blank(c)) || c == 0x7f)
            r->bad = c;
        if (r->len < INIFILE_LINE_MAX)
            r->text[r->len] = (char)c;
        r->len++;
        skip_byte_order_mark(r);
        if (!inifile_is_blank(c))
            end = r->len;
    }
    r->len = end;
    return true;
}

static bool is_comment(const struct reader *r)
{
    return r->len == 0 || r->text[0] == ';' || r->text[0] == '#';
}

/* Reads "[name]", which only a comment may follow. */
static void read_heading(const struct reader *r)
{
    struct slice rest = slice_of(r->text + 1, r->len - 1);
    const char *end = memchr(rest.at, ']', rest.len);
    if (end == NULL) {
        inifile_complain(r, "the ] of the section is missing");
        return;
    }
    struct slice name = split_trim(split_take(&rest, (size_t)(end - rest.at)));
    split_take(&rest, 1);
    rest = split_trim(rest);
    if (rest.len > 0 && rest.at[0] != ';' && rest.at[0] != '#')
        inifile_complain(r, "only a comment may follow the ] of a section");
    r->events->on_section(r->events->arg, r->line, name);
}

static bool inifile_check_line(const struct reader *r)
{
    char what[WHAT_ROOM];
    if (r->bad == 0)
        why_set(what, sizeof what, "the line holds a NUL byte: this is not a text file");
    else if (r->bad > 0)
        why_set(what, sizeof what, "the line holds a control character (0x%02x)", (unsigned)r->bad);
    else if (r->len > INIFILE_LINE_MAX && !is_comment(r))
        why_set(what, sizeof what,
                "the line has %zu bytes, and the limit is %d: repeat the key for the rest", r->len,
                INIFILE_LINE_MAX);
    else
        return true;
    inifile_complain(r, what);
    return false;
}

static void finish_line(struct reader *r)
{
    if (r->is_unsplit)
        inifile_complain(r, "expected: key = value");
    r->is_unsplit = false;
}

/* inih's fgets: the next line that may contain a key. */
static char *on_read(char *out, int room, void *stream)
{
    struct reader *r = stream;
    finish_line(r);
    while (fetch_line(r)) {
        if (!inifile_check_line(r) || is_comment(r))
            continue;
        if (r->text[0] == '[') {
            read_heading(r);
            continue;
        }
        if (r->len >= (size_t)room)
            continue; /* impossible with an inih of at least 200 bytes a line */
        memcpy(out, r->text, r->len);
        out[r->len] = '\0';
        r->is_unsplit = true;
        return out;
    }
    return NULL;
}

/* Returns the value before a blank and '#', which inih takes as part of the value. */
static struct slice without_comment(struct slice value)
{
    for (size_t i = 0; i < value.len; i++)
        if (value.at[i] == '#' && (i == 0 || inifile_is_blank(value.at[i - 1])))
            return split_trim(slice_of(value.at, i));
    return value;
}

static int on_pair(void *user, const char *section, const char *name, const char *value)
{
    struct reader *r = user;
    (void)section;
    if (*name) {
        struct slice own = without_comment(slice_str(value));
        r->is_unsplit = false;
        if (own.len < strlen(value))
            inifile_complain(
                r, "a comment after a value begins with ; (# only begins a comment line)");
        r->events->on_key(r->events->arg, r->line, slice_str(name), own);
    }
    return 1;
}

static void read_open(struct reader *r)
{
    char what[WHAT_ROOM];
    ini_parse_stream(on_read, r, on_pair, r);
    finish_line(r);
    r->line = 0;
    if (ferror(r->file))
        why_set(what, sizeof what, "cannot be read: %s", strerror(errno));
    else if (r->bytes >= INIFILE_BYTES_MAX)
        why_set(what, sizeof what, "is larger than %d MiB", INIFILE_BYTES_MAX >> 20);
    else
        return;
    inifile_complain(r, what);
}

void inifile_read(const char *path, const struct inifile_events *events)
{
    struct reader r = {.events = events};
    struct stat status;
    char what[WHAT_ROOM];
    r.file = fopen(path, "re");
    if (r.file == NULL) {
        why_set(what, sizeof what, "cannot be opened: %s", strerror(errno));
        inifile_complain(&r, what);
        return;
    }
    if (fstat(fileno(r.file), &status) == 0 && S_ISDIR(status.st_mode))
        inifile_complain(&r, "is a directory: name a file");
    else
        read_open(&r);
    fclose(r.file);
}
