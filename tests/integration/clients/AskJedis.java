// SPDX-License-Identifier: Apache-2.0
// Jedis asks: AskJedis plain|cluster PORT KEY [USER PASSWORD], see support/real_clients.py.
import java.util.ArrayList;
import java.util.Set;
import java.util.stream.IntStream;
import redis.clients.jedis.BuilderFactory;
import redis.clients.jedis.ClusterCommandArguments;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisCluster;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.Response;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisDataException;

class AskJedis {
    static Object ask(UnifiedJedis client, String name, String key, String... words) {
        String[] all = new String[words.length + 1];
        all[0] = key;
        System.arraycopy(words, 0, all, 1, words.length);
        ProtocolCommand command = name::getBytes;
        return client instanceof JedisCluster of ? of.sendCommand(key, command, all) : client.sendCommand(command, all);
    }

    public static void main(String[] given) {
        String key = given[2];
        var options = DefaultJedisClientConfig.builder().clientName("gate");
        if (given.length > 3)
            options.user(given[3]).password(given[4]);
        var at = new HostAndPort("127.0.0.1", Integer.parseInt(given[1]));
        try (UnifiedJedis client = given[0].equals("plain") ? new JedisPooled(at, options.build())
                                                            : new JedisCluster(Set.of(at), options.build())) {
            Object check = ask(client, "WEIR.CHECK", key, "site"), throttle = ask(client, "CL.THROTTLE", key, "15", "30", "60");
            var asked = new ArrayList<Response<Long>>();
            try (var pipeline = client.pipelined()) {
                ProtocolCommand allow = "WEIR.ALLOW"::getBytes;
                for (int number = 0; number < 12; number++)
                    asked.add(pipeline.executeCommand(new CommandObject<>(new ClusterCommandArguments(allow).key(key).add("site"), BuilderFactory.LONG)));
                pipeline.sync();
            }
            var passed = asked.stream().map(Response::get).toList();
            String error = "none";
            try {
                ask(client, "WEIR.CHECK", key, "nozone");
            } catch (JedisDataException refused) {
                error = refused.getMessage();
            }
            var many = IntStream.range(0, 100).mapToObj(number -> ask(client, "WEIR.CHECK", key + "-" + number, "site")).toList();
            System.out.printf("{\"check\": %s, \"throttle\": %s, \"pipeline\": %s, \"error\": \"%s\", \"many\": %s}%n", check, throttle, passed,
                              error.replace("\"", "\\\""), many);
        }
    }
}
