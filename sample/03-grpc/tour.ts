import { type Metadata } from '@grpc/grpc-js';
import { NestFactory } from '@nestjs/core';
import { type ClientGrpc } from '@nestjs/microservices';
import { from, lastValueFrom, toArray, type Observable } from 'rxjs';
import { type Tour } from '../support/tour.js';
import { CallerModule, INVENTORY } from './caller.module.js';
import { type Inventory } from './inventory.js';

interface Answer {
  /** The status of the call; 0 is a success. */
  readonly code: number;
  readonly text: string;
}

/** Makes some calls, and tells what came of them. */
export async function takeTour(url: string, tour: Tour): Promise<void> {
  const caller = await NestFactory.createApplicationContext(CallerModule.at(url), {
    logger: ['error'],
  });
  const inventory = caller.get<ClientGrpc>(INVENTORY).getService<Inventory>('Inventory');
  const see = (promised: string, answers: readonly Answer[], codes: readonly number[]): void =>
    tour.see(
      promised,
      answers.map(({ text }) => text).join('\n            '),
      answers.every(({ code }, n) => code === codes[n]),
    );

  tour.scene('An article is looked up four times, another one once');
  const lookups: Answer[] = [];
  for (const sku of ['tea', 'tea', 'tea', 'jam', 'tea']) {
    lookups.push(await answerOf(inventory.get({ sku })));
  }
  see('three lookups of an article for each caller, then status 8', lookups, [0, 0, 0, 0, 8]);

  tour.scene('Three streams are asked for, one of them with seven messages');
  const items = Array.from({ length: 7 }, (_, i) => ({ sku: `article-${i}` }));
  const streams = [
    await answerOf(inventory.watch({ sku: 'tea' })),
    await answerOf(inventory.import(from(items))),
    await answerOf(inventory.watch({ sku: 'tea' })),
  ];
  see('two streams of any length, and five messages of imports', streams, [0, 0, 8]);

  tour.scene('A stream is asked for once more');
  const again = [await answerOf(inventory.watch({ sku: 'tea' }))];
  see('a server that has pushed back is left alone: nothing is sent', again, [8]);
  await caller.close();
}

async function answerOf(answer: Observable<object>): Promise<Answer> {
  try {
    const all = await lastValueFrom(answer.pipe(toArray()));
    return { code: 0, text: `ok  ${all.map((one) => JSON.stringify(one)).join(' ')}` };
  } catch (error) {
    const { code, details, metadata } = error as {
      code: number;
      details: string;
      metadata: Metadata;
    };
    const [afterMs] = metadata.get('retry-after-ms');
    return { code, text: `${code}   ${details} (retry-after-ms: ${String(afterMs)})` };
  }
}
