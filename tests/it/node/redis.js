// node-redis doing its ordinary work: node redis.js PORT RESP
'use strict';

const { createClient, createClientPool, defineScript, ErrorReply, WatchError } = require('redis');
const { assert, host, main, port, step, tls } = require('./check');

const RESP = Number(process.argv[3]);

const addTo = defineScript({
  SCRIPT: 'return redis.call("INCRBY", KEYS[1], ARGV[1])',
  NUMBER_OF_KEYS: 1,
  parseCommand(parser, key, n) {
    parser.pushKey(key);
    parser.push(String(n));
  },
  transformReply: undefined,
});

const socket = { host, port, reconnectStrategy: false, ...(tls && { tls: true, ...tls }) };
const options = { RESP, socket, scripts: { addTo } };

main(async () => {
  const redis = await createClient(options).on('error', () => {}).connect();
  const other = await redis.duplicate().on('error', () => {}).connect();

  await step('strings', async () => {
    assert.equal(await redis.set('s', 'v'), 'OK');
    assert.equal(await redis.get('s'), 'v');
    assert.equal(await redis.get('none'), null);
  });

  await step('a megabyte', async () => {
    const big = 'x'.repeat(1 << 20);
    await redis.set('big', big);
    assert.equal(await redis.get('big'), big);
  });

  await step('commands at once', async () => {
    const echoes = await Promise.all(Array.from({ length: 500 }, (_, i) => redis.echo(`e${i}`)));
    assert.deepEqual(echoes, Array.from({ length: 500 }, (_, i) => `e${i}`));
  });

  await step('collections', async () => {
    await redis.hSet('hash', { a: '1', b: '2' });
    assert.deepEqual({ ...(await redis.hGetAll('hash')) }, { a: '1', b: '2' });
    await redis.zAdd('z', [{ score: 1.5, value: 'm' }]);
    assert.deepEqual((await redis.zRangeWithScores('z', 0, -1)).map((m) => ({ ...m })), [{ value: 'm', score: 1.5 }]);
    await redis.sAdd('set', ['a', 'b']);
    assert.deepEqual([...(await redis.sMembers('set'))].sort(), ['a', 'b']);
  });

  await step('an error', async () => {
    await assert.rejects(redis.incr('s'), ErrorReply);
    await assert.rejects(redis.sendCommand(['FOO']), /unknown command/);
  });

  await step('a pipeline', async () => {
    const batch = redis.multi();
    for (let i = 0; i < 300; i++) batch.rPush('list', String(i));
    const replies = await batch.lLen('list').execAsPipeline();
    assert.equal(replies[300], 300);
  });

  await step('a transaction', async () => {
    assert.deepEqual(await redis.multi().set('t', 1).incr('t').get('t').exec(), ['OK', 2, '2']);
    await redis.watch('t');
    await other.set('t', '9');
    await assert.rejects(redis.multi().set('t', '1').exec(), WatchError);
    assert.equal(await redis.get('t'), '9');
  });

  await step('pub/sub', async () => {
    const subscriber = await redis.duplicate().on('error', () => {}).connect();
    const messages = [];
    let done;
    const last = new Promise((resolve) => (done = resolve));
    await subscriber.subscribe(['c1', 'c2'], (text, channel) => messages.push(`${channel} ${text}`));
    await subscriber.pSubscribe('c*', (text) => text === 'last' && done());
    for (let i = 0; i < 50; i++) await redis.publish(i % 2 ? 'c1' : 'c2', String(i));
    await redis.publish('c3', 'last');
    await last;
    assert.deepEqual(messages, Array.from({ length: 50 }, (_, i) => `${i % 2 ? 'c1' : 'c2'} ${i}`));
    await subscriber.unsubscribe();
    await subscriber.pUnsubscribe();
    assert.equal(String(await subscriber.get('t')), '9');
    await subscriber.close();
  });

  await step('a blocking pop', async () => {
    const blocked = await redis.duplicate().on('error', () => {}).connect();
    const popped = blocked.blPop('queue', 0);
    await redis.rPush('queue', ['a', 'b']);
    assert.deepEqual({ ...(await popped) }, { key: 'queue', element: 'a' });
    assert.deepEqual({ ...(await blocked.brPop('queue', 0)) }, { key: 'queue', element: 'b' });
    assert.equal(await blocked.blPop('queue', 0.05), null);
    await blocked.close();
  });

  await step('scripts', async () => {
    assert.equal(await redis.addTo('n', 5), 5);
    assert.equal(await redis.addTo('n', 5), 10);
    await redis.scriptFlush();
    assert.equal(await redis.addTo('n', 5), 15);
    assert.deepEqual(await redis.eval('return {KEYS[1], ARGV[1]}', { keys: ['k'], arguments: ['a'] }), ['k', 'a']);
  });

  await step('scan', async () => {
    await Promise.all(Array.from({ length: 500 }, (_, i) => redis.set(`scan:${i}`, String(i))));
    const found = new Set();
    for await (const keys of redis.scanIterator({ MATCH: 'scan:*', COUNT: 50 })) keys.forEach((key) => found.add(key));
    assert.equal(found.size, 500);
  });

  await step('databases and names', async () => {
    const third = createClient({ ...options, database: 3, name: 'third' }).on('error', () => {});
    await third.connect();
    await third.set('k', 'in 3');
    assert.equal(await redis.get('k'), null);
    assert.equal(await third.get('k'), 'in 3');
    assert.equal(await third.clientGetName(), 'third');
    await third.close();
  });

  await step('a pool', async () => {
    const pool = await createClientPool(options, { minimum: 2, maximum: 8 }).on('error', () => {}).connect();
    await Promise.all(Array.from({ length: 200 }, () => pool.incr('pooled')));
    assert.equal(await pool.get('pooled'), '200');
    await pool.close();
  });

  await step('close', async () => {
    await redis.close();
    await other.close();
  });
});
