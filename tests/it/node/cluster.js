// Cluster clients get an error that there is no cluster: node cluster.js PORT
'use strict';

const Redis = require('ioredis');
const { createCluster } = require('redis');
const { assert, host, main, port, step } = require('./check');

main(async () => {
  await step('ioredis', async () => {
    const cluster = new Redis.Cluster([{ host, port }], { clusterRetryStrategy: () => null, lazyConnect: true });
    const errors = [];
    cluster.on('error', (error) => errors.push(error));
    await assert.rejects(cluster.connect());
    assert.match(String(errors[0]?.lastNodeError ?? errors[0]), /cluster support disabled/);
    cluster.disconnect();
  });

  await step('node-redis', async () => {
    const cluster = createCluster({ rootNodes: [{ socket: { host, port, reconnectStrategy: false } }] });
    cluster.on('error', () => {});
    await assert.rejects(cluster.connect());
    cluster.destroy();
  });
});
