/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What strangers write never becomes the address.
 *
 * Each template is a line as its writer writes it, with slots for what a stranger chooses. A slot is filled with pieces
 * of that format's lines that name another address. The address must stay, or the line be told as ambiguous where its
 * format cannot do better; with harmless words in the slots each line is a record.
 *
 * And what strangers write costs no more than its length: lines of 64 KiB, made of the same pieces again and again, are
 * timed against lines of half the length.
 *
 * WEIR_INJECTIONS says how many attacks there are for each format: 100000 for a thorough run.
 */
#include "tests/unit/format_fixture.h"

#include <time.h>

enum { LINE_BYTES = 8192, FILL_BYTES = 1200, ATTACKS = 3000 };

/*
 * {A}  the address
 * {u}  any bytes, {s} at most 100 of them, {q} any but a quote, {w} a word, {x} any but a quote or a backslash
 * {h}  any but a quote or a brace
 */
struct attacked {
	const char *config;
	bool may_be_ambiguous; /* its writer escapes nothing on either side of the address */
	const char *const *templates, *const *pieces;
	const char *header; /* of the file; NULL: it has none */
};

#define EVIL "198.51.100.77"
#define REAL "203.0.113.9"
#define SERVED "/served/by/the/template" /* a template with this path is a record of this path */

static const char *const nginx_error_lines[] = {
	"2024/05/17 10:05:03 [error] 31#31: *45 open() \"/srv/www/{u}\" failed (2: No such file or directory), client: {A}, "
	"server: example.com, request: \"GET /{w} HTTP/1.1\", host: \"{w}\"",
	"2024/05/17 10:05:03 [error] 31#31: *45 user \"{u}\" was not found in \"/etc/users\", client: {A}, server: _, request: "
	"\"GET / HTTP/1.1\", host: \"a\", referrer: \"{u}\"",
	"2024/05/17 10:05:03 [error] 31#31: *45 limiting requests, excess: 1.2 by zone \"one\", client: {A}, server: a.b, "
	"request: \"{u}\", upstream: \"http://10.0.0.1/{u}\", host: \"{u}\", referrer: \"{u}\"",
	"2024/05/17 10:05:03 [error] 31#31: *45 access forbidden by rule, client: {A}, server: a.b, request: \"{u}\", host: "
	"\"{u}\"",
	"2024/05/17 10:05:03 [info] 31#31: *45 client sent invalid method while reading client request line, client: {A}, "
	"server: a.b, request: \"{u}\"",
	NULL};
static const char *const nginx_error_pieces[] = {", client: " EVIL ", server: y",
                                                 ", client: " EVIL,
                                                 ", request: \"GET / HTTP/1.1\"",
                                                 ", host: \"h\"",
                                                 "\"",
                                                 ", server: ",
                                                 "\" failed (2: No such file or directory)",
                                                 ", z",
                                                 "x",
                                                 ", referrer: \"http://r/\"",
                                                 " [error] 1#1: *1 ",
                                                 NULL};

