import { posix } from 'node:path';
import type ts from 'typescript';
import { PACKAGES, type ProjectFile } from './project.js';

export type Ts = typeof ts;

/** The throttler of the whole project: a decorator means nothing without it. */
export interface Survey {
  /** The throttlers by name, with their `ttl` where it is a figure. */
  readonly throttlers: ReadonlyMap<string, number | undefined>;
  /** A guard of the application asks for every route. */
  readonly isGlobal: boolean;
  /** The files that mount it. */
  readonly globals: ReadonlySet<string>;
  /** Guards of the project that differ from the throttler's by nothing that would be missed here. */
  readonly plainGuards: ReadonlySet<string>;
  /** All other classes that extend it. */
  readonly ownGuards: ReadonlySet<string>;
  /** A guard of these that the application mounts: it needs the throttler's module, and that its decorators. */
  readonly keptBy: string | undefined;
  /** Beside the figures of each throttler: what a `@Throttle` goes on with. */
  readonly rest: readonly ThrottlerRest[];
  /** Consts with options that are given to the module and to nothing else, as `file#name`. */
  readonly consts: ReadonlySet<string>;
  /** Before version 5 a `ttl` was in seconds. */
  readonly countsSeconds: boolean;
  /** Something reads the headers that the throttler writes. */
  readonly readsHeaders: boolean;
}

export interface ThrottlerRest {
  readonly name: string;
  readonly file: string;
  /** `skipIf` for the user agents that it ignores. */
  readonly agents: string | undefined;
  /** Other fields, which only a person can repeat. */
  readonly fields: readonly string[];
}

export const SPEC = /[.-](spec|test)\.[cm]?tsx?$/;

/** Nothing is left of these when the module itself understands GraphQL and WebSocket. */
const NEEDLESS = new Set(['getRequestResponse']);
/** The tracker that the throttler advises for proxies: the address, as Express knows it behind them. */
const ADDRESS =
  /^{?(?:return)?\(?(?:(\w+)\.ips\??\.length(?:>0)?\?\1\.ips\[0\]:\1\.ip|\w+\.ip)\)?;?}?$/;

const HELPERS_MS: Readonly<Record<string, number>> = {
  seconds: 1000,
  minutes: 60_000,
  hours: 3_600_000,
  days: 86_400_000,
  weeks: 604_800_000,
};

export function parse(ts: Ts, file: string, text: string): ts.SourceFile {
  return ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
}

/** Where it cannot be read as TypeScript; undefined if it can. */
export function syntaxErrorOf(source: ts.SourceFile): { line: number; text: string } | undefined {
  const { parseDiagnostics = [] } = source as unknown as {
    parseDiagnostics?: readonly ts.DiagnosticWithLocation[];
  };
  const [first] = parseDiagnostics;
  if (first === undefined) return undefined;
  const { messageText: text } = first;
  return {
    line: lineOf(source, first.start),
    text: typeof text === 'string' ? text : text.messageText,
  };
}

export function lineOf(source: ts.SourceFile, position: number): number {
  return source.getLineAndCharacterOfPosition(position).line + 1;
}

/** Local names of what is imported from the throttler's packages, and what they are there. */
export function throttlerNames(ts: Ts, source: ts.SourceFile): Map<string, string> {
  const names = new Map<string, string>();
  for (const statement of source.statements) {
    if (!ts.isImportDeclaration(statement)) continue;
    if (throttlerPackage(ts, statement.moduleSpecifier) === undefined) continue;
    const bindings = statement.importClause?.namedBindings;
    if (bindings === undefined || !ts.isNamedImports(bindings)) continue;
    for (const { name, propertyName } of bindings.elements) {
      names.set(name.text, (propertyName ?? name).text);
    }
  }
  return names;
}

/** The throttler's package that an import is from, also where it names a file within it. */
export function throttlerPackage(ts: Ts, specifier: ts.Expression | undefined): string | undefined {
  if (specifier === undefined || !ts.isStringLiteral(specifier)) return undefined;
  return PACKAGES.find((name) => `${specifier.text}/`.startsWith(`${name}/`));
}

/** The field of an object that is written out, as it stands there. */
export function fieldOf(
  ts: Ts,
  object: ts.ObjectLiteralExpression,
  name: string,
): ts.Expression | ts.MethodDeclaration | undefined {
  for (const property of object.properties) {
    const { name: own } = property;
    if (own === undefined || ts.isComputedPropertyName(own) || own.text !== name) continue;
    if (ts.isPropertyAssignment(property)) return property.initializer;
    if (ts.isShorthandPropertyAssignment(property)) return property.name;
    if (ts.isMethodDeclaration(property)) return property;
  }
  return undefined;
}

export function unwrap(ts: Ts, expression: ts.Expression): ts.Expression {
  let inner = expression;
  while (
    ts.isParenthesizedExpression(inner) ||
    ts.isAsExpression(inner) ||
    ts.isSatisfiesExpression?.(inner)
  ) {
    inner = inner.expression;
  }
  return inner;
}

