// Cluster clients send all commands to weir, which reports one node: node emulated.js PORT
'use strict';

const Redis = require('ioredis');
const { createCluster } = require('redis');
const { assert, host, main, port, step } = require('./check');

const keys = Array.from({ length: 30 }, (_, n) => `emulated:${n}`);

main(async () => {
  await step('ioredis', async () => {
    const cluster = new Redis.Cluster([{ host, port }], { clusterRetryStrategy: () => null, lazyConnect: true });
    await cluster.connect();
    assert.deepEqual(cluster.nodes('all').map((node) => node.options.port), [Number(port)]);
    await Promise.all(keys.map((key, n) => cluster.set(key, n)));
    assert.deepEqual(await Promise.all(keys.map((key) => cluster.get(key))), keys.map((_, n) => String(n)));
    cluster.disconnect();
  });

  await step('node-redis', async () => {
    const cluster = createCluster({ rootNodes: [{ socket: { host, port, reconnectStrategy: false } }] });
    cluster.on('error', () => {});
    await cluster.connect();
    assert.deepEqual(cluster.masters.map((master) => Number(master.port)), [Number(port)]);
    assert.deepEqual(await Promise.all(keys.map((key) => cluster.get(key))), keys.map((_, n) => String(n)));
    cluster.destroy();
  });
});
