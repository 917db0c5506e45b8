import type ts from 'typescript';
import { indentAt, SourceEdits } from './source-edits.js';
import {
  fieldOf,
  figureOf,
  helperOf,
  isGuardOfApp,
  isThrottlerPackage,
  lineOf,
  parse,
  syntaxErrorOf,
  throttlerNames,
  ttlOf,
  unwrap,
  type Survey,
  type Ts,
} from './survey.js';

/** A place that only a person can move over. */
export interface Finding {
  readonly line: number;
  readonly text: string;
  /** The heading of docs/migrating-from-throttler.md that has more of it. */
  readonly anchor: string;
}

export interface MovedFile {
  readonly text: string;
  readonly findings: readonly Finding[];
  /** Packages of the throttler that the file still imports. */
  readonly keeps: readonly string[];
}

/** Types of the throttler that have a counterpart. */
const TYPES: Readonly<Record<string, string>> = {
  ThrottlerModuleOptions: 'RateLimitModuleInput',
  ThrottlerOptionsFactory: 'RateLimitOptionsFactory',
  ThrottlerAsyncOptions: 'RateLimitModuleAsyncOptions',
};

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const;

const WORDS = 'word-by-word';
const LONGEST_LINE = 90;
const BLOCKED =
  'blockDuration is gone: a caller comes back as soon as there is room, and Retry-After says when';

/** Moves one source over. What it does not understand it leaves as it is, and says so. */
export function moveFile(ts: Ts, file: string, text: string, project: Survey): MovedFile {
  const source = parse(ts, file, text);
  const broken = syntaxErrorOf(source);
  if (broken !== undefined) {
    const finding = `cannot be read (${broken.text}), so it was left alone`;
    return { text, findings: [{ line: broken.line, text: finding, anchor: WORDS }], keeps: [] };
  }
  const move = new FileMove(ts, source, text, project);
  const moved = move.run();
  const wrong = moved === text ? undefined : syntaxErrorOf(parse(ts, file, moved));
  if (wrong === undefined)
    return { text: moved, findings: move.findings, keeps: move.keeps(moved) };
  const finding = 'was not understood well enough to be changed, so it was left alone';
  return {
    text,
    findings: [...move.findings, { line: 1, text: finding, anchor: WORDS }],
    keeps: move.keeps(text),
  };
}

/** The decorators of a class or of a method that concern limits. */
interface Decorated {
  readonly throttle: ts.Decorator | undefined;
  readonly throttled: ReadonlyMap<string, string> | undefined;
  readonly guards: ts.Decorator | undefined;
  readonly skip: ts.Decorator | undefined;
}

class FileMove {
  readonly findings: Finding[] = [];
  private readonly names: ReadonlyMap<string, string>;
  private readonly edits: SourceEdits;
  /** Names to import, by package. */
  private readonly needs = new Map<string, Set<string>>();
  /** Names of Nest that may have lost their last use. */
  private readonly orphans = new Set<string>();
  private readonly quote: string;

  constructor(
    private readonly ts: Ts,
    private readonly source: ts.SourceFile,
    private readonly text: string,
    private readonly project: Survey,
  ) {
    this.names = throttlerNames(ts, source);
    this.edits = new SourceEdits(text);
    this.quote = /from\s+"@nestjs/.test(text) ? '"' : "'";
  }

  run(): string {
    this.visit(this.source);
    this.visitLeftovers(this.source);
    return this.edits.isEmpty ? this.text : this.withImports(this.edits.apply());
  }

