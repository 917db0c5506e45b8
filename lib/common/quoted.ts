/** Enough to recognise something by, and too little to fill a log with. */
const LONGEST_QUOTE = 100;

/** Characters that steer a terminal, or make one line look like two: controls, line ends, directions, tags. */
const STEERING = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Words of a caller as they may stand in a log: cut, in quotes, and nothing but text. */
export function quoted(text: string, longest = LONGEST_QUOTE): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return escaped(JSON.stringify(cut));
}

/** JSON leaves some of these signs as they are. */
export function escaped(json: string): string {
  return json.replace(STEERING, written);
}

/** A thrown value as it may stand in a log; this never throws itself. */
export function quotedError(error: unknown): string {
  try {
    return quoted(error instanceof Error ? error.message : String(error));
  } catch {
    return 'an error without a message';
  }
}

/** A text of one line or several as it may stand in one line of a log: nothing but text, line after line. */
export function inOneLine(text: string): string {
  return text
    .replace(/:\r?\n\s*/, ': ')
    .replace(/\s*\n\s*/g, '; ')
    .replace(/\s+/g, ' ')
    .replace(STEERING, '');
}

/** The same text as it may stand on a terminal: in its lines, and nothing but text. */
export function withoutSteering(text: string): string {
  return text.replace(STEERING, (sign) => (sign === '\n' || sign === '\t' ? sign : ''));
}

function written(sign: string): string {
  const code = sign.codePointAt(0)!.toString(16);
  return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, '0')}`;
}
