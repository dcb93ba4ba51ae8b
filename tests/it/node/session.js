// Many connections with a user, a database and a name: node session.js PORT PROTOCOL LIBRARY
// The script prints "ready", waits for the end of its input, and repeats all on every connection.
'use strict';

const Redis = require('ioredis');
const { createClient } = require('redis');
const { assert, host, main, port, step } = require('./check');

const RESP = Number(process.argv[3]);
const COUNT = 40;

const open = {
  async ioredis(name) {
    const who = { db: 3, username: 'joe', password: 'secret', connectionName: name };
    const redis = new Redis({ host, port, protocol: RESP, ...who });
    return {
      call: (...args) => redis.call(...args),
      transaction: async (key) => (await redis.multi().incr(key).get(key).exec()).map(([, value]) => value),
      close: () => redis.quit(),
    };
  },
  async redis(name) {
    const options = { RESP, database: 3, username: 'joe', password: 'secret', name, socket: { host, port } };
    const redis = await createClient(options).on('error', () => {}).connect();
    return {
      call: (...args) => redis.sendCommand(args),
      transaction: (key) => redis.multi().incr(key).get(key).exec(),
      close: () => redis.close(),
    };
  },
}[process.argv[4]];

const ended = () => new Promise((resolve) => process.stdin.on('end', resolve).resume());

main(async () => {
  const sessions = [];
  const work = async () => {
    for (const [i, { call, transaction }] of sessions.entries()) {
      assert.equal(await call('SET', `k${i}`, String(i)), 'OK');
      assert.equal(await call('GET', `k${i}`), String(i));
      assert.equal(await call('CLIENT', 'GETNAME'), `n${i}`);
      assert.equal(await call('ACL', 'WHOAMI'), 'joe');
      assert.deepEqual(await transaction(`t${i}`), sessions.done ? [2, '2'] : [1, '1']);
    }
    sessions.done = true;
  };
  for (let i = 0; i < COUNT; i++) {
    sessions.push(await open(`n${i}`));
    await sessions[i].call('PING');
  }
  await step('work', work);
  console.log('ready');
  await ended();
  await step('work again', work);
  for (const { close } of sessions) await close();
});
