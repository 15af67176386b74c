/* SPDX-License-Identifier: Apache-2.0 */
/* The ready formats: lines as their writers write them, and what is read from each. */
#include "tests/unit/format_fixture.h"

/* A line and "field=value|field=value"; a field that is not named is not looked at, "field=" is absent. */
struct sample {
	const char *line, *fields;
};

static void check_fields(struct fixture *fixture, const struct sample *sample)
{
	char fields[1024], *rest = fields;
	snprintf(fields, sizeof fields, "%s", sample->fields);
	for (char *field; (field = strtok_r(rest, "|", &rest)) != NULL;) {
		char *value = strchr(field, '=');
		assert_non_null(value);
		*value++ = '\0';
		struct weir_span found = fixture_field(fixture, field);
		if (!weir_span_equal(found, weir_span_of(value)))
			fail_msg("\"%s\": %s is \"%.*s\" and should be \"%s\"", sample->line, field, (int)found.length, found.at,
			         value);
	}
}

/* Each value that a line has is among those of which the format says that they are all. */
static void check_values(const struct fixture *fixture, const char *line)
{
	for (uint32_t i = 0; i < fixture->fields.count; i++) {
		const char *const *values = (fixture->fields.wanted >> i & 1) != 0 ? format_values(fixture->format, i) : NULL;
		struct weir_span found = fixture->record.fields[i];
		if (values == NULL || found.at == NULL)
			continue;
		while (*values != NULL && !weir_span_equal(found, weir_span_of(*values)))
			values++;
		if (*values == NULL)
			fail_msg("\"%s\": the format knows no %s \"%.*s\"", line, fixture->fields.names[i], (int)found.length,
			         found.at);
	}
}

static void check(const char *config, const char *names, const struct sample *samples)
{
	struct fixture fixture;
	fixture_init(&fixture, config, names);
	for (; samples->line != NULL; samples++) {
		assert_reason(&fixture, samples->line, FORMAT_OK);
		check_fields(&fixture, samples);
		check_values(&fixture, samples->line);
	}
	fixture_deinit(&fixture);
}

static void nginx_error(void **state)
{
	(void)state;
#define HEAD "2024/05/17 10:05:03 [error] 31#31: *45 "
	static const struct sample samples[] = {
		{HEAD
	     "open() \"/srv/x\" failed (2: No such file or directory), client: 192.0.2.7, server: example.com, request: "
	     "\"GET /x?y HTTP/1.1\", host: \"example.com\"",
	     "ip=192.0.2.7|server=example.com|method=GET|path=/x|host=example.com|level=error|pid=31"},
		{HEAD "open() \"/srv/a, client: 198.51.100.77, server: y, z\" failed (2: No such file or directory), client: "
	          "192.0.2.7, server: _, request: \"GET /a,%20client HTTP/1.1\", host: \"h\"",
	     "ip=192.0.2.7|server=_"},
		{HEAD
	     "limiting requests, excess: 5.5 by zone \"one\", client: 2001:db8::7, server: a, request: \"GET / HTTP/1.1\", "
	     "host: \"a\", referrer: \"x, client: 198.51.100.77, server: a, referrer: \"\"",
	     "ip=2001:db8::7"},
		{HEAD "SSL_do_handshake() failed (SSL: error:0A00006C), client: 192.0.2.7, server: 0.0.0.0:443",
	     "ip=192.0.2.7|server=0.0.0.0:443|method="},
		{HEAD
	     "recv() failed (104: Connection reset by peer) while proxying and reading from client, client: 192.0.2.7, "
	     "server: 0.0.0.0:25, upstream: \"10.0.0.1:25\", bytes from/to client:10/20, bytes from/to upstream:20/10",
	     "ip=192.0.2.7"},
		{"2024/05/17 10:05:03 [notice] 1#1: signal 1 (SIGHUP) received", "ip=|message=signal 1 (SIGHUP) received"},
		{NULL, NULL},
	};
	check("\"nginx_error\"", "ip server method path host level pid message", samples);

	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"nginx_error\", \"unmatched\": \"skip\"}", "ip");
	assert_reason(&fixture,
	              HEAD
	              "open() \"/srv/a\" failed (2: x), client: 198.51.100.77, server: y, request: \"GET / HTTP/1.1\", "
	              "host: \"a\" failed (2: No such file), client: 192.0.2.7, server: y, request: \"GET / HTTP/1.1\"",
	              FORMAT_AMBIGUOUS);
	/* What nginx cut may have lost the client. */
	char line[2049];
	int length =
		snprintf(line, sizeof line, HEAD "open() \"/srv/a, client: 198.51.100.77, server: y, request: \"GET /");
	memset(line + length, 'a', sizeof line - (size_t)length);
	line[sizeof line - 1] = '\0';
	assert_reason(&fixture, line, FORMAT_AMBIGUOUS);
	length =
		snprintf(line, sizeof line,
	             HEAD "limiting requests, excess: 5.5 by zone \"one\", client: 192.0.2.7, server: y, request: \"GET /");
	memset(line + length, 'a', sizeof line - (size_t)length);
	line[sizeof line - 1] = '\0';
	assert_reason(&fixture, line, FORMAT_OK);
	assert_field(&fixture, "ip", "192.0.2.7");
	fixture_deinit(&fixture);
#undef HEAD
}