/** A figure that stands in the source, products and the throttler's own helpers included. */
export function figureOf(
  ts: Ts,
  expression: ts.Expression,
  names: ReadonlyMap<string, string>,
): number | undefined {
  const value = unwrap(ts, expression);
  if (ts.isNumericLiteral(value)) return Number(value.text);
  if (ts.isBinaryExpression(value) && value.operatorToken.kind === ts.SyntaxKind.AsteriskToken) {
    const left = figureOf(ts, value.left, names);
    const right = figureOf(ts, value.right, names);
    return left === undefined || right === undefined ? undefined : left * right;
  }
  const helped = helperOf(ts, value, names);
  if (helped === undefined) return undefined;
  const count = figureOf(ts, helped.argument, names);
  return count === undefined ? undefined : count * helped.unitMs;
}

/** `seconds(10)` and its like, which are milliseconds in every version. */
export function helperOf(
  ts: Ts,
  value: ts.Expression,
  names: ReadonlyMap<string, string>,
): { readonly argument: ts.Expression; readonly unitMs: number } | undefined {
  if (!ts.isCallExpression(value) || !ts.isIdentifier(value.expression)) return undefined;
  const unitMs = HELPERS_MS[names.get(value.expression.text) ?? ''];
  const [argument] = value.arguments;
  return unitMs === undefined || argument === undefined ? undefined : { argument, unitMs };
}

/** Its `ttl` in milliseconds, if it is a figure. */
export function ttlOf(
  ts: Ts,
  ttl: ts.Expression,
  names: ReadonlyMap<string, string>,
  countsSeconds: boolean,
): number | undefined {
  const figure = figureOf(ts, ttl, names);
  const isHelped = helperOf(ts, unwrap(ts, ttl), names) !== undefined;
  return figure === undefined ? undefined : figure * (countsSeconds && !isHelped ? 1000 : 1);
}

/** `ignoreUserAgents` as an expression of `context`, if all of them are written out. */
export function agentsOf(ts: Ts, given: ts.Node | undefined): string | undefined {
  const isList = given !== undefined && ts.isArrayLiteralExpression(given);
  if (!isList || !given.elements.every((one) => ts.isRegularExpressionLiteral(one)))
    return undefined;
  const agent = "context.switchToHttp().getRequest().headers['user-agent'] ?? ''";
  const tests = given.elements.map((one) => `${one.getText()}.test(${agent})`);
  return tests.length === 0 ? undefined : tests.join(' || ');
}

