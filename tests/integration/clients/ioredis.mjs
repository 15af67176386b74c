// SPDX-License-Identifier: Apache-2.0
// ioredis asks: ioredis.mjs plain|cluster PORT KEY [USER PASSWORD], see support/real_clients.py.
import { Cluster, Redis } from "ioredis";

const [mode, port, key, username, password] = process.argv.slice(2);
const options = { host: "127.0.0.1", port: Number(port), username, password, connectionName: "gate" };
const client = mode === "plain" ? new Redis(options) : new Cluster([options], { redisOptions: options });

const pipeline = client.pipeline();
const told = { check: await client.call("WEIR.CHECK", key, "site"), throttle: await client.call("CL.THROTTLE", key, 15, 30, 60) };
for (let number = 0; number < 12; number++) pipeline.call("WEIR.ALLOW", key, "site");
told.pipeline = (await pipeline.exec()).map(([error, answer]) => error ?? answer);
told.error = await client.call("WEIR.CHECK", key, "nozone").catch((error) => error.message);
told.many = await Promise.all([...Array(100).keys()].map((number) => client.call("WEIR.CHECK", `${key}-${number}`, "site")));
console.log(JSON.stringify(told));
client.disconnect();