static void haproxy(void **state)
{
	(void)state;
#define HEAD "2024-05-17T10:05:03.123456+00:00 lb haproxy[77]: 192.0.2.7:4002 [17/May/2024:10:05:03.323] "
	static const struct sample samples[] = {
		{HEAD "fe~ be/s1 0/0/0/5/5 200 512 - - ---- 1/1/0/0/0 0/0 \"GET /a HTTP/1.1\" 0/0000000000000000/0/0/0 "
	          "api.example.com/TLSv1.3/TLS_AES_256_GCM_SHA384",
	     "ip=192.0.2.7|frontend=fe~|backend=be|server=s1|status=200|bytes=512|state=----|method=GET|path=/a"},
		{HEAD "fe be/s1 0/0/5007 212 -- 0/0/0/0/3 0/0", "ip=192.0.2.7|backend=be|bytes=212|state=--|status=|method="},
		{HEAD "fe/1: SSL handshake failure", "ip=192.0.2.7|frontend=fe|event=SSL handshake failure|backend="},
		{HEAD "fe/1: SSL handshake failure (error:0A00010B:SSL routines::wrong version number)", "frontend=fe"},
		{HEAD "fe be/s1 0/0/0/5/5 200 512 - - ---- 1/1/0/0/0 0/0 {agent} \"POST /login?aaaaaaaaaaaaa",
	     "method=POST|path=/login"},
		{HEAD "fe be/s1 0/0/0/5/5 20", "ip=192.0.2.7|status=20|method="},
		{HEAD "fe be/s1", "server=s1|status="},
		{HEAD, "ip=192.0.2.7|frontend="},
		{"[2001:db8::7]:80 [17/May/2024:10:05:03.323] fe be/s1 0/0/0/5/5 +200 +512 - - ---- 1/1/0/0/0 0/0 \"<BADREQ>\"",
	     "ip=2001:db8::7|bytes=512|method="},
		{"May 17 10:05:03 haproxy[77]: unix:1 [17/May/2024:10:05:03.323] fe be/s1 0/0/0/5/5 200 512 - - ---- 1/1/0/0/0 0/0 "
	     "\"GET / HTTP/1.1\"",
	     "ip=|method=GET"},
		{"May 17 10:05:03 lb haproxy[77]: -:4002 [17/May/2024:10:05:03.323] fe be/s1 0/0/0/5/5 200 512 - - ---- 1/1/1/1/0 "
	     "0/0 \"GET / HTTP/1.1\"",
	     "ip=|status=200|method=GET"},
		/* A frontend without a format for its log. */
		{"2024-05-17T10:05:03Z lb haproxy[77]: Connect from 192.0.2.7:4002 to 10.0.0.1:5000 (main/HTTP)",
	     "ip=192.0.2.7|frontend=main|event=Connect|status="},
		{"<134>2024-05-17T10:05:03Z lb haproxy[77]: Connect from 2001:db8::7:4002 to 2001:db8::1:5000 (main/TCP)",
	     "ip=2001:db8::7|frontend=main|event=Connect"},
		/* Heads without a host, a tag or a time: "log stdout format iso", "timed", "short"; a tag alone. */
		{"2024-05-17T10:05:03.123+00:00 192.0.2.7:4002 [17/May/2024:10:05:03.323] fe be/s1 0/0/5007 212 -- 0/0/0/0/3 0/0",
	     "ip=192.0.2.7|frontend=fe|bytes=212"},
		{"<6>2024-05-17T10:05:03.123+00:00 192.0.2.7:4002 [17/May/2024:10:05:03.323] fe be/s1 0/0/5007 212 -- 0/0/0/0/3 0/0",
	     "ip=192.0.2.7|frontend=fe|bytes=212"},
		{"<6>192.0.2.7:4002 [17/May/2024:10:05:03.323] fe be/s1 0/0/5007 212 -- 0/0/0/0/3 0/0",
	     "ip=192.0.2.7|bytes=212"},
		{"<6>2024-05-17T10:05:03.123+00:00 Connect from 192.0.2.7:4002 to 10.0.0.1:5000 (main/HTTP)",
	     "ip=192.0.2.7|event=Connect"},
		{"haproxy[77]: 192.0.2.7:4002 [17/May/2024:10:05:03.323] fe be/s1 0/0/5007 212 -- 0/0/0/0/3 0/0",
	     "ip=192.0.2.7|bytes=212"},
		/* A format of one's own. */
		{HEAD "fe be/s1 site.example 0/0/0/18/18 200 200", "ip=192.0.2.7|server=s1|status=|bytes=|state="},
#define TIMES "fe be/s1 10/0/30/69/109 200 2750 "
		/* A captured cookie is written as the client sent it. */
		{HEAD TIMES "SID=a b c \"GET /x HTTP/1.1\" - ---- 1/1/1/1/0 0/0 \"POST /login HTTP/1.1\"",
	     "ip=192.0.2.7|status=200|state=----|method=POST|path=/login"},
		{HEAD TIMES
	     "SID=a - CD-- 1/1/1/1/0 0/0 \"GET /x HTTP/1.1\" - ---- 1/1/1/1/+2 0/0 {a b|} {} \"POST /login HTTP/1.1\"",
	     "state=----|method=POST|path=/login"},
		{HEAD TIMES "SID=\" - SID=b c sH-- 1/1/1/1/0 0/0 {x ---- 1/1/1/1/0 0/0 |y} \"POST /login HTTP/1.1\" 0/0/0/0/0 "
	                "a.example/TLSv1.3/TLS_AES_256_GCM_SHA384",
	     "state=sH--|method=POST|path=/login"},
		{HEAD TIMES "SID=a SID=b ---- 1/1/1/1/0 0/0 \"POST /login ---- 1/1/1/1/0 0/0 HTTP/1.1\"", "path=/login"},
		{HEAD TIMES "SID=a SID=b ---- 1/1/1/1/0 0/0 \"POST /login ---- 1/1/1/1/0 0/0 \"", "path=/login"},
		{HEAD TIMES "SID=a SID=b ---- 1/1/1/1/0 0/0 other \"POST /login HTTP/1.1\"", "state=----|path=/login"},
		/* Cut before the request. */
		{HEAD TIMES "SID=a b c \"GET /x HTTP/1.1\" - ---- 1/1/1/1/0 0/",
	     "ip=192.0.2.7|status=200|state=|method=|path="},
		/* No cookie: what TLS asks for is no request. */
		{HEAD TIMES "- - ---- 1/1/1/1/0 0/0 \"POST /login HTTP/1.1\" 0/0/0/0/0 ---- 1/1/1/1/0 0/0 \"GET /x/TLSv1.3/A",
	     "method=POST|path=/login"},
#undef TIMES
		{NULL, NULL},
	};
	check("\"haproxy\"", "ip frontend backend server status bytes state method path event", samples);

	struct fixture fixture;
	fixture_init(&fixture, "\"haproxy\"", "ip");
	assert_malformed(&fixture, "May 17 10:05:03 lb haproxy[77]: Proxy http-in started.", "no match");
	assert_malformed(&fixture, "May 17 10:05:03 lb haproxy[77]: Connect from 192.0.2.7 to 10.0.0.1:80 (a/HTTP)",
	                 "no match");
	assert_malformed(&fixture, "<34>1 2024-05-17T10:05:03Z 192.0.2.7:1 [x] 1 - - y", "no match");
	assert_reason(&fixture, "<134>Connect from 192.0.2.7:4002 to 10.0.0.1:5000 (main/HTTP)", FORMAT_NO_TIME);
	fixture_deinit(&fixture);
	/* Within another line, the time is the outer one's. */
	fixture_init(&fixture, "{\"type\": \"wrapped\", \"in\": \"cri\", \"message\": \"haproxy\"}", "ip");
	assert_reason(&fixture, "2024-05-17T10:05:03Z stdout F <6>Connect from 192.0.2.7:4002 to 10.0.0.1:5000 (m/HTTP)",
	              FORMAT_OK);
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_int_equal(fixture.record.time_ms, 1715940303000);
	fixture_deinit(&fixture);
#undef HEAD
}

