import { type Metadata } from '@grpc/grpc-js';
import { NestFactory } from '@nestjs/core';
import { type ClientGrpc } from '@nestjs/microservices';
import { from, lastValueFrom, toArray, type Observable } from 'rxjs';
import { CallerModule, INVENTORY } from './caller.module.js';
import { type Inventory } from './inventory.js';

/** Makes some calls, and prints what comes of them. */
export async function printTour(url: string): Promise<void> {
  const caller = await NestFactory.createApplicationContext(CallerModule.at(url), {
    logger: ['error'],
  });
  const inventory = caller.get<ClientGrpc>(INVENTORY).getService<Inventory>('Inventory');

  console.log('\nThree lookups of an article for each caller:');
  for (let i = 1; i <= 3; i++) console.log(`  ${await answerOf(inventory.get({ sku: 'tea' }))}`);
  console.log(`  ${await answerOf(inventory.get({ sku: 'jam' }))}`);
  console.log(`  ${await answerOf(inventory.get({ sku: 'tea' }))}`);

  console.log('Two streams of any length, and five messages of imports:');
  console.log(`  ${await answerOf(inventory.watch({ sku: 'tea' }))}`);
  const items = Array.from({ length: 7 }, (_, i) => ({ sku: `article-${i}` }));
  console.log(`  ${await answerOf(inventory.import(from(items)))}`);
  console.log(`  ${await answerOf(inventory.watch({ sku: 'tea' }))}`);

  console.log('A server that has pushed back is left alone:');
  console.log(`  ${await answerOf(inventory.watch({ sku: 'tea' }))}`);
  await caller.close();
}

async function answerOf(answer: Observable<object>): Promise<string> {
  try {
    const all = await lastValueFrom(answer.pipe(toArray()));
    return `ok  ${all.map((one) => JSON.stringify(one)).join(' ')}`;
  } catch (error) {
    const { code, details, metadata } = error as Record<'code' | 'details', string> & {
      metadata: Metadata;
    };
    const [afterMs] = metadata.get('retry-after-ms');
    return `${code}   ${details} (retry-after-ms: ${String(afterMs)})`;
  }
}
