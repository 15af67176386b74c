/* SPDX-License-Identifier: Apache-2.0 */
/* The field Accept of a request, by RFC 9110, section 12.5.1. */
#ifndef ARCHIVER_API_ACCEPT_H
#define ARCHIVER_API_ACCEPT_H

#include <stdbool.h>

enum api_accepted { API_ACCEPTED_NOTHING, API_ACCEPTED_JSON, API_ACCEPTED_CSV };

/**
 * Which of JSON and CSV the client prefers. With equal weights, the type that it names itself; of two, the first; else
 * JSON.
 *
 * @param field  NULL or empty: anything is taken, so JSON
 * @param csv    whether the resource has CSV
 */
enum api_accepted api_accepted(const char *field, bool csv);

#endif
