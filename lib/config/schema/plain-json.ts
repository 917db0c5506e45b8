import { type ConfigIssue } from '../../common/errors.js';
import { type PathSegment } from '../../common/schema.js';
import { isForbidden, isObject } from '../document/json.js';
import { issue } from './issue.js';

/** Larger documents are refused. */
export const MOST_BYTES = 1_048_576;
/** A thousand apps and a thousand policies have fewer; every process checks all of them at once. */
export const MOST_KEYS = 20_000;
const MOST_DEPTH = 32;

/**
 * A copy of a value that holds nothing but plain JSON, shares nothing with the original, and has no
 * field by which a prototype could be reached. Fields that are undefined are left out.
 */
export function plainJson(value: unknown): PlainCopy {
  const copying = new Copying();
  const copy = copying.copy(value);
  return { copy, issues: copying.issues, isComplete: !copying.isFull };
}

export interface PlainCopy {
  readonly copy: unknown;
  readonly issues: readonly ConfigIssue[];
  /** False if it was given up because it is too large. */
  readonly isComplete: boolean;
}

class Copying {
  readonly issues: ConfigIssue[] = [];
  /** The path of the value that is being copied. */
  private readonly path: PathSegment[] = [];
  private bytes = 0;
  private keys = 0;

  copy(value: unknown): unknown {
    if (this.isFull) return undefined;
    if (this.path.length > MOST_DEPTH) {
      return this.refuse('…', `no more than ${MOST_DEPTH} levels`);
    }
    this.count(2);
    if (Array.isArray(value)) return value.map((one, place) => this.copyAt(place, one));
    if (isObject(value) && isPlain(value)) return this.copyObject(value);
    if (!isScalar(value)) return this.refuse(value, 'a value that JSON can carry');
    this.count(typeof value === 'string' ? Buffer.byteLength(value) + 2 : 8);
    return value;
  }

  private copyObject(value: Record<string, unknown>): unknown {
    const copy: Record<string, unknown> = {};
    for (const name of Object.keys(value)) {
      this.count(Buffer.byteLength(name) + 4);
      if (isForbidden(name)) this.forbid(name);
      else if (value[name] !== undefined) copy[name] = this.copyAt(name, value[name]);
    }
    return copy;
  }

  private copyAt(segment: PathSegment, value: unknown): unknown {
    this.path.push(segment);
    this.count(0, 1);
    const copy = this.copy(value);
    this.path.pop();
    return copy;
  }

  /** Aliases can make much of a short text: so it is counted while it is copied. */
  private count(bytes: number, keys = 0): void {
    if (this.isFull) return;
    this.bytes += bytes;
    this.keys += keys;
    if (!this.isFull) return;
    const most = this.bytes > MOST_BYTES ? `${MOST_BYTES} bytes` : `${MOST_KEYS} keys`;
    this.issues.push(issue([], undefined, `no more than ${most}`, 'is too large'));
  }

  get isFull(): boolean {
    return this.bytes > MOST_BYTES || this.keys > MOST_KEYS;
  }

  private refuse(value: unknown, expected: string): undefined {
    this.issues.push(issue([...this.path], value, expected));
  }

  private forbid(name: string): void {
    const at = [...this.path, name];
    this.issues.push(issue(at, undefined, 'another name', 'no field may be called so'));
  }
}

/** An object of a class of options counts, a date or a map does not. */
function isPlain(value: object): boolean {
  return Object.prototype.toString.call(value) === '[object Object]';
}

function isScalar(value: unknown): boolean {
  return (
    value === null ||
    typeof value === 'string' ||
    typeof value === 'boolean' ||
    (typeof value === 'number' && Number.isFinite(value))
  );
}

/** The same without the fields that are null: what a patch removes has no shape. */
export function withoutNulls(value: unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, one]) => one !== null)
      .map(([name, one]) => [name, withoutNulls(one)]),
  );
}
