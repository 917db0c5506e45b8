import { parseArgs } from 'node:util';
import { UsageError } from '../simulation/index.js';

type Options = Readonly<Record<string, { readonly type: 'string' | 'boolean' }>>;

export interface Arguments<T extends Options> {
  readonly values: {
    readonly [K in keyof T]?: T[K]['type'] extends 'boolean' ? boolean : string;
  };
  readonly words: readonly string[];
}

/** The options and the other words of a command; throws a UsageError if they are not as they should be. */
export function readArguments<const T extends Options>(
  args: readonly string[],
  options: T,
  [least, most]: readonly [least: number, most: number],
): Arguments<T> {
  const { values, positionals } = parsed(args, options);
  if (positionals.length < least) throw new UsageError('Something is missing.');
  if (positionals.length > most) {
    throw new UsageError(`'${positionals[most]}' is one word too many.`);
  }
  return { values: values as Arguments<T>['values'], words: positionals };
}

function parsed(args: readonly string[], options: Options) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    const [sentence = ''] = (error as Error).message.split('. ', 1);
    throw new UsageError(`${sentence}.`);
  }
}

export function wholeOption(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new UsageError(`${name} must be a whole number; got '${text}'.`);
}

export function dateOption(name: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const date = new Date(text);
  if (!Number.isNaN(date.getTime())) return date;
  throw new UsageError(`${name} must be a time such as 2030-01-31T18:00:00Z; got '${text}'.`);
}
