import { Prisma } from '@prisma/client/extension';
import { type Protection } from 'nestjs-weir';

/**
 * Every query of a client under the resource `db`, each by its name:
 *
 *     const adapter = new PrismaMariaDb({ ...access, connectionLimit: 20, acquireTimeout: 250 });
 *     const prisma = new PrismaClient({ adapter }).$extends(prismaProtection(app.get(Protection)));
 */
export const prismaProtection = (protection: Protection) =>
  Prisma.defineExtension({
    query: {
      $allOperations: ({ model, operation, args, query }) =>
        protection.run('db', () => query(args), { label: `${model ?? 'sql'}.${operation}` }),
    },
  });

/** A value, a constraint, a record that is not there: the database has answered. A lost one may be any other code. */
const ANSWERS = /^P20(0\d|1[1-9]|2[0-35])$/;

/** For the option `isFailure` of the resource. */
export function isPrismaFailure(error: unknown): boolean {
  return !ANSWERS.test((error as { code?: string } | undefined)?.code ?? '');
}
