/* SPDX-License-Identifier: Apache-2.0 */
/* What follows the scheme up to the first of "/?#" is the server's part, and what follows its last '@' the host. */
#include "common/bytes/http_address.h"

#include "common/bytes/listen_address.h"

#include <stdio.h>
#include <string.h>

bool weir_http_address_meant(const char *text)
{
	return strncmp(text, "https://", 8) == 0 || strncmp(text, "http://", 7) == 0;
}

/* Whether a host, with its port, is this machine. */
static bool is_here(const char *at, size_t length)
{
	char host[64];
	const char *colon = memrchr(at, ':', length);
	if (*at == '[') { /* [::1]:8080 */
		const char *closing = memchr(at, ']', length);
		length = closing != NULL ? (size_t)(closing - at) - 1 : 0;
		at++;
	} else if (colon != NULL) {
		length = (size_t)(colon - at);
	}
	snprintf(host, sizeof host, "%.*s", (int)(length < sizeof host ? length : 0), at);
	return weir_listen_is_loopback(host);
}

bool weir_http_address_host(const char *address, struct weir_text *host)
{
	size_t scheme = strncmp(address, "https://", 8) == 0 ? 8 : strncmp(address, "http://", 7) == 0 ? 7 : 0;
	size_t length = strcspn(address + scheme, "/?#");
	if (scheme == 0 || length == 0)
		return false;
	const char *at = address + scheme, *account = memrchr(at, '@', length);
	if (account != NULL) {
		length -= (size_t)(account + 1 - at);
		at = account + 1;
	}
	weir_text_append(host, address, scheme);
	weir_text_append(host, at, length);
	return length > 0 && (scheme == 8 || is_here(at, length));
}

bool weir_http_address_has_account(const char *address)
{
	const char *at = weir_http_address_meant(address) ? strstr(address, "://") + 3 : "";
	return memchr(at, '@', strcspn(at, "/?#")) != NULL;
}

void weir_http_address_show(const char *text, struct weir_text *shown)
{
	if (!weir_http_address_meant(text)) {
		weir_text_puts(shown, text);
		return;
	}
	const char *path = strstr(text, "://") + 3;
	path += strcspn(path, "/?#");
	(void)weir_http_address_host(text, shown);
	weir_text_append(shown, path, strcspn(path, "?#"));
}
