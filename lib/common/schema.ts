/**
 * The form of a document: a tree of small checks, each of which knows the sentence that it expects and
 * its form in JSON Schema. Written for this library, which needs a dozen kinds of value: a general
 * validator was a third of the time that importing the package took, and most of what it installed.
 */

export type PathSegment = string | number;

/** A fault of a value, and where below it. */
export type SchemaFault =
  /** `isNear` if only a bound is missed: the value is of the right kind. */
  | (FaultAt & { readonly kind: 'value'; readonly isNear: boolean })
  /** The last segment of the path is a name that is none. */
  | (FaultAt & { readonly kind: 'name' })
  /** The value is like none of several forms; `forms` has the faults by each of them. */
  | (FaultAt & { readonly kind: 'form'; readonly forms: readonly (readonly SchemaFault[])[] })
  /** Fields that the object does not have. */
  | { readonly kind: 'unknown'; readonly at: readonly PathSegment[]; readonly names: string[] };

interface FaultAt {
  readonly at: readonly PathSegment[];
  readonly expected: string;
}

type JsonSchema = Record<string, unknown>;

export abstract class Schema<T> {
  /** Only a type: the value that passes. */
  declare readonly passes: T;

  abstract faults(value: unknown): SchemaFault[];

  abstract json(): JsonSchema;
}

/** A field of an object that may be left out. */
export class Field<T> {
  constructor(
    readonly of: Schema<T>,
    private readonly meta: JsonSchema,
  ) {}

  json(): JsonSchema {
    return { ...this.meta, ...this.of.json() };
  }
}

export type Shape = Readonly<Record<string, Schema<unknown> | Field<unknown>>>;

/** The type of the values that pass a schema. */
export type Passing<S> = S extends Schema<infer T> ? T : never;

type FieldsOf<S extends Shape> = {
  -readonly [K in keyof S as S[K] extends Field<unknown> ? K : never]?:
    | (S[K] extends Field<infer T> ? T : never)
    | undefined;
} & {
  -readonly [K in keyof S as S[K] extends Field<unknown> ? never : K]: Passing<S[K]>;
};

/** One object, so that messages of the compiler speak of its fields. */
export type Flat<T> = { [K in keyof T]: T[K] };

class Value<T> extends Schema<T> {
  constructor(
    private readonly expected: string,
    private readonly schema: JsonSchema,
    private readonly isKind: (value: unknown) => boolean,
    private readonly isWithin: (value: never) => boolean = () => true,
  ) {
    super();
  }

  faults(value: unknown): SchemaFault[] {
    const isNear = this.isKind(value);
    if (isNear && this.isWithin(value as never)) return [];
    return [{ kind: 'value', at: [], expected: this.expected, isNear }];
  }

  json(): JsonSchema {
    return { ...this.schema };
  }
}

/** Bounds by the names that JSON Schema has for them. */
export interface NumberBounds {
  readonly type?: 'number' | 'integer';
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly exclusiveMaximum?: number;
}

export function number(
  expected: string,
  bounds: NumberBounds,
  isValid: (value: number) => boolean = () => true,
): Schema<number> {
  const { type = 'number', ...limits } = bounds;
  const { minimum = -Infinity, maximum = Infinity } = bounds;
  const { exclusiveMinimum = -Infinity, exclusiveMaximum = Infinity } = bounds;
  const isWithin = (value: number): boolean =>
    value >= minimum &&
    value <= maximum &&
    value > exclusiveMinimum &&
    value < exclusiveMaximum &&
    isValid(value);
  const isKind = type === 'integer' ? Number.isSafeInteger : Number.isFinite;
  return new Value(expected, { type, ...limits }, isKind, isWithin);
}

/** A text; `isValid` says what its form for editors cannot. */
export function text(
  expected: string,
  form: { readonly minLength?: number; readonly pattern?: string },
  isValid: (value: string) => boolean,
): Schema<string> {
  const isText = (value: unknown): boolean => typeof value === 'string';
  return new Value(expected, { type: 'string', ...form }, isText, isValid);
}

export function flag(expected: string): Schema<boolean> {
  return new Value(expected, { type: 'boolean' }, (value) => typeof value === 'boolean');
}

export function literal<const T extends number | boolean>(expected: string, only: T): Schema<T> {
  return new Value(expected, { type: typeof only, const: only }, (value) => value === only);
}

export function choice<const T extends string>(expected: string, of: readonly T[]): Schema<T> {
  const schema = { type: 'string', enum: [...of] };
  return new Value(expected, schema, (value) => of.includes(value as T));
}

/** One of several forms. */
export class Union<T> extends Schema<T> {
  constructor(
    readonly forms: readonly Schema<unknown>[],
    private readonly expected: string,
  ) {
    super();
  }

