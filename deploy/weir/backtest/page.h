/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a report: what stands before the report and behind it. Built from page/ (bundle.cmake). */
#ifndef DEPLOY_WEIR_BACKTEST_PAGE_H
#define DEPLOY_WEIR_BACKTEST_PAGE_H

#include <stddef.h>

extern const unsigned char report_page_head[], report_page_tail[];
extern const size_t report_page_head_bytes, report_page_tail_bytes;

#endif
