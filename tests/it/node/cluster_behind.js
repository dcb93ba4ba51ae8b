// Cluster clients send all commands to weir, which poses as a cluster of one node:
// node cluster_behind.js PORT
'use strict';

const Redis = require('ioredis');
const { createCluster } = require('redis');
const { assert, host, main, port, step } = require('./check');

const KEYS = Array.from({ length: 200 }, (_, i) => `k${i}`);

main(async () => {
  await step('ioredis', async () => {
    const cluster = new Redis.Cluster([{ host, port }], { clusterRetryStrategy: () => null });
    await Promise.all(KEYS.map((key) => cluster.set(key, key)));
    assert.deepEqual(await Promise.all(KEYS.map((key) => cluster.get(key))), KEYS);
    assert.deepEqual(cluster.nodes().map((node) => node.options.port), [Number(port)]);
    assert.equal(await cluster.mget('{t}a', '{t}b').then((found) => found.length), 2);
    assert.deepEqual(await cluster.multi().set('{t}a', '1').get('{t}a').exec(), [[null, 'OK'], [null, '1']]);
    cluster.disconnect();
  });

  await step('node-redis', async () => {
    const cluster = createCluster({ rootNodes: [{ socket: { host, port, reconnectStrategy: false } }] });
    cluster.on('error', () => {});
    await cluster.connect();
    await Promise.all(KEYS.map((key) => cluster.set(key, key)));
    assert.deepEqual(await Promise.all(KEYS.map((key) => cluster.get(key))), KEYS);
    assert.deepEqual(cluster.masters.map((node) => node.port), [Number(port)]);
    assert.deepEqual(await cluster.multi().set('{t}b', '1').get('{t}b').exec(), ['OK', '1']);
    cluster.destroy();
  });
});
