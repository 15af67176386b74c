/* SPDX-License-Identifier: Apache-2.0 */
/* One value a cell, and a row for each series and bin: what spreadsheets and plotting programs read without help. */
#include "deploy/weir/backtest/report.h"

#include <string.h>

/* In quotes where it must be: a policy may be called by its path. */
static void put_field(struct weir_text *text, const char *field)
{
	if (strpbrk(field, ",\"\r\n") == NULL) {
		weir_text_puts(text, field);
		return;
	}
	weir_text_puts(text, "\"");
	for (; *field != '\0'; field++)
		weir_text_append(text, *field == '"' ? "\"\"" : field, *field == '"' ? 2 : 1);
	weir_text_puts(text, "\"");
}

void report_csv(struct weir_text *text, const struct report *report)
{
	const struct backtest_policies *policies = report->policies;
	const struct time_bins *bins = figures_bins(report->figures);
	weir_text_puts(text, "at,policy,zone,passed,blocked\n");
	for (uint32_t i = 0; i < bins->count; i++)
		for (uint32_t place = 0; place < policies->zone_count; place++) {
			const uint64_t *cells = bins->cells + (size_t)i * bins->series + 2 * (size_t)place;
			weir_text_int(text, time_bins_begin_ms(bins, i));
			weir_text_puts(text, ",");
			put_field(text, policies->at[policies->owners[place]].name);
			weir_text_puts(text, ",");
			put_field(text, policies_zone(policies, place)->name);
			weir_text_printf(text, ",%llu,%llu\n", (unsigned long long)cells[0], (unsigned long long)cells[1]);
		}
}
