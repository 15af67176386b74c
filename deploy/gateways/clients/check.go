// SPDX-License-Identifier: Apache-2.0

// A page that asks weir before it serves: go-redis. A check is not sent twice, as it would count twice; who is not answered
// within 100 ms, or with an error, serves. A caller that hangs up does not end its check: it would not be counted.
package main

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

var weir = redis.NewClient(&redis.Options{Addr: "127.0.0.1:6390", MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true})

// Whether this key is limited, and for how many seconds; 0: no time helps.
func ask(asked context.Context, key string) (limited bool, wait int64) {
	limit, cancel := context.WithTimeout(context.WithoutCancel(asked), 100*time.Millisecond)
	defer cancel()
	said, err := weir.Do(limit, "WEIR.CHECK", key, "site").Int64Slice()
	if err != nil || said[0] == 0 {
		return false, 0
	}
	if said[3] < 0 {
		return true, 0
	}
	return true, max(1, (said[3]+999)/1000)
}

func main() {
	err := http.ListenAndServe("127.0.0.1:8000", http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		host, _, _ := net.SplitHostPort(request.RemoteAddr)
		limited, wait := ask(request.Context(), host)
		if wait > 0 {
			response.Header().Set("Retry-After", strconv.FormatInt(wait, 10))
		}
		if limited {
			response.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	panic(err)
}
