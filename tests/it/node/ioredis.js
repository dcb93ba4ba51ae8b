// ioredis doing its ordinary work: node ioredis.js PORT PROTOCOL
'use strict';

const Redis = require('ioredis');
const { assert, host, main, port, step, tls } = require('./check');

const protocol = Number(process.argv[3]);

main(async () => {
  const redis = new Redis({ host, port, protocol, tls, maxRetriesPerRequest: 0 });
  const other = redis.duplicate();

  await step('strings', async () => {
    assert.equal(await redis.set('s', 'v'), 'OK');
    assert.equal(await redis.get('s'), 'v');
    assert.equal(await redis.get('none'), null);
    const bytes = Buffer.from([0, 13, 10, 255]);
    await redis.set('bytes', bytes);
    assert.deepEqual(await redis.getBuffer('bytes'), bytes);
  });

  await step('a megabyte', async () => {
    const big = Buffer.alloc(1 << 20, 'x');
    await redis.set('big', big);
    assert.ok((await redis.getBuffer('big')).equals(big));
  });

  await step('commands at once', async () => {
    const echoes = await Promise.all(Array.from({ length: 500 }, (_, i) => redis.echo(`e${i}`)));
    assert.deepEqual(echoes, Array.from({ length: 500 }, (_, i) => `e${i}`));
  });

  await step('an error', async () => {
    await assert.rejects(redis.incr('s'), /ERR value is not an integer/);
    await assert.rejects(redis.call('FOO'), /ERR unknown command/);
  });

  await step('a pipeline', async () => {
    const pipeline = redis.pipeline();
    for (let i = 0; i < 300; i++) pipeline.rpush('list', i);
    pipeline.hset('hash', { a: 1, b: 2 }).incr('s').hgetall('hash').llen('list');
    const replies = await pipeline.exec();
    assert.equal(replies.length, 304);
    assert.match(replies[301][0].message, /not an integer/);
    assert.deepEqual(replies[302], [null, { a: '1', b: '2' }]);
    assert.deepEqual(replies[303], [null, 300]);
  });

  await step('a transaction', async () => {
    assert.deepEqual(await redis.multi().set('t', 1).incr('t').get('t').exec(), [
      [null, 'OK'],
      [null, 2],
      [null, '2'],
    ]);
    await redis.watch('t');
    await other.set('t', 9);
    assert.equal(await redis.multi().set('t', 1).exec(), null);
    assert.equal(await redis.get('t'), '9');
  });

  await step('pub/sub', async () => {
    const subscriber = redis.duplicate();
    const messages = [];
    let done;
    const last = new Promise((resolve) => (done = resolve));
    subscriber.on('message', (channel, text) => messages.push(`${channel} ${text}`));
    subscriber.on('pmessage', (pattern, channel, text) => text === 'last' && done());
    assert.equal(await subscriber.subscribe('c1', 'c2'), 2);
    assert.equal(await subscriber.psubscribe('c*'), 3);
    for (let i = 0; i < 50; i++) await redis.publish(i % 2 ? 'c1' : 'c2', i);
    await redis.publish('c3', 'last');
    await last;
    assert.deepEqual(messages, Array.from({ length: 50 }, (_, i) => `${i % 2 ? 'c1' : 'c2'} ${i}`));
    await subscriber.unsubscribe('c1', 'c2');
    await subscriber.punsubscribe('c*');
    assert.equal(await subscriber.get('t'), '9');
    await subscriber.quit();
  });

  await step('a blocking pop', async () => {
    const blocked = redis.duplicate();
    const popped = blocked.blpop('queue', 0);
    await redis.rpush('queue', 'a', 'b');
    assert.deepEqual(await popped, ['queue', 'a']);
    assert.deepEqual(await blocked.brpop('queue', 0), ['queue', 'b']);
    assert.equal(await blocked.blpop('queue', 0.05), null);
    blocked.disconnect();
  });

  await step('scripts', async () => {
    redis.defineCommand('addTo', { numberOfKeys: 1, lua: 'return redis.call("INCRBY", KEYS[1], ARGV[1])' });
    assert.equal(await redis.addTo('n', 5), 5);
    assert.equal(await redis.addTo('n', 5), 10);
    await redis.script('FLUSH');
    assert.equal(await redis.addTo('n', 5), 15);
    assert.deepEqual(await redis.eval('return {KEYS[1], ARGV[1]}', 1, 'k', 'a'), ['k', 'a']);
    const replies = await redis.pipeline().addTo('n', 1).get('n').exec();
    assert.deepEqual(replies, [[null, 16], [null, '16']]);
  });

  await step('scan', async () => {
    const pipeline = redis.pipeline();
    for (let i = 0; i < 500; i++) pipeline.set(`scan:${i}`, i);
    await pipeline.exec();
    const found = new Set();
    for await (const keys of redis.scanStream({ match: 'scan:*', count: 50 })) keys.forEach((key) => found.add(key));
    assert.equal(found.size, 500);
  });

  await step('a stream', async () => {
    const reader = redis.duplicate();
    const read = reader.xread('BLOCK', 0, 'STREAMS', 'x', '0');
    await redis.xadd('x', '1-1', 'f', 'v');
    assert.deepEqual(await read, [['x', [['1-1', ['f', 'v']]]]]);
    await reader.quit();
  });

  await step('databases and names', async () => {
    const third = redis.duplicate({ db: 3, connectionName: 'third' });
    await third.set('k', 'in 3');
    assert.equal(await redis.get('k'), null);
    assert.equal(await third.get('k'), 'in 3');
    assert.equal(await third.client('GETNAME'), 'third');
    await third.quit();
  });

  await step('monitor', async () => {
    const monitor = await redis.monitor();
    const seen = new Promise((resolve) => monitor.on('monitor', (time, args) => args[1] === 'watched' && resolve(args)));
    await other.set('watched', 'yes');
    assert.deepEqual((await seen).slice(1), ['watched', 'yes']);
    monitor.disconnect();
  });

  await step('quit', async () => {
    assert.equal(await redis.quit(), 'OK');
    other.disconnect();
  });
});
