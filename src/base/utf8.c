/* RFC 3629; table 3-7 of the Unicode standard. */
#include "base/utf8.h"

size_t utf8_len(struct slice rest)
{
    const unsigned char *p = (const unsigned char *)rest.at;
    unsigned first = p[0];
    size_t n = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : 4;
    if (first >= 0xf5 || (first >= 0x80 && first < 0xc2) || n > rest.len)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool is_overlong = (first == 0xe0 && p[1] < 0xa0) || (first == 0xf0 && p[1] < 0x90);
    bool is_outside = (first == 0xed && p[1] >= 0xa0) || (first == 0xf4 && p[1] >= 0x90);
    return is_overlong || is_outside ? 0 : n;
}
