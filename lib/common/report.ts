/** Where a part of the library logs what happens to it; one line each. */
export interface Report {
  info(text: string): void;
  warn(text: string): void;
  error(text: string): void;
}
