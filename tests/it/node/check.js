// Shared by the scripts: `step(name, work)` runs one piece of ordinary work and prints its name.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');

// With the file of a certificate authority in the environment, the port speaks TLS.
const ca = process.env.CA;
const tls = ca ? { ca: fs.readFileSync(ca) } : undefined;
const host = ca ? 'localhost' : '127.0.0.1';
const port = Number(process.argv[2]);

async function step(name, work) {
  await work();
  console.log(`ok ${name}`);
}

// Runs `work`. The process ends by itself only when every connection is closed.
function main(work) {
  work().catch((error) => {
    console.error(error);
    process.exit(1);
  });
}

module.exports = { assert, host, main, port, step, tls };
