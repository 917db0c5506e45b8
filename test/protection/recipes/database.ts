import { type Pool, type RowDataPacket } from 'mysql2/promise';
import { type Protection, type RunContext } from 'nestjs-weir';

/** Queries that end on the server, too, when their deadline has passed or their caller is gone. */
export class Database {
  constructor(
    /** As many connections as `bulkhead.maxInFlight`: who waits, waits where it is bounded. */
    private readonly pool: Pool,
    /** One or two more, which are free when all others are busy. */
    private readonly killers: Pool,
    private readonly protection: Protection,
  ) {}

  query(sql: string, values: unknown[] = [], signal?: AbortSignal): Promise<RowDataPacket[]> {
    const work = (run: RunContext) => this.queryWithin(run, sql, values);
    return this.protection.run('db', work, { label: sql, signal });
  }

  /** Whether it answers at all, within 500 ms: a probe, which must not need a slot that nobody gets. */
  async isWell(): Promise<boolean> {
    const check = { sql: 'SELECT 1 AS one', timeout: 500 };
    const [rows] = await this.killers.query<RowDataPacket[]>(check);
    return rows[0]?.one === 1;
  }

  private async queryWithin(
    { signal }: RunContext,
    sql: string,
    values: unknown[],
  ): Promise<RowDataPacket[]> {
    const connection = await this.pool.getConnection();
    let killed: Promise<unknown> | undefined;
    const kill = (): void => {
      killed = this.killers.query(`KILL QUERY ${connection.threadId}`).catch(() => undefined);
    };
    signal.addEventListener('abort', kill);
    try {
      signal.throwIfAborted();
      const [rows] = await connection.query<RowDataPacket[]>(sql, values);
      return rows;
    } finally {
      signal.removeEventListener('abort', kill);
      await killed;
      // A kill that came too late would hit the next query of this connection.
      if (signal.aborted) connection.destroy();
      else connection.release();
    }
  }
}
