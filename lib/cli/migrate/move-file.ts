import type ts from 'typescript';
import { MovedFigures } from './figures.js';
import { DecoratorMove } from './move-decorators.js';
import { withImports } from './move-imports.js';
import { ModuleMove } from './move-module.js';
import { ANSWERS, HEADERS, MovedSource, OWN_GUARD, WORDS, type Finding } from './moved-source.js';
import { type ProjectFile } from './project.js';
import {
  constKey,
  helperOf,
  isGuardOfApp,
  lineOf,
  mentionsGuard,
  parse,
  SPEC,
  syntaxErrorOf,
  throttlerPackage,
  type Survey,
  type Ts,
} from './survey.js';

export interface MovedFile {
  readonly text: string;
  readonly findings: readonly Finding[];
  /** The same, with the lines that they have in the new text. */
  readonly findingsAfter: readonly Finding[];
  /** Packages of the throttler that the file still imports. */
  readonly keeps: readonly string[];
}

/** Types of the throttler that have a counterpart. */
const TYPES: Readonly<Record<string, string>> = {
  ThrottlerModuleOptions: 'RateLimitModuleInput',
  ThrottlerOptionsFactory: 'RateLimitOptionsFactory',
  ThrottlerAsyncOptions: 'RateLimitModuleAsyncOptions',
};

/** Moves one source over. What it does not understand it leaves as it is, and says so. */
export function moveFile(ts: Ts, file: string, text: string, project: Survey): MovedFile {
  const source = parse(ts, file, text);
  const broken = syntaxErrorOf(source);
  if (broken !== undefined) {
    const told = `cannot be read (${broken.text}), so it was left alone`;
    const findings = [{ line: broken.line, text: told, page: WORDS }];
    return { text, findings, findingsAfter: findings, keeps: [] };
  }
  const move = new FileMove(new MovedSource(ts, source, text, project));
  const { text: written, positionAfter } = move.run();
  const findings = move.moved.findings.map(asFinding);
  const after = written === text ? source : parse(ts, file, written);
  if (syntaxErrorOf(after) === undefined) {
    const findingsAfter = move.moved.findings.map(({ position, mark, ...rest }) => ({
      ...asFinding(rest),
      line: lineOf(after, positionAfter(position, mark)),
    }));
    return { text: written, findings, findingsAfter, keeps: move.keeps(written) };
  }
  const wrong = 'was not understood well enough to be changed, so it was left alone';
  findings.push({ line: 1, text: wrong, page: WORDS });
  return { text, findings, findingsAfter: findings, keeps: move.keeps(text) };
}

const asFinding = ({ line, text, page }: Finding): Finding => ({ line, text, page });

/** Those of the consts of a survey whose options are written out, so that they can be moved. */
export function movableConsts(
  ts: Ts,
  files: readonly ProjectFile[],
  seen: Survey,
): ReadonlySet<string> {
  const movable = new Set<string>();
  for (const { file, text } of files) {
    const moved = new MovedSource(ts, parse(ts, file, text), text, seen);
    const module = new ModuleMove(moved, new MovedFigures(moved));
    for (const statement of moved.source.statements) {
      if (!ts.isVariableStatement(statement)) continue;
      for (const declared of statement.declarationList.declarations) {
        const key = constKey(declared);
        if (seen.consts.has(key) && module.moveDeclared(declared)) movable.add(key);
      }
    }
  }
  return movable;
}

/** Goes over a source once, and hands modules and classes to those who know them. */
class FileMove {
  private readonly module: ModuleMove;
  private readonly decorators: DecoratorMove;

  constructor(readonly moved: MovedSource) {
    const figures = new MovedFigures(moved);
    this.module = new ModuleMove(moved, figures);
    this.decorators = new DecoratorMove(moved, figures);
  }

  run(): { text: string; positionAfter: (position: number, mark?: string) => number } {
    const { source, edits, text } = this.moved;
    if (this.isKept()) {
      this.tellKept(source);
      return { text, positionAfter: (position) => position };
    }
    this.visit(source);
    this.moveTypes(source);
    this.moved.closeLists();
    this.visitLeftovers(source);
    if (edits.isEmpty) return { text, positionAfter: (position) => position };
    const imports = withImports(this.moved, edits.apply());
    return {
      text: imports.apply(),
      positionAfter: (position, mark) => imports.positionAfter(edits.positionAfter(position, mark)),
    };
  }

  /** A guard that is left needs the module that is there for it, and that its decorators. */
  private isKept(): boolean {
    const { ts, source, project } = this.moved;
    if (project.keptBy !== undefined) return true;
    const isMentioned = (node: ts.Node): boolean =>
      mentionsGuard(ts, node, project.ownGuards) || ts.forEachChild(node, isMentioned) === true;
    return SPEC.test(source.fileName) && isMentioned(source);
  }

