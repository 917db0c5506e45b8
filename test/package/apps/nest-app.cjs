// Limited and degraded routes behind a prefix and a version; asks each twice and prints the answers.
require('reflect-metadata');
const process = require('node:process');
const { Controller, Get, Module, UnauthorizedException } = require('@nestjs/common');
const { UseGuards, VersioningType } = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');
const { Degrade, degradeMessage, RateLimit, RateLimitModule } = require('nestjs-weir');

/** A 429 of a route with this guard came from before all guards. */
class Bouncer {
  canActivate() {
    throw new UnauthorizedException();
  }
}

class Routes {
  late() {
    return 'late';
  }

  early() {
    return 'early';
  }

  cached() {
    return { call: ++calls };
  }

  failing() {
    throw new Error('down');
  }
}
let calls = 0;
decorate('late', Get('late'), RateLimit('late'));
decorate('early', Get('early'), UseGuards(Bouncer), RateLimit('early'));
decorate('cached', Get('cached'), RateLimit('cached'), Degrade());
const words = { level4: degradeMessage('busy') };
decorate('failing', Get('failing'), Degrade(words));
Controller({ version: '1' })(Routes);

class App {}
const policies = {
  late: { rate: '1/h' },
  early: { rate: '1/h', early: true },
  cached: { rate: '1/h' },
};
Module({ imports: [RateLimitModule.forRoot({ policies })], controllers: [Routes] })(App);

const adapters = {
  express: () => new (require('@nestjs/platform-express').ExpressAdapter)(),
  fastify: () => new (require('@nestjs/platform-fastify').FastifyAdapter)(),
};

main();

async function main() {
  const { version } = require('@nestjs/core/package.json');
  print(`Nest ${version.split('.')[0]}`);
  const logger = { log() {}, warn: complain, error: complain };
  const app = await NestFactory.create(App, adapters[process.argv[2]](), { logger });
  app.setGlobalPrefix('api');
  app.enableVersioning({ type: VersioningType.URI });
  await app.listen(0, '127.0.0.1');
  for (const path of ['late', 'late', 'early', 'early']) await ask(app, `/api/v1/${path}`);
  for (const path of ['cached', 'cached', 'failing']) await askDegraded(app, `/api/v1/${path}`);
  await app.close();
}

async function askDegraded(app, path) {
  const response = await globalThis.fetch((await app.getUrl()) + path);
  const { call, detail } = await response.json();
  const parts = [response.headers.get('content-type'), response.headers.get('x-degraded')];
  print([path, response.status, call ?? detail, ...parts].join(' '));
}

async function ask(app, path) {
  const { status, headers, ...response } = await answerOf((await app.getUrl()) + path);
  const parts = [path, status, headers.get('ratelimit-policy')];
  if (status === 429) parts.push(headers.get('content-type'), response.body['violated-policies']);
  print(parts.join(' '));
}

async function answerOf(url) {
  const response = await globalThis.fetch(url);
  const text = await response.text();
  const body = response.status === 429 ? JSON.parse(text) : text;
  return { status: response.status, headers: response.headers, body };
}

function decorate(name, ...decorators) {
  const descriptor = Object.getOwnPropertyDescriptor(Routes.prototype, name);
  for (const one of decorators) one(Routes.prototype, name, descriptor);
}

function print(line) {
  process.stdout.write(`${line}\n`);
}

function complain(...words) {
  process.stderr.write(`${words.join(' ')}\n`);
}
