// SPDX-License-Identifier: Apache-2.0
// Lettuce asks: AskLettuce plain|cluster PORT KEY [USER PASSWORD], see support/real_clients.py.
import io.lettuce.core.LettuceFutures;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.IntegerOutput;
import io.lettuce.core.output.NestedMultiOutput;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

class AskLettuce {
    static RedisClusterAsyncCommands<String, String> commands;

    static <T> RedisFuture<T> ask(CommandOutput<String, String, T> output, String name, String key, String... words) {
        ProtocolKeyword command = new ProtocolKeyword() {
            public byte[] getBytes() { return name.getBytes(); }
            public String toString() { return name; }
        };
        var all = new CommandArgs<>(StringCodec.UTF8).addKey(key);
        for (String word : words)
            all.add(word);
        return commands.dispatch(command, output, all);
    }

    static RedisFuture<List<Object>> five(String name, String key, String... words) {
        return ask(new NestedMultiOutput<>(StringCodec.UTF8), name, key, words);
    }

    public static void main(String[] given) throws Exception {
        String key = given[2];
        var at = RedisURI.builder().withHost("127.0.0.1").withPort(Integer.parseInt(given[1])).withClientName("gate")
                     .withTimeout(Duration.ofSeconds(20));
        if (given.length > 3)
            at.withAuthentication(given[3], given[4].toCharArray());
        var plain = RedisClient.create();
        var cluster = RedisClusterClient.create(at.build());
        commands = given[0].equals("plain") ? plain.connect(at.build()).async() : cluster.connect().async();
        var check = five("WEIR.CHECK", key, "site").get();
        var throttle = five("CL.THROTTLE", key, "15", "30", "60").get();
        var asked = new ArrayList<RedisFuture<Long>>();
        for (int number = 0; number < 12; number++)
            asked.add(ask(new IntegerOutput<>(StringCodec.UTF8), "WEIR.ALLOW", key, "site"));
        LettuceFutures.awaitAll(20, TimeUnit.SECONDS, asked.toArray(new RedisFuture[0]));
        var passed = new ArrayList<Long>();
        for (var one : asked)
            passed.add(one.get());
        String error = "none";
        try {
            five("WEIR.CHECK", key, "nozone").get();
        } catch (ExecutionException refused) {
            error = ((RedisCommandExecutionException) refused.getCause()).getMessage();
        }
        var many = new ArrayList<List<Object>>();
        for (int number = 0; number < 100; number++)
            many.add(five("WEIR.CHECK", key + "-" + number, "site").get());
        System.out.printf("{\"check\": %s, \"throttle\": %s, \"pipeline\": %s, \"error\": \"%s\", \"many\": %s}%n", check, throttle, passed,
                          error.replace("\"", "\\\""), many);
        plain.shutdown(0, 1, TimeUnit.SECONDS);
        cluster.shutdown(0, 1, TimeUnit.SECONDS);
    }
}
