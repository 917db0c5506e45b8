import { type DegradeMark } from '../degradation/degrade-transport.js';

/** What an answer says of itself in a header or trailer, which take ASCII alone. */
export function markText({ level, reason, notice }: Omit<DegradeMark, 'ageMs' | 'ttlMs'>): string {
  const text = `level=${level}; reason=${reason}`;
  return notice === undefined ? text : `${text}; notice*=UTF-8''${extended(notice)}`;
}

/** As RFC 8187 has it, which escapes a little more than JavaScript does. */
function extended(text: string): string {
  const escape = (one: string): string => `%${one.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(text.toWellFormed()).replace(/['()*]/g, escape);
}
