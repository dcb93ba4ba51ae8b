// The recipes of docs/recipes.md for libraries: node limits.js PORT LIBRARY FILE OPTIONS
'use strict';

const Redis = require('ioredis');
const { createClient } = require('redis');
const { assert, host, main, port, step } = require('./check');
const { ask, allowed, allowedAll } = require(process.argv[4]);

const options = JSON.parse(process.argv[5]);

const open = {
  async ioredis() {
    const redis = new Redis(port, host, options);
    const inTransaction = () => redis.multi().call('LIMIT', 'SLIDING', 'k', '5/60s').exec();
    return { redis, plain: (...words) => redis.call(...words), inTransaction, close: () => redis.quit() };
  },
  async redis() {
    const url = `redis://${host}:${port}`;
    const redis = await createClient({ url, ...options }).on('error', () => {}).connect();
    const inTransaction = () => redis.multi().addCommand(['LIMIT', 'SLIDING', 'k', '5/60s']).exec();
    return { redis, plain: (...words) => redis.sendCommand(words), inTransaction, close: () => redis.close() };
  },
}[process.argv[3]];

// The forms of replies according to the page.
const names = ['limited', 'limit', 'remaining', 'retry_after_ms', 'reset_after_ms'];
const numbers = [0, 5, 4, -1, 60000];
const shapes = {
  array: numbers,
  turns: names.flatMap((name, i) => [name, numbers[i]]),
  object: Object.fromEntries(names.map((name, i) => [name, numbers[i]])),
};

function shape() {
  if (options.protocol === 2 || options.RESP === 2) return shapes.array;
  return process.argv[3] === 'ioredis' && !options.replyMapping ? shapes.turns : shapes.object;
}

main(async () => {
  const { redis, plain, inTransaction, close } = await open();

  await step('the shape is as the page says', async () => {
    const reply = await plain('LIMIT', 'SLIDING', 'plain', '5/60s');
    assert.deepEqual(Array.isArray(reply) ? reply : { ...reply }, shape());
  });

  await step('five pass', async () => {
    for (let i = 0; i < 5; i++) assert.equal(await allowed(redis, 'ann'), true);
    assert.equal(await allowed(redis, 'ann'), false);
  });

  await step('in one round trip', async () => {
    assert.deepEqual(await allowedAll(redis, ['ann', 'bob', 'bob'], '5/60s'), [false, true, true]);
  });

  await step('the values are in their order', async () => {
    assert.deepEqual(await ask(redis, 'SLIDING', 'k', '5/60s'), numbers);
    const [limited, token, held, max] = await ask(redis, 'ACQUIRE', 'place', 1, 1000);
    assert.deepEqual([limited, held, max], [0, 1, 1]);
    assert.deepEqual((await ask(redis, 'ACQUIRE', 'place', 1, 1000)).slice(0, 4), [1, null, 1, 1]);
    assert.equal(await ask(redis, 'RELEASE', 'place', token), 1);
  });

  await step('in a transaction it is an error', async () => {
    await assert.rejects(inTransaction(), /EXECABORT|LIMIT is not allowed in transactions/);
  });

  await close();
});
