import { type Envelope, type SealedEnvelope } from './shared-cache.js';

/** Larger answers are refused: one of them would hold up everything behind it on the connection. */
export const MOST_BYTES = 1_048_576;

/** A value nested deeper is no answer: to write or to walk through it would end in an error. */
const DEEPEST = 100;

/** The envelope as text; undefined if its body cannot be one. */
export function seal({ v, t, kind, body }: Envelope): SealedEnvelope | undefined {
  try {
    // A body that JSON leaves out would come back as an answer without one.
    const json = JSON.stringify(body) as string | undefined;
    if (json === undefined || isTooDeep(json, DEEPEST)) return undefined;
    const head = JSON.stringify({ v, t, kind });
    const text = `${head.slice(0, -1)},"body":${json}}`;
    return { text, bytes: Buffer.byteLength(text) };
  } catch {
    return undefined;
  }
}

/** The sealed answer; undefined for any other text. */
export function unseal(text: string): Envelope | undefined {
  try {
    // The envelope is a level of its own.
    if (isTooDeep(text, DEEPEST + 1)) return undefined;
    const value: unknown = JSON.parse(text);
    return isEnvelope(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Of JSON that may be anybody's, before it is made into values. */
export function isTooDeep(json: string, most: number): boolean {
  let depth = 0;
  let isInText = false;
  for (let i = 0; i < json.length; i++) {
    const sign = json[i];
    if (isInText) {
      if (sign === '\\') i++;
      else if (sign === '"') isInText = false;
    } else if (sign === '"') isInText = true;
    else if (sign === '{' || sign === '[') {
      if (++depth > most) return true;
    } else if (sign === '}' || sign === ']') depth--;
  }
  return false;
}

function isEnvelope(value: unknown): value is Envelope {
  if (value === null || typeof value !== 'object' || !('body' in value)) return false;
  const { v, t, kind } = value as Partial<Envelope>;
  const hasVersion = typeof v === 'string' || typeof v === 'number';
  return hasVersion && typeof kind === 'string' && typeof t === 'number' && Number.isFinite(t);
}
