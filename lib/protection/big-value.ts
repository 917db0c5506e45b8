import { InvalidArgumentError } from '../common/errors.js';
import { BigValueError } from './errors.js';
import { type ResourceSettings } from './resource-settings.js';
import { type ResourceCounts } from './resource-stats.js';

/** UTF-8 takes from one to three bytes for each unit of a JavaScript text. */
const MOST_BYTES_PER_UNIT = 3;

export function refuseBigValue(
  resource: string,
  value: unknown,
  { maxValueBytes }: ResourceSettings,
  counts: ResourceCounts,
): void {
  if (maxValueBytes === Infinity) return;
  const bytes = bytesAbove(value, maxValueBytes);
  if (bytes === undefined) return;
  counts.bigValues++;
  throw new BigValueError(resource, bytes, maxValueBytes);
}

/** The bytes of a value if they are more than `maxBytes`, else undefined. Measures no more than it has to. */
export function bytesAbove(value: unknown, maxBytes: number): number | undefined {
  if (typeof value === 'string') return textAbove(value, maxBytes);
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    return value.byteLength > maxBytes ? value.byteLength : undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  return textAbove(jsonOf(value), maxBytes);
}

function textAbove(text: string, maxBytes: number): number | undefined {
  if (text.length * MOST_BYTES_PER_UNIT <= maxBytes) return undefined;
  const bytes = Buffer.byteLength(text);
  return bytes > maxBytes ? bytes : undefined;
}

/** Objects are taken for what nearly everybody sends of them. */
function jsonOf(value: object): string {
  try {
    // `toJSON` may answer with nothing.
    const text: unknown = JSON.stringify(value);
    return typeof text === 'string' ? text : '';
  } catch {
    throw new InvalidArgumentError('value', typeof value, 'bytes, a text, or what JSON can hold');
  }
}
