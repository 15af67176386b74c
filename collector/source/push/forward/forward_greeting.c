/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake: a client shows that it knows the shared key, and the password of the user if one is asked for, and the
 * server shows the same of the key. Neither is sent: only digests with what the other side has chosen.
 */
#include "collector/source/push/forward/internal.h"

#include "common/bytes/hex.h"
#include "common/bytes/hmac.h"
#include "common/bytes/secret.h"

#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

static void put_head(struct weir_text *out, unsigned char byte)
{
	weir_text_append(out, &byte, 1);
}

static void put_string(struct weir_text *out, struct weir_span text)
{
	const unsigned char head[] = {0xda, (unsigned char)(text.length >> 8), (unsigned char)text.length};
	if (text.length < 32)
		put_head(out, (unsigned char)(0xa0 | text.length));
	else
		weir_text_append(out, head, sizeof head);
	if (text.length > 0)
		weir_text_append(out, text.at, text.length);
}

static void put_word(struct weir_text *out, const char *word)
{
	put_string(out, weir_span_of(word));
}

static void draw(char digits[FORWARD_NONCE_DIGITS])
{
	unsigned char bytes[FORWARD_NONCE_DIGITS / 2];
	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		abort(); /* does not happen: so few random bytes are always available */
	(void)weir_hex_put(digits, bytes, sizeof bytes);
}

static struct weir_span span_of(const char digits[FORWARD_NONCE_DIGITS])
{
	return (struct weir_span){.at = digits, .length = FORWARD_NONCE_DIGITS};
}

void forward_greet(struct forward_greeting *greeting, bool asks_user, struct weir_text *out)
{
	draw(greeting->nonce);
	draw(greeting->salt);
	put_head(out, 0x92);
	put_word(out, "HELO");
	put_head(out, 0x83);
	put_word(out, "nonce");
	put_string(out, span_of(greeting->nonce));
	put_word(out, "auth");
	put_string(out, asks_user ? span_of(greeting->salt) : (struct weir_span){.at = ""});
	put_word(out, "keepalive");
	put_head(out, 0xc3);
}

static bool is_digest(struct weir_span given, const struct weir_span *parts, size_t count)
{
	char digits[WEIR_SHA512_DIGITS];
	weir_sha512_digits(parts, count, digits);
	return weir_secret_is((struct weir_span){.at = digits, .length = sizeof digits}, given);
}

static const char *look_at(const struct forward_greeting *greeting, const struct forward_config *config,
                           const struct forward_frame *ping)
{
	const struct weir_span key[] = {ping->ping[PING_SALT], ping->ping[PING_HOST], span_of(greeting->nonce),
	                                weir_span_of(config->shared_key)};
	if (!is_digest(ping->ping[PING_DIGEST], key, 4))
		return "shared_key mismatch";
	if (config->user == NULL)
		return NULL;
	const struct weir_span password[] = {span_of(greeting->salt), ping->ping[PING_USER],
	                                     weir_span_of(config->password)};
	bool known = weir_span_equal(ping->ping[PING_USER], weir_span_of(config->user));
	return is_digest(ping->ping[PING_PASSWORD], password, 3) && known ? NULL : "username/password mismatch";
}

const char *forward_answer_ping(const struct forward_greeting *greeting, const struct forward_config *config,
                                const struct forward_frame *ping, struct weir_text *out)
{
	char host[256] = "weir", digits[WEIR_SHA512_DIGITS];
	const char *why = look_at(greeting, config, ping);
	(void)gethostname(host, sizeof host - 1);
	const struct weir_span parts[] = {ping->ping[PING_SALT], weir_span_of(host), span_of(greeting->nonce),
	                                  weir_span_of(config->shared_key)};
	weir_sha512_digits(parts, 4, digits);
	put_head(out, 0x95);
	put_word(out, "PONG");
	put_head(out, why == NULL ? 0xc3 : 0xc2);
	put_word(out, why == NULL ? "" : why);
	put_word(out, why == NULL ? host : "");
	put_string(out, (struct weir_span){.at = digits, .length = why == NULL ? WEIR_SHA512_DIGITS : 0});
	return why;
}

void forward_put_ack(struct weir_span chunk, struct weir_text *out)
{
	put_head(out, 0x81);
	put_word(out, "ack");
	put_string(out, chunk);
}
