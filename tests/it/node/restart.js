// Redis ends and returns: node restart.js PORT PROTOCOL LIBRARY
// The script prints "ready" when it works. A line of input tells the script that Redis is back.
// Then commands and messages must arrive again.
'use strict';

const { once } = require('node:events');
const Redis = require('ioredis');
const { createClient } = require('redis');
const { assert, host, main, port, step } = require('./check');

const RESP = Number(process.argv[3]);

const open = {
  async ioredis(onMessage) {
    const options = { host, port, protocol: RESP, db: 3, connectionName: 'me', retryStrategy: () => 50 };
    const redis = new Redis(options).on('error', () => {});
    const subscriber = new Redis(options).on('error', () => {}).on('message', (channel, text) => onMessage(text));
    await subscriber.subscribe('c');
    return { redis, subscriber, close: () => [redis.disconnect(), subscriber.disconnect()] };
  },
  async redis(onMessage) {
    const options = { RESP, database: 3, name: 'me', socket: { host, port, reconnectStrategy: () => 50 } };
    const redis = await createClient(options).on('error', () => {}).connect();
    const subscriber = await createClient(options).on('error', () => {}).connect();
    await subscriber.subscribe('c', onMessage);
    return { redis, subscriber, close: () => [redis.destroy(), subscriber.destroy()] };
  },
}[process.argv[4]];

// Retries after an error until the work succeeds, as an application does.
async function untilIt(work) {
  for (const end = Date.now() + 15000; ; ) {
    const value = await work().catch(() => undefined);
    if (value !== undefined) return value;
    assert.ok(Date.now() < end, 'it does not work again');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

main(async () => {
  let heard = false;
  const { redis, close } = await open(() => (heard = true));
  assert.equal(await redis.set('k', 'before'), 'OK');
  console.log('ready');
  await once(process.stdin, 'data');
  process.stdin.pause();
  await step('commands', async () => {
    assert.equal(await untilIt(() => redis.set('k', 'after')), 'OK');
    assert.equal(await redis.get('k'), 'after');
  });
  await step('messages', () => untilIt(async () => (await redis.publish('c', 'hello'), heard || undefined)));
  await step('transactions', async () => {
    const replies = await redis.multi().set('t', '1').get('t').exec();
    assert.equal(String(replies.flat().at(-1)), '1');
  });
  close();
});
