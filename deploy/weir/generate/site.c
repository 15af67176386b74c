/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The site is built from lists of words when a run begins. What matters of it
 * is the mixture that real logs show: a few pages and their pictures are asked
 * for most, addresses carry queries of every length, most browsers are one of
 * a few and most of the rest are robots.
 */
#include "deploy/weir/generate/site.h"

#include "common/base/alloc.h"

#include <stdio.h>
#include <stdlib.h>

enum { PAGE_EXPONENT = 900000, ACTION_EXPONENT = 1200000 };

#define COUNT(list) (uint32_t)(sizeof(list) / sizeof((list)[0]))

static const char *const things[] = {
	"kettle",      "lantern",       "bicycle",        "blanket",      "notebook",     "telescope",
	"hammock",     "compass",       "backpack",       "teapot",       "umbrella",     "armchair",
	"raincoat",    "wristwatch",    "chessboard",     "typewriter",   "accordion",    "sewing-machine",
	"garden-hose", "camping-stove", "coffee-grinder", "reading-lamp", "sleeping-bag", "picnic-basket",
};
static const char *const qualities[] = {
	"red",    "folding", "vintage",  "waterproof", "small", "wooden", "electric", "large",
	"silent", "blue",    "portable", "handmade",   "steel", "linen",  "winter",   "everyday",
};
static const char *const topics[] = {
	"how-we-moved-our-warehouse", "spring-collection",         "caring-for-linen",
	"a-year-of-repairs",          "meet-the-makers",           "choosing-the-right-lantern",
	"ten-walks-for-autumn",       "why-we-dropped-plastic",    "opening-hours-in-december",
	"notes-on-wood-and-oil",      "the-long-life-of-a-kettle", "what-fits-in-a-small-kitchen",
};
static const char *const helps[] = {"delivery", "returns", "payment",    "contact",
                                    "sizes",    "repairs", "gift-cards", "jobs"};

static const struct {
	const char *text;
	uint32_t weight;
} agents[] = {
	{"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
     220},
	{"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1.1 Mobile/15E148 Safari/604.1",
     130},
	{"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Mobile Safari/537.36",
     160},
	{"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
     70},
	{"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1.1 Safari/605.1.15",
     60},
	{"Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:133.0) Gecko/20100101 Firefox/133.0", 55},
	{"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", 25},
	{"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36 Edg/131.0.0.0",
     50},
	{"Mozilla/5.0 (Android 14; Mobile; rv:133.0) Gecko/133.0 Firefox/133.0", 15},
	{"Mozilla/5.0 (iPad; CPU OS 17_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.7 Mobile/15E148 Safari/604.1",
     15},
	{"Mozilla/5.0 (Linux; Android 14; SAMSUNG SM-S918B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/27.0 Chrome/125.0.0.0 Mobile Safari/537.36",
     15},
	{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Googlebot/2.1; +http://www.google.com/bot.html) Chrome/131.0.6778.69 Safari/537.36",
     30},
	{"Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)", 25},
	{"Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)", 15},
	{"Mozilla/5.0 (compatible; SemrushBot/7~bl; +http://www.semrush.com/bot.html)", 12},
	{"Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)", 8},
	{"facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)", 8},
	{"okhttp/4.12.0", 30},
	{"ExampleShop/5.2.1 (iOS 18.1; iPhone15,2)", 25},
	{"curl/8.9.1", 8},
	{"", 20},
};

static const char *const robots[] = {
	"python-requests/2.32.3",
	"Go-http-client/1.1",
	"curl/7.88.1",
	"Mozilla/5.0 (Windows NT 6.1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/41.0.2228.0 Safari/537.36",
	"python-httpx/0.27.2",
	"Scrapy/2.11.2 (+https://scrapy.org)",
};

static const char *const links[] = {
	"https://www.google.com/",
	"https://www.google.com/",
	"https://www.bing.com/",
	"https://duckduckgo.com/",
	"android-app://com.google.android.googlequicksearchbox/",
	"https://news.example.net/weekend/twelve-small-shops",
	"https://forum.example.org/threads/best-kettle-for-camping.48213/page-3",
	"https://m.facebook.com/",
};

static const char *const names[] = {
	"anna", "ben",  "carla", "david", "elif",  "farid", "greta", "hugo", "ines", "jonas", "kofi", "lena",
	"mira", "noah", "olga",  "paul",  "quinn", "rosa",  "sami",  "tara", "ugo",  "vera",  "wei",  "yusuf",
};

static const char *pick(const char *const *list, uint32_t count, uint64_t *bits)
{
	const char *word = list[generate_scale((uint32_t)*bits, count)];
	*bits = generate_mix(*bits);
	return word;
}
#define PICK(list, bits) pick(list, COUNT(list), bits)

static void set_target(struct generate_page *page, const char *prefix, const char *a, const char *middle, const char *b,
                       const char *suffix, uint64_t number)
{
	int length = snprintf(page->target, sizeof page->target, "%s%s%s%s%s", prefix, a, middle, b, suffix);
	if (number != 0)
		length +=
			snprintf(page->target + length, sizeof page->target - (size_t)length, "%llu", (unsigned long long)number);
	const char *query = strchr(page->target, '?');
	page->length = (uint8_t)length;
	page->path_length = (uint8_t)(query != NULL ? query - page->target : length);
}