static void sshd(void **state)
{
	(void)state;
#define HEAD "2024-05-17T10:05:03+00:00 h sshd[7]: "
	static const struct sample samples[] = {
		{HEAD "Failed password for invalid user bob from 192.0.2.7",
	     "event=Failed|user=bob|ip=192.0.2.7|method=password"},
		{HEAD "Failed none for invalid user  from 192.0.2.7 port 40 ssh2", "event=Failed|user=|ip=192.0.2.7"},
		{HEAD "Failed keyboard-interactive/pam for a from 2001:db8::7 port 40 ssh2", "ip=2001:db8::7"},
		{HEAD "Invalid user webmaster from 192.0.2.7", "event=Invalid|user=webmaster|ip=192.0.2.7"},
		{HEAD "Failed publickey for invalid user a from 192.0.2.7 port 40 ssh2: RSA SHA256:abc", "ip=192.0.2.7|user=a"},
		{HEAD
	     "Failed hostbased for dan from 192.0.2.7 port 45 ssh2: RSA 8c:e3, client user \"x from 198.51.100.77 port 1 "
	     "ssh2: RSA a\", client host \"localhost\"",
	     "ip=192.0.2.7|user=dan"},
		{HEAD "error: maximum authentication attempts exceeded for root from 192.0.2.7 port 49 ssh2 [preauth]",
	     "event=Maximum|user=root|ip=192.0.2.7"},
		{HEAD "error: PAM: Authentication failure for illegal user x from 192.0.2.7", "event=Failed|method=pam|user=x"},
		{HEAD "error: PAM: authentication error for a from host.example via 192.0.2.1", "ip=host.example"},
		{HEAD
	     "pam_unix(sshd:auth): authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=192.0.2.7  user=root",
	     "event=PAM|user=root|ip=192.0.2.7"},
		{HEAD "Connection closed by 192.0.2.7 port 40 [preauth]", "event=Preauth|ip=192.0.2.7"},
		{HEAD "Connection closed by 192.0.2.7 port 40", "event=|ip="},
		{HEAD "Connection reset by authenticating user root 192.0.2.7 port 15 [preauth]", "event=Preauth|user=root"},
		{HEAD "Disconnected from invalid user a b 192.0.2.7 port 15 [preauth]", "user=a b|ip=192.0.2.7"},
		{HEAD "Disconnected from user root 192.0.2.7 port 15", "event=|ip="},
		{HEAD "Disconnecting invalid user admin 192.0.2.7 port 44: Change of username or service not allowed: "
	          "(admin,ssh-connection) -> (user,ssh-connection) [preauth]",
	     "event=Preauth|user=admin|ip=192.0.2.7"},
		{HEAD "Received disconnect from 192.0.2.7 port 77:11: Bye Bye [preauth]", "event=Disconnect|ip=192.0.2.7"},
		{HEAD "Received disconnect from 192.0.2.7: 3: com.jcraft.jsch.JSchException: Auth fail [preauth]",
	     "event=Failed"},
		{HEAD
	     "error: Received disconnect from 192.0.2.7 port 16:14: No supported authentication methods available [preauth]",
	     "event=Preauth|ip=192.0.2.7"},
		{HEAD "Received disconnect from 192.0.2.7 port 77:11: disconnected by user", "event=|ip="},
		{HEAD "fatal: Unable to negotiate with 192.0.2.7 port 55: no matching cipher found. Their offer: x",
	     "event=Preauth"},
		{HEAD "Did not receive identification string from 192.0.2.7", "event=Preauth|ip=192.0.2.7"},
		{HEAD "fatal: Timeout before authentication for 192.0.2.7 port 55", "ip=192.0.2.7"},
		{HEAD "Timeout before authentication for connection from 192.0.2.7 to 127.0.0.1, pid = 29", "ip=192.0.2.7"},
		{HEAD "Bad protocol version identification 'GET / from 1.1.1.1 port 1' from 192.0.2.7 port 31", "ip=192.0.2.7"},
		{HEAD "banner exchange: Connection from 192.0.2.7 port 44: invalid format", "event=Preauth|ip=192.0.2.7"},
		{HEAD "User root from 192.0.2.7 not allowed because not listed in AllowUsers", "event=Denied|user=root"},
		{HEAD "ROOT LOGIN REFUSED FROM 192.0.2.7 port 12 [preauth]", "event=Denied|ip=192.0.2.7"},
		{HEAD "refused connect from x@198.51.100.77 (192.0.2.7)", "event=Denied|ip=192.0.2.7"},
		{HEAD "Accepted publickey for alice from 2001:db8::7 port 50 ssh2: ED25519 SHA256:abc",
	     "event=Accepted|user=alice"},
		{HEAD "Server listening on :: port 22.", "event=|ip=|host=h|pid=7"},
		{"2024-05-17T10:05:03+0200 h sshd-session[7]: Invalid user a from 192.0.2.7 port 4", "ip=192.0.2.7"},
		{"<38>1 2024-05-17T10:05:03.954167-04:00 h sshd 57 - [a@1 b=\"[c]\"] Invalid user a from 192.0.2.7 port 4",
	     "ip=192.0.2.7|pid=57"},
		{"May 7 10:05:03 h sshd[7]: Invalid user a from 192.0.2.7", "ip=192.0.2.7"},
		{"May  7 10:05:03 [sshd]: User root from 192.0.2.7 not allowed because not listed in AllowUsers",
	     "ip=192.0.2.7"},
		/* How sshd names a connection: with the name of who is about to log in before the address. */
		{HEAD "fatal: ssh_dispatch_run_fatal: Connection from authenticating user root 192.0.2.7 port 22: message "
	          "authentication code incorrect [preauth]",
	     "event=Preauth|user=root|ip=192.0.2.7"},
		{HEAD
	     "fatal: ssh_dispatch_run_fatal: Connection from invalid user x 198.51.100.77 port 1: y 192.0.2.7 port 22: "
	     "Connection corrupted [preauth]",
	     "event=Preauth|user=x 198.51.100.77 port 1: y|ip=192.0.2.7"},
		{HEAD "fatal: sshpkt_vfatal: ssh_dispatch_run_fatal: Connection from 192.0.2.7 port 22: Broken pipe",
	     "event=Preauth|ip=192.0.2.7"},
		{HEAD "ssh_dispatch_run_fatal: Connection from user root 192.0.2.7 port 22: Broken pipe", "event=|ip="},
		{HEAD "ssh_dispatch_run_fatal: Connection from UNKNOWN port 65535: Broken pipe", "event=|ip="},
		{HEAD "fatal: Unable to negotiate with invalid user a b 2001:db8::7 port 5: no matching cipher found. Their "
	          "offer: x [preauth]",
	     "event=Preauth|user=a b|ip=2001:db8::7"},
		{HEAD "Unable to negotiate with authenticating user root 192.0.2.7 port 5: no matching cipher found. Their "
	          "offer: 198.51.100.77 port 5: x",
	     "event=Preauth|user=root|ip=192.0.2.7"},
		{HEAD "fatal: Connection from authenticating user root 192.0.2.7 port 5 timed out [preauth]",
	     "event=Preauth|user=root|ip=192.0.2.7"},
		{HEAD "Connection from 192.0.2.7 port 5 on 10.0.0.1 port 22", "event=|ip="},
		{HEAD "drop connection #10 from [192.0.2.7]:46482 on [10.0.0.1]:22 past MaxStartups",
	     "event=Preauth|ip=192.0.2.7|user="},
		{HEAD "drop connection #0 from [2001:db8::7]:48602 on [2001:db8::1]:22 penalty: failed authentication",
	     "event=Preauth|ip=2001:db8::7"},
		{HEAD "error: beginning MaxStartups throttling", "event=|ip="},
		{HEAD
	     "srclimit_penalise: 192.0.2.7/32: activating ipv4 penalty of 18 seconds for penalty: failed authentication",
	     "event=|ip="},
		/* Of the last failure before this it says that it is too many. */
		{HEAD "Disconnecting authenticating user root 192.0.2.7 port 5: Too many authentication failures [preauth]",
	     "event=|ip="},
		{HEAD "Disconnecting: Too many authentication failures for root [preauth]", "event=|ip="},
		{HEAD "Disconnecting invalid user a b 192.0.2.7 port 5: Packet corrupt [preauth]",
	     "event=Preauth|user=a b|ip=192.0.2.7"},
		{HEAD
	     "Disconnecting authenticating user root 192.0.2.7 port 5: bad service request x 198.51.100.77 port 1: y [preauth]",
	     "event=Preauth|user=root|ip=192.0.2.7"},
		{HEAD "Disconnecting 192.0.2.7 port 5: Packet corrupt [preauth]", "event=Preauth|ip=192.0.2.7"},
		{HEAD "Disconnecting user root 192.0.2.7 port 5: Packet corrupt", "event=|ip="},
		{HEAD "error: PAM: unknown user for illegal user bob from 192.0.2.7", "event=Failed|ip=192.0.2.7|method=pam"},
		{HEAD "Connection closed by UNKNOWN port 65535 [preauth]", "event=|ip="},
		{HEAD "Did not receive identification string from UNKNOWN", "event=|ip="},
		{HEAD "Failed password for root from UNKNOWN port 65535 ssh2", "event=Failed|user=root|ip="},
		{HEAD "Failed publickey for root from UNKNOWN port 65535 ssh2: RSA SHA256:abc", "event=Failed|user=root|ip="},
		{HEAD "Accepted password for root from UNKNOWN port 65535 ssh2", "event=Accepted|user=root|ip="},
		{HEAD "Invalid user a from UNKNOWN port 65535", "event=Invalid|user=a|ip="},
		{HEAD "Invalid user a from UNKNOWN", "event=Invalid|user=a|ip="},
		{HEAD "User a from UNKNOWN not allowed because not listed in AllowUsers", "event=Denied|user=a|ip="},
		{HEAD "error: maximum authentication attempts exceeded for root from UNKNOWN port 65535 ssh2 [preauth]",
	     "event=Maximum|user=root|ip="},
		{HEAD "error: PAM: Authentication failure for root from UNKNOWN", "event=Failed|user=root|ip="},
		{HEAD "pam_unix(sshd:auth): authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=UNKNOWN  user=a",
	     "event=PAM|user=a|ip="},
		{HEAD "Received disconnect from UNKNOWN port 65535:3: x [preauth]", "event=Failed|ip="},
		{HEAD "Disconnected from invalid user a UNKNOWN port 65535 [preauth]", "ip="},
		{HEAD "Disconnecting invalid user a UNKNOWN port 65535: Packet corrupt [preauth]", "ip="},
		{HEAD "Disconnecting invalid user a UNKNOWN port 65535: Change of username or service not allowed: "
	          "(a,ssh-connection) -> (b,ssh-connection) [preauth]",
	     "ip="},
		{HEAD "Bad protocol version identification 'x' from UNKNOWN port 65535", "event=Preauth|ip="},
		{HEAD "banner exchange: Connection from UNKNOWN port 65535: invalid format", "ip="},
		{HEAD "Unable to negotiate with UNKNOWN port 65535: no matching cipher found. Their offer: x", "ip="},
		{HEAD "ROOT LOGIN REFUSED FROM UNKNOWN port 65535", "ip="},
		{HEAD "refused connect from unknown (unknown)", "event=Denied|ip="},
		/* A place in a user's name does not serve instead. */
		{HEAD "Connection from invalid user a 198.51.100.77 port 1: UNKNOWN port 65535 timed out [preauth]", "ip="},
		{HEAD "Connection closed by invalid user a 198.51.100.77 port 1 UNKNOWN port 65535 [preauth]", "ip="},
		/* A user may have that name. */
		{HEAD "Failed password for UNKNOWN from 192.0.2.7 port 5 ssh2", "event=Failed|user=UNKNOWN|ip=192.0.2.7"},
		/* Heads of other systems. */
		{"Jun 14 15:16:01 h sshd(pam_unix)[99]: authentication failure; logname= uid=0 euid=0 tty=NODEVssh ruser= "
	     "rhost=192.0.2.7 ",
	     "event=PAM|user=|ip=192.0.2.7|pid=99|host=h"},
		{"Jun 14 15:16:01 h sshd(pam_unix)[99]: authentication failure; logname= uid=0 euid=0 tty=NODEVssh ruser= "
	     "rhost=192.0.2.7  user=root",
	     "event=PAM|user=root|ip=192.0.2.7"},
		{"Jun 14 15:16:01 h sshd[99]: (pam_unix) authentication failure; logname= uid=0 euid=0 tty=ssh ruser= "
	     "rhost=192.0.2.7  user=root",
	     "event=PAM|user=root|ip=192.0.2.7"},
		{"May 17 10:05:03 h <auth.info> sshd[7]: Invalid user a from 192.0.2.7", "ip=192.0.2.7|host=h|pid=7"},
		{"2024-05-17 10:05:03 h sshd[7]: Invalid user a from 192.0.2.7", "ip=192.0.2.7|host=h|pid=7"},
		{"Fri May 17 10:05:03 2024 authpriv.info sshd[7]: Invalid user a from 192.0.2.7", "ip=192.0.2.7|host=|pid=7"},
		{"May 17 10:05:03 h [sshd]: Invalid user a from 192.0.2.7", "ip=192.0.2.7|host=h"},
		{"May 17 10:05:03 h [sshd] Invalid user a from 192.0.2.7", "ip=192.0.2.7|host=h"},
		{"May 17 10:05:03 [sshd] Invalid user a from 192.0.2.7", "ip=192.0.2.7|host="},
		{NULL, NULL},
	};
	check("{\"type\": \"sshd\", \"year\": 2024}", "event method user ip host pid message", samples);

	struct fixture fixture;
	fixture_init(&fixture, "\"sshd\"", "ip event");
	assert_reason(&fixture, HEAD "message repeated 3 times: [ Failed password for root from 192.0.2.7 port 5 ssh2]",
	              FORMAT_OK);
	assert_int_equal(fixture.record.times, 3);
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_field(&fixture, "event", "Failed");
	assert_reason(&fixture,
	              HEAD
	              "PAM 2 more authentication failures; logname= uid=0 euid=0 tty=ssh ruser= rhost=192.0.2.7  user=a",
	              FORMAT_OK);
	assert_int_equal(fixture.record.times, 2);
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_field(&fixture, "event", "PAM");
	assert_reason(&fixture,
	              HEAD "message repeated 3 times: [ PAM 2 more authentication failures; logname= uid=0 euid=0 tty=ssh "
	                   "ruser= rhost=192.0.2.7 ]",
	              FORMAT_OK);
	assert_int_equal(fixture.record.times, 6);
	assert_reason(&fixture, HEAD "1 more authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=192.0.2.7 ",
	              FORMAT_OK);
	assert_int_equal(fixture.record.times, 1);
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_reason(&fixture, HEAD "PAM 2 more things", FORMAT_OK);
	assert_int_equal(fixture.record.times, 1);
	assert_field(&fixture, "event", NULL);
	assert_reason(
		&fixture,
		HEAD "Disconnecting invalid user x 192.0.2.7 port 5: bad service request y 198.51.100.77 port 1: z [preauth]",
		FORMAT_AMBIGUOUS);
	assert_reason(&fixture,
	              HEAD "Disconnecting invalid user x 198.51.100.77 port 1: Change of username or service not allowed: "
	                   "(x, 192.0.2.7 port 5: Packet corrupt [preauth]",
	              FORMAT_AMBIGUOUS);
	assert_reason(&fixture,
	              HEAD
	              "Disconnecting invalid user a 198.51.100.77 port 1: b UNKNOWN port 65535: Packet corrupt [preauth]",
	              FORMAT_AMBIGUOUS);
	assert_reason(&fixture, HEAD "Failed password for x from 192.0.2.7 port 20 ssh1: from 198.51.100.77",
	              FORMAT_AMBIGUOUS);
	assert_reason(&fixture,
	              HEAD "Unable to negotiate with invalid user x 192.0.2.7 port 5: no matching cipher found. Their "
	                   "offer: y 198.51.100.77 port 5: z",
	              FORMAT_AMBIGUOUS);
	assert_malformed(&fixture, "2024-05-17T10:05:03+00:00 h CRON[7]: Failed password for x from 1.1.1.1 port 1",
	                 "no match");
	fixture_deinit(&fixture);
#undef HEAD
}

