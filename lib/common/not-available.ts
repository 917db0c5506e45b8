/**
 * Parts of the configuration that are planned and have no effect yet. A setting that silently does
 * nothing would be worse than none.
 */
const PLANNED: ReadonlyMap<unknown, string> = new Map([
  ['adaptive', 'adaptive is now overload'],
  ['alerts', 'not available in this version; leave it out'],
]);

export const isPlanned = (name: unknown): boolean => PLANNED.has(name);

export const notAvailable = (name: unknown): string => PLANNED.get(name)!;
