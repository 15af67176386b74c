/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The method of a request, in one form: the rule of the field `method` in every format, and of requests.
 *
 * A method of HTTP that is written with small letters gets its capitals, as Django, Flask and PHP serve `post` as POST, and
 * many proxies pass it on. Any other text stays as it is: it may be a method of another protocol, such as JSON-RPC's, or
 * of sshd ("password"), where letters of two sizes are two methods.
 */
#ifndef WEIR_SERVED_METHOD_H
#define WEIR_SERVED_METHOD_H

#include "common/base/span.h"

/** The methods of HTTP in capitals, those that clients send most in front; NULL-terminated. */
const char *const *weir_served_methods(void);

/** @param method  borrowed. @return it, or a text that is never freed */
struct weir_span weir_served_method(struct weir_span method);

#endif
