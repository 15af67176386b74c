/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of metrics, character by character, and histograms that threads own. */
#include "common/log/metrics.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct weir_text page;

static int setup(void **state)
{
	(void)state;
	page = (struct weir_text){0};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	weir_text_deinit(&page);
	return 0;
}

#define assert_page(text)                     \
	do {                                      \
		weir_text_append(&page, "", 1);       \
		assert_string_equal((text), page.at); \
		weir_text_clear(&page);               \
	} while (0)

static const struct weir_metric verdicts = {"weir_limiter_verdicts_total", WEIR_COUNTER, "verdicts",
                                            WEIR_LABELS({"zone", "its name"}, {"verdict", "`pass`, `block`"}),
                                            "Verdicts on events."};
static const struct weir_metric of_source = {"m", WEIR_GAUGE, "seconds", WEIR_LABELS({"source", "its name"}), ""};
static const struct weir_metric bare = {"m", WEIR_GAUGE, "seconds", WEIR_NO_LABELS, ""};
static const struct weir_metric delays = {"h", WEIR_HISTOGRAM, "seconds", WEIR_NO_LABELS, "Delays."};

static void families_and_samples_read_as_prometheus_wants(void **state)
{
	(void)state;
	const struct weir_metric events = {"weir_limiter_events_total", WEIR_COUNTER, "events", WEIR_NO_LABELS,
	                                   "Events read \\ judged."};
	const struct weir_metric age = {"weir_age_seconds", WEIR_GAUGE, "seconds", WEIR_NO_LABELS, "Age."};
	const struct weir_metric lag = {"weir_lag", WEIR_GAUGE, "seconds", WEIR_LABELS({"zone", "its name"}), ""};
	struct weir_span values[] = {weir_span_of("site"), weir_span_of("block")};
	weir_metrics_counter(&page, &events, 17);
	weir_metrics_gauge(&page, &age, 0.25);
	weir_metrics_uint(&page, &verdicts, values, UINT64_MAX);
	weir_metrics_double(&page, &lag, values, 0.1);
	assert_page("# HELP weir_limiter_events_total Events read \\\\ judged.\n"
	            "# TYPE weir_limiter_events_total counter\n"
	            "weir_limiter_events_total 17\n"
	            "# HELP weir_age_seconds Age.\n"
	            "# TYPE weir_age_seconds gauge\n"
	            "weir_age_seconds 0.25\n"
	            "weir_limiter_verdicts_total{zone=\"site\",verdict=\"block\"} 18446744073709551615\n"
	            "weir_lag{zone=\"site\"} 0.1\n");
}

static void label_values_may_be_any_bytes(void **state)
{
	(void)state;
	struct weir_span value = {.at = "a\"b\\c\nd\te\xff\xc3\xa9\x7f\xc2\x9bm", .length = 16};
	weir_metrics_uint(&page, &of_source, &value, 1);
	assert_page("m{source=\"a\\\"b\\\\c\\nd e\xEF\xBF\xBD\xc3\xa9  m\"} 1\n");
	char large[4096];
	memset(large, 'x', sizeof large);
	value = (struct weir_span){.at = large, .length = sizeof large};
	weir_metrics_uint(&page, &of_source, &value, 1);
	assert_in_range(page.length, 1024, 1100);
	value = (struct weir_span){0};
	weir_text_clear(&page);
	weir_metrics_uint(&page, &of_source, &value, 1);
	assert_page("m{source=\"\"} 1\n");
}

static void numbers_read_back_as_themselves(void **state)
{
	(void)state;
	weir_metrics_double(&page, &bare, NULL, 1e300);
	weir_metrics_double(&page, &bare, NULL, -INFINITY);
	weir_metrics_double(&page, &bare, NULL, NAN);
	weir_metrics_double(&page, &bare, NULL, 1.0 / 3);
	weir_metrics_double(&page, &bare, NULL, 1732173600.123);
	assert_page("m 1e+300\nm -Inf\nm NaN\nm 0.3333333333333333\nm 1732173600.123\n");
}

static void a_histogram_sums_its_threads(void **state)
{
	(void)state;
	static const double bounds[] = {0.5, 1};
	struct weir_histogram_scale scale = {bounds, 2};
	struct weir_histogram first = {0}, second = {0};
	const struct weir_histogram *both[] = {&first, &second};
	weir_histogram_observe(&first, &scale, 0.5);
	weir_histogram_observe(&first, &scale, 0.75);
	weir_histogram_observe(&second, &scale, 4);
	weir_histogram_observe(&second, &scale, 0.25);
	weir_metrics_histogram(&page, &delays, &scale, both, 2);
	assert_page("# HELP h Delays.\n"
	            "# TYPE h histogram\n"
	            "h_bucket{le=\"0.5\"} 2\n"
	            "h_bucket{le=\"1\"} 3\n"
	            "h_bucket{le=\"+Inf\"} 4\n"
	            "h_sum 5.5\n"
	            "h_count 4\n");
}

static void a_table_is_a_row_of_markdown_for_each_metric(void **state)
{
	(void)state;
	const struct weir_metric metrics[] = {verdicts, delays};
	weir_metrics_describe(&page, &(const struct weir_metric_table){metrics, 2});
	assert_page("| `weir_limiter_verdicts_total` | counter | verdicts | `zone`: its name; `verdict`: `pass`, `block` "
	            "| Verdicts on events. |\n"
	            "| `h` | histogram | seconds | | Delays. |\n");
}

enum { OBSERVATIONS = 100000 };

static void *observe(void *context)
{
	struct weir_histogram *histogram = context;
	for (int i = 0; i < OBSERVATIONS; i++)
		weir_histogram_observe(histogram, &weir_latency_scale, i * 1e-6);
	return NULL;
}

static void a_page_is_read_while_its_threads_count(void **state)
{
	(void)state;
	struct weir_histogram histograms[2] = {0};
	const struct weir_histogram *both[] = {&histograms[0], &histograms[1]};
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		assert_int_equal(0, pthread_create(&threads[i], NULL, observe, &histograms[i]));
	for (int i = 0; i < 50; i++) {
		weir_text_clear(&page);
		weir_metrics_histogram(&page, &delays, &weir_latency_scale, both, 2);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	weir_text_clear(&page);
	weir_metrics_histogram(&page, &delays, &weir_latency_scale, both, 2);
	weir_text_append(&page, "", 1);
	assert_non_null(strstr(page.at, "le=\"2.5e-05\"} 52\n"));
	assert_non_null(strstr(page.at, "h_count 200000\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(families_and_samples_read_as_prometheus_wants, setup, teardown),
		cmocka_unit_test_setup_teardown(label_values_may_be_any_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(numbers_read_back_as_themselves, setup, teardown),
		cmocka_unit_test_setup_teardown(a_histogram_sums_its_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(a_table_is_a_row_of_markdown_for_each_metric, setup, teardown),
		cmocka_unit_test_setup_teardown(a_page_is_read_while_its_threads_count, setup, teardown),
	};
	return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
