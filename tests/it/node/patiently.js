// The retries of docs/clients.md: node patiently.js PORT LIBRARY FILE.
// weir's limit is one SET an hour. Instead of each wait the script forgives the limit, or does not.
'use strict';

const timers = require('node:timers/promises');
const Redis = require('ioredis');
const { createClient } = require('redis');
const { assert, host, main, port, step } = require('./check');
const { patiently } = require(process.argv[4]);

const open = {
  async ioredis() {
    const redis = new Redis(port, host);
    return { redis, order: (...words) => redis.call(...words), pipeline: piped, close: () => redis.quit() };
    async function piped() {
      return (await redis.pipeline().set('k', 'v').get('k').exec()).map(([error, value]) => error ?? value);
    }
  },
  async redis() {
    const redis = await createClient({ url: `redis://${host}:${port}` }).on('error', () => {}).connect();
    return { redis, order: (...words) => redis.sendCommand(words), pipeline: piped, close: () => redis.close() };
    async function piped() {
      await assert.rejects(redis.multi().set('k', 'v').get('k').execAsPipeline(), /^\w*Error: THROTTLED/);
      const settled = await Promise.allSettled([redis.set('k', 'v'), redis.get('k')]);
      return settled.map(({ reason, value }) => reason ?? value);
    }
  },
}[process.argv[3]];

const HOUR_MS = 3600000;

main(async () => {
  const { redis, order, pipeline, close } = await open();
  const waits = [];
  let isForgiven;
  timers.setTimeout = async (ms) => {
    waits.push(ms);
    if (isForgiven) assert.equal(await order('LIMIT', 'FORGIVE', 'ip:127.0.0.1'), 1);
  };
  const set = (options) => patiently(() => redis.set('k', 'v'), options);

  await step('the first passes', async () => assert.equal(await set(), 'OK'));

  await step('an hour is too long', async () => {
    await assert.rejects(set(), /^\w*Error: THROTTLED retry_in_ms=\d+ limit=default\/cmd\.set$/);
    assert.deepEqual(waits, []);
  });

  await step('it waits as long as it is told', async () => {
    isForgiven = true;
    assert.equal(await set({ mostMs: HOUR_MS }), 'OK');
    assert.equal(waits.length, 1);
    assert.ok(waits[0] > HOUR_MS / 2 && waits[0] <= 2 * HOUR_MS, waits[0]);
  });

  await step('it gives up', async () => {
    isForgiven = false;
    waits.length = 0;
    await assert.rejects(set({ mostMs: HOUR_MS }), /THROTTLED/);
    assert.equal(waits.length, 3);
  });

  await step('other errors are not its business', async () => {
    await assert.rejects(patiently(() => redis.incr('k')), /not an integer/);
    assert.equal(waits.length, 3);
  });

  await step('in a pipeline the others run', async () => {
    const [refused, value] = await pipeline();
    assert.match(refused.message, /^THROTTLED/);
    assert.equal(value, 'v');
  });

  await close();
});