#define SSHD "2024-05-17T10:05:03+00:00 h sshd[7]: "
static const char *const sshd_lines[] = {
	SSHD "Failed password for invalid user {s} from {A} port 4000 ssh2",
	SSHD "Failed password for invalid user {s} from {A} port 4000",
	SSHD "Failed {s} for root from {A} port 4000 ssh2",
	SSHD "Failed publickey for invalid user {s} from {A} port 4000 ssh2: RSA SHA256:abcdef",
	SSHD "Failed publickey for root from {A} port 4000 ssh2: RSA-CERT SHA256:abc ID {u} (serial 0) CA RSA SHA256:def",
	SSHD "Failed publickey for invalid user {s} from {A} port 4000 ssh2: RSA-CERT SHA256:abc ID {u} (serial 0) CA RSA "
		 "SHA256:def",
	SSHD "Failed hostbased for root from {A} port 4000 ssh2: RSA SHA256:abc, client user \"{u}\", client host \"{u}\"",
	SSHD
	"Failed hostbased for invalid user {s} from {A} port 4000 ssh2: RSA SHA256:abc, client user \"{s}\", client host "
	"\"{s}\"",
	SSHD "Invalid user {s} from {A}",
	SSHD "Invalid user {s} from {A} port 4000",
	SSHD "error: maximum authentication attempts exceeded for invalid user {s} from {A} port 4000 ssh2 [preauth]",
	SSHD "error: PAM: Authentication failure for illegal user {s} from {A}",
	SSHD "Connection closed by invalid user {s} {A} port 4000 [preauth]",
	SSHD "Disconnected from authenticating user {s} {A} port 4000 [preauth]",
	SSHD "Bad protocol version identification '{s}' from {A} port 4000",
	SSHD "Unable to negotiate with {A} port 4000: no matching cipher found. Their offer: {u} [preauth]",
	SSHD
	"Unable to negotiate with invalid user {s} {A} port 4000: no matching cipher found. Their offer: {u} [preauth]",
	SSHD "fatal: ssh_dispatch_run_fatal: Connection from invalid user {s} {A} port 4000: message authentication code "
		 "incorrect [preauth]",
	SSHD "fatal: Connection from invalid user {s} {A} port 4000 timed out [preauth]",
	SSHD "Disconnecting invalid user {s} {A} port 4000: Packet corrupt [preauth]",
	SSHD "Disconnecting authenticating user root {A} port 4000: bad service request {s} [preauth]",
	SSHD "Disconnecting invalid user {s} {A} port 4000: bad service request {s} [preauth]",
	SSHD "PAM 2 more authentication failures; logname= uid=0 euid=0 tty=ssh ruser= rhost={A}  user={u}",
	"Fri May 17 10:05:03 2024 authpriv.info sshd[7]: Invalid user {s} from {A} port 4000",
	"2024-05-17 10:05:03 h sshd(pam_unix)[7]: authentication failure; logname= uid=0 euid=0 tty=NODEVssh ruser= "
	"rhost={A}  user={u}",
	SSHD "pam_unix(sshd:auth): authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost={A}  user={u}",
	SSHD "message repeated 3 times: [ Failed password for invalid user {s} from {A} port 4000 ssh2]",
	"<38>1 2024-05-17T10:05:03Z h sshd 7 - - Failed password for invalid user {s} from {A} port 4000 ssh2",
	NULL};
static const char *const sshd_pieces[] = {" from " EVIL " port 22 ssh2",
                                          " from " EVIL " port 22",
                                          " from " EVIL,
                                          ": RSA SHA256:abc",
                                          ": RSA-CERT SHA256:abc ID x",
                                          " (serial 0) CA RSA SHA256:def",
                                          ", client user \"x\", client host \"y\"",
                                          "x",
                                          " " EVIL " port 1",
                                          " " EVIL " port 1: ",
                                          " timed out",
                                          " rhost=" EVIL,
                                          " via y",
                                          " [preauth]",
                                          "]",
                                          "\"",
                                          "Failed password for x",
                                          " not allowed because not listed in AllowUsers",
                                          ": Change of username or service not allowed: (x,",
                                          "invalid user ",
                                          NULL};