static void apache_error(void **state)
{
	(void)state;
#define HEAD "[Fri May 17 10:05:03.133721 2024] [auth_basic:error] [pid 77:tid 88] "
	static const struct sample samples[] = {
		{HEAD "[client 192.0.2.7:4000] AH01618: user [client 198.51.100.77:1] not found: /admin",
	     "ip=192.0.2.7|module=auth_basic|level=error|pid=77|code=AH01618"},
		{HEAD "[remote 192.0.2.7:4001] AH01618: user bob not found", "ip=192.0.2.7"},
		{HEAD "[client 2001:db8::7:4000] x", "ip=2001:db8::7|code=|message=x"},
		{HEAD "(13)Permission denied: [client 192.0.2.7:4000] AH00035: access to / denied",
	     "ip=192.0.2.7|code=AH00035"},
		{HEAD "mod_ssl.c(1234): (70007)The timeout specified has expired: [client 192.0.2.7:4000] x", "ip=192.0.2.7"},
		{HEAD "(5)Input/output error: [client 192.0.2.7:4000] AH00132: file permissions deny server access: /srv/x",
	     "ip=192.0.2.7|code=AH00132"},
		{HEAD "(OS 64)The specified network name is no longer available.  : [client 192.0.2.7:4000] AH1: x",
	     "ip=192.0.2.7"},
		/* Behind httpd's own words may be a stranger's. */
		{HEAD "(5)Input/output error: AH00132: /srv/x: [client 198.51.100.77:1] y", "ip="},
		{HEAD "mod_x.c(12): AH00132: (5)x: [client 198.51.100.77:1] y", "ip="},
		{HEAD "mod_x.c(12): (5)x: y(6): [client 198.51.100.77:1] y", "ip="},
		{HEAD "/srv/x(12): (5)x: [client 198.51.100.77:1] y", "ip="},
		{HEAD "x (5)y: [client 198.51.100.77:1] y", "ip="},
		{HEAD "AH00094: Command line: '/usr/sbin/apache2'", "ip=|code=AH00094"},
		{HEAD "said of x: [client 198.51.100.77:1] y", "ip="},
		{HEAD "[client [2001:db8::7]:4000] AH1: x", "ip=2001:db8::7|message=AH1: x"},
		{"[Fri May 17 10:05:03 2024] [error] [client 192.0.2.7] File does not exist: /srv/x",
	     "ip=192.0.2.7|module=|level=error"},
		{"[Fri May 17 10:05:03 2024] [error] [client 2001:db8::1234] x", "ip=2001:db8::1234"},
		{NULL, NULL},
	};
	check("\"apache_error\"", "ip module level pid code message", samples);
#undef HEAD
}

