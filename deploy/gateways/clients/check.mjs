// SPDX-License-Identifier: Apache-2.0
// A page that asks weir before it serves: ioredis. A check is not sent twice, as it would count twice; who is not answered
// within 100 ms, or with an error, serves.
import { createServer } from "node:http";
import { Redis } from "ioredis";

const weir = new Redis({
  host: "127.0.0.1", port: 6390, connectTimeout: 100, commandTimeout: 100,
  enableOfflineQueue: false, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false,
});
weir.on("error", () => {}); // each check says it, too

// Whether this key is limited, and for how many seconds; null: no time helps.
async function asked(key) {
  try {
    const [limited, , , retryMs] = await weir.call("WEIR.CHECK", key, "site");
    return { limited: limited === 1, wait: retryMs >= 0 ? Math.max(1, Math.ceil(retryMs / 1000)) : null };
  } catch {
    return { limited: false, wait: null };
  }
}

createServer(async (request, response) => {
  const { limited, wait } = await asked(request.socket.remoteAddress);
  response.writeHead(limited ? 429 : 200, wait === null ? {} : { "Retry-After": wait }).end();
}).listen(8000, "127.0.0.1");
