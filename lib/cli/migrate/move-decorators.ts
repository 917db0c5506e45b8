import type ts from 'typescript';
import { rateText, type MovedFigures } from './figures.js';
import { ADD_UP, OWN_GUARD, type MovedSource } from './moved-source.js';
import { indentAt, indented } from './source-edits.js';
import { figureOf, restFor, ttlOf, unwrap, type Ts } from './survey.js';

/** The decorators of a class or of a method that concern limits. */
interface Decorated {
  readonly throttle: ts.Decorator | undefined;
  readonly throttled: ReadonlyMap<string, string> | undefined;
  /** Comments with what has no counterpart. */
  readonly left: readonly string[];
  readonly guards: ts.Decorator | undefined;
  readonly skip: ts.Decorator | undefined;
}

/** Moves `@Throttle`, `@SkipThrottle` and `@UseGuards(ThrottlerGuard)` of a class and its methods. */
export class DecoratorMove {
  constructor(
    private readonly moved: MovedSource,
    private readonly figures: MovedFigures,
  ) {}

  moveClass(node: ts.ClassDeclaration): void {
    const { ts, project } = this.moved;
    const parent = node.heritageClauses?.flatMap(({ types }) => [...types])[0]?.expression;
    if (parent !== undefined && this.moved.isOf(parent, 'ThrottlerGuard'))
      this.tellGuard(node, parent);
    const own = this.decorated(node);
    const methods = node.members.filter((member) => ts.isMethodDeclaration(member));
    const ofMethods = methods.map((method) => this.decorated(method));
    const named = new Map<string, string>();
    for (const name of own.throttled?.keys() ?? []) {
      const isReplaced = ofMethods.some(({ throttled }) => throttled?.has(name));
      if (isReplaced) named.set(name, this.inlineName(node.name?.text ?? 'class', name));
    }
    const isGuarded = project.isGlobal || own.guards !== undefined;
    this.writeLimits(
      own,
      (name) => (project.isGlobal ? name : undefined),
      named,
      project.isGlobal,
      [],
    );
    for (const method of ofMethods) {
      const outer = (name: string): string | undefined =>
        named.get(name) ?? (isGuarded ? name : undefined);
      const covered = [...(own.throttled?.keys() ?? [])];
      this.writeLimits(method, outer, new Map(), isGuarded, covered);
      const isEffective = isGuarded || method.guards !== undefined;
      if (!isEffective) this.tellUnguarded(method);
    }
    const hasGuard = isGuarded || ofMethods.some(({ guards }) => guards !== undefined);
    if (!hasGuard) this.tellUnguarded(own);
  }

  private tellUnguarded({ throttle, throttled }: Decorated): void {
    if (throttle === undefined || throttled === undefined) return;
    const text =
      'no guard of the throttler was found for it: now it holds, for @RateLimit brings its own';
    this.moved.find(throttle, text, ADD_UP);
  }

  private tellGuard(node: ts.ClassDeclaration, parent: ts.Expression): void {
    this.moved.told.add(parent);
    const isPlain = this.moved.project.plainGuards.has(node.name?.text ?? '');
    this.moved.find(
      node,
      isPlain
        ? 'this guard is needed no more: GraphQL, WebSocket and addresses behind proxies are understood without it. Delete it; what else it does becomes key, skipIf or rejection'
        : OWN_GUARD,
    );
  }

  private inlineName(className: string, name: string): string {
    const words = className.replace(/(Controller|Resolver|Gateway)$/, '') || className;
    const kebab = words.replace(/([a-z0-9])([A-Z])/g, '$1-$2').toLowerCase();
    const full = name === 'default' ? kebab : `${kebab}-${name}`;
    return this.moved.project.throttlers.has(full) ? `${full}-limit` : full;
  }

  private decorated(node: ts.Node): Decorated {
    const { ts } = this.moved;
    const decorators = decoratorsOf(ts, node);
    const isOf = (one: ts.Decorator, name: string): boolean =>
      ts.isCallExpression(one.expression) && this.moved.isOf(one.expression.expression, name);
    const throttle = decorators.find((one) => isOf(one, 'Throttle'));
    const left: string[] = [];
    const throttled = throttle === undefined ? undefined : this.throttledBy(throttle, left);
    const guards = decorators.find(({ expression }) => {
      const isUse =
        ts.isCallExpression(expression) && expression.expression.getText() === 'UseGuards';
      return isUse && expression.arguments.some(this.moved.isPlainGuard);
    });
    return {
      throttle,
      throttled,
      left,
      guards,
      skip: decorators.find((one) => isOf(one, 'SkipThrottle')),
    };
  }

