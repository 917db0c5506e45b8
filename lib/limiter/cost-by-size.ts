import { InvalidArgumentError } from '../common/errors.js';

/** The cost of a request by its method, before its size counts. */
const BASE_COSTS: Readonly<Record<string, number>> = {
  GET: 1,
  HEAD: 1,
  OPTIONS: 1,
  DELETE: 2,
  LIST: 3,
  PATCH: 3,
  POST: 5,
  PUT: 5,
};

const UNKNOWN_BASE = 1;
const BYTES_PER_TOKEN = 65_536;

/**
 * The cost of a request by method and size: a base, and a token for each 64 KB that has begun. So a
 * GET of 1 KB costs 2, and a PUT of 10 KB costs 6. `bases` are laid over the usual ones.
 */
export function costBySize(
  method: string,
  bytes: number,
  bases: Readonly<Record<string, number>> = {},
): number {
  if (typeof method !== 'string' || method === '') {
    throw new InvalidArgumentError('method', method, 'a text such as GET');
  }
  if (typeof bytes !== 'number' || !(bytes >= 0) || bytes === Infinity) {
    throw new InvalidArgumentError('bytes', bytes, 'a number of bytes from 0 on');
  }
  const name = method.toUpperCase();
  const base = own(bases, name) ?? own(BASE_COSTS, name) ?? UNKNOWN_BASE;
  if (!Number.isInteger(base) || base < 1) {
    throw new InvalidArgumentError(`bases.${name}`, base, 'a whole number above 0');
  }
  return base + Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** A method may be called like something that every object has. */
function own(costs: Readonly<Record<string, number>>, name: string): number | undefined {
  return Object.hasOwn(costs, name) ? costs[name] : undefined;
}