#define HAPROXY "2024-05-17T10:05:03.123+00:00 lb haproxy[77]: "
static const char *const haproxy_lines[] = {
	HAPROXY
	"{A}:4002 [17/May/2024:10:05:03.323] fe~ be/s1 0/0/0/5/5 200 512 {w} {w} ---- 1/1/0/0/0 0/0 {{q}|{q}} {{q}} "
	"\"{q}\"",
	HAPROXY "{A}:4002 [17/May/2024:10:05:03.323] fe~ be/s1 0/0/0/5/5 200 512 - - ---- 1/1/0/0/0 0/0 \"{q}\" 0/0/0/0/0 "
			"{q}/TLSv1.3/TLS_AES_256_GCM_SHA384",
	HAPROXY "{A}:4002 [17/May/2024:10:05:03.323] fe~ be/s1 0/0/0/5/5 200 512 - - ---- 1/1/0/0/0 0/0 \"{q}",
	"{A}:4002 [17/May/2024:10:05:03.323] fe~ be/s1 0/0/0/5/5 200 512 - - ---- 1/1/0/0/0 0/0 {{u}} \"{u}\"",
	HAPROXY
	"{A}:4002 [17/May/2024:10:05:03.323] fe be/s1 0/0/0/5/5 200 512 SID={u} - ---- 1/1/0/0/0 0/0 {{h}|{h}} {{h}} "
	"\"POST " SERVED " HTTP/1.1\"",
	HAPROXY "{A}:4002 [17/May/2024:10:05:03.323] fe be/s1 0/0/0/5/5 200 512 SID={u} SID={u} ---- 1/1/0/0/0 0/0 "
			"\"POST " SERVED " HTTP/1.1\" 0/0/0/0/0 {w}/TLSv1.3/TLS_AES_256_GCM_SHA384",
	HAPROXY "{A}:4002 [17/May/2024:10:05:03.323] fe/1: SSL handshake failure",
	HAPROXY "Connect from {A}:4002 to 10.0.0.1:80 (fe/HTTP)",
	"<6>2024-05-17T10:05:03.123+00:00 {A}:4002 [17/May/2024:10:05:03.323] fe~ be/s1 0/0/0/5/5 200 512 - - ---- "
	"1/1/0/0/0 0/0 {{h}|{h}} \"{q}\"",
	"haproxy[77]: {A}:4002 [17/May/2024:10:05:03.323] fe~ be/s1 0/0/0/5/5 200 512 - - ---- 1/1/0/0/0 0/0 \"{q}\"",
	NULL};
static const char *const haproxy_pieces[] = {" " EVIL ":1 [17/May/2024:10:05:03.323] fe be/s 0/0/0/0/0 200 1 - - ",
                                             EVIL ":1 [17/May/2024:10:05:03.323] ",
                                             "\"GET / HTTP/1.1\"",
                                             "GET /x HTTP/1.1",
                                             "\" - ",
                                             " ",
                                             "{a} ",
                                             "---- 1/1/0/0/0 0/0 ",
                                             "}",
                                             "{",
                                             "haproxy[1]: ",
                                             "Connect from " EVIL ":1 to ",
                                             NULL};

static const char *const syslog_lines[] = {"<34>1 2024-05-17T10:05:03Z {A} app 1 ID - {u}",
                                           "<34>1 2024-05-17T10:05:03Z {A} app 1 ID [a@1 b=\"{x}\"] {u}",
                                           "<34>2024-05-17T10:05:03Z {A} app[1]: {u}", NULL};
static const char *const syslog_pieces[] = {"<34>1 2024-05-17T10:05:03Z " EVIL " app 1 ID - ",
                                            "<34>2024-05-17T10:05:03Z " EVIL " app[1]: ",
                                            "2024-05-17T10:05:03Z " EVIL " app: ",
                                            " [a@1 ip=\"" EVIL "\"] ",
                                            "] ",
                                            "x",
                                            NULL};

#define APACHE "[Fri May 17 10:05:03.133721 2024] [core:error] [pid 77:tid 88] "
static const char *const apache_error_lines[] = {APACHE "[client {A}:4000] AH01618: user {u} not found: {u}",
                                                 APACHE
                                                 "(13)Permission denied: [client {A}:4000] AH00035: {u}, referer: {u}",
                                                 APACHE "(5)Input/output error: [client {A}:4000] AH00132: {u}",
                                                 "[Fri May 17 10:05:03 2024] [error] [client {A}] {u}", NULL};
static const char *const apache_error_pieces[] = {"[client " EVIL ":1] ",
                                                  "[remote " EVIL ":1] ",
                                                  "(13)x: [client " EVIL "] ",
                                                  "(5)Input/output error: ",
                                                  "[pid 1] ",
                                                  "] ",
                                                  ": ",
                                                  "/x",
                                                  NULL};

