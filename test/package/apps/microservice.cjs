// A microservice on TCP and its client. Prints what the client was told, and what the service did.
require('reflect-metadata');
const process = require('node:process');
const { Controller, Module } = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');
const microservices = require('@nestjs/microservices');
const { firstValueFrom, lastValueFrom } = require('rxjs');
const { DroppedEvents, RateLimit, RateLimitModule } = require('nestjs-weir');

const { ClientProxyFactory, EventPattern, MessagePattern, Transport } = microservices;
const seen = [];

class Sums {
  sum(numbers) {
    return numbers.reduce((a, b) => a + b, 0);
  }
}
decorate(Sums, 'sum', MessagePattern('sum'), RateLimit('two'));
RateLimit('two')(Sums);
Controller()(Sums);

class Orders {
  ordered(id) {
    seen.push(id);
  }
}
decorate(Orders, 'ordered', EventPattern('ordered'), RateLimit({ rate: '1/h' }));
Controller()(Orders);

class AppModule {}
Module({
  imports: [RateLimitModule.forRoot({ policies: { two: { rate: '2/h' } } })],
  controllers: [Sums, Orders],
})(AppModule);

function decorate({ prototype }, name, ...decorators) {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name);
  for (const decorator of decorators.reverse()) decorator(prototype, name, descriptor);
}

async function main() {
  const options = { host: '127.0.0.1', port: Number(process.env.PORT) };
  const listening = { transport: Transport.TCP, options, logger: false };
  const app = await NestFactory.createMicroservice(AppModule, listening);
  await app.listen();
  const client = ClientProxyFactory.create({ transport: Transport.TCP, options });
  for (const id of ['a', 'b', 'c']) {
    await lastValueFrom(client.emit('ordered', id), { defaultValue: undefined });
  }
  const answers = [];
  for (let i = 0; i < 3; i++) {
    const answer = firstValueFrom(client.send('sum', [1, 2, 3]));
    answers.push(await answer.catch((error) => error));
  }
  const dropped = app.get(DroppedEvents).byHandler();
  const { version } = require('@nestjs/microservices/package.json');
  process.stdout.write(JSON.stringify({ version, answers, seen, dropped }));
  client.close();
  await app.close();
}

main();
