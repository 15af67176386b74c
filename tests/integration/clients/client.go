// SPDX-License-Identifier: Apache-2.0

// go-redis asks: client plain|cluster PORT KEY [USER PASSWORD], see support/real_clients.py.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/redis/go-redis/v9"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	mode, address, key := os.Args[1], "127.0.0.1:"+os.Args[2], os.Args[3]
	options := redis.UniversalOptions{Addrs: []string{address}, ClientName: "gate", IsClusterMode: mode == "cluster"}
	if len(os.Args) > 4 {
		options.Username, options.Password = os.Args[4], os.Args[5]
	}
	client, all := redis.NewUniversalClient(&options), context.Background()
	ask := func(words ...any) []int64 { return must(client.Do(all, words...).Int64Slice()) }

	told := map[string]any{"check": ask("WEIR.CHECK", key, "site"), "throttle": ask("CL.THROTTLE", key, 15, 30, 60)}
	var passed []int64
	for _, answer := range must(client.Pipelined(all, func(pipeline redis.Pipeliner) error {
		for range 12 {
			pipeline.Do(all, "WEIR.ALLOW", key, "site")
		}
		return nil
	})) {
		passed = append(passed, must(answer.(*redis.Cmd).Int64()))
	}
	told["pipeline"] = passed
	told["error"] = client.Do(all, "WEIR.CHECK", key, "nozone").Err().Error()
	var many [][]int64
	for number := range 100 {
		many = append(many, ask("WEIR.CHECK", fmt.Sprint(key, "-", number), "site"))
	}
	told["many"] = many
	fmt.Println(string(must(json.Marshal(told))))
}
