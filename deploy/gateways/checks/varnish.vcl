# Varnish (7.1 or newer) asks weir before it looks into its cache: a request goes to weir, and begins again when it passes.
#
# A block is passed on whole: 429, Retry-After, RateLimit. If weir is away or cannot judge, the request passes, after 1.7 s
# at most; take "|| resp.status >= 500" out to have it refused.
#
# A body waits in memory meanwhile: one of more than 10 MB is refused.
#
# A client's request is one line of varnishncsa's log, with its own method and target, which weir reads as "combined":
#
#   varnishncsa -F '%{VCL_Log:host}x %h %l %u %t "%m %U%q %H" %s %b "%{Referer}i" "%{User-agent}i"'
#
# By itself varnishncsa puts http:// and the host before the target: a host with a blank would then cut the target short.
vcl 4.1;

import std;

backend site {
	.host = "127.0.0.1";
	.port = "8000";
}

backend weir {
	.host = "127.0.0.1";
	.port = "8082";
	.connect_timeout = 0.2s;
	.first_byte_timeout = 1.5s;
	.between_bytes_timeout = 0.2s;
}

sub vcl_recv {
	if (req.http.Host ~ "[[:space:]]") {
		return (synth(400)); # it is no host, and would look like several columns of the log
	}
	std.log("host:" + req.http.Host);
	if (req.restarts == 0 && req.esi_level == 0) {
		if (req.method !~ "^(GET|HEAD|PUT|POST|TRACE|OPTIONS|DELETE|PATCH)$") {
			return (synth(501)); # Varnish would join the client and the site, and nothing more would be asked
		}
		if (!std.cache_req_body(10MB)) {
			return (synth(413));
		}
		unset req.http.X-Forwarded-Method;
		unset req.http.X-Forwarded-Uri;
		unset req.http.X-Forwarded-Host;
		# The request itself stays as it is: varnishncsa logs what stands in it when it begins again.
		set req.http.X-Weir-Asks = "yes";
		set req.backend_hint = weir;
		return (pass);
	}
	if (req.http.X-Weir-Asks) {
		unset req.http.X-Weir-Asks;
		set req.backend_hint = site;
	}
}

sub vcl_backend_fetch {
	if (bereq.http.X-Weir-Asks) {
		set bereq.http.X-Forwarded-Method = bereq.method;
		set bereq.http.X-Forwarded-Uri = bereq.url;
		set bereq.http.X-Forwarded-Host = bereq.http.Host;
		set bereq.method = "GET";
		set bereq.url = "/v1/forwarded";
		# Neither a body nor what weir has no use for.
		unset bereq.body;
		unset bereq.http.Content-Length;
		unset bereq.http.Transfer-Encoding;
		unset bereq.http.Cookie;
		unset bereq.http.Authorization;
		unset bereq.http.X-Forwarded-User;
	}
	unset bereq.http.X-Weir-Limit;
	unset bereq.http.X-Weir-Policy;
}

sub vcl_deliver {
	if (req.restarts == 0 && req.esi_level == 0) {
		if (resp.status == 200 || resp.status >= 500) {
			unset req.http.X-Weir-Limit;
			if (resp.http.RateLimit) {
				set req.http.X-Weir-Limit = resp.http.RateLimit;
				set req.http.X-Weir-Policy = resp.http.RateLimit-Policy;
			}
			return (restart);
		}
		return (deliver);
	}
	if (req.http.X-Weir-Limit) {
		set resp.http.RateLimit = req.http.X-Weir-Limit;
		set resp.http.RateLimit-Policy = req.http.X-Weir-Policy;
	}
}