static const char *const ingress_lines[] = {
	"{A} - {q} [17/May/2024:10:05:03 +0000] \"{q}\" 200 12 \"{q}\" \"{q}\" 88 0.002 [default-web-80] [] 10.0.0.9:80 12 0.002 200 6d",
	"{A} - [{A}] - {q} [17/May/2024:10:05:03 +0000] \"{q}\" 200 12 \"{q}\" \"{q}\" 88 0.002 [a] [] 10.0.0.9:80 12 0.002 200 6d",
	NULL};
static const char *const access_pieces[] = {EVIL " - - [17/May/2024:10:05:03 +0000] ",
                                            "[17/May/2024:10:05:03 +0000]",
                                            " - ",
                                            "\"",
                                            "] \"",
                                            "GET / HTTP/1.1",
                                            EVIL,
                                            " ",
                                            NULL};

static const char *const alb_lines[] = {
	"https 2024-05-17T10:05:03.186641Z app/my-lb/50dc {A}:2817 10.0.0.1:80 0.086 0.048 0.037 200 201 0 57 \"{x}\" \"{x}\" ECDHE TLSv1.2 "
	"arn:x \"{x}\"",
	"tls 2.0 2024-05-17T10:05:03 net/my-lb/50dc g3d4 {A}:2817 10.0.0.1:80 5 2 98 246 - - - - - - {u} h2 h2 \"{u}\" -",
	NULL};
static const char *const alb_pieces[] = {"GET http://" EVIL ":80/ HTTP/1.1",
                                         "https 2024-05-17T10:05:03.186641Z app/x " EVIL ":1 - ", EVIL ":1 ", "\" \"",
                                         NULL};

static const char *const squid_lines[] = {
	"1715940303.133    310 {A} TCP_MISS/200 4542 GET {w} {w} HIER_DIRECT/192.0.2.1 {w}", NULL};
static const char *const squid_pieces[] = {" 1 " EVIL " TCP_MISS/200 ", "1715940303.133 1 " EVIL " ",
                                           "http://" EVIL "/", NULL};

#define POSTFIX "2024-05-17T10:05:03+00:00 mx postfix/smtpd[12]: "
static const char *const postfix_lines[] = {
	POSTFIX "NOQUEUE: reject: RCPT from unknown[{A}]: 554 5.7.1 <{u}>: Relay access denied; from=<{u}> helo=<{u}>",
	POSTFIX "warning: unknown[{A}]: SASL LOGIN authentication failed: {u}, sasl_username={u}",
	POSTFIX "lost connection after AUTH from unknown[{A}]",
	POSTFIX "message repeated 3 times: [ warning: unknown[{A}]: SASL LOGIN authentication failed: {u}]",
	"2024-05-17T10:05:03Z mx postfix/dnsblog[12]: addr {A} listed by domain zen.example as 127.0.0.4",
	"2024-05-17T10:05:03Z mx postfix/postscreen[12]: PREGREET 14 after 0.1 from [{A}]:4000: {u}",
	"2024-05-17T10:05:03Z mx postfix/postscreen[12]: NON-SMTP COMMAND from [{A}]:4000 after CONNECT: {u}",
	POSTFIX "4A: client=unknown[{A}], sasl_method=PLAIN, sasl_username={u}",
	NULL};
static const char *const postfix_pieces[] = {"unknown[" EVIL "]",
                                             " from x[" EVIL "]: ",
                                             ", sasl_username=",
                                             "client=x[" EVIL "]",
                                             "addr " EVIL " listed by domain ",
                                             ": ",
                                             "> ",
                                             "[" EVIL "]",
                                             NULL};

