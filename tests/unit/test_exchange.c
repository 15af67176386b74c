/* SPDX-License-Identifier: Apache-2.0 */
/* Requests by HTTP while there is no policy yet, and those behind them on the same connection. */
#include "limiter/check/http/check_http.h"

#include "limiter/check/request/check_request.h"
#include "tests/support/asking.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char zones[] =
	"[{\"name\":\"site\",\"key\":[\"ip\"],\"limits\":[{\"algorithm\":\"sliding_window\",\"rate\":9,\"window\":\"1m\"}]}]";
static const char request[] = "GET /v1/nginx HTTP/1.1\r\nX-Original-Method: GET\r\nX-Original-URI: /\r\n\r\n";

static void begin(struct asking *asking, enum weir_on_unavailable on_unavailable)
{
	struct check_http_options options = {0};
	struct weir_error error;
	const struct check_request_options matching = {.log = NULL};
	const struct link_options common = asking_options(asking, on_unavailable);
	assert_int_equal(check_request_new(&matching, &options.request, &error), WEIR_OK);
	asking_begin(asking, check_http_new(&common, &options));
}

static bool has_status(const char *reply, int status)
{
	char head[32];
	int length = snprintf(head, sizeof head, "HTTP/1.1 %d ", status);
	return strncmp(reply, head, (size_t)length) == 0;
}

/* As many as a request may ask at most, and more. */
static void requests_before_a_policy_leave_nothing_behind(void **state)
{
	static const struct {
		enum weir_on_unavailable on_unavailable;
		int status;
	} settings[] = {
		{WEIR_ON_UNAVAILABLE_ALLOW, 200}, {WEIR_ON_UNAVAILABLE_DENY, 429}, {WEIR_ON_UNAVAILABLE_ERROR, 503}};
	static struct asking asking;
	(void)state;
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		begin(&asking, settings[i].on_unavailable);
		for (int asked = 0; asked < CHECK_HTTP_ASKS_MAX + 2; asked++)
			assert_true(has_status(asking_send(&asking, request), settings[i].status));
		asking_use(&asking, zones);
		assert_true(has_status(asking_send(&asking, request), 200));
		assert_int_equal(asking.asked, 1);
		asking_end(&asking);
	}
}

static void expect_json(struct asking *asking, const char *text, int status, const char *body)
{
	char asked[512];
	snprintf(asked, sizeof asked, "POST /v1/check HTTP/1.1\r\nContent-Length: %zu\r\n\r\n%s", strlen(text), text);
	const char *reply = asking_send(asking, asked), *came = strstr(reply, "\r\n\r\n");
	if (!has_status(reply, status) || came == NULL || (body != NULL && strcmp(came + 4, body) != 0))
		fail_msg("%s: %s", text, reply);
}

static void before_a_policy_a_text_is_told_what_a_gateway_is(void **state)
{
	static struct asking asking;
	static const char zone[] = "{\"zone\":\"site\",\"key\":\"192.0.2.7\"}",
					  fields[] = "{\"fields\":{\"ip\":\"192.0.2.7\"}}";
	static const char both[] = "{\"checks\":[{\"zone\":\"site\",\"key\":\"a\"},{\"fields\":{}}]}";
	(void)state;
	for (int allows = 0; allows < 2; allows++) {
		char told[64], body[512];
		begin(&asking, allows ? WEIR_ON_UNAVAILABLE_ALLOW : WEIR_ON_UNAVAILABLE_DENY);
		snprintf(told, sizeof told, "\"allowed\":%s", allows ? "true" : "false");
		snprintf(body, sizeof body, "{%s,\"unavailable\":\"loading\"}\n", told);
		for (int i = 0; i < CHECK_HTTP_ASKS_MAX + 2; i++)
			expect_json(&asking, zone, 200, body);
		snprintf(body, sizeof body, "{\"zones\":[],%s,\"unavailable\":\"loading\"}\n", told);
		expect_json(&asking, fields, 200, body);
		snprintf(body, sizeof body,
		         "{\"checks\":[{%s,\"unavailable\":\"loading\"},{\"zones\":[],%s,\"unavailable\":\"loading\"}],%s}\n",
		         told, told, told);
		expect_json(&asking, both, 200, body);
		expect_json(&asking, "{\"zone\":5}", 400, NULL);
		asking_use(&asking, zones);
		expect_json(&asking, both, 200, NULL);
		assert_int_equal(asking.asked, 1);
		asking_end(&asking);
	}
	begin(&asking, WEIR_ON_UNAVAILABLE_ERROR);
	expect_json(&asking, zone, 503, NULL);
	expect_json(&asking, fields, 503, NULL);
	asking_end(&asking);
}

/* The first text of a connection: nothing was kept of another. */
static void fields_of_no_zone_pass(void **state)
{
	static struct asking asking;
	(void)state;
	begin(&asking, WEIR_ON_UNAVAILABLE_ERROR);
	asking_use(&asking, zones);
	expect_json(&asking, "{\"fields\":{\"user\":\"ann\"}}", 200, "{\"zones\":[],\"allowed\":true}\n");
	expect_json(&asking, "{\"checks\":[{\"fields\":{\"user\":\"ann\"}}]}", 200,
	            "{\"checks\":[{\"zones\":[],\"allowed\":true}],\"allowed\":true}\n");
	assert_int_equal(asking.asked, 0);
	asking_end(&asking);
}

/* A zone without key fields has one bucket, whose key is empty. */
static void a_key_may_be_empty(void **state)
{
	static const char all[] =
		"[{\"name\":\"all\",\"key\":[],\"limits\":[{\"algorithm\":\"sliding_window\",\"rate\":9,\"window\":\"1m\"}]}]";
	static struct asking asking;
	(void)state;
	for (int first = 0; first < 3; first++) { /* each is once the first of a connection */
		begin(&asking, WEIR_ON_UNAVAILABLE_ERROR);
		asking_use(&asking, all);
		for (int i = first; i < first + 3; i++) {
			if (i % 3 == 0)
				expect_json(&asking, "{\"zone\":\"all\"}", 200, NULL);
			else if (i % 3 == 1)
				expect_json(&asking, "{\"fields\":{}}", 200, NULL);
			else
				assert_true(has_status(asking_send(&asking, request), 200));
		}
		assert_int_equal(asking.asked, 3);
		asking_end(&asking);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_before_a_policy_leave_nothing_behind),
		cmocka_unit_test(before_a_policy_a_text_is_told_what_a_gateway_is),
		cmocka_unit_test(fields_of_no_zone_pass),
		cmocka_unit_test(a_key_may_be_empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
