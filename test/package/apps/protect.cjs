// A provider with protected methods, one that a factory makes, and one for each caller. Prints their answers.
require('reflect-metadata');
const process = require('node:process');
const { Injectable, Module, Scope } = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');
const { Protect, RateLimitModule } = require('nestjs-weir');

class Products {
  async find(id) {
    return { id, tag: this.tag };
  }
}
decorate(Products, 'find', Protect('db', { deadline: 200 }));

class Own extends Products {
  tag = 'own';
}
Injectable()(Own);

class Each extends Products {
  tag = 'each';
}
Injectable({ scope: Scope.TRANSIENT })(Each);

const made = Object.assign(new Products(), { tag: 'made' });

class AppModule {}
Module({
  imports: [RateLimitModule.forRoot({ protection: { db: { bulkhead: {} } } })],
  providers: [Own, Each, { provide: 'MADE', useFactory: () => made }],
})(AppModule);

function decorate({ prototype }, name, decorator) {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name);
  decorator(prototype, name, descriptor);
  Object.defineProperty(prototype, name, descriptor);
}

async function main() {
  const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
  const providers = [app.get(Own), await app.resolve(Each), app.get('MADE'), new Products()];
  const answers = [];
  for (const provider of providers) {
    answers.push(await provider.find(answers.length).catch((error) => error.code));
  }
  const { version } = require('@nestjs/core/package.json');
  process.stdout.write(JSON.stringify({ version, answers }));
  await app.close();
}

main();