static void proxies(void **state)
{
	(void)state;
	static const struct sample ingress[] = {
		{"192.0.2.7 - - [17/May/2024:10:05:03 +0000] \"GET /a?b HTTP/1.1\" 200 12 \"-\" \"curl/8\" 88 0.002 "
	     "[default-web-80] [] 10.0.0.9:80 12 0.002 200 6d3b",
	     "ip=192.0.2.7|user=|method=GET|path=/a|status=200|bytes=12|referer=|agent=curl/8|request_length=88|upstream=default-web-80|"
	     "request_id=6d3b"},
		{"192.0.2.7 - [192.0.2.7] - a b [17/May/2024:10:05:03 +0000] \"\" 400 0 \"-\" \"-\" 0 0.1 [] [] - - - - 6d",
	     "ip=192.0.2.7|user=a b|method=|status=400|upstream="},
		{"192.0.2.7 - - [17/May/2024:10:05:03 +0000] \"POST /login?aaa",
	     "ip=192.0.2.7|method=POST|path=/login|status="},
		{NULL, NULL},
	};
	check("\"ingress_nginx\"", "ip user method path status bytes referer agent request_length upstream request_id",
	      ingress);
	static const struct sample alb[] = {
		{"https 2024-05-17T10:05:03.186641Z app/my-lb/50dc 192.0.2.7:2817 10.0.0.1:80 0.086 0.048 0.037 200 201 0 57 \"GET "
	     "https://www.example.com:443/a?b HTTP/1.1\" \"curl/7.46.0\" ECDHE TLSv1.2 arn:x \"Root=1\"",
	     "type=https|elb=app/my-lb/50dc|ip=192.0.2.7|backend=10.0.0.1:80|status=200|backend_status=201|received=0|bytes=57|method=GET|"
	     "host=www.example.com|path=/a|target=https://www.example.com:443/a?b|agent=curl/7.46.0"},
		{"2024-05-17T10:05:03.186641Z my-lb 2001:db8::7:2817 - -1 -1 -1 400 - 0 0 \"- http://a:80- -\" \"-\" - -",
	     "type=|ip=2001:db8::7|backend=|status=400|backend_status=|agent=|method="},
		{"tls 2.0 2024-05-17T10:05:03 net/my-lb/50dc g3d4 192.0.2.7:2817 10.0.0.1:443 5 2 98 246 - arn:x - ECDHE tlsv12 - "
	     "www.example.com h2 h2 \"h2\",\"http/1.1\" 2024-05-17T10:05:00",
	     "type=tls|elb=net/my-lb/50dc|ip=192.0.2.7|backend=10.0.0.1:443|received=98|bytes=246|status=|method="},
		{"h2 2024-05-17T10:05:03.186641Z app/my-lb/50dc 203.0.113.9:44244 10.0.0.4:443 0.000 0.016 0.000 200 200 42 517 \"GET "
	     "https://shop.example.net:443/cart?x=%22 HTTP/2.0\" \"curl/8.5.0\" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 "
	     "arn:aws:elasticloadbalancing:eu-central-1:111122223333:targetgroup/web/73e2d6bc24d8a067 "
	     "\"Root=1-58337327-72bd00b0343d75b906739c42\" \"shop.example.net\" "
	     "\"arn:aws:acm:eu-central-1:111122223333:certificate/12345678-1234\" 1 2024-05-17T10:05:02.990000Z \"waf,forward\" "
	     "\"-\" \"-\" \"10.0.0.4:443\" \"200\" \"-\" \"-\" TID_a1b2c3",
	     "type=h2|elb=app/my-lb/50dc|ip=203.0.113.9|backend=10.0.0.4:443|status=200|backend_status=200|received=42|bytes=517|"
	     "method=GET|host=shop.example.net|path=/cart|agent=curl/8.5.0"},
		{"wss 2024-05-17T10:05:03.364000Z app/my-lb/50dc 203.0.113.9:44244 10.0.0.5:8011 0.001 0.003 0.000 101 101 218 786 \"GET "
	     "https://10.0.0.30:443/chat HTTP/1.1\" \"-\" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:x \"Root=1-58337364\" \"-\" "
	     "\"-\" 1 2024-05-17T10:05:02.000000Z \"forward\" \"-\" \"-\" \"10.0.0.5:8011\" \"101\" \"-\" \"-\"",
	     "type=wss|ip=203.0.113.9|status=101|received=218|bytes=786|method=GET|host=10.0.0.30|path=/chat|agent="},
		/* A function of Lambda behind it, which failed. */
		{"http 2024-05-17T10:05:03.364000Z app/my-lb/50dc 203.0.113.9:44244 - 0.000 0.001 0.000 502 - 34 366 \"POST "
	     "http://www.example.com:80/a HTTP/1.1\" \"curl/7.46.0\" - - arn:aws:x \"Root=1\" \"-\" \"-\" 0 "
	     "2024-05-17T10:05:03.363000Z \"forward\" \"-\" \"LambdaInvalidResponse\" \"-\" \"-\" \"-\" \"-\"",
	     "type=http|ip=203.0.113.9|backend=|status=502|backend_status=|received=34|bytes=366|method=POST|path=/a"},
		{NULL, NULL},
	};
	check("\"alb\"", "ip type elb backend status backend_status received bytes method host path target agent", alb);
	static const struct sample squid[] = {
		{"1715940303.133    310 192.0.2.7 TCP_MISS/200 4542 GET http://example.com:80/a?b alice HIER_DIRECT/198.51.100.1 text/html",
	     "duration=310|ip=192.0.2.7|action=TCP_MISS|status=200|bytes=4542|method=GET|host=example.com|path=/a|user=alice|"
	     "hierarchy=HIER_DIRECT|peer=198.51.100.1|type=text/html"},
		{"1715940303.133 240000 2001:db8::7 TCP_TUNNEL/200 9 CONNECT example.com:443 - HIER_DIRECT/2001:db8::1 -",
	     "ip=2001:db8::7|host=example.com|path=example.com:443|user=|type="},
		{"1715940303.133      0 192.0.2.7 NONE_NONE/400 3800 - /bad - HIER_NONE/- text/html",
	     "method=|path=/bad|peer="},
		{NULL, NULL},
	};
	check("\"squid\"", "ip duration action status bytes method host path user hierarchy peer type", squid);
	static const struct sample blanks[] = {
		{"  1715940303.133    310 192.0.2.7 TCP_MISS/200 4542 GET http://example.com/  ", "ip=192.0.2.7|method=GET"},
		{NULL, NULL},
	};
	check(
		"{\"type\": \"delimited\", \"separator\": \"blanks\", \"header\": false, \"time\": \"1\", \"fields\": {\"ip\": \"3\", "
		"\"method\": \"6\"}}",
		"ip method", blanks);
}