#define DOVECOT "2024-05-17T10:05:03+00:00 mx dovecot: "
static const char *const dovecot_lines[] = {
	DOVECOT
	"imap-login: Disconnected (auth failed, 3 attempts in 7 secs): user=<{u}>, method=PLAIN, rip={A}, lip=::1, TLS, session=<a>",
	DOVECOT "message repeated 3 times: [ imap-login: Disconnected (auth failed, 3 attempts in 7 secs): user=<{u}>, "
			"method=PLAIN, rip={A}, lip=::1, TLS, session=<a>]",
	DOVECOT "imap-login: Login: user=<{u}>, method=PLAIN, rip={A}, lip=::1, mpid=4, session=<a>",
	DOVECOT "auth: passwd-file({u},{A},<abc>): Password mismatch",
	DOVECOT "auth: pam({u},{A}): unknown user",
	DOVECOT "auth: sql({u},{A},<abc>): unknown user (given password: {u})",
	DOVECOT "auth: ldap({u},{A},): invalid credentials",
	DOVECOT "auth({u},{A},sasl:login)<CvN>: sql: Password mismatch",
	DOVECOT "auth({u},{A},sasl:login)<CvN>: sql: Password mismatch (given password: {u})",
	"2024-05-17 10:05:03 auth({u},{A},sasl:login)<CvN>: Info: sql: Password mismatch",
	"2024-05-17 10:05:03 Info: imap-login: Login: user=<{u}>, method=PLAIN, rip={A}, lip=::1",
	"2024-05-17T10:05:03Z mx auth: pam_unix(dovecot:auth): authentication failure; logname= uid=0 euid=0 tty=dovecot "
	"ruser={u} rhost={A}",
	"2024-05-17T10:05:03Z mx dovecot-auth: pam_unix(dovecot:auth): authentication failure; logname= uid=0 euid=0 "
	"tty=dovecot ruser={u} rhost={A}  user={u}",
	NULL};
static const char *const dovecot_pieces[] = {">, method=PLAIN, rip=" EVIL ", lip=::1",
                                             ", rip=" EVIL,
                                             " rip=" EVIL ",",
                                             "," EVIL "): ",
                                             "," EVIL ",<a>): ",
                                             "," EVIL ",sasl:login)<a>: ",
                                             "," EVIL ",<",
                                             "default): ",
                                             "x(",
                                             " dovecot: ",
                                             "conn unix:>: ",
                                             "," REAL "): Debug: ",
                                             "Info: ",
                                             " rhost=" EVIL,
                                             " rhost=" EVIL "  user=",
                                             "x",
                                             "user=<",
                                             ")",
                                             NULL};

static const char *const wrapped_lines[] = {
	"{\"log\":\"{A} - - [17/May/2024:10:05:03 +0000] {x}\\n\",\"time\":\"2024-05-17T10:05:03Z\"}", NULL};
static const char *const wrapped_pieces[] = {" ip=" EVIL, EVIL " ", "\",\"log\":\"" EVIL,
                                             "[17/May/2024:10:05:03 +0000]", NULL};

#define W3C "2024-05-17 10:05:03 10.0.0.5 POST {w} - "
static const char *const w3c_lines[] = {W3C "10.0.0.1 {w} 200 {w},+{A}",
                                        W3C "10.0.0.1 {w} 200 {A}",
                                        W3C "10.0.0.1 {w} 200 {w},%20{A} ",
                                        W3C "{A} {w} 200 {w}",
                                        W3C "{A} {w} 20",
                                        W3C "{A} {w}",
                                        NULL};
static const char *const w3c_pieces[] = {",+" EVIL ",+", "\t", "%20" EVIL "%20", ",", "+", EVIL, "#Fields:", NULL};

static const char *const zeek_lines[] = {"1715940303.133721\tCX\t{A}\t52110\t{w}\t{w}",
                                         "1715940303.133721\tCX\t{A}\t52110\t{w}", NULL};
static const char *const zeek_pieces[] = {EVIL, "\\x09" EVIL "\\x09", "#fields", "(empty)", NULL};

