/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When certificates end, whoever shows them. Nothing here trusts or refuses one.
 *
 * Times are Unix seconds; 0: not known, as there is no certificate that can be read.
 *
 * @thread any
 */
#ifndef WEIR_COMMON_CERTIFICATE_H
#define WEIR_COMMON_CERTIFICATE_H

#include "common/base/span.h"

#include <stdbool.h>

/** @param der  one certificate, as a peer shows it */
int64_t weir_certificate_ends_s(struct weir_span der);

/**
 * Of a file in PEM form, which may hold keys, too.
 *
 * @param authorities  whom to trust: one of them is enough, so that the last end counts. Otherwise the first certificate
 *                     of the file counts, which is the one that is shown
 */
int64_t weir_certificate_file_ends_s(const char *path, bool authorities);

/**
 * Whether a certificate may be shown, as a client's, to whoever trusts the authorities of a file.
 *
 * @param certificate  a file in PEM form, whose further certificates may lie between
 * @return NULL: it may; else why not. Words of OpenSSL
 */
const char *weir_certificate_refused(const char *certificate, const char *authorities);

#endif
