/* SPDX-License-Identifier: Apache-2.0 */
/* The reference of metrics: `weir validate --metrics`. */
#ifndef DEPLOY_WEIR_VALIDATE_VALIDATE_METRICS_H
#define DEPLOY_WEIR_VALIDATE_VALIDATE_METRICS_H

#include "common/base/text.h"

/** Appends the page in Markdown: common/metrics.md. */
void validate_metrics(struct weir_text *text);

#endif
