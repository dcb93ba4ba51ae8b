#include "net/tls_name.h"

#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>

/* Every program must agree where the name ends. */
static const char *fault(const unsigned char *text, int len)
{
    if (len <= 0)
        return "the name in its certificate is empty";
    if (len > TLS_NAME_MAX)
        return "the name in its certificate is too long";
    for (int i = 0; i < len; i++)
        if (text[i] < ' ' || text[i] == 0x7f)
            return "the name in its certificate has a NUL or a control character in it";
    return NULL;
}

static bool take(const unsigned char *text, int len, char **name, const char **why)
{
    *why = fault(text, len);
    if (*why == NULL)
        *name = strndup((const char *)text, (size_t)len);
    if (*why == NULL && *name == NULL)
        *why = "out of memory";
    return *why == NULL;
}

/* NULL: not one of the kinds that are used. */
static const ASN1_STRING *first_alternative(const GENERAL_NAMES *names)
{
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        int kind;
        const ASN1_STRING *text = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &kind);
        if (kind == GEN_URI || kind == GEN_DNS || kind == GEN_EMAIL)
            return text;
    }
    return NULL;
}

/* As it is written in the certificate; NULL: there is none. */
static const ASN1_STRING *common_name(const X509 *cert)
{
    const X509_NAME *subject = X509_get_subject_name(cert);
    const ASN1_STRING *last = NULL;
    for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0;)
        last = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
    return last;
}

static bool take_common_name(const X509 *cert, char **name, const char **why)
{
    const ASN1_STRING *text = common_name(cert);
    unsigned char *utf8 = NULL;
    if (text == NULL)
        return true;
    int len = ASN1_STRING_to_UTF8(&utf8, text);
    bool is_good = take(utf8, len, name, why);
    OPENSSL_free(utf8);
    return is_good;
}

bool tls_name_read(const struct ssl_st *ssl, char **name, const char **why)
{
    const X509 *cert = SSL_get0_peer_certificate(ssl);
    *name = NULL;
    if (cert == NULL)
        return true;
    int found;
    GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, &found, NULL);
    if (names == NULL && found != -1) {
        *why = "the names in its certificate cannot be read";
        return false;
    }
    const ASN1_STRING *text = names != NULL ? first_alternative(names) : NULL;
    bool is_good = text != NULL ? take(ASN1_STRING_get0_data(text), ASN1_STRING_length(text), name, why)
                                : take_common_name(cert, name, why);
    GENERAL_NAMES_free(names);
    return is_good;
}
