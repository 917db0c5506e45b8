import { Module, type INestApplicationContext, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PrismaMariaDb } from '@prisma/adapter-mariadb';
import { createPool, type Pool, type RowDataPacket } from 'mysql2/promise';
import { Protection, RateLimitModule, type ResourceInput, type SlowCall } from 'nestjs-weir';
import { startMariadb } from '../support/brokers.js';
import { PrismaClient } from '../support/prisma-client.mjs';
import { freePort } from '../support/free-port.js';
import { stopAll, until } from '../support/index.js';
import { closeAtEnd } from '../support/processes.js';
import { KnexOrders, KnexOrdersModule } from './knex.js';
import { isPrismaFailure, prismaProtection } from './prisma.js';
import { TypeOrmOrders, TypeOrmOrdersModule } from './typeorm.js';

const HOST = '127.0.0.1';
/** Where the test is about an answer, and the machine may be slow. */
const PATIENT = '60s';
/** Where nothing answers, so that the deadline always comes. */
const SHORT = 50;

let port: number;
let admin: Pool;

beforeAll(async () => {
  ({ port } = await startMariadb());
  admin = createPool({ host: HOST, port, user: 'root' });
  closeAtEnd(() => admin.end());
  await admin.query('CREATE DATABASE shop');
  await admin.query('CREATE TABLE shop.orders (id INT PRIMARY KEY, item VARCHAR(40) NOT NULL)');
  await admin.query("INSERT INTO shop.orders VALUES (7, 'tea')");
  process.env['DATABASE_URL'] = `mysql://root@${HOST}:${port}/shop`;
});
afterAll(() => {
  delete process.env['DATABASE_URL'];
  return stopAll();
});

const ended: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

interface Stand {
  readonly app: INestApplicationContext;
  readonly slow: SlowCall[];
  readonly stats: () => ReturnType<Protection['stats']>[string];
}

async function start(db: ResourceInput, ...imports: Type[]): Promise<Stand> {
  @Module({ imports: [RateLimitModule.forRoot({ protection: { db } }), ...imports] })
  class DatabaseModule {}
  const app = await NestFactory.createApplicationContext(DatabaseModule, { logger: false });
  ended.push(() => app.close());
  const protection = app.get(Protection);
  const slow: SlowCall[] = [];
  protection.on('slow', (call) => slow.push(call));
  return { app, slow, stats: () => protection.stats().db! };
}

/** Nobody else can read the table until the result is called, or the test is over. */
async function lockOrders(): Promise<() => Promise<void>> {
  const connection = await admin.getConnection();
  await connection.query('LOCK TABLES shop.orders WRITE');
  let isLocked = true;
  const unlock = async (): Promise<void> => {
    if (isLocked) await connection.query('UNLOCK TABLES');
    if (isLocked) connection.release();
    isLocked = false;
  };
  ended.push(unlock);
  return unlock;
}

/** Queries of the table that the server has not ended. */
async function waiting(): Promise<number> {
  const [rows] = await admin.query<RowDataPacket[]>(
    "SELECT COUNT(*) AS n FROM information_schema.processlist WHERE state LIKE 'Waiting for table%'",
  );
  return Number(rows[0]!.n);
}

const LATE: ResourceInput = { preset: 'database', deadline: SHORT, slow: { threshold: 1 } };

function prismaOver({ app }: Stand, at = port): PrismaClient {
  const access = { host: HOST, port: at, user: 'root', database: 'shop' };
  const adapter = new PrismaMariaDb({ ...access, connectionLimit: 20, acquireTimeout: 250 });
  const client = new PrismaClient({ adapter });
  ended.push(() => client.$disconnect());
  return client.$extends(prismaProtection(app.get(Protection)));
}

