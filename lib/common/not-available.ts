/**
 * Parts of the configuration that are planned and have no effect yet. A setting that silently does
 * nothing would be worse than none.
 */
const PLANNED: readonly string[] = ['adaptive', 'alerts'];

export const isPlanned = (name: unknown): boolean => PLANNED.includes(name as string);

export const NOT_AVAILABLE = 'not available in this version; leave it out';