  keeps(text: string): string[] {
    const { ts } = this;
    const source = parse(ts, this.source.fileName, text);
    return source.statements.flatMap((statement) => {
      const isLink = ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement);
      const specifier = isLink ? statement.moduleSpecifier : undefined;
      return isThrottlerPackage(ts, specifier) ? [(specifier as ts.StringLiteral).text] : [];
    });
  }

  private visit(node: ts.Node): void {
    const { ts } = this;
    if (ts.isImportDeclaration(node)) return this.visitImport(node);
    if (ts.isExportDeclaration(node) && isThrottlerPackage(ts, node.moduleSpecifier)) {
      this.find(
        node,
        'exports names of the throttler on: whoever imports them from here is not moved',
      );
      return;
    }
    if (ts.isClassDeclaration(node)) this.moveClass(node);
    if (ts.isMethodDeclaration(node)) this.moveFactory(node);
    if (ts.isCallExpression(node)) this.moveCall(node);
    const isProvider =
      ts.isObjectLiteralExpression(node) && isGuardOfApp(ts, node, this.isPlainGuard);
    if (isProvider && ts.isArrayLiteralExpression(node.parent)) {
      this.orphan('APP_GUARD');
      this.removeElement(node);
    }
    if (ts.isIdentifier(node)) this.moveIdentifier(node);
    ts.forEachChild(node, (child) => this.visit(child));
  }

  private visitImport(node: ts.ImportDeclaration): void {
    const { ts } = this;
    const bindings = node.importClause?.namedBindings;
    if (!isThrottlerPackage(ts, node.moduleSpecifier)) return;
    if (bindings === undefined || !ts.isNamedImports(bindings)) {
      this.find(
        node,
        'imports the throttler as a whole: import its names one by one, and run this again',
      );
    }
  }

  private readonly isPlainGuard = (node: ts.Node | undefined): boolean =>
    node !== undefined &&
    this.ts.isIdentifier(node) &&
    (this.names.get(node.text) === 'ThrottlerGuard' || this.project.plainGuards.has(node.text));

  /** A guard is gone from here, and with it this name of Nest, perhaps. */
  private orphan(name: string): void {
    this.orphans.add(name);
    for (const guard of this.project.plainGuards) this.orphans.add(guard);
  }

  // The module.

  private moveCall(call: ts.CallExpression): void {
    const { ts, edits } = this;
    const { expression } = call;
    if (!ts.isPropertyAccessExpression(expression)) return;
    if (this.isOverriddenGuard(expression.expression)) return this.moveOverride(call, expression);
    const owner = expression.expression;
    if (!ts.isIdentifier(owner) || this.names.get(owner.text) !== 'ThrottlerModule') return;
    const [options] = call.arguments;
    const name = expression.name.text;
    const places =
      options === undefined || (name !== 'forRoot' && name !== 'forRootAsync')
        ? undefined
        : name === 'forRoot'
          ? [options]
          : this.madeBy(options);
    const moved = places?.map((place) => [place, this.optionsOf(place)] as const);
    if (moved === undefined || moved.some(([, text]) => text === undefined)) {
      this.find(call, `the options of ${name} are not written out here: say them as policies`);
      this.told.add(owner);
      return;
    }
    edits.replace(owner.getStart(), owner.getEnd(), this.need('RateLimitModule'));
    for (const [place, text] of moved) edits.replace(place.getStart(), place.getEnd(), text!);
  }

  /** Nodes that a finding has told of already. */
  private readonly told = new Set<ts.Node>();

  /** The options that a factory returns; none of a class, which is moved where it stands. */
  private madeBy(options: ts.Expression): ts.Expression[] | undefined {
    const { ts } = this;
    const object = unwrap(ts, options);
    if (!ts.isObjectLiteralExpression(object)) return undefined;
    const factory = fieldOf(ts, object, 'useFactory');
    if (factory === undefined) return [];
    return this.returnsOf(ts.isMethodDeclaration(factory) ? factory : unwrap(ts, factory));
  }

  private returnsOf(made: ts.Node): ts.Expression[] | undefined {
    const { ts } = this;
    if (
      !ts.isArrowFunction(made) &&
      !ts.isFunctionExpression(made) &&
      !ts.isMethodDeclaration(made)
    ) {
      return undefined;
    }
    const { body } = made;
    if (body === undefined) return undefined;
    if (!ts.isBlock(body)) return [unwrap(ts, body)];
    const returned: ts.Expression[] = [];
    const visit = (node: ts.Node): void => {
      if (ts.isReturnStatement(node) && node.expression !== undefined) {
        returned.push(unwrap(ts, node.expression));
      }
      if (!ts.isFunctionLike(node)) ts.forEachChild(node, visit);
    };
    visit(body);
    return returned.length === 0 ? undefined : returned;
  }

  /** `createThrottlerOptions()` of a class that makes the options. */
  private moveFactory(method: ts.MethodDeclaration): void {
    const { ts } = this;
    const isFactory = ts.isIdentifier(method.name) && method.name.text === 'createThrottlerOptions';
    if (!isFactory || this.names.size === 0) return;
    const moved = this.returnsOf(method)?.map((place) => [place, this.optionsOf(place)] as const);
    if (moved === undefined || moved.some(([, text]) => text === undefined)) {
      this.find(method, 'what it returns is not written out here: say it as policies');
      return;
    }
    this.edits.replace(method.name.getStart(), method.name.getEnd(), 'createRateLimitOptions');
    for (const [place, text] of moved) this.edits.replace(place.getStart(), place.getEnd(), text!);
  }

  /** Options of the throttler as options of this module; undefined if they are not written out. */
  private optionsOf(expression: ts.Expression): string | undefined {
    const { ts } = this;
    const given = unwrap(ts, expression);
    const object = ts.isObjectLiteralExpression(given) ? given : undefined;
    const listed = object === undefined ? given : fieldOf(ts, object, 'throttlers');
    const isOld =
      listed === undefined && object !== undefined && fieldOf(ts, object, 'ttl') !== undefined;
    if (!isOld && (listed === undefined || !ts.isArrayLiteralExpression(listed))) return undefined;
    const throttlers = isOld ? [object] : [...(listed as ts.ArrayLiteralExpression).elements];
    if (throttlers.length === 0) return '{ enabled: false }';
    const policies: string[] = [];
    for (const throttler of throttlers) {
      const policy = this.policyOf(throttler, isOld ? undefined : object);
      if (policy === undefined) return undefined;
      policies.push(policy);
    }
    const indent = indentAt(this.text, expression.getStart());
    const lines = [
      'policies: {',
      ...policies.flatMap((policy) => `${policy},`.split('\n').map((line) => `  ${line}`)),
      '},',
      ...(this.project.isGlobal ? [`apply: [${this.allNames()}],`] : []),
      ...(object === undefined ? [] : this.moduleLines(object)),
    ];
    const text = `{\n${lines.map((line) => `${indent}  ${line}\n`).join('')}${indent}}`;
    // Without them it would be the body of the function.
    return ts.isArrowFunction(expression.parent) ? `(${text})` : text;
  }

  private allNames(): string {
    return [...this.project.throttlers.keys()].map((name) => this.quoted(name)).join(', ');
  }

  private moduleLines(object: ts.ObjectLiteralExpression): string[] {
    const { ts } = this;
    const lines: string[] = [];
    const storage = fieldOf(ts, object, 'storage');
    if (storage !== undefined) {
      const store = ts.isMethodDeclaration(storage) ? undefined : this.storeOf(unwrap(ts, storage));
      if (store === undefined) this.find(storage, 'this storage has no counterpart: name a store');
      else lines.push(`store: ${store},`);
    }
    const message = fieldOf(ts, object, 'errorMessage');
    if (
      message !== undefined &&
      !ts.isMethodDeclaration(message) &&
      ts.isStringLiteralLike(message)
    ) {
      const made = `new ${this.need('HttpException', '@nestjs/common')}(${message.getText()}, 429)`;
      lines.push(`rejection: () => ${made},`);
    } else if (message !== undefined) {
      this.find(
        message,
        'errorMessage as a function becomes rejection: (decision, context) => …',
        'answers',
      );
    }
    const headers = fieldOf(ts, object, 'setHeaders');
    if (headers?.kind === ts.SyntaxKind.FalseKeyword) {
      lines.push(`headers: { draft: ${this.quoted('off')}, retryAfter: false },`);
    }
    return lines;
  }

  private storeOf(storage: ts.Expression): string | undefined {
    const { ts } = this;
    if (!ts.isNewExpression(storage) || !ts.isIdentifier(storage.expression)) return undefined;
    if (this.names.get(storage.expression.text) !== 'ThrottlerStorageRedisService')
      return undefined;
    const [given] = storage.arguments ?? [];
    const type = `type: ${this.quoted('redis')}`;
    if (given === undefined) return `{ ${type}, url: ${this.quoted('redis://127.0.0.1:6379')} }`;
    const text = given.getText();
    if (ts.isObjectLiteralExpression(given)) return `{ ${type}, options: ${text} }`;
    if (ts.isNewExpression(given)) return `{ ${type}, client: ${text} }`;
    const isText = ts.isStringLiteralLike(given) || ts.isTemplateExpression(given);
    if (isText || /\.get\w*(<.*>)?\(|process\.env/.test(text)) return `{ ${type}, url: ${text} }`;
    this.find(given, 'client: is right if this is a connection; if it is an address, write url:');
    return `{ ${type}, client: ${text} }`;
  }

  /** `name: { … }` of one throttler. `around` has what holds for all of them. */
  private policyOf(
    throttler: ts.Expression,
    around: ts.ObjectLiteralExpression | undefined,
  ): string | undefined {
    const { ts } = this;
    const object = unwrap(ts, throttler);
    if (!ts.isObjectLiteralExpression(object)) return undefined;
    const figures = this.figures(object, 'default');
    const name = fieldOf(ts, object, 'name');
    if (figures === undefined) return undefined;
    if (name !== undefined && !ts.isStringLiteralLike(name)) return undefined;
    const fields = [`algorithm: ${this.quoted('sliding-window')}`, figures];
    fields.push(`key: [${this.quoted('ip')}, ${this.quoted('route')}]`);
    for (const place of [object, around]) {
      if (place === undefined) continue;
      const skipIf = fieldOf(ts, place, 'skipIf');
      if (skipIf !== undefined && !ts.isMethodDeclaration(skipIf)) {
        fields.push(`skipIf: ${skipIf.getText()}`);
      }
      this.tellFields(place);
    }
    const key = name === undefined ? 'default' : name.text;
    const own = /^[a-z_$][\w$]*$/i.test(key) ? key : this.quoted(key);
    const line = `${own}: { ${fields.join(', ')} }`;
    return line.length <= LONGEST_LINE ? line : `${own}: {\n  ${fields.join(',\n  ')},\n}`;
  }

  /** `rate`, with its `period` if that is not a figure. */
  private figures(object: ts.ObjectLiteralExpression, name: string): string | undefined {
    const { ts, names, project } = this;
    const limit = fieldOf(ts, object, 'limit');
    const ttl = fieldOf(ts, object, 'ttl');
    const isLost = (value: typeof limit): boolean =>
      value !== undefined &&
      (ts.isMethodDeclaration(value) || ts.isFunctionLike(unwrap(ts, value)));
    if (limit === undefined || isLost(limit) || isLost(ttl)) {
      if (isLost(limit) || isLost(ttl)) {
        this.find((limit ?? ttl)!, 'a limit by caller becomes tiers, with tier: (context) => …');
      }
      return undefined;
    }
    const count = figureOf(ts, limit as ts.Expression, names);
    const ms =
      ttl === undefined
        ? project.throttlers.get(name)
        : ttlOf(ts, ttl as ts.Expression, names, project.countsSeconds);
    if (count !== undefined && ms !== undefined) return `rate: ${this.quoted(rateText(count, ms))}`;
    if (ttl === undefined && ms === undefined) return undefined;
    const period = ms ?? this.periodText(ttl as ts.Expression);
    return `rate: ${limit.getText()}, period: ${period}`;
  }

  private periodText(ttl: ts.Expression): string {
    const { ts, names, project } = this;
    const helped = helperOf(ts, unwrap(ts, ttl), names);
    if (helped !== undefined) return `(${helped.argument.getText()}) * ${helped.unitMs}`;
    return project.countsSeconds ? `(${ttl.getText()}) * 1000` : ttl.getText();
  }

  /** Fields that no figure can say. */
  private tellFields(object: ts.ObjectLiteralExpression): void {
    const { ts } = this;
    const blocks = fieldOf(ts, object, 'blockDuration');
    if (blocks !== undefined) this.find(blocks, BLOCKED, 'nobody-is-blocked');
    const tracker = fieldOf(ts, object, 'getTracker') ?? fieldOf(ts, object, 'generateKey');
    if (tracker !== undefined) {
      this.find(tracker, "what callers are told apart by becomes key, with 'route' in it");
    }
    const agents = fieldOf(ts, object, 'ignoreUserAgents');
    if (agents !== undefined) this.find(agents, 'ignoreUserAgents becomes skipIf of each policy');
  }

  // Decorators.

  private moveClass(node: ts.ClassDeclaration): void {
    const { ts, project } = this;
    const parent = node.heritageClauses?.flatMap(({ types }) => [...types])[0]?.expression;
    if (parent !== undefined && this.isOf(parent, 'ThrottlerGuard')) this.tellGuard(node, parent);
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
      if (method.throttle !== undefined && !isEffective) this.tellUnguarded(method.throttle);
    }
    const hasGuard = isGuarded || ofMethods.some(({ guards }) => guards !== undefined);
    if (own.throttle !== undefined && !hasGuard) this.tellUnguarded(own.throttle);
  }

  private tellUnguarded(decorator: ts.Decorator): void {
    const text =
      'no guard of the throttler was found for it: now it holds, for @RateLimit brings its own';
    this.find(decorator, text, 'decorators-add-up');
  }

  private tellGuard(node: ts.ClassDeclaration, parent: ts.Expression): void {
    this.told.add(parent);
    const isPlain = this.project.plainGuards.has(node.name?.text ?? '');
    this.find(
      node,
      isPlain
        ? 'this guard is needed no more: GraphQL, WebSocket and addresses behind proxies are understood without it. Delete it'
        : 'this guard has no counterpart: what it overrides becomes key, skipIf and rejection; then delete it and its provider',
    );
  }

  private inlineName(className: string, name: string): string {
    const words = className.replace(/(Controller|Resolver|Gateway)$/, '') || className;
    const kebab = words.replace(/([a-z0-9])([A-Z])/g, '$1-$2').toLowerCase();
    const full = name === 'default' ? kebab : `${kebab}-${name}`;
    return this.project.throttlers.has(full) ? `${full}-limit` : full;
  }

  private decorated(node: ts.Node): Decorated {
    const { ts } = this;
    const decorators = decoratorsOf(ts, node);
    const isOf = (one: ts.Decorator, name: string): boolean =>
      ts.isCallExpression(one.expression) && this.isOf(one.expression.expression, name);
    const throttle = decorators.find((one) => isOf(one, 'Throttle'));
    const throttled = throttle === undefined ? undefined : this.throttledBy(throttle);
    const guards = decorators.find(({ expression }) => {
      const isUse =
        ts.isCallExpression(expression) && expression.expression.getText() === 'UseGuards';
      return isUse && expression.arguments.some(this.isPlainGuard);
    });
    return {
      throttle,
      throttled,
      guards,
      skip: decorators.find((one) => isOf(one, 'SkipThrottle')),
    };
  }

  /** The figures of a `@Throttle`, by the name of the throttler; undefined, and told, if they are not written out. */
  private throttledBy({ expression }: ts.Decorator): Map<string, string> | undefined {
    const { ts, names, project } = this;
    const [first, second] = (expression as ts.CallExpression).arguments;
    const throttled = new Map<string, string>();
    const given = first === undefined ? undefined : unwrap(ts, first);
    if (given !== undefined && second !== undefined) {
      const count = figureOf(ts, given, names);
      const ms = ttlOf(ts, second, names, project.countsSeconds);
      if (count !== undefined && ms !== undefined) {
        return throttled.set('default', `rate: ${this.quoted(rateText(count, ms))}`);
      }
    }
    const isObject = given !== undefined && ts.isObjectLiteralExpression(given);
    for (const property of isObject ? given.properties : []) {
      const value = ts.isPropertyAssignment(property)
        ? unwrap(ts, property.initializer)
        : undefined;
      const isWritten = value !== undefined && ts.isObjectLiteralExpression(value);
      const name = property.name === undefined ? '' : property.name.getText().replace(/['"`]/g, '');
      const figures = isWritten ? this.figures(value, name) : undefined;
      if (figures === undefined) break;
      this.tellFields(value as ts.ObjectLiteralExpression);
      throttled.set(name, figures);
    }
    const isWhole = isObject && throttled.size === given.properties.length && throttled.size > 0;
    if (isWhole) return throttled;
    this.find(expression, 'the figures are not written out here: write a policy with them');
    if (ts.isCallExpression(expression)) this.told.add(expression.expression);
    return undefined;
  }

  /**
   * `outer` names what would hold beside a limit of that name, and `named` the limits here that others have to name.
   * `isGuarded` says that a guard further out asks already, `covered` which names a decorator there has limits for.
   */
  private writeLimits(
    { throttle, throttled, guards, skip }: Decorated,
    outer: (name: string) => string | undefined,
    named: ReadonlyMap<string, string>,
    isGuarded: boolean,
    covered: readonly string[],
  ): void {
    const { ts } = this;
    if (throttle !== undefined && throttled !== undefined) {
      const lines = [...throttled].map(([name, figures]) => {
        const own = named.get(name);
        const called = own === undefined ? '' : `name: ${this.quoted(own)}, `;
        const instead = outer(name);
        const replaces = instead === undefined ? '' : `, { instead: ${this.quoted(instead)} }`;
        const policy = `{ ${called}algorithm: ${this.quoted('sliding-window')}, ${figures} }`;
        return `@${this.need('RateLimit')}(${policy}${replaces})`;
      });
      this.writeDecorators(throttle, lines);
    }
    if (guards !== undefined) {
      const { arguments: all } = guards.expression as ts.CallExpression;
      const others = all.filter((one) => !this.isPlainGuard(one));
      const names = [...this.project.throttlers.keys()].filter(
        (name) => throttled?.has(name) !== true && !covered.includes(name),
      );
      this.orphan('UseGuards');
      this.writeDecorators(guards, [
        ...(others.length === 0
          ? []
          : [`@UseGuards(${others.map((one) => one.getText()).join(', ')})`]),
        ...(isGuarded
          ? []
          : names.map((name) => `@${this.need('RateLimit')}(${this.quoted(name)})`)),
      ]);
    }
    if (skip !== undefined) this.moveSkip(skip, ts);
  }

  private moveSkip(skip: ts.Decorator, ts: Ts): void {
    const [given] = (skip.expression as ts.CallExpression).arguments;
    const every = [...this.project.throttlers.keys()];
    const [skipped, kept]: [string[] | undefined, string[]] = [[], []];
    const skips = (names: readonly string[]): string =>
      `@${this.need('SkipRateLimit')}(${names.map((name) => this.quoted(name)).join(', ')})`;
    const limits = (names: readonly string[]): string[] =>
      names.map((name) => `@${this.need('RateLimit')}(${this.quoted(name)})`);
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
      this.find(
        skip,
        'what it skips is not written out here: @SkipRateLimit takes names of policies',
      );
      this.told.add((skip.expression as ts.CallExpression).expression);
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
    if (lines.length === 0) return this.edits.remove(start, end);
    this.edits.replace(start, end, lines.join(`\n${indentAt(this.text, start)}`));
  }

  // Tests, types and what is left.

  private isOverriddenGuard(node: ts.Expression): node is ts.CallExpression {
    const { ts } = this;
    if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return false;
    const isOverride = node.expression.name.text === 'overrideGuard';
    return isOverride && this.isPlainGuard(node.arguments[0]);
  }

  /** `builder.overrideGuard(ThrottlerGuard).useValue(…)` */
  private moveOverride(call: ts.CallExpression, access: ts.PropertyAccessExpression): void {
    const overridden = access.expression as ts.CallExpression;
    const builder = (overridden.expression as ts.PropertyAccessExpression).expression;
    const name = this.need('overrideRateLimits', 'nestjs-weir/testing');
    this.edits.replace(builder.getStart(), builder.getStart(), `${name}(`);
    this.edits.replace(builder.getEnd(), call.getEnd(), ', { enabled: false })');
  }

  private moveIdentifier(node: ts.Identifier): void {
    const { ts } = this;
    const name = this.names.get(node.text);
    if (name === undefined) return;
    const { parent } = node;
    const type = TYPES[name];
    const isType = ts.isTypeReferenceNode(parent) || ts.isExpressionWithTypeArguments(parent);
    if (type !== undefined && isType) {
      this.edits.replace(node.getStart(), node.getEnd(), this.need(type));
    }
    const isList = ts.isArrayLiteralExpression(parent);
    if (name === 'ThrottlerModule' && isList) this.removeElement(node);
    if (name !== 'ThrottlerException') return;
    const isTest =
      ts.isBinaryExpression(parent) &&
      parent.operatorToken.kind === ts.SyntaxKind.InstanceOfKeyword;
    const isCaught = ts.isCallExpression(parent) && parent.expression.getText() === 'Catch';
    if (!isTest && !isCaught && !ts.isTypeReferenceNode(parent)) return;
    this.edits.replace(node.getStart(), node.getEnd(), this.need('RateLimitedException'));
  }

  /** Every name of the throttler that nothing has dealt with. */
  private visitLeftovers(node: ts.Node): void {
    const { ts } = this;
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return;
    if (ts.isIdentifier(node) && !this.told.has(node)) {
      const name =
        this.names.get(node.text) ??
        (this.project.ownGuards.has(node.text) ? node.text : undefined);
      const isDeclared = ts.isClassDeclaration(node.parent) && node.parent.name === node;
      if (name !== undefined && !isDeclared && !this.edits.covers(node.getStart())) {
        this.find(node, LEFT[name] ?? this.leftOf(name));
      }
    }
    ts.forEachChild(node, (child) => this.visitLeftovers(child));
  }

  private leftOf(name: string): string {
    return this.project.ownGuards.has(name)
      ? `${name} is a guard of the throttler: say here what is limited, as @RateLimit(${this.allNames()}) does`
      : `${name} has no counterpart of that name`;
  }

  // Helpers.

  private isOf(node: ts.Node, name: string): boolean {
    return this.ts.isIdentifier(node) && this.names.get(node.text) === name;
  }

  private need(name: string, from = 'nestjs-weir'): string {
    const names = this.needs.get(from) ?? new Set();
    this.needs.set(from, names.add(name));
    return name;
  }

  private quoted(text: string): string {
    return `${this.quote}${text}${this.quote}`;
  }

  private find(node: ts.Node, text: string, anchor = WORDS): void {
    const line = lineOf(this.source, node.getStart(this.source));
    if (this.findings.some((one) => one.line === line && one.text === text)) return;
    this.findings.push({ line, text, anchor });
  }

  /** An element of a list, with its comma; the last of `providers: […]` with the field. */
  private removeElement(node: ts.Expression): void {
    const { ts } = this;
    const list = node.parent as ts.ArrayLiteralExpression;
    const field = list.parent;
    const isAlone = list.elements.length === 1 && ts.isPropertyAssignment(field);
    if (!isAlone) return this.removeOf(list.elements, node);
    this.removeOf(field.parent.properties, field);
  }

  private removeOf(all: readonly ts.Node[], node: ts.Node): void {
    const index = all.indexOf(node);
    const [before, after] = [all[index - 1], all[index + 1]];
    if (after !== undefined) this.edits.replace(node.getStart(), after.getStart(), '');
    else if (before !== undefined) this.edits.replace(before.getEnd(), node.getEnd(), '');
    else this.edits.replace(node.getStart(), node.getEnd(), '');
  }

  /** The text with the names that it now needs, and without those that nothing uses any more. */
  private withImports(text: string): string {
    const { ts } = this;
    const source = parse(ts, this.source.fileName, text);
    const used = new Set<string>();
    const visit = (node: ts.Node): void => {
      if (ts.isImportDeclaration(node)) return;
      if (ts.isIdentifier(node)) used.add(node.text);
      ts.forEachChild(node, visit);
    };
    visit(source);
    const edits = new SourceEdits(text);
    const added = [...this.needs].filter(([from]) => from !== '@nestjs/common');
    const fresh = added.map(([from, names]) =>
      this.importLine([...names].sort(byName), from, text),
    );
    let isPlaced = fresh.length === 0;
    for (const statement of source.statements) {
      if (!ts.isImportDeclaration(statement) || !ts.isStringLiteral(statement.moduleSpecifier))
        continue;
      const bindings = statement.importClause?.namedBindings;
      if (bindings === undefined || !ts.isNamedImports(bindings)) continue;
      const isThrottlers = isThrottlerPackage(ts, statement.moduleSpecifier);
      const { text: from } = statement.moduleSpecifier;
      const more = from === '@nestjs/common' ? [...(this.needs.get(from) ?? [])] : [];
      const kept = bindings.elements.filter(({ name }) => {
        return used.has(name.text) || (!isThrottlers && !this.orphans.has(name.text));
      });
      const has = new Set(kept.map(({ name }) => name.text));
      const missing = more.filter((name) => !has.has(name));
      const isSame = kept.length === bindings.elements.length && missing.length === 0;
      const lines = isThrottlers && !isPlaced ? fresh : [];
      isPlaced ||= isThrottlers;
      if (isSame && lines.length === 0) continue;
      const names = [...kept.map((one) => one.getText(source)), ...missing];
      const own = isSame
        ? [statement.getText(source)]
        : names.length === 0
          ? []
          : [this.importLine(names, from, text)];
      const all = [...own, ...lines];
      if (all.length === 0) edits.remove(statement.getStart(source), statement.getEnd());
      else edits.replace(statement.getStart(source), statement.getEnd(), all.join('\n'));
    }
    const moved = edits.apply();
    return isPlaced ? moved : `${fresh.join('\n')}\n${moved}`;
  }

  private importLine(names: readonly string[], from: string, text: string): string {
    const end = /from\s+['"][^'"]+['"];/.test(text) ? ';' : '';
    return `import { ${names.join(', ')} } from ${this.quoted(from)}${end}`;
  }
}

/** The throttler's names without a counterpart, and what to do about each. */
const LEFT: Readonly<Record<string, string>> = {
  ThrottlerGuard:
    'the guard is needed no more where @RateLimit or apply stands: say here what is limited',
  ThrottlerModule: 'only forRoot and forRootAsync are moved: say here what is meant',
  ThrottlerException: 'throw an HttpException of your own, or leave denials to the limiter',
  ThrottlerStorage: 'a storage of your own has no counterpart: the stores are memory and Redis',
  ThrottlerStorageService:
    'a storage of your own has no counterpart: the stores are memory and Redis',
  Throttle: 'a decorator made of @Throttle: make it of @RateLimit',
  SkipThrottle: 'a decorator made of @SkipThrottle: make it of @SkipRateLimit',
  getOptionsToken:
    'in tests overrideRateLimits(builder, { … }) of nestjs-weir/testing changes limits',
  getStorageToken:
    'in tests overrideRateLimits(builder, { … }) of nestjs-weir/testing changes limits',
};

const byName = (one: string, other: string): number => (one < other ? -1 : 1);

function rateText(count: number, ms: number): string {
  for (const [unit, unitMs] of UNITS) {
    if (ms === unitMs) return `${count}/${unit}`;
    if (ms % unitMs === 0) return `${count}/${ms / unitMs}${unit}`;
  }
  return `${count}/${ms}ms`;
}

function decoratorsOf(ts: Ts, node: ts.Node): readonly ts.Decorator[] {
  const { decorators } = node as { decorators?: readonly ts.Decorator[] };
  if (decorators !== undefined) return decorators;
  return ts.canHaveDecorators?.(node) ? (ts.getDecorators(node) ?? []) : [];
}