/* Pictures and scripts. @param kind  0 to 6 */
static void make_asset(struct generate_page *page, unsigned kind, const char *thing, const char *quality, uint64_t bits)
{
	page->asset = true;
	if (kind < 4) {
		page->bytes = 20000 + (uint32_t)(bits % 180000);
		set_target(page, "/images/products/", quality, "-", thing, ".jpg?v=", bits % 9000 + 1000);
	} else if (kind < 6) {
		page->bytes = 3000 + (uint32_t)(bits % 20000);
		set_target(page, "/images/thumbs/", thing, "-", quality, ".webp", 0);
	} else {
		page->bytes = 15000 + (uint32_t)(bits % 250000);
		set_target(page, "/assets/js/chunk-", thing, ".", quality, ".min.js", 0);
	}
}

/* Something to read: of sixteen, seven pictures and scripts, three pages of goods, and six of all else. */
static void make_page(struct generate_page *page, uint64_t bits)
{
	const char *thing = PICK(things, &bits), *quality = PICK(qualities, &bits);
	uint64_t number = bits % 9000 + 1000;
	unsigned kind = bits >> 32 & 15;
	page->asset = false;
	switch (kind) {
	case 7:
	case 8:
	case 9:
		page->bytes = 14000 + (uint32_t)(bits % 30000);
		set_target(page, "/products/", quality, "-", thing, "-", number);
		break;
	case 10:
		page->bytes = 18000 + (uint32_t)(bits % 30000);
		set_target(page, "/products?category=", thing, "&colour=", quality, "&page=", bits % 40 + 1);
		break;
	case 11:
		page->bytes = 12000 + (uint32_t)(bits % 20000);
		set_target(page, "/search?q=", quality, "+", thing, "&sort=price_asc&page=", bits % 9 + 1);
		break;
	case 12:
		page->bytes = 300 + (uint32_t)(bits % 4000);
		set_target(page, "/api/v1/products/", thing, "/", "stock", "?sku=", number);
		break;
	case 13:
		page->bytes = 200 + (uint32_t)(bits % 2500);
		set_target(page, "/api/v1/users/", "", "", "", "", number);
		break;
	case 14:
		page->bytes = 20000 + (uint32_t)(bits % 40000);
		set_target(page, "/blog/2024/", PICK(topics, &bits), "", "", "", 0);
		break;
	case 15:
		page->bytes = 8000 + (uint32_t)(bits % 9000);
		set_target(page, "/help/", PICK(helps, &bits), "", "", "", 0);
		break;
	default: make_asset(page, kind, thing, quality, bits); break;
	}
}

/* What every visit needs, asked for most. */
static void make_front(struct generate_page *pages)
{
	static const struct {
		const char *target;
		bool asset;
		uint32_t bytes;
	} front[] = {
		{"/", false, 32000},
		{"/assets/css/main.5f3c1a.css", true, 48000},
		{"/assets/js/app.9b27e4.js", true, 182000},
		{"/images/logo.svg", true, 3400},
		{"/favicon.ico", true, 1150},
		{"/api/v1/session", false, 420},
		{"/robots.txt", false, 310},
		{"/products", false, 41000},
	};
	for (uint32_t i = 0; i < COUNT(front); i++) {
		pages[i].asset = front[i].asset;
		pages[i].bytes = front[i].bytes;
		set_target(&pages[i], front[i].target, "", "", "", "", 0);
	}
}

static void make_action(struct generate_page *page, uint32_t place, uint64_t bits)
{
	static const char *const targets[] = {"/login",   "/api/v1/cart/items",      "/api/v1/events", "/search",
	                                      "/graphql", "/api/v1/session/refresh", "/checkout",      "/comments"};
	page->bytes = 80 + (uint32_t)(bits % 1500);
	page->login = place == 0;
	if (place < COUNT(targets))
		set_target(page, targets[place], "", "", "", "", 0);
	else
		set_target(page, (bits >> 32 & 1) != 0 ? "/api/v1/cart/items/" : "/api/v1/orders/", "", "", "", "",
		           100000 + bits % 900000);
}

struct generate_site *generate_site_new(void)
{
	struct generate_site *site = weir_alloc(1, sizeof *site);
	for (uint32_t i = 0; i < GENERATE_PAGES; i++)
		make_page(&site->pages[i], generate_mix(i + 1));
	make_front(site->pages);
	for (uint32_t i = 0; i < GENERATE_ACTIONS; i++)
		make_action(&site->actions[i], i, generate_mix(i + 1));
	generate_zipf_init(&site->page_draw, GENERATE_PAGES, PAGE_EXPONENT);
	generate_zipf_init(&site->action_draw, GENERATE_ACTIONS, ACTION_EXPONENT);
	uint64_t weights[COUNT(agents)];
	for (uint32_t i = 0; i < COUNT(agents); i++)
		weights[i] = agents[i].weight;
	generate_zipf_init_weights(&site->agent_draw, COUNT(agents), weights);
	return site;
}

void generate_site_free(struct generate_site *site)
{
	if (site == NULL)
		return;
	generate_zipf_deinit(&site->page_draw);
	generate_zipf_deinit(&site->action_draw);
	generate_zipf_deinit(&site->agent_draw);
	free(site);
}

struct weir_span generate_site_agent(const struct generate_site *site, uint64_t visitor)
{
	return weir_span_of(agents[generate_zipf_draw(&site->agent_draw, visitor)].text);
}

struct weir_span generate_site_robot(uint64_t visitor)
{
	return weir_span_of(robots[generate_scale((uint32_t)visitor, COUNT(robots))]);
}

struct weir_span generate_site_link(uint32_t bits)
{
	return weir_span_of(links[generate_scale(bits, COUNT(links))]);
}

struct weir_span generate_site_name(uint32_t bits)
{
	return weir_span_of(names[generate_scale(bits, COUNT(names))]);
}
