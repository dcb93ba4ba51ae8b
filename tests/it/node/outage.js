// Redis ends, and returns after some seconds: node outage.js PORT LIBRARY busy|idle
// Prints what an application sees: each outcome that differs from the one before. `busy` sends one
// command after the other; `idle` waits in a blocking pop. The script prints "ready" when it works.
// A line of input tells the script that Redis is back.
'use strict';

const { once } = require('node:events');
const Redis = require('ioredis');
const { createClient } = require('redis');
const { host, main, port } = require('./check');

const open = {
  async ioredis() {
    const redis = new Redis({ host, port, db: 3, maxRetriesPerRequest: null, retryStrategy: () => 50 }).on('error', () => {});
    return { redis, pop: () => redis.blpop('q', 0).then(([, value]) => value), push: () => redis.rpush('q', 'v') };
  },
  async redis() {
    const options = { database: 3, socket: { host, port, reconnectStrategy: () => 50 } };
    const redis = await createClient(options).on('error', () => {}).connect();
    return { redis, pop: () => redis.blPop('q', 0).then(({ element }) => element), push: () => redis.rPush('q', 'v') };
  },
}[process.argv[3]];

let last;
function say(text) {
  if (text !== last) console.log(text);
  last = text;
}

// A killed Redis resets a connection with unread requests, and closes one without. Both may happen.
const isLost = (error) => error.code === 'ECONNRESET' || error.constructor.name === 'SocketClosedUnexpectedlyError';
const name = (error) => (isLost(error) ? 'connection lost' : `${error.constructor.name}: ${error.message}`);
const outcome = (work) => work().then((value) => `ok ${value}`, (error) => `error ${name(error)}`);

main(async () => {
  let isBack = false;
  process.stdin.once('data', () => (isBack = true));
  const { redis, pop } = await open();
  await redis.set('k', 'v');
  if (process.argv[4] === 'busy') {
    say('ready');
    for (let isLast = false; !isLast; ) {
      isLast = isBack;
      const text = await outcome(() => redis.set('k', 'v'));
      say(text);
      isLast &&= text.startsWith('ok');
    }
  } else {
    say('ready');
    const other = await open();
    for (let text = ''; !text.startsWith('ok'); ) {
      text = await outcome(pop);
      say(text);
    }
    (other.redis.destroy ?? other.redis.disconnect).call(other.redis);
  }
  process.stdin.destroy();
  (redis.destroy ?? redis.disconnect).call(redis);
});
