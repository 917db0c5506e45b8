/** Enough to recognise something by, and too little to fill a log with. */
const LONGEST_QUOTE = 100;

/** What a terminal or a reader of logs may take for more than text: C1, line ends, directions. */
const INVISIBLE =
  /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** Words of a caller as they may stand in a log: cut, in quotes, and nothing but text. */
export function quoted(text: string, longest = LONGEST_QUOTE): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return plainText(JSON.stringify(cut));
}

/** What was thrown, as it may stand in a log; whatever it is, this does not throw. */
export function quotedError(error: unknown): string {
  try {
    return quoted(error instanceof Error ? error.message : String(error));
  } catch {
    return 'an error without a message';
  }
}

/** The same text with everything invisible in it written out. */
export function plainText(text: string): string {
  return text.replace(INVISIBLE, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