static const struct attacked formats[] = {
	{"{\"type\": \"w3c\", \"client_ip\": {\"header\": \"xff\", \"trusted\": [\"10.0.0.0/8\"]}}", false, w3c_lines,
     w3c_pieces,
     "#Fields: date time s-ip cs-method cs-uri-stem cs-username c-ip cs(User-Agent) sc-status X-Forwarded-For"},
	{"\"zeek\"", false, zeek_lines, zeek_pieces, "#fields\tts\tuid\tid.orig_h\tid.orig_p\turi\tuser_agent"},
	{"\"apache_error\"", false, apache_error_lines, apache_error_pieces, NULL},
	{"\"ingress_nginx\"", false, ingress_lines, access_pieces, NULL},
	{"\"alb\"", false, alb_lines, alb_pieces, NULL},
	{"\"squid\"", false, squid_lines, squid_pieces, NULL},
	{"\"postfix\"", false, postfix_lines, postfix_pieces, NULL},
	{"\"dovecot\"", true, dovecot_lines, dovecot_pieces, NULL},
	{"{\"type\": \"wrapped\", \"in\": \"docker\", \"message\": {\"type\": \"pattern\", \"pattern\": \"^(?<ip>\\\\S+) \"}}",
     false, wrapped_lines, wrapped_pieces, NULL},
	{"\"nginx_error\"", true, nginx_error_lines, nginx_error_pieces, NULL},
	{"\"sshd\"", true, sshd_lines, sshd_pieces, NULL},
	{"\"haproxy\"", false, haproxy_lines, haproxy_pieces, NULL},
	{"{\"type\": \"syslog\", \"fields\": {\"ip\": \"host\"}}", false, syslog_lines, syslog_pieces, NULL},
};

static const char *piece_of(uint64_t *random, const char *const *pieces)
{
	size_t count = 0;
	while (pieces[count] != NULL)
		count++;
	return pieces[fixture_random(random) % count];
}

/* Pieces one after another, in the bytes that a slot takes. */
static size_t attack(uint64_t *random, const char *const *pieces, char slot, char *fill)
{
	size_t length = 0, most = slot == 's' ? 100 : FILL_BYTES;
	for (uint64_t count = 1 + fixture_random(random) % 6; count > 0; count--) {
		const char *piece = piece_of(random, pieces);
		size_t bytes = strlen(piece);
		if (length + bytes > most)
			break;
		memcpy(fill + length, piece, bytes);
		length += bytes;
	}
	for (size_t i = 0; i < length; i++) {
		bool quote = fill[i] == '"' || fill[i] == '\\' || (slot == 'x' && fill[i] == ']');
		quote |= slot == 'h' && (fill[i] == '{' || fill[i] == '}');
		if ((slot == 'w' && (fill[i] == ' ' || quote)) || (slot != 'u' && slot != 's' && quote))
			fill[i] = '_';
	}
	return length;
}

/* The template with its slots filled. */
static size_t write_line(uint64_t *random, const struct attacked *format, const char *template, bool harmless,
                         char *line)
{
	size_t length = 0;
	for (const char *at = template; *at != '\0';) {
		char fill[FILL_BYTES];
		size_t bytes = 1;
		const char *from = at++;
		if (from[0] == '{' && from[1] != '\0' && from[2] == '}') {
			at += 2;
			if (from[1] == 'A') {
				bytes = strlen(REAL);
				from = REAL;
			} else {
				bytes = harmless ? (size_t)sprintf(fill, "w%u", (unsigned)(fixture_random(random) % 9))
				                 : attack(random, format->pieces, from[1], fill);
				from = fill;
			}
		}
		assert_true(length + bytes < LINE_BYTES);
		memcpy(line + length, from, bytes);
		length += bytes;
	}
	line[length] = '\0';
	return length;
}

static void judge(struct fixture *fixture, const struct attacked *format, const char *line, size_t length,
                  bool harmless, uint64_t *ambiguous)
{
	enum format_reason reason = fixture_parse_bytes(fixture, line, length);
	if (reason == FORMAT_AMBIGUOUS && format->may_be_ambiguous && !harmless) {
		(*ambiguous)++;
		return;
	}
	if (reason != FORMAT_OK)
		fail_msg("%s: \"%s\" is \"%s\"", format->config, line, format_reason_text(reason));
	struct weir_span ip = fixture_field(fixture, "ip");
	if (!weir_span_equal(ip, weir_span_of(REAL)))
		fail_msg("%s: \"%s\" is counted for \"%.*s\"", format->config, line, (int)ip.length, ip.at);
	struct weir_span path = fixture_field(fixture, "path");
	if (strstr(line, SERVED) != NULL && !weir_span_equal(path, weir_span_of(SERVED)))
		fail_msg("%s: \"%s\" is of the path \"%.*s\"", format->config, line, (int)path.length, path.at);
}

