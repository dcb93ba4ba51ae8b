// Client-side caching: node tracking.js PORT
'use strict';

const Redis = require('ioredis');
const { createClient } = require('redis');
const { assert, host, main, port, step } = require('./check');

async function until(condition) {
  for (const end = Date.now() + 10000; !(await condition()); ) {
    assert.ok(Date.now() < end, `not in time: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

main(async () => {
  const socket = { host, port };
  const writer = await createClient({ socket }).on('error', () => {}).connect();

  await step('a cache of node-redis', async () => {
    const clientSideCache = { ttl: 0, maxEntries: 0, evictPolicy: 'LRU' };
    const reader = await createClient({ RESP: 3, clientSideCache, socket }).on('error', () => {}).connect();
    for (let i = 0; i < 50; i++) {
      await writer.set('cached', `v${i}`);
      await until(async () => (await reader.get('cached')) === `v${i}`);
      assert.equal(await reader.get('cached'), `v${i}`);
    }
    assert.ok(reader.clientSideCache.stats().hitCount >= 50);
    await Promise.all([reader.ping(), reader.multi().get('cached').exec(), reader.get('none')]);
    await reader.close();
  });

  await step('invalidations as events', async () => {
    const reader = await createClient({ RESP: 3, emitInvalidate: true, socket }).on('error', () => {}).connect();
    const keys = new Set();
    reader.on('invalidate', (key) => keys.add(String(key)));
    for (let i = 0; i < 100; i++) reader.get(`k${i}`);
    await reader.ping();
    for (let i = 0; i < 100; i++) await writer.set(`k${i}`, 'v');
    await until(() => keys.size === 100);
    await reader.close();
  });

  await step('tracking with ioredis', async () => {
    const reader = new Redis({ host, port, protocol: 3 });
    assert.equal(await reader.client('TRACKING', 'ON'), 'OK');
    for (let i = 0; i < 50; i++) {
      assert.equal(await reader.set('mine', i), 'OK');
      await writer.set('mine', String(i + 100));
      assert.equal(await reader.get('mine'), String(i + 100));
    }
    assert.equal(await reader.client('TRACKING', 'OFF'), 'OK');
    await reader.quit();
  });

  await writer.close();
});
