#include "base/log_form.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "base/utf8.h"

#define TAIL_ROOM 64 /* room for what follows the message */

static size_t stamp(char *out, size_t size, struct timespec at)
{
    struct tm utc;
    gmtime_r(&at.tv_sec, &utc);
    size_t len = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &utc);
    return len + (size_t)snprintf(out + len, size - len, ".%03ldZ", at.tv_nsec / 1000000);
}

/* For a terminal: control characters are shown as '?'. */
static size_t put_plain(char *out, size_t room, struct slice text)
{
    size_t len = 0;
    while (text.len > 0) {
        size_t n = utf8_len(text);
        unsigned char c = (unsigned char)text.at[0];
        bool is_control = c < ' ' || c == 0x7f || (n == 2 && c == 0xc2 && (unsigned char)text.at[1] < 0xa0);
        if (len + n + 1 > room)
            break;
        if (n == 0 || is_control)
            out[len++] = '?';
        else
            memcpy(out + len, text.at, n);
        len += n == 0 || is_control ? 0 : n;
        n += n == 0;
        text = slice_of(text.at + n, text.len - n);
    }
    return len;
}

static size_t form_text(char *out, const struct log_entry *entry)
{
    size_t len = stamp(out, LOG_LINE_MAX, entry->at);
    len += (size_t)snprintf(out + len, LOG_LINE_MAX - len, " %-5s ", log_level_name(entry->level));
    len += put_plain(out + len, LOG_LINE_MAX - TAIL_ROOM - len, entry->text);
    if (entry->suppressed > 0)
        len += (size_t)snprintf(out + len, TAIL_ROOM, " (%" PRIu64 " like it were not written)", entry->suppressed);
    return len;
}

static size_t form_logfmt(char *out, const struct log_entry *entry)
{
    size_t len = (size_t)snprintf(out, LOG_LINE_MAX, "ts=");
    len += stamp(out + len, LOG_LINE_MAX - len, entry->at);
    len += (size_t)snprintf(out + len, LOG_LINE_MAX - len, " level=%s", log_level_name(entry->level));
    if (entry->site != LOG_SITE_NONE)
        len += (size_t)snprintf(out + len, LOG_LINE_MAX - len, " site=%s", log_site_name(entry->site));
    len += (size_t)snprintf(out + len, LOG_LINE_MAX - len, " msg=");
    len += json_quote(out + len, LOG_LINE_MAX - TAIL_ROOM - len, entry->text);
    if (entry->suppressed > 0)
        len += (size_t)snprintf(out + len, TAIL_ROOM, " suppressed=%" PRIu64, entry->suppressed);
    return len;
}

static size_t form_json(char *out, const struct log_entry *entry)
{
    size_t len = (size_t)snprintf(out, LOG_LINE_MAX, "{\"ts\":\"");
    len += stamp(out + len, LOG_LINE_MAX - len, entry->at);
    len += (size_t)snprintf(out + len, LOG_LINE_MAX - len, "\",\"level\":\"%s\"", log_level_name(entry->level));
    if (entry->site != LOG_SITE_NONE)
        len += (size_t)snprintf(out + len, LOG_LINE_MAX - len, ",\"site\":\"%s\"", log_site_name(entry->site));
    len += (size_t)snprintf(out + len, LOG_LINE_MAX - len, ",\"msg\":");
    len += json_quote(out + len, LOG_LINE_MAX - TAIL_ROOM - len, entry->text);
    if (entry->suppressed > 0)
        len += (size_t)snprintf(out + len, TAIL_ROOM, ",\"suppressed\":%" PRIu64, entry->suppressed);
    out[len++] = '}';
    return len;
}

size_t log_form(char *out, enum log_format format, const struct log_entry *entry)
{
    static size_t (*const forms[LOG_FORMATS])(char *out, const struct log_entry *entry) = {
        [LOG_AS_TEXT] = form_text, [LOG_AS_LOGFMT] = form_logfmt, [LOG_AS_JSON] = form_json};
    size_t len = forms[format](out, entry);
    out[len++] = '\n';
    return len;
}
