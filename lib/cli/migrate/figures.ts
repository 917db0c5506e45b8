import type ts from 'typescript';
import { NOT_BLOCKED, UNKNOWN, WORDS, type MovedSource } from './moved-source.js';
import { agentsOf, fieldOf, figureOf, helperOf, ttlOf, unwrap } from './survey.js';

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const;

const BLOCKED =
  'blockDuration is gone: a caller comes back as soon as there is room, and Retry-After says when';

const NO_NUMBER =
  'a figure that is no number stops the start, where the throttler limited nothing: see what is in there';

/** Fields of a throttler that have a counterpart, or a finding of their own. */
const KNOWN = new Set(['name', 'limit', 'ttl', 'blockDuration', 'skipIf', 'ignoreUserAgents']);
/** Fields that only a person can write anew, and what they become. */
const BY_HAND: Readonly<Record<string, string>> = {
  getTracker: "key, such as ['user', 'route'] or (context) => …",
  generateKey: "key, with 'route' in it if each route counts by itself",
  setHeaders: 'headers, of the module',
};

/** The figures of a throttler, wherever they stand: in the module or in a decorator. */
export class MovedFigures {
  constructor(private readonly moved: MovedSource) {}

  /** `rate`, and its `period` if that is not a figure. */
  of(object: ts.ObjectLiteralExpression, name: string): readonly string[] | undefined {
    const { ts, names, project } = this.moved;
    const limit = fieldOf(ts, object, 'limit');
    const ttl = fieldOf(ts, object, 'ttl');
    const isLost = (value: typeof limit): boolean =>
      value !== undefined &&
      (ts.isMethodDeclaration(value) || ts.isFunctionLike(unwrap(ts, value)));
    if (limit === undefined || isLost(limit) || isLost(ttl)) {
      if (isLost(limit) || isLost(ttl)) {
        this.moved.find(
          (limit ?? ttl)!,
          'a limit by caller becomes tiers, with tier: (context) => …',
        );
      }
      return undefined;
    }
    const count = figureOf(ts, limit as ts.Expression, names);
    const ms =
      ttl === undefined
        ? project.throttlers.get(name)
        : ttlOf(ts, ttl as ts.Expression, names, project.countsSeconds);
    if (count !== undefined && ms !== undefined)
      return [`rate: ${this.moved.quoted(rateText(count, ms))}`];
    if (ttl === undefined && ms === undefined) return undefined;
    const period = ms ?? this.periodText(ttl as ts.Expression);
    return [`rate: ${this.numberText(limit as ts.Expression, 'rate: ')}`, `period: ${period}`];
  }

  private periodText(ttl: ts.Expression): string {
    const { ts, names, project } = this.moved;
    const helped = helperOf(ts, unwrap(ts, ttl), names);
    if (helped !== undefined) {
      this.moved.find(ttl, NO_NUMBER, UNKNOWN, 'period: ');
      return `(${this.moved.textOf(helped.argument)}) * ${helped.unitMs}`;
    }
    const text = this.numberText(ttl, 'period: ');
    return project.countsSeconds ? `${text} * 1000` : text;
  }

  /** Settings are texts, which the throttler reckons with and this library refuses. */
  private numberText(value: ts.Expression, field: string): string {
    const { ts, names } = this.moved;
    const text = this.moved.textOf(value);
    const inner = unwrap(ts, value);
    const stated = ts.isIdentifier(inner) ? this.constOf(inner) : inner;
    if (stated !== undefined && figureOf(ts, stated, names) !== undefined) return text;
    this.moved.find(value, NO_NUMBER, UNKNOWN, field);
    return /^(Number|parseInt|parseFloat|Math\.\w+)\(.*\)$|^\+/s.test(text)
      ? text
      : `Number(${text})`;
  }

  /** The value of a const of this file. */
  private constOf({ text }: ts.Identifier): ts.Expression | undefined {
    const { ts, source } = this.moved;
    const declared = source.statements.flatMap((statement) =>
      ts.isVariableStatement(statement) ? [...statement.declarationList.declarations] : [],
    );
    return declared.find(({ name }) => name.getText() === text)?.initializer;
  }

  /** Fields that no figure can say: comments with what a person has to write anew. */
  leftOf(object: ts.ObjectLiteralExpression): string[] {
    const { ts } = this.moved;
    const blocks = fieldOf(ts, object, 'blockDuration');
    if (blocks !== undefined) this.moved.find(blocks, BLOCKED, NOT_BLOCKED);
    return object.properties.flatMap((property) => {
      const name = property.name?.getText() ?? '';
      const agents = name === 'ignoreUserAgents' ? fieldOf(ts, object, name) : undefined;
      const isMoved = agents === undefined ? KNOWN.has(name) : agentsOf(ts, agents) !== undefined;
      const byHand = agents === undefined ? BY_HAND[name] : 'skipIf of each policy';
      if (isMoved || byHand === undefined) return [];
      const comment = this.moved.keep(property);
      const text = `${name} is a comment now: write it as ${byHand}`;
      this.moved.find(property, text, WORDS, comment);
      return [comment];
    });
  }

  /** Whether every field of it is known: what is spread in, or of another version, would be lost. */
  isKnown(object: ts.ObjectLiteralExpression, more: readonly string[] = []): boolean {
    return object.properties.every((property) => {
      const name = property.name?.getText() ?? '';
      return KNOWN.has(name) || BY_HAND[name] !== undefined || more.includes(name);
    });
  }
}

export function rateText(count: number, ms: number): string {
  for (const [unit, unitMs] of UNITS) {
    if (ms === unitMs) return `${count}/${unit}`;
    if (ms % unitMs === 0) return `${count}/${ms / unitMs}${unit}`;
  }
  return `${count}/${ms}ms`;
}