  faults(value: unknown): SchemaFault[] {
    const forms: SchemaFault[][] = [];
    for (const form of this.forms) {
      const faults = form.faults(value);
      if (faults.length === 0) return [];
      forms.push(faults);
    }
    // The value is of this form and of no other, so what this form says of it is what is wrong.
    const [only, ...others] = forms.filter((faults) => faults.every(isNear));
    if (only !== undefined && others.length === 0) return only;
    return [{ kind: 'form', at: [], expected: this.expected, forms }];
  }

  json(): JsonSchema {
    return { anyOf: this.forms.map((form) => form.json()) };
  }
}

const isNear = (fault: SchemaFault): boolean =>
  fault.kind === 'unknown' || (fault.kind === 'value' && fault.isNear);

export function union<const S extends readonly Schema<unknown>[]>(
  expected: string,
  ...forms: S
): Union<Passing<S[number]>> {
  return new Union(forms, expected);
}

export interface ListBounds {
  readonly minItems?: number;
  readonly maxItems?: number;
}

export class List<T> extends Schema<T[]> {
  constructor(
    private readonly expected: string,
    readonly of: Schema<T>,
    private readonly bounds: ListBounds = {},
    private readonly isValid: (items: readonly T[]) => boolean = () => true,
  ) {
    super();
  }

  faults(value: unknown): SchemaFault[] {
    const { expected } = this;
    if (!Array.isArray(value)) return [{ kind: 'value', at: [], expected, isNear: false }];
    const faults = value.flatMap((item, place) => below(place, this.of.faults(item)));
    const { minItems = 0, maxItems = Infinity } = this.bounds;
    const isWithin = value.length >= minItems && value.length <= maxItems;
    // Only items of the right kind can be asked for more.
    if (isWithin && (!faults.every(isNear) || this.isValid(value as T[]))) return faults;
    return [...faults, { kind: 'value', at: [], expected, isNear: true }];
  }

  json(): JsonSchema {
    return { ...this.bounds, type: 'array', items: this.of.json() };
  }
}

/** Things by name. */
export class Named<T> extends Schema<Record<string, T>> {
  constructor(
    private readonly expected: string,
    readonly of: Schema<T>,
    private readonly name?: { readonly form: RegExp; readonly expected: string },
    private readonly isValid: (things: Readonly<Record<string, T>>) => boolean = () => true,
  ) {
    super();
  }

  faults(value: unknown): SchemaFault[] {
    const { expected, name } = this;
    if (!isObject(value)) return [{ kind: 'value', at: [], expected, isNear: false }];
    const faults = Object.keys(value).flatMap((key): SchemaFault[] => {
      const isName = name === undefined || name.form.test(key);
      if (!isName) return [{ kind: 'name', at: [key], expected: name.expected }];
      return below(key, this.of.faults(value[key]));
    });
    if (!faults.every(isNear) || this.isValid(value as Record<string, T>)) return faults;
    return [...faults, { kind: 'value', at: [], expected, isNear: true }];
  }

  json(): JsonSchema {
    const pattern = this.name && { pattern: this.name.form.source };
    const propertyNames = { type: 'string', ...pattern };
    return { type: 'object', propertyNames, additionalProperties: this.of.json() };
  }
}

/** An object that has these fields and no others. */
export class Group<S extends Shape> extends Schema<Flat<FieldsOf<S>>> {
  constructor(
    private readonly expected: string,
    readonly shape: S,
  ) {
    super();
  }

  faults(value: unknown): SchemaFault[] {
    const { expected, shape } = this;
    if (!isObject(value)) return [{ kind: 'value', at: [], expected, isNear: false }];
    const faults = Object.keys(shape).flatMap((name) => {
      const own = Object.hasOwn(value, name) ? value[name] : undefined;
      const field = shape[name]!;
      if (field instanceof Schema) return below(name, field.faults(own));
      return own === undefined ? [] : below(name, field.of.faults(own));
    });
    const names = Object.keys(value).filter((name) => !Object.hasOwn(shape, name));
    return names.length === 0 ? faults : [...faults, { kind: 'unknown', at: [], names }];
  }

  json(): JsonSchema {
    const entries = Object.entries(this.shape);
    const properties = Object.fromEntries(entries.map(([name, field]) => [name, field.json()]));
    const required = entries.flatMap(([name, field]) => (field instanceof Schema ? [name] : []));
    const must = required.length === 0 ? {} : { required };
    return { type: 'object', properties, ...must, additionalProperties: false };
  }
}

function below(segment: PathSegment, faults: readonly SchemaFault[]): SchemaFault[] {
  return faults.map((fault) => ({ ...fault, at: [segment, ...fault.at] }));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
