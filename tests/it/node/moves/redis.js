// An application with ioredis, node-redis or valkey-glide: node redis.js PORT busy|idle LIBRARY.
// PASSWORD in the environment is that of the default user.
'use strict';

const { setTimeout: sleep } = require('node:timers/promises');

const [port, role, library] = process.argv.slice(2);
const host = '127.0.0.1';
const password = process.env.PASSWORD;

const open = {
  async ioredis() {
    const Redis = require('ioredis');
    const redis = new Redis(Number(port), host, { maxRetriesPerRequest: null, password });
    redis.on('error', () => {}); // errors of a connection, not of a command
    return {
      incr: () => redis.incr('n'),
      get: () => redis.get('stop'),
      pop: async () => (await redis.blpop('q', 0))?.[1],
      close: () => redis.disconnect(),
    };
  },
  async redis() {
    const { createClient } = require('redis');
    const redis = createClient({ url: `redis://${host}:${port}`, password, commandOptions: { timeout: 30000 } });
    redis.on('error', () => {}); // errors of a connection, not of a command
    await redis.connect();
    return {
      incr: () => redis.incr('n'),
      get: () => redis.get('stop'),
      pop: async () => (await redis.blPop('q', 0))?.element,
      close: () => redis.destroy(),
    };
  },
  async glide() {
    const { GlideClient, Logger } = require('@valkey/valkey-glide');
    Logger.setLoggerConfig('off');
    const client = await GlideClient.createClient({
      addresses: [{ host, port: Number(port) }],
      requestTimeout: 10000,
      credentials: password && { password },
    });
    return {
      incr: () => client.incr('n'),
      get: () => client.get('stop'),
      pop: async () => (await client.blpop(['q'], 0))?.[1],
      close: () => client.close(),
    };
  },
}[library];

async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    console.log('error', error.constructor.name, error.message);
    await sleep(20);
    return null;
  }
}

async function busy(client) {
  for (let last = 0; (await attempt(client.get)) === null; await sleep(5)) {
    const n = await attempt(client.incr);
    if (n === null) continue;
    console.log(n > last ? 'ok' : `${n} after ${last}`);
    last = n;
  }
}

async function idle(client) {
  for (let popped; popped !== 'end'; ) {
    popped = String(await attempt(client.pop));
    if (popped !== 'null') console.log('popped', popped);
  }
}

open().then(async (client) => {
  await { busy, idle }[role](client);
  client.close();
});