static void mail(void **state)
{
	(void)state;
#define HEAD "2024-05-17T10:05:03+00:00 mx postfix/smtpd[12]: "
	static const struct sample postfix[] = {
		{HEAD "connect from unknown[192.0.2.7]",
	     "event=connect|client=unknown|ip=192.0.2.7|service=smtpd|host=mx|pid=12"},
		{HEAD "disconnect from a.example[2001:db8::7] ehlo=1 auth=0/1 quit=1 commands=2/3",
	     "event=disconnect|ip=2001:db8::7"},
		{HEAD
	     "NOQUEUE: reject: RCPT from unknown[192.0.2.7]: 554 5.7.1 <a@b>: Relay access denied; from=<x> helo=<y[198.51.100.77]>",
	     "event=reject|queue=NOQUEUE|ip=192.0.2.7"},
		{HEAD "NOQUEUE: reject: CONNECT from unknown[192.0.2.7]: 554 5.7.1", "event=reject|ip=192.0.2.7"},
		{HEAD "warning: unknown[192.0.2.7]: SASL LOGIN authentication failed: UGFzc3dvcmQ6, sasl_username=bob",
	     "event=auth_failed|ip=192.0.2.7|user=bob"},
		{HEAD "warning: hostname a.example does not resolve to address 192.0.2.7", "event=warning|ip=192.0.2.7"},
		{HEAD "lost connection after AUTH from unknown[192.0.2.7]", "event=lost|ip=192.0.2.7"},
		{HEAD "lost connection after DATA (0 bytes) from unknown[192.0.2.7]", "event=lost|ip=192.0.2.7"},
		{HEAD "too many errors after RCPT from unknown[192.0.2.7]", "event=errors|ip=192.0.2.7"},
		{HEAD "SSL_accept error from unknown[192.0.2.7]: -1", "event=tls_error|ip=192.0.2.7"},
		{HEAD "4ABC: client=unknown[192.0.2.7], sasl_method=PLAIN, sasl_username=bob",
	     "event=client|queue=4ABC|user=bob"},
		{HEAD "warning: non-SMTP command from unknown[192.0.2.7]: GET / HTTP/1.1", "event=warning|ip=192.0.2.7"},
		{HEAD "warning: Illegal address syntax from unknown[192.0.2.7] in MAIL command: <x[9.9.9.9]>",
	     "event=warning|ip=192.0.2.7"},
		/* What a mail's sender writes is nobody's address. */
		{"2024-05-17T10:05:03+00:00 mx postfix/cleanup[12]: 4A: message-id=<x: RCPT from unknown[192.0.2.66]>",
	     "event=|ip="},
		{"2024-05-17T10:05:03+00:00 mx postfix/cleanup[12]: 4A: reject: body from unknown[192.0.2.66]: x from y[192.0.2.7];",
	     "event=|ip="},
		{"2024-05-17T10:05:03+00:00 mx postfix/cleanup[12]: 4A: reject: header Subject: RCPT from x[192.0.2.66] from y[192.0.2.7];",
	     "event=|ip="},
		{"2024-05-17T10:05:03+00:00 mx postfix/cleanup[12]: 4A: milter-reject: END-OF-MESSAGE from x[192.0.2.7]: 5.7.1",
	     "event=milter-reject|ip=192.0.2.7"},
		{"2024-05-17T10:05:03+00:00 mx postfix/postscreen[12]: PREGREET 14 after 0.1 from [192.0.2.7]:1234: EHLO x",
	     "event=pregreet|ip=192.0.2.7|client="},
#define SCREEN "2024-05-17T10:05:03+00:00 mx postfix/postscreen[12]: "
		{SCREEN "DNSBL rank 4 for [192.0.2.7]:4000", "event=dnsbl|ip=192.0.2.7|client="},
		{SCREEN "PASS NEW [192.0.2.7]:4000", "event=pass|ip=192.0.2.7"},
		{SCREEN "PASS OLD [2001:db8::7]:4000", "event=pass|ip=2001:db8::7"},
		{SCREEN "DENYLISTED [192.0.2.7]:4000", "event=denylisted|ip=192.0.2.7"},
		{SCREEN "BLACKLISTED [192.0.2.7]:4000", "event=denylisted|ip=192.0.2.7"},
		{SCREEN "ALLOWLISTED [192.0.2.7]:4000", "event=allowlisted|ip=192.0.2.7"},
		{SCREEN "WHITELIST VETO [192.0.2.7]:4000", "event=veto|ip=192.0.2.7"},
		{SCREEN "DISCONNECT [192.0.2.7]:4000", "event=disconnect|ip=192.0.2.7"},
		{SCREEN "CONNECT from [192.0.2.7]:4000 to [10.0.0.1]:25", "event=connect|ip=192.0.2.7"},
		{SCREEN "HANGUP after 0.1 from [192.0.2.7]:4000 in tests before SMTP handshake", "event=hangup|ip=192.0.2.7"},
		{SCREEN "NON-SMTP COMMAND from [192.0.2.7]:4000 after CONNECT: GET / from [198.51.100.77]:1",
	     "event=no_smtp|ip=192.0.2.7"},
		{SCREEN "BARE NEWLINE from [192.0.2.7]:4000 after HELO", "event=no_smtp|ip=192.0.2.7"},
#undef SCREEN
		{HEAD "warning: hostname a.example does not resolve to address 2001:db8::7: Name or service not known",
	     "event=warning|ip=2001:db8::7"},
		{HEAD "warning: 192.0.2.7: hostname a.example verification failed: Name or service not known",
	     "event=warning|ip=192.0.2.7"},
		{HEAD "warning: 2001:db8::7: address not listed for hostname a.example", "event=warning|ip=2001:db8::7"},
		{HEAD "warning: valid: hostname a.example verification failed", "event=|ip="},
		{"2024-05-17T10:05:03+00:00 mx postfix/dnsblog[12]: addr 192.0.2.7 listed by domain zen.example as 127.0.0.4",
	     "event=listed|ip=192.0.2.7|client=|service=dnsblog"},
		/* Postfix does not know the address. */
		{HEAD "connect from unknown[unknown]", "event=|ip=|client="},
		{HEAD "warning: unknown[unknown]: SASL LOGIN authentication failed: x", "event=|ip=|client="},
		{HEAD "addr x listed by domain zen.example as 127.0.0.4", "event=|ip="},
		{HEAD "bare <LF> received after DATA from unknown[192.0.2.7]", "event=no_smtp|ip=192.0.2.7"},
		{"2024-05-17T10:05:03+00:00 mx postfix/submission/smtpd[12]: connect from unknown[192.0.2.7]",
	     "service=submission/smtpd"},
		{NULL, NULL},
	};
	check("\"postfix\"", "event client ip queue user service host pid", postfix);
#undef HEAD
#define HEAD "2024-05-17T10:05:03+00:00 mx dovecot: "
	static const struct sample dovecot[] = {
		{HEAD
	     "imap-login: Disconnected (auth failed, 3 attempts in 7 secs): user=<a, rip=198.51.100.77>, method=PLAIN, "
	     "rip=192.0.2.7, lip=192.0.2.1, TLS, session=<abc>",
	     "service=imap-login|event=auth_failed|user=a, rip=198.51.100.77|method=PLAIN|ip=192.0.2.7"},
		{HEAD "pop3-login: Login: user=<bob>, method=PLAIN, rip=2001:db8::7, lip=::1, mpid=4, TLS, session=<a>",
	     "event=login|user=bob|ip=2001:db8::7"},
		{HEAD "imap-login: Disconnected (no auth attempts in 1 secs): user=<>, rip=192.0.2.7, lip=192.0.2.1",
	     "event=disconnected|user=|ip=192.0.2.7"},
		{HEAD
	     "imap-login: Login aborted: Connection closed (auth failed, 1 attempts in 2 secs): user=<x>, method=PLAIN, rip=192.0.2.7, lip=::1",
	     "event=auth_failed|user=x"},
		{HEAD "auth: passwd-file(bob,192.0.2.7,<abc>): Password mismatch",
	     "service=auth|event=auth|user=bob|ip=192.0.2.7"},
		{HEAD "auth: login(?,192.0.2.7,<s>): Username character disallowed by auth_username_chars: 0x2c "
	          "(username: x,198.51.100.1): y)",
	     "event=auth|ip=192.0.2.7"},
		{HEAD "auth-worker(12): sql(bob,192.0.2.7): unknown user", "event=auth|ip=192.0.2.7"},
		{HEAD
	     "auth-worker(80180): Info: conn unix:auth-worker (uid=143): auth-worker<13>: sql(bob,192.0.2.7): unknown user",
	     "user=bob|ip=192.0.2.7"},
		{"2024-05-17 10:05:03 imap-login: Info: Disconnected (auth failed, 1 attempts): user=<x>, method=PLAIN, rip=192.0.2.7, lip=::1",
	     "event=auth_failed|ip=192.0.2.7"},
		{HEAD "imap-login: Disconnected (auth failed, 1 attempts): user=<x>, method=PLAIN, rip=unknown, lip=::1",
	     "ip="},
		{HEAD "auth: pam_unix(dovecot:auth): authentication failure; logname= uid=0 euid=0 tty=dovecot ruser=bob "
	          "rhost=UNKNOWN",
	     "ip="},
		{HEAD "master: Dovecot v2.3 starting up", "event=|ip=|service=master"},
		{HEAD "auth(a@b,192.0.2.7,sasl:login)<CvN>: sql: Password mismatch",
	     "service=auth|event=auth|user=a@b|ip=192.0.2.7"},
		{HEAD "auth(x,198.51.100.77,sasl:plain)<a>: y,2001:db8::7,sasl:plain)<b+/=>: sql: unknown user",
	     "event=auth|user=x,198.51.100.77,sasl:plain)<a>: y|ip=2001:db8::7"},
		{HEAD "auth(12): a b,192.0.2.7,sasl:plain)<b>: sql: unknown user", "event=auth|ip=192.0.2.7"},
		{HEAD "auth(default): pam(bob,192.0.2.7): unknown user", "event=auth|user=bob|ip=192.0.2.7"},
		{"Aug 30 00:10:57 auth(info@example.com,192.0.2.7,sasl:login)<CvN+E9>: Info: sql: Password mismatch (given "
	     "password: Xx1)",
	     "service=auth|event=auth|user=info@example.com|ip=192.0.2.7"},
		{"Aug 30 00:10:57 auth(x dovecot: auth: pam(y,198.51.100.77): z,192.0.2.7,sasl:login)<a>: Info: sql: unknown user",
	     "event=auth|ip=192.0.2.7"},
		{HEAD "auth: ldap(dog,192.0.2.7,): invalid credentials", "event=auth|user=dog|ip=192.0.2.7"},
		{HEAD "auth: sql(dog,192.0.2.7,master,<abc>): Password mismatch", "event=auth|user=dog|ip=192.0.2.7"},
		{"Apr 19 05:22:20 h auth: pam_unix(dovecot:auth): authentication failure; logname= uid=0 euid=0 tty=dovecot "
	     "ruser=bob rhost=192.0.2.7",
	     "service=auth|event=auth|user=bob|ip=192.0.2.7"},
		{"Apr 19 05:22:20 h dovecot-auth: pam_unix(dovecot:auth): authentication failure; logname= uid=0 euid=0 "
	     "tty=dovecot ruser=a b rhost=192.0.2.7  user=a b",
	     "event=auth|user=a b|ip=192.0.2.7"},
		{HEAD "auth-worker(12): pam_unix(dovecot:auth): authentication failure; logname= uid=0 euid=0 tty=dovecot "
	          "ruser=bob rhost=192.0.2.7 ",
	     "event=auth|user=bob|ip=192.0.2.7"},
		/* The log of 1.x, where the level stands first. */
		{"Jun 23 15:04:05 Info: imap-login: Login: user=<x Info: y>, method=PLAIN, rip=192.0.2.7, lip=192.0.2.1",
	     "service=imap-login|event=login|user=x Info: y|ip=192.0.2.7"},
		{"Jan 07 14:46:28 Warn: auth(default): pam(bob,192.0.2.7): unknown user", "event=auth|user=bob|ip=192.0.2.7"},
		/* What it says for who looks for a fault is no attempt. */
		{"Dec 16 15:19:23 auth(bob,192.0.2.7,sasl:plain)<a>: Debug: passwd-file: lookup: user=bob", "event=|ip="},
		{HEAD "auth(x,192.0.2.7): Debug: y,192.0.2.7,sasl:plain)<a>: sql: Password mismatch",
	     "event=auth|ip=192.0.2.7"},
		{HEAD "auth(bob,192.0.2.7,sasl:plain)<a>: sql: Password mismatch (given password: x,192.0.2.7): Debug: )",
	     "event=auth|ip=192.0.2.7"},
		{"Apr 19 05:22:20 h auth: pam_unix(other:auth): authentication failure; ruser= rhost=192.0.2.7", "event=|ip="},
		{NULL, NULL},
	};
	check("{\"type\": \"dovecot\", \"year\": 2024}", "event user method ip service", dovecot);
#undef HEAD
}

