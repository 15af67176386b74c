// SPDX-License-Identifier: Apache-2.0
// node-redis asks: node_redis.mjs plain|cluster PORT KEY [USER PASSWORD], see support/real_clients.py.
import { createClient, createCluster } from "redis";

const [mode, port, key, username, password] = process.argv.slice(2);
const url = `redis://127.0.0.1:${port}`;
const client = mode === "plain" ? createClient({ url, username, password, name: "gate" })
  : createCluster({ rootNodes: [{ url }], defaults: { username, password } });
client.on("error", (error) => console.error(error));
await client.connect();

// Of a cluster, a command is sent to where its key is.
const ask = (name, at, ...words) => mode === "plain" ? client.sendCommand([name, at, ...words])
  : client.sendCommand(at, false, [name, at, ...words]);
const told = { check: await ask("WEIR.CHECK", key, "site"), throttle: await ask("CL.THROTTLE", key, "15", "30", "60") };
const pipeline = client.multi();
for (let number = 0; number < 12; number++) {
  const words = ["WEIR.ALLOW", key, "site"];
  mode === "plain" ? pipeline.addCommand(words) : pipeline.addCommand(key, false, words);
}
told.pipeline = await pipeline.exec();
told.error = await ask("WEIR.CHECK", key, "nozone").catch((error) => error.message);
told.many = await Promise.all([...Array(100).keys()].map((number) => ask("WEIR.CHECK", `${key}-${number}`, "site")));
console.log(JSON.stringify(told));
client.destroy();
