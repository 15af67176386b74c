/* SPDX-License-Identifier: Apache-2.0 */
/* The page has the report as JSON, so that it shows what programs are given. A key may be any text, markup too. */
#include "deploy/weir/backtest/page.h"
#include "deploy/weir/backtest/report.h"

void report_html(struct weir_text *text, const struct report *report)
{
	struct weir_text json = {0};
	weir_text_append(text, report_page_head, report_page_head_bytes);
	report_json(&json, report);
	for (size_t i = 0; i < json.length; i++) {
		/* only strings have it, where this is the same character */
		if (json.at[i] == '<')
			weir_text_puts(text, "\\u003c");
		else
			weir_text_append(text, &json.at[i], 1);
	}
	weir_text_deinit(&json);
	weir_text_append(text, report_page_tail, report_page_tail_bytes);
}
