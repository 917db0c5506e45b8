import { parseArgs } from 'node:util';
import { UsageError } from './command.js';

interface Option {
  readonly type: 'string' | 'boolean';
  readonly multiple?: true;
}

/** An option with a value, and one without. */
export const TEXT = { type: 'string' } as const;
export const FLAG = { type: 'boolean' } as const;

type Options = Readonly<Record<string, Option>>;

type ValueOf<T extends Option> = T['type'] extends 'boolean'
  ? boolean
  : T extends { readonly multiple: true }
    ? string[]
    : string;

export interface Arguments<T extends Options> {
  readonly values: {
    readonly [K in keyof T]?: ValueOf<T[K]>;
  };
  readonly words: readonly string[];
}

/** The options and the other words of a command; throws a UsageError if they are not as they should be. */
export function readArguments<const T extends Options>(
  args: readonly string[],
  options: T,
  [least, most]: readonly [least: number, most: number],
  needed = 'Something',
): Arguments<T> {
  const { values, positionals } = parsed(args, options);
  if (positionals.length < least) throw new UsageError(`${needed} is missing.`);
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

export function wholeOption(
  name: string,
  text: string | undefined,
  least = 0,
  most = Infinity,
): number | undefined {
  if (text === undefined) return undefined;
  const isWhole = /^\d{1,15}$/.test(text);
  if (isWhole && Number(text) >= least && Number(text) <= most) return Number(text);
  const to = most === Infinity ? '' : ` to ${most}`;
  const from = least === 0 && to === '' ? '' : ` from ${least}${to}`;
  throw new UsageError(`${name} must be a whole number${from}; got '${text}'.`);
}

export function dateOption(name: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const date = new Date(text);
  if (!Number.isNaN(date.getTime())) return date;
  throw new UsageError(`${name} must be a time such as 2030-01-31T18:00:00Z; got '${text}'.`);
}
