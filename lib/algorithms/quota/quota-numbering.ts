/**
 * Calls name apps by number, so a number never goes to another app: those that are known keep theirs,
 * new ones come after them, and those that are gone leave their place empty until they are back.
 */
export function numbered(known: readonly string[], apps: readonly string[]): readonly string[] {
  const added = apps.filter((app) => !known.includes(app));
  return added.length === 0 ? known : [...known, ...added];
}
