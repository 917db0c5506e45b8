import type ts from 'typescript';
import { NOT_BLOCKED, type MovedSource } from './moved-source.js';
import { fieldOf, figureOf, helperOf, ttlOf, unwrap } from './survey.js';

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const;

const BLOCKED =
  'blockDuration is gone: a caller comes back as soon as there is room, and Retry-After says when';

/** The figures of a throttler, wherever they stand: in the module or in a decorator. */
export class Figures {
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
    return [`rate: ${limit.getText()}`, `period: ${period}`];
  }

  private periodText(ttl: ts.Expression): string {
    const { ts, names, project } = this.moved;
    const helped = helperOf(ts, unwrap(ts, ttl), names);
    if (helped !== undefined) return `(${helped.argument.getText()}) * ${helped.unitMs}`;
    return project.countsSeconds ? `(${ttl.getText()}) * 1000` : ttl.getText();
  }

  /** Fields that no figure can say. */
  tellFields(object: ts.ObjectLiteralExpression): void {
    const { ts } = this.moved;
    const blocks = fieldOf(ts, object, 'blockDuration');
    if (blocks !== undefined) this.moved.find(blocks, BLOCKED, NOT_BLOCKED);
    const tracker = fieldOf(ts, object, 'getTracker') ?? fieldOf(ts, object, 'generateKey');
    if (tracker !== undefined) {
      this.moved.find(tracker, "what callers are told apart by becomes key, with 'route' in it");
    }
    const agents = fieldOf(ts, object, 'ignoreUserAgents');
    if (agents !== undefined)
      this.moved.find(agents, 'ignoreUserAgents becomes skipIf of each policy');
  }
}

export function rateText(count: number, ms: number): string {
  for (const [unit, unitMs] of UNITS) {
    if (ms === unitMs) return `${count}/${unit}`;
    if (ms % unitMs === 0) return `${count}/${ms / unitMs}${unit}`;
  }
  return `${count}/${ms}ms`;
}
