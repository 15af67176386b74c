/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines as services write them, for measuring: many users by a skewed choice, a few dozen agents and pages, times
 * that go on by some lines a second. The same seed gives the same lines.
 */
#ifndef TESTS_BENCH_LOG_LINES_H
#define TESTS_BENCH_LOG_LINES_H

#include <stdint.h>
#include <stdio.h>

/* One request, from which a line of any format is written. */
struct log_lines {
	uint64_t random;
	int64_t time_ms;
	uint32_t users;
	/* of the request: */
	uint32_t ip;
	const char *method, *path, *query, *referer, *agent, *user;
	uint32_t item, status, bytes;
};

static inline uint64_t log_lines_random(struct log_lines *lines)
{
	lines->random = lines->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return lines->random >> 33;
}

#define LOG_LINES_PICK(lines, list) ((list)[log_lines_random(lines) % (sizeof(list) / sizeof((list)[0]))])

static inline void log_lines_next(struct log_lines *lines)
{
	static const char *const methods[] = {"GET", "GET", "GET", "GET", "GET", "GET",  "GET",  "GET",
	                                      "GET", "GET", "GET", "GET", "GET", "POST", "HEAD", "PUT"};
	static const char *const paths[] = {"/",
	                                    "/favicon.ico",
	                                    "/robots.txt",
	                                    "/login",
	                                    "/api/v2/items/",
	                                    "/api/v2/users/me/notifications/",
	                                    "/static/css/main.4f2a1c9b.css",
	                                    "/static/js/vendor.bundle.8c1d77e0.min.js",
	                                    "/images/products/2024/spring/thumbnails/",
	                                    "/blog/2024/05/how-to-read-a-log-without-falling-asleep/",
	                                    "/search",
	                                    "/wp-content/uploads/2023/11/photo-of-a-harbour-at-night-1024x683.jpg"};
	static const char *const queries[] = {
		"", "", "", "", "?page=2", "?utm_source=newsletter&utm_medium=email&id=", "?q=rate+limit&lang=en"};
	static const char *const referers[] = {"-",
	                                       "-",
	                                       "-",
	                                       "https://www.example.com/",
	                                       "https://www.example.com/blog/2024/05/",
	                                       "https://www.google.com/",
	                                       "https://www.example.com/search?q=rate+limit&lang=en"};
	static const char safari[] =
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "
		"Version/17.4 Safari/605.1.15";
	static const char iphone[] =
		"Mozilla/5.0 (iPhone; CPU iPhone OS 17_4_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, "
		"like Gecko) Version/17.4.1 Mobile/15E148 Safari/604.1";
	static const char *const agents[] = {
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36",
		safari,
		"Mozilla/5.0 (X11; Linux x86_64; rv:125.0) Gecko/20100101 Firefox/125.0",
		iphone,
		"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Mobile Safari/537.36",
		"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
		"Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
		"curl/8.7.1",
		"python-requests/2.31.0",
		"Go-http-client/2.0",
		"-"};
	static const uint32_t statuses[] = {200, 200, 200, 200, 200, 200, 200, 200, 304, 304, 302, 404, 401, 500};
	double uniform = (double)(log_lines_random(lines) & 0xffffff) / 0x1000000;
	uint32_t user = (uint32_t)(uniform * uniform * uniform * lines->users);
	lines->ip = (user + 1) * UINT32_C(2654435761);
	lines->time_ms += (int64_t)(log_lines_random(lines) % 40);
	lines->method = LOG_LINES_PICK(lines, methods);
	lines->path = LOG_LINES_PICK(lines, paths);
	lines->query = LOG_LINES_PICK(lines, queries);
	lines->referer = LOG_LINES_PICK(lines, referers);
	lines->agent = LOG_LINES_PICK(lines, agents);
	lines->user = log_lines_random(lines) % 16 == 0 ? "alice" : "-";
	lines->item = (uint32_t)(log_lines_random(lines) % 100000);
	lines->status = LOG_LINES_PICK(lines, statuses);
	lines->bytes = (uint32_t)(log_lines_random(lines) % 200000);
}

/* "1.2.3.4" */
static inline int log_lines_ip(const struct log_lines *lines, char text[16])
{
	return snprintf(text, 16, "%u.%u.%u.%u", 1 + (lines->ip >> 24) % 223, lines->ip >> 16 & 255, lines->ip >> 8 & 255,
	                lines->ip & 255);
}

#endif