static void no_text_becomes_the_address(void **state)
{
	(void)state;
	const char *wanted = getenv("WEIR_INJECTIONS");
	uint64_t count = wanted != NULL ? strtoull(wanted, NULL, 10) : ATTACKS, random = 7;
	static char line[LINE_BYTES];
	for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
		struct fixture fixture;
		uint64_t ambiguous = 0;
		size_t templates = 0;
		fixture_init(&fixture, formats[i].config, "ip user method path");
		if (formats[i].header != NULL)
			format_begin(fixture.format, weir_span_of(formats[i].header));
		while (formats[i].templates[templates] != NULL)
			templates++;
		for (uint64_t n = 0; n < count; n++) {
			bool harmless = n % 10 == 0;
			size_t length = write_line(&random, &formats[i], formats[i].templates[n / 10 % templates], harmless, line);
			judge(&fixture, &formats[i], line, length, harmless, &ambiguous);
		}
		print_message("%s: %llu lines, %llu of them ambiguous\n", formats[i].config, (unsigned long long)count,
		              (unsigned long long)ambiguous);
		fixture_deinit(&fixture);
	}
}

/* ---- time ---- */

static const char *const combined_lines[] = {"{A} - {q} [17/May/2024:10:05:03 +0000] \"{q}\" 200 12 \"{q}\" \"{q}\"",
                                             NULL};
static const char *const json_lines[] = {
	"{\"time\":\"2024-05-17T10:05:03Z\",\"ip\":\"{A}\",\"path\":\"{u}\",\"user\":{u}}", NULL};
static const char *const json_pieces[] = {"[", "{\"a\":", "\\\"", "\\u0041", "\",\"ip\":\"", "1", "],[", "{},", NULL};
static const char *const logfmt_lines[] = {"time=2024-05-17T10:05:03Z ip={A} path={u}", NULL};
static const char *const logfmt_pieces[] = {"ip=", "\"", "\\\"", " ", "a=b ", NULL};
static const char *const delimited_lines[] = {"{u}", NULL};
static const char *const delimited_pieces[] = {"#Fields: ", "#", "\t", " ", "\"", "\"\"", "a ", ",", NULL};
static const char *const pattern_lines[] = {"1715940303 {u}b!", "{u}", NULL};
static const char *const pattern_pieces[] = {"a", "ab", " ", "\"", ", client: ", "1 ", NULL};

static const struct attacked others[] = {
	{"\"combined\"", false, combined_lines, access_pieces, NULL},
	{"\"common\"", false, combined_lines, access_pieces, NULL},
	{"\"json\"", false, json_lines, json_pieces, NULL},
	{"\"logfmt\"", false, logfmt_lines, logfmt_pieces, NULL},
	{"\"w3c\"", false, delimited_lines, delimited_pieces, NULL},
	{"\"zeek\"", false, delimited_lines, delimited_pieces, NULL},
	{"{\"type\": \"delimited\", \"separator\": \"blanks\", \"quote\": \"\\\"\"}", false, delimited_lines,
     delimited_pieces, NULL},
	{"\"caddy\"", false, json_lines, json_pieces, NULL},
	{"{\"type\": \"wrapped\", \"in\": \"cri\", \"message\": \"json\"}", false, delimited_lines, delimited_pieces, NULL},
	{"{\"type\": \"pattern\", \"pattern\": \"(?<time>\\\\d+) (?<ip>(a|aa)+)*(?<user>.*?)b$\"}", false, pattern_lines,
     pattern_pieces, NULL},
	{"{\"type\": \"pattern\", \"pattern\": \"^(?<time>\\\\d+) (?<user>.*?)(?:, client: (?<ip>[^,]+), server.*\\\"[^\\\"]*\\\")$\"}",
     false, pattern_lines, pattern_pieces, NULL},
	{"{\"type\": \"pattern\", \"pattern\": \"a*a*a*a*b$(?<time>x)\"}", false, pattern_lines, pattern_pieces, NULL},
};

