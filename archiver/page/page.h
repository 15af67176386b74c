/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page that the archiver's API serves beside its answers: files that are
 * built into the program, made of archiver/page/ by its embed.cmake.
 *
 * They are served to everybody: what they show comes from the API, which asks
 * for a token.
 */
#ifndef ARCHIVER_PAGE_H
#define ARCHIVER_PAGE_H

#include "archiver/api/api.h"

extern const struct api_file page_files[];
extern const size_t page_file_count;

#endif
