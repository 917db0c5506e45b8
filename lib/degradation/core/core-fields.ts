/** The value with these fields only, `price.amount` for inner ones; of a list, each item so. */
export function keepFields(value: unknown, fields: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => keepFields(item, fields));
  if (value === null || typeof value !== 'object') return value;
  const kept: Record<string, unknown> = {};
  for (const [name, inner] of byFirstName(fields)) {
    if (!Object.hasOwn(value, name)) continue;
    const field = (value as Record<string, unknown>)[name];
    put(kept, name, inner.length === 0 ? field : keepFields(field, inner));
  }
  return kept;
}

/** `a` keeps all of it, whatever `a.b` says beside it. */
function byFirstName(fields: readonly string[]): Map<string, string[]> {
  const whole = new Set(fields.filter((field) => !field.includes('.')));
  const parts = new Map<string, string[]>();
  for (const field of fields) {
    const [name = '', ...rest] = field.split('.');
    const inner = parts.get(name) ?? [];
    if (!whole.has(name)) inner.push(rest.join('.'));
    parts.set(name, inner);
  }
  return parts;
}

/** As a property of its own even where the name means something, as `__proto__` does. */
function put(target: object, name: string, value: unknown): void {
  Object.defineProperty(target, name, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  });
}
