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

static void families_and_samples_read_as_prometheus_wants(void **state)
{
	(void)state;
	weir_metrics_counter(&page, "weir_events_total", "Events read.\nAll \\ of them.", 17);
	weir_metrics_gauge(&page, "weir_age_seconds", "Age.", 0.25);
	struct weir_label labels[] = {{"zone", weir_span_of("site")}, {"verdict", weir_span_of("block")}};
	weir_metrics_uint(&page, "weir_verdicts_total", labels, 2, UINT64_MAX);
	weir_metrics_double(&page, "weir_lag", labels, 1, 0.1);
	assert_page("# HELP weir_events_total Events read.\\nAll \\\\ of them.\n"
	            "# TYPE weir_events_total counter\n"
	            "weir_events_total 17\n"
	            "# HELP weir_age_seconds Age.\n"
	            "# TYPE weir_age_seconds gauge\n"
	            "weir_age_seconds 0.25\n"
	            "weir_verdicts_total{zone=\"site\",verdict=\"block\"} 18446744073709551615\n"
	            "weir_lag{zone=\"site\"} 0.1\n");
}

static void label_values_may_be_any_bytes(void **state)
{
	(void)state;
	struct weir_label label = {"source", {.at = "a\"b\\c\nd\te\xff\xc3\xa9\x7f\xc2\x9bm", .length = 16}};
	weir_metrics_uint(&page, "m", &label, 1, 1);
	assert_page("m{source=\"a\\\"b\\\\c\\nd e\xEF\xBF\xBD\xc3\xa9  m\"} 1\n");
	char large[4096];
	memset(large, 'x', sizeof large);
	label.value = (struct weir_span){.at = large, .length = sizeof large};
	weir_metrics_uint(&page, "m", &label, 1, 1);
	assert_in_range(page.length, 1024, 1100);
	label.value = (struct weir_span){0};
	weir_text_clear(&page);
	weir_metrics_uint(&page, "m", &label, 1, 1);
	assert_page("m{source=\"\"} 1\n");
}

static void numbers_read_back_as_themselves(void **state)
{
	(void)state;
	weir_metrics_double(&page, "m", NULL, 0, 1e300);
	weir_metrics_double(&page, "m", NULL, 0, -INFINITY);
	weir_metrics_double(&page, "m", NULL, 0, NAN);
	weir_metrics_double(&page, "m", NULL, 0, 1.0 / 3);
	weir_metrics_double(&page, "m", NULL, 0, 1732173600.123);
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
	struct weir_label label = {"role", weir_span_of("limiter")};
	weir_metrics_histogram(&page, "h", &label, 1, &scale, both, 2);
	assert_page("h_bucket{role=\"limiter\",le=\"0.5\"} 2\n"
	            "h_bucket{role=\"limiter\",le=\"1\"} 3\n"
	            "h_bucket{role=\"limiter\",le=\"+Inf\"} 4\n"
	            "h_sum{role=\"limiter\"} 5.5\n"
	            "h_count{role=\"limiter\"} 4\n");
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
		weir_metrics_histogram(&page, "h", NULL, 0, &weir_latency_scale, both, 2);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	weir_text_clear(&page);
	weir_metrics_histogram(&page, "h", NULL, 0, &weir_latency_scale, both, 2);
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
		cmocka_unit_test_setup_teardown(a_page_is_read_while_its_threads_count, setup, teardown),
	};
	return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