describe.each([
  ['TypeORM', TypeOrmOrdersModule, TypeOrmOrders],
  ['knex', KnexOrdersModule, KnexOrders],
] as const)('%s under @Protect', (_name, module, service) => {
  it('answers', async () => {
    const { app, stats } = await start({ preset: 'database', deadline: PATIENT }, module);
    expect(await app.get(service).find(7)).toEqual({ id: 7, item: 'tea' });
    expect(await app.get(service).find(8)).toBeFalsy();
    expect(stats()).toMatchObject({ succeeded: 2, inFlight: 0, breaker: { failures: 0 } });
  });

  it('has a deadline and a name', async () => {
    await lockOrders();
    const { app, slow } = await start(LATE, module);
    await expect(app.get(service).find(7)).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' });
    expect(slow).toMatchObject([{ label: 'order 7' }]);
  });
});

describe('a query over its deadline', () => {
  it('of knex is ended on the server, and frees its slot', async () => {
    await lockOrders();
    const { app, stats } = await start(LATE, KnexOrdersModule);
    await expect(app.get(KnexOrders).find(7)).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' });
    await until(() => stats().inFlight === 0, { what: 'the slot' });
    await until(async () => (await waiting()) === 0, { what: 'the query to end' });
  });

  it('of TypeORM holds its slot for as long as the server is at it', async () => {
    const unlock = await lockOrders();
    const { app, stats } = await start(LATE, TypeOrmOrdersModule);
    await expect(app.get(TypeOrmOrders).find(7)).rejects.toMatchObject({
      code: 'DEADLINE_EXCEEDED',
    });
    await until(async () => (await waiting()) === 1, { what: 'the query' });
    expect(stats().inFlight).toBe(1);
    await unlock();
    await until(() => stats().inFlight === 0, { what: 'the slot' });
  });

  it('is ended by the server, if it has a time of its own', async () => {
    await lockOrders();
    await admin.query('SET GLOBAL max_statement_time = 0.25');
    ended.push(() => admin.query('SET GLOBAL max_statement_time = 0'));
    const { app, stats } = await start(LATE, TypeOrmOrdersModule);
    await expect(app.get(TypeOrmOrders).find(7)).rejects.toMatchObject({
      code: 'DEADLINE_EXCEEDED',
    });
    await until(() => stats().inFlight === 0, { what: 'the slot' });
  });
});

describe('Prisma under protection', () => {
  const PRISMA: ResourceInput = {
    ...{ preset: 'database', deadline: PATIENT },
    isFailure: isPrismaFailure,
  };

  it('answers', async () => {
    const stand = await start(PRISMA);
    const { order } = prismaOver(stand);
    expect(await order.findUnique({ where: { id: 7 } })).toEqual({ id: 7, item: 'tea' });
    expect(stand.stats()).toMatchObject({ succeeded: 1, inFlight: 0 });
  });

  it('has a deadline and a name', async () => {
    await lockOrders();
    const stand = await start({ ...PRISMA, ...LATE });
    const { order } = prismaOver(stand);
    await expect(order.findUnique({ where: { id: 7 } })).rejects.toMatchObject({
      code: 'DEADLINE_EXCEEDED',
    });
    expect(stand.slow).toMatchObject([{ label: 'Order.findUnique' }]);
  });

  it('takes what is not there, or there already, for an answer, and what is lost for a failure', async () => {
    const stand = await start(PRISMA);
    const { order } = prismaOver(stand);
    const failing = (call: Promise<unknown>, code: string): Promise<void> =>
      expect(call).rejects.toMatchObject({ code });
    await failing(order.findUniqueOrThrow({ where: { id: 8 } }), 'P2025');
    await failing(order.create({ data: { id: 7, item: 'tea' } }), 'P2002');
    expect(stand.stats().breaker).toMatchObject({ calls: 2, failures: 0 });
    const lost = prismaOver(stand, await freePort());
    await failing(lost.order.findUnique({ where: { id: 7 } }), 'P2039');
    await failing(lost.$queryRawUnsafe('SELECT 1'), 'P2010');
    expect(stand.stats().breaker).toMatchObject({ calls: 4, failures: 2 });
  });
});