  private tellKept(node: ts.Node): void {
    const { ts, project } = this.moved;
    if (mentionsGuard(ts, node, project.ownGuards)) {
      const { source, findings } = this.moved;
      const isTest = SPEC.test(source.fileName);
      const next = isTest
        ? 'this test goes with it'
        : 'put ThrottlerGuard in its place, run this again, and write what it overrides as key, skipIf and rejection';
      const text = `${node.text} is a guard of the throttler, so its module and decorators stay: ${next}`;
      // One line of a test is enough.
      if (!isTest || findings.length === 0) this.moved.find(node, text);
    }
    const isOwn = ts.isClassDeclaration(node) && project.ownGuards.has(node.name?.text ?? '');
    if (isOwn) this.moved.find(node, OWN_GUARD);
    ts.forEachChild(node, (child) => this.tellKept(child));
  }

  keeps(text: string): string[] {
    const { ts } = this.moved;
    const source = parse(ts, this.moved.source.fileName, text);
    return source.statements.flatMap((statement) => {
      const isLink = ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement);
      const specifier = isLink ? statement.moduleSpecifier : undefined;
      return throttlerPackage(ts, specifier) ?? [];
    });
  }

  private visit(node: ts.Node): void {
    const { ts } = this.moved;
    if (ts.isImportDeclaration(node)) return this.visitImport(node);
    if (ts.isExportDeclaration(node) && throttlerPackage(ts, node.moduleSpecifier)) {
      this.moved.find(
        node,
        'exports names of the throttler on: whoever imports them from here is not moved',
      );
      return;
    }
    if (ts.isClassDeclaration(node)) this.decorators.moveClass(node);
    if (ts.isMethodDeclaration(node)) this.module.moveFactory(node);
    if (ts.isVariableDeclaration(node)) this.module.moveConst(node);
    if (ts.isCallExpression(node)) this.visitCall(node);
    const isProvider =
      ts.isObjectLiteralExpression(node) && isGuardOfApp(ts, node, this.moved.isPlainGuard);
    if (isProvider && ts.isArrayLiteralExpression(node.parent)) this.moved.removeElement(node);
    if (ts.isIdentifier(node)) this.moveIdentifier(node);
    ts.forEachChild(node, (child) => this.visit(child));
  }

  private visitCall(call: ts.CallExpression): void {
    const { expression } = call;
    const { ts, names, edits } = this.moved;
    const helped = helperOf(ts, call, names);
    if (helped !== undefined) {
      // Where the options are moved as a whole, their own text holds.
      const { argument, unitMs } = helped;
      const isOne = ts.isLeftHandSideExpression(argument);
      const factor = isOne ? argument.getText() : `(${argument.getText()})`;
      const product = `${factor} * ${unitMs}`;
      const isPart = ts.isBinaryExpression(call.parent) || ts.isPrefixUnaryExpression(call.parent);
      return edits.replace(call.getStart(), call.getEnd(), isPart ? `(${product})` : product);
    }
    if (!ts.isPropertyAccessExpression(expression)) return;
    if (this.isOverriddenGuard(expression.expression)) this.moveOverride(call, expression);
    else this.module.moveCall(call);
  }

  private visitImport(node: ts.ImportDeclaration): void {
    const { ts } = this.moved;
    const bindings = node.importClause?.namedBindings;
    if (!throttlerPackage(ts, node.moduleSpecifier)) return;
    if (bindings === undefined || !ts.isNamedImports(bindings)) {
      this.moved.find(
        node,
        'imports the throttler as a whole: import its names one by one, and run this again',
      );
    }
  }

  private isOverriddenGuard(node: ts.Expression): node is ts.CallExpression {
    const { ts } = this.moved;
    if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return false;
    const isOverride = node.expression.name.text === 'overrideGuard';
    return isOverride && this.moved.isPlainGuard(node.arguments[0]);
  }

  /** `builder.overrideGuard(ThrottlerGuard).useValue(…)` */
  private moveOverride(call: ts.CallExpression, access: ts.PropertyAccessExpression): void {
    const overridden = access.expression as ts.CallExpression;
    const builder = (overridden.expression as ts.PropertyAccessExpression).expression;
    const name = this.moved.need('overrideRateLimits', 'nestjs-weir/testing');
    this.moved.edits.replace(builder.getStart(), builder.getStart(), `${name}(`);
    this.moved.edits.replace(builder.getEnd(), call.getEnd(), ', { enabled: false })');
    this.removeStandIn(call.arguments[0]);
  }

  /** A double of the guard that only the override had a use for, and the type that it has. */
  private removeStandIn(given: ts.Expression | undefined): void {
    const { ts, source, edits } = this.moved;
    if (given === undefined || !ts.isIdentifier(given)) return;
    const all: ts.Identifier[] = [];
    const visit = (node: ts.Node): void => {
      if (ts.isIdentifier(node) && node.text === given.text) all.push(node);
      ts.forEachChild(node, visit);
    };
    visit(source);
    const declared = all[0]!.parent;
    if (all.length !== 2 || !ts.isVariableDeclaration(declared)) return;
    const list = declared.parent;
    if (!ts.isVariableStatement(list.parent)) return;
    if (list.parent.declarationList.declarations.length > 1) return;
    edits.remove(list.parent.getStart(), list.parent.getEnd());
  }

  private moveIdentifier(node: ts.Identifier): void {
    const { ts } = this.moved;
    const name = this.moved.names.get(node.text);
    if (name === undefined) return;
    const { parent } = node;
    const isList = ts.isArrayLiteralExpression(parent);
    if (name === 'ThrottlerModule' && isList) this.moved.removeElement(node);
    if (name !== 'ThrottlerException') return;
    const isTest =
      ts.isBinaryExpression(parent) &&
      parent.operatorToken.kind === ts.SyntaxKind.InstanceOfKeyword;
    const isCaught = ts.isCallExpression(parent) && parent.expression.getText() === 'Catch';
    if (!isTest && !isCaught && !ts.isTypeReferenceNode(parent)) return;
    this.moved.edits.replace(
      node.getStart(),
      node.getEnd(),
      this.moved.need('RateLimitedException'),
    );
  }

  /** Types of options that have been moved. Those of others would not fit any more. */
  private moveTypes(node: ts.Node): void {
    const { ts, movedOwners, edits } = this.moved;
    if (ts.isIdentifier(node)) {
      const type = TYPES[this.moved.names.get(node.text) ?? ''];
      const isType =
        ts.isTypeReferenceNode(node.parent) || ts.isExpressionWithTypeArguments(node.parent);
      const isOwner = (at: ts.Node): boolean =>
        ts.isFunctionLike(at) || ts.isVariableDeclaration(at) || ts.isClassLike(at);
      let owner: ts.Node = node;
      while (!isOwner(owner) && !ts.isSourceFile(owner)) owner = owner.parent;
      if (type !== undefined && isType && movedOwners.has(owner)) {
        edits.replace(node.getStart(), node.getEnd(), this.moved.need(type));
      }
    }
    ts.forEachChild(node, (child) => this.moveTypes(child));
  }

  /** Every name of the throttler that nothing has dealt with. */
  private visitLeftovers(node: ts.Node): void {
    const { ts } = this.moved;
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return;
    if (ts.isIdentifier(node) && !this.moved.told.has(node)) {
      const name =
        this.moved.names.get(node.text) ??
        (this.moved.project.ownGuards.has(node.text) ? node.text : undefined);
      const isDeclared = ts.isClassDeclaration(node.parent) && node.parent.name === node;
      if (name !== undefined && !isDeclared && !this.moved.edits.covers(node.getStart())) {
        this.moved.find(node, LEFT[name] ?? this.leftOf(name));
      }
    }
    if (ts.isStringLiteralLike(node)) this.tellText(node, node.text);
    if (ts.isRegularExpressionLiteral(node)) this.tellText(node, node.text.slice(1));
    ts.forEachChild(node, (child) => this.visitLeftovers(child));
  }

  /** Words of the throttler's answers, which tests look for. */
  private tellText(node: ts.Node, text: string): void {
    if (/^\^?ThrottlerException/.test(text))
      this.moved.find(node, 'the body of a 429 has other words', ANSWERS);
    else if (/^\^?(x-ratelimit-\w+|retry-after)-/i.test(text))
      this.moved.find(node, 'headers by the name of a policy are those of the draft', HEADERS);
  }

  private leftOf(name: string): string {
    return this.moved.project.ownGuards.has(name)
      ? `${name} is a guard of the throttler: say here what is limited, as @RateLimit(${this.moved.namesOf(this.moved.project.throttlers.keys())}) does`
      : `${name} has no counterpart of that name`;
  }
}

const NO_TYPE = (ours: string) =>
  `options of this type are not moved here: those of nestjs-weir are a ${ours}`;

/** The throttler's names without a counterpart, and what to do about each. */
const LEFT: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(TYPES).map(([name, ours]) => [name, NO_TYPE(ours)])),
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
