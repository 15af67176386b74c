/* SPDX-License-Identifier: Apache-2.0 */
/* The resources of the API, one function each, for the router. */
#ifndef ARCHIVER_API_RESOURCES_H
#define ARCHIVER_API_RESOURCES_H

#include "archiver/api/api_answer.h"

api_answer api_zones_answer, api_counts_answer, api_top_answer, api_decisions_answer, api_blocks_answer,
	api_events_answer, api_held_answer, api_why_answer, api_status_answer, api_openapi_answer;

enum { API_TOP_CSV_ROWS_MAX = 50000 };

#endif