/* A line that stands for so many, with these fields. */
static void check_repeated(struct fixture *fixture, const char *line, uint32_t times, const char *fields)
{
	assert_reason(fixture, line, FORMAT_OK);
	assert_int_equal(fixture->record.times, times);
	check_fields(fixture, &(struct sample){line, fields});
}

static void repeated_messages(void **state)
{
	(void)state;
	struct fixture fixture;
#define REPEATED "message repeated 9 times: [ "
	fixture_init(&fixture, "{\"type\": \"postfix\", \"year\": 2026}", "event ip user message service");
	check_repeated(&fixture,
	               "Nov 29 09:01:00 h postfix/smtpd[1]: " REPEATED
	               "warning: unknown[192.0.2.7]: SASL LOGIN authentication failed: x]",
	               9,
	               "event=auth_failed|ip=192.0.2.7|service=smtpd|message=warning: unknown[192.0.2.7]: SASL LOGIN "
	               "authentication failed: x");
	/* What stands within a message is somebody's words, and so is what has no end. */
	check_repeated(&fixture,
	               "Nov 29 09:01:00 h postfix/smtpd[1]: warning: unknown[192.0.2.7]: SASL LOGIN authentication failed: "
	               "x, sasl_username=" REPEATED "y]",
	               1, "event=auth_failed|ip=192.0.2.7|user=" REPEATED "y]");
	check_repeated(&fixture, "Nov 29 09:01:00 h postfix/smtpd[1]: " REPEATED "connect from unknown[192.0.2.7] x", 1,
	               "event=|ip=");
	check_repeated(&fixture,
	               "Nov 29 09:01:00 h postfix/smtpd[1]: message repeated x times: [ connect from a[192.0.2.7]]", 1,
	               "event=|ip=");
	fixture_deinit(&fixture);

	fixture_init(&fixture, "{\"type\": \"dovecot\", \"year\": 2026}", "event ip user service");
	check_repeated(&fixture,
	               "Nov 29 09:01:00 h dovecot: message repeated 3 times: [ imap-login: Disconnected (auth failed, 1 "
	               "attempts in 2 secs): user=<bob>, method=PLAIN, rip=192.0.2.7, lip=192.0.2.1, session=<x>]",
	               3, "event=auth_failed|user=bob|ip=192.0.2.7|service=imap-login");
	/* A connection's last line tells of all its attempts. */
	static const struct {
		const char *words;
		uint32_t times;
	} attempts[] = {{"Disconnected: Connection closed (auth failed, 9 attempts in 107 secs)", 9},
	                {"Disconnected: Connection closed: read(size=99) failed: x (auth failed, 4 attempts in 7 secs)", 4},
	                {"Login aborted: Connection closed (auth failed, 3 attempts in 2 secs) (auth_failed)", 3},
	                {"Aborted login (auth failed, 5 attempts)", 5},
	                {"Disconnected (auth failed, 1 attempts in 2 secs)", 1},
	                {"Disconnected (auth failed, 0 attempts in 2 secs)", 1},
	                {"Disconnected (auth failed, 99999999 attempts in 2 secs)", WEIR_RECORD_TIMES_MAX},
	                {"Disconnected: Too many invalid commands (auth failed)", 1},
	                {"proxy(x (auth failed, 99 attempts in 2 secs)): Login failed", 1},
	                {"ID sent: name=Disconnected (auth failed, 99 attempts in 2 secs)", 1}};
	for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
		char line[512];
		snprintf(
			line, sizeof line,
			"Nov 29 09:01:00 h dovecot: imap-login: %s: user=<x (auth failed, 999 attempts in 1 secs)>, method=PLAIN, "
			"rip=192.0.2.7, lip=::1",
			attempts[i].words);
		check_repeated(&fixture, line, attempts[i].times, "event=auth_failed|ip=192.0.2.7|service=imap-login");
	}
	check_repeated(
		&fixture,
		"Nov 29 09:01:00 h dovecot: imap-login: Disconnected (no auth attempts in 1 secs): user=<x (auth failed, 9 "
		"attempts in 1 secs)>, rip=192.0.2.7, lip=::1",
		1, "event=disconnected|ip=192.0.2.7");
	check_repeated(&fixture,
	               "Nov 29 09:01:00 h dovecot: message repeated 3 times: [ imap-login: Disconnected (auth failed, 2 "
	               "attempts in 2 secs): user=<bob>, method=PLAIN, rip=192.0.2.7, lip=192.0.2.1, session=<x>]",
	               6, "event=auth_failed|user=bob|ip=192.0.2.7|service=imap-login");
	check_repeated(&fixture,
	               "Nov 29 09:01:00 h auth: " REPEATED "pam_unix(dovecot:auth): authentication failure; logname= uid=0 "
	               "euid=0 tty=dovecot ruser=bob rhost=192.0.2.7 ]",
	               9, "event=auth|user=bob|ip=192.0.2.7|service=auth");
	fixture_deinit(&fixture);

	fixture_init(&fixture, "\"haproxy\"", "event ip");
	check_repeated(&fixture,
	               "2024-05-17T10:05:03Z lb haproxy[77]: " REPEATED
	               "Connect from 192.0.2.7:4002 to 10.0.0.1:5000 (main/HTTP)]",
	               9, "event=Connect|ip=192.0.2.7");
	fixture_deinit(&fixture);

	/* One that rsyslog cut may end in a stranger's words. */
	char line[1024];
	snprintf(
		line, sizeof line,
		"2024-05-17T10:05:03Z h sshd[7]: message repeated 2 times: [ Failed %0*d for x from 198.51.100.77 port 1 ssh2]",
		800 - (int)strlen(" Failed  for x from 198.51.100.77 port 1 ssh2"), 0);
	fixture_init(&fixture, "\"sshd\"", "ip");
	assert_reason(&fixture, line, FORMAT_LINE_TOO_LONG);
	fixture_deinit(&fixture);
