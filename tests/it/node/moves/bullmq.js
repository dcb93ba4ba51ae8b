// Jobs with BullMQ: node bullmq.js PORT worker|producer. The producer reads lines "NUMBER SECONDS".
'use strict';

const readline = require('node:readline');
const { setTimeout: sleep } = require('node:timers/promises');
const { Queue, Worker } = require('bullmq');

const [port, role] = process.argv.slice(2);
const connection = { host: '127.0.0.1', port: Number(port), maxRetriesPerRequest: null };

async function work({ data: { n, seconds } }) {
  console.log('begun', n);
  await sleep(1000 * seconds);
  console.log('done', n);
}

async function produce() {
  const queue = new Queue('jobs', { connection });
  queue.on('error', () => {});
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [n, seconds] = line.split(' ').map(Number);
    for (let isEnqueued = false; !isEnqueued; ) {
      try {
        await queue.add('work', { n, seconds });
        isEnqueued = true;
        console.log('enqueued', n);
      } catch (error) {
        console.log('error', error.constructor.name, error.message);
        await sleep(50);
      }
    }
  }
}

if (role === 'producer') produce();
else new Worker('jobs', work, { connection, concurrency: 2 }).on('error', () => {});
