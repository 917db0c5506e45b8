import { Injectable } from '@nestjs/common';
import { currentRun, Protect, type Protection } from 'nestjs-weir';

// What is used of each package, so that this file needs none of them. In your application import
// DataSource of typeorm, PrismaClient of your generated client and Knex of knex instead.
interface DataSource {
  query(sql: string, parameters?: unknown[]): Promise<unknown>;
}
interface PrismaQuery {
  readonly model?: string;
  readonly operation: string;
  readonly args: unknown;
  readonly query: (args: unknown) => Promise<unknown>;
}
interface Knex {
  raw(sql: string, bindings: readonly unknown[]): KnexQuery;
}
interface KnexQuery extends Promise<unknown> {
  timeout(ms: number, options: { cancel: boolean }): Promise<unknown>;
}

/** TypeORM cannot cancel a query: let the server end it, by `extra: { statement_timeout: 250 }`. */
@Injectable()
export class TypeOrmOrders {
  constructor(private readonly source: DataSource) {}

  @Protect('db', { call: (id: string) => ({ label: `order ${id}` }) })
  find(id: string): Promise<unknown> {
    return this.source.query('SELECT * FROM orders WHERE id = $1', [id]);
  }
}

/** `new PrismaClient().$extends(prismaProtection(protection))`: every query, by its name. */
export function prismaProtection(protection: Protection) {
  return {
    query: {
      $allOperations: ({ model, operation, args, query }: PrismaQuery) =>
        protection.run('db', () => query(args), { label: `${model ?? 'sql'}.${operation}` }),
    },
  };
}

/** P2025 is "not found": the database has answered. For the option `isFailure` of the resource. */
export function isPrismaFailure(error: unknown): boolean {
  return !/^P2/.test((error as { code?: string } | undefined)?.code ?? '');
}

/** knex ends a query on the server when its time is over, and so frees the slot. */
@Injectable()
export class KnexOrders {
  constructor(private readonly knex: Knex) {}

  @Protect('db', { call: (id: string) => ({ label: `order ${id}` }) })
  find(id: string): Promise<unknown> {
    const { remainingMs } = currentRun()!;
    const query = this.knex.raw('SELECT * FROM orders WHERE id = ?', [id]);
    return query.timeout(Math.max(1, Math.floor(remainingMs)), { cancel: true });
  }
}