  /** The figures of a `@Throttle`, by the name of the throttler; undefined, and told, if they are not written out. */
  private throttledBy(
    { expression }: ts.Decorator,
    left: string[],
  ): Map<string, string> | undefined {
    const { ts, names, project } = this.moved;
    const [first, second] = (expression as ts.CallExpression).arguments;
    const throttled = new Map<string, string>();
    const given = first === undefined ? undefined : unwrap(ts, first);
    if (given !== undefined && second !== undefined) {
      const count = figureOf(ts, given, names);
      const ms = ttlOf(ts, second, names, project.countsSeconds);
      if (count !== undefined && ms !== undefined) {
        return throttled.set('default', `rate: ${this.moved.quoted(rateText(count, ms))}`);
      }
    }
    const isObject = given !== undefined && ts.isObjectLiteralExpression(given);
    for (const property of isObject ? given.properties : []) {
      const value = ts.isPropertyAssignment(property)
        ? unwrap(ts, property.initializer)
        : undefined;
      const isWritten =
        value !== undefined && ts.isObjectLiteralExpression(value) && this.figures.isKnown(value);
      const name = property.name === undefined ? '' : property.name.getText().replace(/['"`]/g, '');
      const figures = isWritten ? this.figures.of(value, name) : undefined;
      if (figures === undefined) break;
      left.push(...this.figures.leftOf(value as ts.ObjectLiteralExpression));
      throttled.set(name, [...figures, ...this.restOf(name, property)].join(', '));
    }
    const isWhole = isObject && throttled.size === given.properties.length && throttled.size > 0;
    if (isWhole) return throttled;
    this.moved.find(expression, 'the figures are not written out here: write a policy with them');
    if (ts.isCallExpression(expression)) this.moved.told.add(expression.expression);
    return undefined;
  }

  /** A policy in a decorator takes nothing over from the one whose place it has. */
  private restOf(name: string, place: ts.Node): string[] {
    const { project, source } = this.moved;
    const { agents, fields = [] } = restFor(project, name, source.fileName) ?? {};
    if (fields.length > 0) {
      const text = `${name} has ${fields.join(' and ')}, which a policy in a decorator has to repeat`;
      this.moved.find(place, text, ADD_UP);
    }
    const isAlone = agents !== undefined && !fields.includes('skipIf');
    return isAlone ? [`skipIf: (context) => ${agents}`] : [];
  }

  /**
   * `outer` names what would hold beside a limit of that name, and `named` the limits here that others have to name.
   * `isGuarded` says that a guard further out asks already, `covered` which names a decorator there has limits for.
   */
  private writeLimits(
    { throttle, throttled, left, guards, skip }: Decorated,
    outer: (name: string) => string | undefined,
    named: ReadonlyMap<string, string>,
    isGuarded: boolean,
    covered: readonly string[],
  ): void {
    const { ts } = this.moved;
    if (throttle !== undefined && throttled !== undefined) {
      const lines = [...throttled].map(([name, figures]) => {
        const own = named.get(name);
        const called = own === undefined ? '' : `name: ${this.moved.quoted(own)}, `;
        const instead = outer(name);
        const replaces =
          instead === undefined ? '' : `, { instead: ${this.moved.quoted(instead)} }`;
        const policy = `{ ${called}algorithm: ${this.moved.quoted('sliding-window')}, ${figures} }`;
        return `@${this.moved.need('RateLimit')}(${policy}${replaces})`;
      });
      this.writeDecorators(throttle, [...left, ...lines]);
    }
    if (guards !== undefined) {
      const { arguments: all } = guards.expression as ts.CallExpression;
      const others = all.filter((one) => !this.moved.isPlainGuard(one));
      const names = [...this.moved.project.throttlers.keys()].filter(
        (name) => throttled?.has(name) !== true && !covered.includes(name),
      );
      this.writeDecorators(guards, [
        ...(others.length === 0
          ? []
          : [`@UseGuards(${others.map((one) => one.getText()).join(', ')})`]),
        ...(isGuarded
          ? []
          : names.map((name) => `@${this.moved.need('RateLimit')}(${this.moved.quoted(name)})`)),
      ]);
    }
    if (skip !== undefined) this.moveSkip(skip, ts);
  }

  private moveSkip(skip: ts.Decorator, ts: Ts): void {
    const [given] = (skip.expression as ts.CallExpression).arguments;
    const every = [...this.moved.project.throttlers.keys()];
    const [skipped, kept]: [string[] | undefined, string[]] = [[], []];
    const skips = (names: readonly string[]): string =>
      `@${this.moved.need('SkipRateLimit')}(${names.map((name) => this.moved.quoted(name)).join(', ')})`;
    const limits = (names: readonly string[]): string[] =>
      names.map((name) => `@${this.moved.need('RateLimit')}(${this.moved.quoted(name)})`);
    if (given === undefined || given.kind === ts.SyntaxKind.TrueKeyword) {
      return this.writeDecorators(skip, [skips([])]);
    }
    if (given.kind === ts.SyntaxKind.FalseKeyword) return this.writeDecorators(skip, limits(every));
    const properties = ts.isObjectLiteralExpression(given) ? given.properties : [];
    for (const property of properties) {
      const value = ts.isPropertyAssignment(property) ? property.initializer.kind : undefined;
      const name = property.name?.getText().replace(/['"`]/g, '') ?? '';
      if (value === ts.SyntaxKind.TrueKeyword) skipped.push(name);
      else if (value === ts.SyntaxKind.FalseKeyword) kept.push(name);
    }
    if (properties.length === 0 || skipped.length + kept.length < properties.length) {
      this.moved.find(
        skip,
        'what it skips is not written out here: @SkipRateLimit takes names of policies',
      );
      this.moved.told.add((skip.expression as ts.CallExpression).expression);
      return;
    }
    const isAll = every.every((name) => skipped.includes(name));
    this.writeDecorators(skip, [
      ...(skipped.length === 0 ? [] : [skips(isAll ? [] : skipped)]),
      ...limits(kept),
    ]);
  }

  private writeDecorators(decorator: ts.Decorator, lines: readonly string[]): void {
    const [start, end] = [decorator.getStart(), decorator.getEnd()];
    if (lines.length === 0) return this.moved.edits.remove(start, end);
    const indent = indentAt(this.moved.text, start);
    this.moved.edits.replace(start, end, indented(lines, indent).join('\n').slice(indent.length));
  }
}

function decoratorsOf(ts: Ts, node: ts.Node): readonly ts.Decorator[] {
  const { decorators } = node as { decorators?: readonly ts.Decorator[] };
  if (decorators !== undefined) return decorators;
  return ts.canHaveDecorators?.(node) ? (ts.getDecorators(node) ?? []) : [];
}