enum { LONG_BYTES = 64 << 10, FAST_NS_A_BYTE = 400 };

/* A line of a length: what stands before the first slot of a stranger, then a piece again and again, then what is left. */
static void write_long(const char *template, const char *piece, size_t length, bool whole, char *line)
{
	const char *slot = strstr(template, "{u}");
	static const char *const slots[] = {"{s}", "{q}", "{w}", "{x}", "{h}"};
	for (size_t i = 0; slot == NULL && i < sizeof slots / sizeof *slots; i++)
		slot = strstr(template, slots[i]);
	const char *head_end = slot != NULL ? slot : template + strlen(template), *tail = slot != NULL ? slot + 3 : "";
	size_t used = 0, tail_bytes = whole ? strlen(tail) : 0, bytes = strlen(piece);
	for (const char *at = template; at < head_end && used < length; at++) {
		if (strncmp(at, "{A}", 3) == 0) {
			used += (size_t)sprintf(line + used, "%s", REAL);
			at += 2;
		} else {
			line[used++] = *at;
		}
	}
	for (; used + bytes + tail_bytes <= length; used += bytes)
		memcpy(line + used, piece, bytes);
	memcpy(line + used, tail, tail_bytes);
	memset(line + used + tail_bytes, 'x', length - used - tail_bytes);
}

/* Of some parses the shortest, in the thread's own time. */
static int64_t measure(struct fixture *fixture, const char *line, size_t length)
{
	int64_t best_ns = INT64_MAX;
	for (int i = 0; i < 3; i++) {
		struct timespec begin, end;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
		(void)format_parse(fixture->format, line, (uint32_t)length, &fixture->record);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
		int64_t ns = (end.tv_sec - begin.tv_sec) * INT64_C(1000000000) + end.tv_nsec - begin.tv_nsec;
		best_ns = ns < best_ns ? ns : best_ns;
		if (best_ns < LONG_BYTES) /* a nanosecond a byte: nothing to look at */
			break;
	}
	return best_ns;
}

/* What is fast is fine. What is not must not take more than thrice as long for twice the length. */
static void time_template(struct fixture *fixture, const struct attacked *format, const char *template)
{
	static char line[LONG_BYTES];
	for (const char *const *piece = format->pieces; *piece != NULL; piece++)
		for (int whole = 0; whole < 2; whole++) {
			write_long(template, *piece, LONG_BYTES, whole != 0, line);
			int64_t long_ns = measure(fixture, line, LONG_BYTES);
			if (long_ns < (int64_t)LONG_BYTES * FAST_NS_A_BYTE)
				continue;
			write_long(template, *piece, LONG_BYTES / 2, whole != 0, line);
			int64_t half_ns = measure(fixture, line, LONG_BYTES / 2);
			if (long_ns > 3 * half_ns)
				fail_msg("%s: \"%s\" again and again takes %lld us, in half the length %lld us (%s)", format->config,
				         *piece, (long long)long_ns / 1000, (long long)half_ns / 1000, template);
		}
}

static void no_text_costs_more_than_its_length(void **state)
{
	(void)state;
	const struct attacked *lists[] = {formats, others};
	const size_t counts[] = {sizeof formats / sizeof *formats, sizeof others / sizeof *others};
	for (size_t list = 0; list < 2; list++)
		for (size_t i = 0; i < counts[list]; i++) {
			struct fixture fixture;
			const struct attacked *format = &lists[list][i];
			fixture_init(&fixture, format->config, "ip user method path");
			if (format->header != NULL)
				format_begin(fixture.format, weir_span_of(format->header));
			for (const char *const *template = format->templates; *template != NULL; template ++)
				time_template(&fixture, format, *template);
			fixture_deinit(&fixture);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(no_text_costs_more_than_its_length),
	                                   cmocka_unit_test(no_text_becomes_the_address)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
