/** Where a configuration says what happens to it; one line each. */
export interface Report {
  info(text: string): void;
  warn(text: string): void;
  error(text: string): void;
}

/**
 * Several faults are told line by line where people read them, and in one line of a log; there nothing
 * steers a terminal either, whoever has chosen a name that is told.
 */
export const inOneLine = (text: string): string =>
  text
    .replace(/:\n\s*/, ': ')
    .replace(/\s*\n\s*/g, '; ')
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '');
