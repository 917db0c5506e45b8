import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { directoryOf, NEST_MAJORS } from '../support/nest/nest-majors.js';

/** A dashboard of the built package on both platforms, as plain JavaScript: what a browser would ask it for. */
const APPLICATION = `
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { RateLimitModule } from 'nestjs-weir';
import { loopbackOnly, RateLimitDashboardModule } from 'nestjs-weir/dashboard';
const told = {};
for (const Adapter of [ExpressAdapter, FastifyAdapter]) {
  class App {}
  const guard = loopbackOnly();
  Module({
    imports: [
      RateLimitModule.forRoot({ policies: { api: { rate: 3, period: '1h' } } }),
      RateLimitDashboardModule.forRoot({ path: 'ops/limits', guard, write: { guard } }),
    ],
  })(App);
  const app = await NestFactory.create(App, new Adapter(), { logger: false });
  app.setGlobalPrefix('api');
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  const at = url + '/api/ops/limits';
  const bare = await fetch(at, { redirect: 'manual' });
  const page = await fetch(at + '/');
  const script = /src="([^"]+)"/.exec(await page.text())[1];
  const { revision } = await (await fetch(at + '/api/config')).json();
  const put = async (rate, origin) => {
    const answer = await fetch(at + '/api/config', {
      method: 'PUT',
      headers: { 'content-type': 'application/json', 'x-weir-request': '1', origin },
      body: JSON.stringify({ patch: { policies: { api: { rate } } }, expectedRevision: revision }),
    });
    await answer.arrayBuffer();
    return answer.status;
  };
  const unknown = await fetch(at + '/none');
  const large = await fetch(at + '/api/validate', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ text: 'x'.repeat(3_000_000) }),
  });
  const refused = [unknown, large].map(({ status, headers }) => [
    status,
    headers.get('content-security-policy'),
    headers.get('cache-control'),
  ]);
  const stream = await fetch(at + '/api/stream');
  let text = '';
  for await (const part of stream.body.pipeThrough(new TextDecoderStream())) {
    text += part;
    if (text.includes('event: state')) break;
  }
  told[Adapter.name] = {
    redirect: [bare.status, bare.headers.get('location')],
    page: page.status,
    policy: page.headers.get('content-security-policy'),
    refused,
    script: (await fetch(at + '/' + script)).status,
    foreign: await put(5, 'https://evil.example'),
    wrong: await put(-5, url),
    changed: await put(5, url),
    late: await put(6, url),
    rate: (await (await fetch(at + '/api/config')).json()).document.policies.api.rate,
  };
  await app.close();
}
process.stdout.write(JSON.stringify(told));
`;

describe('the dashboard', () => {
  beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);

  it.each(NEST_MAJORS)('shows and changes on Nest %i, on Express and Fastify', async (major) => {
    const directory = directoryOf(major);
    const file = join(directory, 'dashboard-app.mjs');
    writeFileSync(file, APPLICATION);
    const { stdout } = await promisify(execFile)(process.execPath, [file], { cwd: directory });
    const policy = expect.stringMatching(/require-trusted-types-for/) as string;
    const expected = {
      refused: [404, 413].map((status) => [status, policy, 'no-store']),
      ...{ redirect: [308, 'limits/'], page: 200, script: 200 },
      policy,
      ...{ foreign: 403, wrong: 422, changed: 200, late: 409, rate: 5 },
    };
    expect(JSON.parse(stdout)).toEqual({ ExpressAdapter: expected, FastifyAdapter: expected });
  });
});
