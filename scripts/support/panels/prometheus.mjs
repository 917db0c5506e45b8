// A real Prometheus over made up scrapes, which answers the queries of the dashboard.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { run } from '../run.mjs';
import { mustPass } from '../step.mjs';
import { ensurePrometheus, ensurePromtool } from '../tools.mjs';

const TRIES = 300;
const TRY_MS = 100;

/** Runs `work` with a function that asks for a range of an expression; `lines` are OpenMetrics with instants. */
export async function withPrometheus(lines, work) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-panels-'));
  try {
    const [scrapes, data, config] = ['scrapes.txt', 'data', 'prometheus.yml'].map((name) =>
      join(folder, name),
    );
    writeFileSync(scrapes, `${lines.join('\n')}\n# EOF\n`);
    writeFileSync(config, '');
    mustPass(
      await run(ensurePromtool(), ['tsdb', 'create-blocks-from', 'openmetrics', scrapes, data]),
    );
    const port = await freePort();
    const server = spawn(
      ensurePrometheus(),
      [
        ...[`--config.file=${config}`, `--storage.tsdb.path=${data}`, '--log.level=error'],
        ...[`--web.listen-address=127.0.0.1:${port}`, '--storage.tsdb.retention.time=100y'],
      ],
      { stdio: 'ignore' },
    );
    const exited = once(server, 'exit');
    try {
      const address = `http://127.0.0.1:${port}`;
      await ready(address, server);
      return await work((query) => rangeOf(address, query));
    } finally {
      server.kill('SIGTERM');
      await exited;
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The series of an expression, each with its labels and pairs of second and value. */
async function rangeOf(address, { expr, from, to, step }) {
  const url = new URL('/api/v1/query_range', address);
  url.search = new URLSearchParams({ query: expr, start: from, end: to, step }).toString();
  const { status, error, data } = await (await fetch(url)).json();
  if (status !== 'success') throw new Error(`${expr}: ${error}`);
  return data.result.map(({ metric, values }) => ({
    labels: metric,
    points: values.map(([at, value]) => [at, Number(value)]),
  }));
}

async function ready(address, server) {
  for (let tries = 0; tries < TRIES; tries++) {
    if (server.exitCode !== null) throw new Error(`prometheus ended with ${server.exitCode}`);
    const answer = await fetch(`${address}/-/ready`).catch(() => undefined);
    if (answer?.ok) return;
    await pause(TRY_MS);
  }
  throw new Error('prometheus is not ready');
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