#undef REPEATED
}

static void presets(void **state)
{
	(void)state;
	static const struct sample caddy[] = {
		{"{\"level\":\"info\",\"ts\":1715940303.133,\"request\":{\"remote_ip\":\"10.0.0.1\",\"client_ip\":\"192.0.2.7\",\"method\":\"GET\","
	     "\"host\":\"example.com:8443\",\"uri\":\"/a?b\",\"headers\":{\"User-Agent\":[\"curl/8\"]}},\"user_id\":\"\",\"size\":9,\"status\":200}",
	     "ip=192.0.2.7|method=GET|host=example.com|path=/a|agent=curl/8|user=|bytes=9|status=200"},
		{"{\"ts\":1715940303133,\"request\":{\"remote_addr\":\"192.0.2.7:4000\",\"uri\":\"/\"}}",
	     "ip=192.0.2.7|path=/|target=/"},
		/* A '#' is served as a part of the path, and a weir that is asked hears of it so. */
		{"{\"ts\":1715940303,\"request\":{\"client_ip\":\"192.0.2.7\",\"uri\":\"/a#b%23c#\"}}",
	     "ip=192.0.2.7|path=/a#b#c#|target=/a%23b%23c%23"},
		{"{\"ts\":1715940303,\"request\":{\"client_ip\":\"192.0.2.7\",\"uri\":\"/a#b?c#d\"}}",
	     "ip=192.0.2.7|path=/a#b|target=/a%23b?c#d"},
		{NULL, NULL},
	};
	check("\"caddy\"", "ip method host path target agent user bytes status", caddy);
	check("{\"type\":\"caddy\",\"fields\":{\"path\":\"/request/uri\"}}", "ip path",
	      (const struct sample[]){
			  {"{\"ts\":1715940303,\"request\":{\"client_ip\":\"192.0.2.7\",\"uri\":\"/a#b\"}}", "path=/a"},
			  {NULL, NULL}});
	/* A proxy that adds a line of its own makes two, of which the client wrote the first. */
#define FORWARDED(lines) \
	"{\"ts\":1715940303.1,\"request\":{\"remote_ip\":\"10.0.0.1\",\"headers\":{\"X-Forwarded-For\":" lines "}}}"
	static const struct sample forwarded[] = {
		{FORWARDED("[\"192.0.2.66\",\"192.0.2.7\"]"), "ip=192.0.2.7"},
		{FORWARDED("[\"192.0.2.66, 192.0.2.7\"]"), "ip=192.0.2.7"},
		{NULL, NULL},
	};
	check("{\"type\": \"caddy\", \"client_ip\": {\"header\": \"xff\", \"trusted\": [\"10.0.0.0/8\"]}}", "ip",
	      forwarded);
	check("\"caddy\"", "ip xff",
	      (const struct sample[]){{FORWARDED("[\"192.0.2.7\"]"), "ip=10.0.0.1|xff=192.0.2.7"}, {NULL, NULL}});
	static const struct sample traefik[] = {
		{"{\"ClientAddr\":\"192.0.2.7:5\",\"ClientHost\":\"192.0.2.7\",\"ClientUsername\":\"-\",\"DownstreamStatus\":0,\"OriginStatus\":502,"
	     "\"RequestMethod\":\"GET\",\"RequestPath\":\"/a?b\",\"RequestHost\":\"example.com\",\"StartUTC\":\"2024-05-17T10:05:03.133Z\"}",
	     "ip=192.0.2.7|user=|status=0|method=GET|path=/a|host=example.com"},
		{"{\"ClientAddr\":\"[2001:db8::7]:5\",\"time\":\"2024-05-17T10:05:03Z\"}", "ip=2001:db8::7"},
		{NULL, NULL},
	};
	check("\"traefik\"", "ip user status method path host", traefik);
	static const struct sample envoy[] = {
		{"{\"start_time\":\"2024-05-17T10:05:03.133Z\",\"method\":\"GET\",\"path\":\"/a?b\",\"response_code\":200,\"bytes_sent\":12,"
	     "\"downstream_remote_address\":\"192.0.2.7:40\",\"authority\":\"example.com\",\"user_agent\":\"curl/8\"}",
	     "ip=192.0.2.7|method=GET|path=/a|status=200|bytes=12|host=example.com|agent=curl/8"},
		{NULL, NULL},
	};
	check("\"envoy\"", "ip method path status bytes host agent", envoy);
	static const struct sample cloudflare[] = {
		{"{\"ClientIP\":\"192.0.2.7\",\"ClientRequestMethod\":\"GET\",\"ClientRequestURI\":\"/a?b\",\"ClientCountry\":\"de\","
	     "\"EdgeResponseStatus\":200,\"EdgeStartTimestamp\":1715940303133721000}",
	     "ip=192.0.2.7|method=GET|path=/a|status=200|country=de"},
		{"{\"ClientIP\":\"2001:db8::7\",\"EdgeStartTimestamp\":\"2024-05-17T10:05:03Z\"}", "ip=2001:db8::7"},
		{NULL, NULL},
	};
	check("{\"type\": \"cloudflare\", \"fields\": {\"country\": \"ClientCountry\"}}", "ip method path status country",
	      cloudflare);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nginx_error),  cmocka_unit_test(haproxy),           cmocka_unit_test(sshd),
		cmocka_unit_test(apache_error), cmocka_unit_test(proxies),           cmocka_unit_test(mail),
		cmocka_unit_test(presets),      cmocka_unit_test(repeated_messages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
