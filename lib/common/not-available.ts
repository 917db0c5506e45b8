/** Parts of the configuration that had another name. A setting that silently does nothing would be worse than none. */
const PLANNED: ReadonlyMap<unknown, string> = new Map([['adaptive', 'adaptive is now overload']]);

export const isPlanned = (name: unknown): boolean => PLANNED.has(name);

export const notAvailable = (name: unknown): string => PLANNED.get(name)!;