/** Reads the project once, before anything is changed. */
export function survey(
  ts: Ts,
  files: readonly ProjectFile[],
  countsSeconds: boolean,
  readsHeaders: boolean,
  consts: ReadonlySet<string>,
): Survey {
  const sources = files.map(({ file, text }) => parse(ts, file, text));
  const [plainGuards, ownGuards] = guardsOf(ts, sources);
  const throttlers = new Map<string, number | undefined>();
  const rest: ThrottlerRest[] = [];
  const globals = new Set<string>();
  let keptBy: string | undefined;
  for (const source of sources) {
    const names = throttlerNames(ts, source);
    const isGuard = (node: ts.Node | undefined): boolean =>
      node !== undefined &&
      ts.isIdentifier(node) &&
      (names.get(node.text) === 'ThrottlerGuard' ||
        plainGuards.has(node.text) ||
        ownGuards.has(node.text));
    const visit = (node: ts.Node): void => {
      if (ts.isObjectLiteralExpression(node)) {
        if (isGuardOfApp(ts, node, isGuard)) globals.add(source.fileName);
        const [limit, ttl] = [fieldOf(ts, node, 'limit'), fieldOf(ts, node, 'ttl')];
        if (limit !== undefined && ttl !== undefined && isOfModule(ts, node, names, consts)) {
          const name = fieldOf(ts, node, 'name');
          const isNamed = name !== undefined && ts.isStringLiteralLike(name);
          const ms = ts.isMethodDeclaration(ttl) ? undefined : ttlOf(ts, ttl, names, countsSeconds);
          const own = isNamed ? name.text : 'default';
          throttlers.set(own, ms);
          rest.push({ name: own, file: source.fileName, ...restOf(ts, node) });
        }
      }
      if (mentionsGuard(ts, node, ownGuards) && !SPEC.test(source.fileName)) keptBy ??= node.text;
      const isCall = ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression);
      if (isCall && node.expression.name.text === 'useGlobalGuards') {
        const mentions = (part: ts.Node): boolean =>
          isGuard(part) || ts.forEachChild(part, mentions) === true;
        if (node.arguments.some(mentions)) globals.add(source.fileName);
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
  }
  if (throttlers.size === 0) throttlers.set('default', undefined);
  return {
    ...{ throttlers, rest, consts, globals, plainGuards, ownGuards, keptBy },
    ...{ countsSeconds, readsHeaders },
    isGlobal: globals.size > 0,
  };
}

/** `{ provide: APP_GUARD, useClass: ThrottlerGuard }` */
export function isGuardOfApp(
  ts: Ts,
  node: ts.ObjectLiteralExpression,
  isGuard: (node: ts.Node | undefined) => boolean,
): boolean {
  const provide = fieldOf(ts, node, 'provide');
  const isName =
    provide !== undefined && (ts.isIdentifier(provide) || ts.isStringLiteralLike(provide));
  const isApp = isName && provide.text === 'APP_GUARD';
  return (
    isApp && (isGuard(fieldOf(ts, node, 'useClass')) || isGuard(fieldOf(ts, node, 'useExisting')))
  );
}

/** A const of the project, as `file#name`. */
export const constKey = (declared: ts.VariableDeclaration): string =>
  `${declared.getSourceFile().fileName}#${declared.name.getText()}`;

/** Whether an object stands in the options of the module: those of decorators are others. */
function isOfModule(
  ts: Ts,
  node: ts.Node,
  names: ReadonlyMap<string, string>,
  consts: ReadonlySet<string>,
): boolean {
  for (let at = node.parent; at !== undefined; at = at.parent) {
    if (ts.isVariableDeclaration(at) && consts.has(constKey(at))) return true;
    if (ts.isMethodDeclaration(at) && ts.isIdentifier(at.name)) {
      if (at.name.text === 'createThrottlerOptions') return true;
    }
    if (!ts.isCallExpression(at) || !ts.isPropertyAccessExpression(at.expression)) continue;
    const { expression } = at.expression;
    if (ts.isIdentifier(expression) && names.get(expression.text) === 'ThrottlerModule')
      return true;
  }
  return false;
}

/** The options of one throttler beside its figures: its own, and those of the list it stands in. */
function restOf(
  ts: Ts,
  throttler: ts.ObjectLiteralExpression,
): Pick<ThrottlerRest, 'agents' | 'fields'> {
  const around = throttler.parent.parent?.parent;
  const places = [throttler, ...(around && ts.isObjectLiteralExpression(around) ? [around] : [])];
  const given = (name: string) => places.map((place) => fieldOf(ts, place, name)).find(Boolean);
  const agents = agentsOf(ts, given('ignoreUserAgents'));
  const names = ['skipIf', 'getTracker', 'generateKey', ...(agents ? [] : ['ignoreUserAgents'])];
  return { agents, fields: names.filter((name) => given(name) !== undefined) };
}

/** Of several applications with a throttler of that name, the one in the nearest folder. */
export function restFor({ rest }: Survey, name: string, file: string): ThrottlerRest | undefined {
  const shared = (other: string): number => {
    const folders = posix.dirname(file).split('/');
    const differs = folders.findIndex((folder, at) => folder !== other.split('/')[at]);
    return differs === -1 ? folders.length : differs;
  };
  return rest.filter((one) => one.name === name).sort((a, b) => shared(b.file) - shared(a.file))[0];
}

/** A guard where it is used: neither imported nor declared there. */
export function mentionsGuard(
  ts: Ts,
  node: ts.Node,
  guards: ReadonlySet<string>,
): node is ts.Identifier {
  if (!ts.isIdentifier(node) || !guards.has(node.text)) return false;
  const { parent } = node;
  const isNamed = ts.isImportSpecifier(parent) || ts.isExportSpecifier(parent);
  return !isNamed && !ts.isClassDeclaration(parent) && !ts.isExpressionWithTypeArguments(parent);
}

/** Classes that extend the throttler's guard, or one another: those that are not missed, and the others. */
function guardsOf(ts: Ts, sources: readonly ts.SourceFile[]): [Set<string>, Set<string>] {
  const [plain, own] = [new Set<string>(), new Set<string>()];
  let known = -1;
  const visitIn = (source: ts.SourceFile, names: ReadonlyMap<string, string>): void => {
    const visit = (node: ts.Node): void => {
      if (ts.isClassDeclaration(node) && node.name !== undefined) {
        const parent = node.heritageClauses?.flatMap(({ types }) => [...types])[0]?.expression;
        const name = parent !== undefined && ts.isIdentifier(parent) ? parent.text : '';
        const isPlain = node.members.every((member) => isNeedless(ts, member, source));
        if (own.has(name)) own.add(node.name.text);
        else if (names.get(name) === 'ThrottlerGuard' || plain.has(name))
          (isPlain ? plain : own).add(node.name.text);
      }
      ts.forEachChild(node, visit);
    };
    visit(source);
  };
  while (known < plain.size + own.size) {
    known = plain.size + own.size;
    for (const source of sources) visitIn(source, throttlerNames(ts, source));
  }
  return [plain, own];
}

function isNeedless(ts: Ts, member: ts.ClassElement, source: ts.SourceFile): boolean {
  if (ts.isConstructorDeclaration(member)) return true;
  if (!ts.isMethodDeclaration(member) || !ts.isIdentifier(member.name)) return false;
  if (NEEDLESS.has(member.name.text)) return true;
  // As the throttler advises for gateways.
  if (member.name.text === 'handleRequest') return member.getText(source).includes('switchToWs');
  const body = member.body?.statements[0]?.getText(source).replace(/\/\/.*|\s/g, '') ?? '';
  const isSingle = member.body?.statements.length === 1;
  return member.name.text === 'getTracker' && isSingle && ADDRESS.test(body);
}
