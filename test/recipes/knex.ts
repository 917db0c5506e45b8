import { Inject, Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import knex, { type Knex } from 'knex';
import { currentRun, Protect } from 'nestjs-weir';

const KNEX = Symbol('knex');

interface Order {
  readonly id: number;
  readonly item: string;
}

@Injectable()
export class KnexOrders implements OnModuleDestroy {
  constructor(@Inject(KNEX) private readonly db: Knex) {}

  @Protect('db', { call: (id: number) => ({ label: `order ${id}` }) })
  async find(id: number): Promise<Order | undefined> {
    // A little after the deadline, of which the caller is told, the query is ended on the server, and so frees its slot.
    const endAfterMs = Math.ceil(currentRun()!.remainingMs) + 20;
    return this.db<Order>('orders').where({ id }).first().timeout(endAfterMs, { cancel: true });
  }

  onModuleDestroy(): Promise<void> {
    return this.db.destroy();
  }
}

@Module({
  providers: [
    {
      provide: KNEX,
      useFactory: () =>
        knex({ client: 'mysql2', connection: process.env['DATABASE_URL']!, pool: { max: 20 } }),
    },
    KnexOrders,
  ],
})
export class KnexOrdersModule {}
