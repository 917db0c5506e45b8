/** Whether a key is there before anybody has looked at who is calling. */
export function isEarlyKey(key: unknown): boolean {
  if (Array.isArray(key)) return key.every(isEarlyKey);
  if (typeof key === 'object' && key !== null) return 'header' in key;
  return key === 'ip' || key === 'global';
}
