import { type Envelope, type SealedEnvelope } from './shared-cache.js';

/** Larger answers are refused: one of them would hold up everything behind it on the connection. */
export const MOST_BYTES = 1_048_576;

/** The envelope as text; undefined if its body cannot be one. */
export function seal({ v, t, kind, body }: Envelope): SealedEnvelope | undefined {
  try {
    // What JSON leaves out would come back as an answer without a body.
    const json = JSON.stringify(body) as string | undefined;
    if (json === undefined) return undefined;
    const head = JSON.stringify({ v, t, kind });
    const text = `${head.slice(0, -1)},"body":${json}}`;
    return { text, bytes: Buffer.byteLength(text) };
  } catch {
    return undefined;
  }
}

/** What was sealed; undefined for any other text. */
export function unseal(text: string): Envelope | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isEnvelope(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isEnvelope(value: unknown): value is Envelope {
  if (value === null || typeof value !== 'object' || !('body' in value)) return false;
  const { v, t, kind } = value as Partial<Envelope>;
  const hasVersion = typeof v === 'string' || typeof v === 'number';
  return hasVersion && typeof kind === 'string' && typeof t === 'number' && Number.isFinite(t);
}
