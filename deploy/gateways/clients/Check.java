// SPDX-License-Identifier: Apache-2.0
// A page that asks weir before it serves: Jedis. A check is not sent twice, as it would count twice; who is not answered
// within 100 ms, or with an error, serves.
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Executors;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.exceptions.JedisException;

class Check {
    static final ConnectionPoolConfig POOL = new ConnectionPoolConfig();
    static final JedisPooled WEIR;

    static {
        POOL.setMaxTotal(64);
        POOL.setMaxWait(Duration.ofMillis(100));
        WEIR = new JedisPooled(POOL, new HostAndPort("127.0.0.1", 6390), DefaultJedisClientConfig.builder().timeoutMillis(100).build());
    }

    static final long PASSES = 0, NO_TIME_HELPS = -1;

    /** For how many seconds this key is limited, or one of these. */
    static long waitSeconds(String key) {
        try {
            List<?> said = (List<?>) WEIR.sendCommand(() -> "WEIR.CHECK".getBytes(), key, "site");
            long retryMs = (Long) said.get(3);
            if ((Long) said.get(0) == 0)
                return PASSES;
            return retryMs < 0 ? NO_TIME_HELPS : Math.max(1, (retryMs + 999) / 1000);
        } catch (JedisException away) {
            return PASSES;
        }
    }

    public static void main(String[] arguments) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 8000), 0);
        server.setExecutor(Executors.newCachedThreadPool());
        server.createContext("/", exchange -> {
            long wait = waitSeconds(exchange.getRemoteAddress().getAddress().getHostAddress());
            if (wait > 0)
                exchange.getResponseHeaders().set("Retry-After", Long.toString(wait));
            exchange.sendResponseHeaders(wait == PASSES ? 200 : 429, -1);
            exchange.close();
        });
        server.start();
    }
}
