import type ts from 'typescript';
import { type Figures } from './figures.js';
import { ANSWERS, HEADERS, type MovedSource } from './moved-source.js';
import { indentAt } from './source-edits.js';
import { fieldOf, unwrap } from './survey.js';

const LONGEST_LINE = 90;
const SPEC = /[.-](spec|test)\.[cm]?tsx?$/;

/** Moves `ThrottlerModule.forRoot`, `forRootAsync` and classes that make their options. */
export class ModuleMove {
  constructor(
    private readonly moved: MovedSource,
    private readonly figures: Figures,
  ) {}

  /** `ThrottlerModule.forRoot(…)` */
  moveCall(call: ts.CallExpression): void {
    const { ts, edits } = this.moved;
    const { expression } = call;
    if (!ts.isPropertyAccessExpression(expression)) return;
    const owner = expression.expression;
    if (!ts.isIdentifier(owner) || this.moved.names.get(owner.text) !== 'ThrottlerModule') return;
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
      this.moved.find(
        call,
        `the options of ${name} are not written out here: say them as policies`,
      );
      this.moved.told.add(owner);
      return;
    }
    edits.replace(owner.getStart(), owner.getEnd(), this.moved.need('RateLimitModule'));
    for (const [place, text] of moved) edits.replace(place.getStart(), place.getEnd(), text!);
  }

  /** The options that a factory returns; none of a class, which is moved where it stands. */
  private madeBy(options: ts.Expression): ts.Expression[] | undefined {
    const { ts } = this.moved;
    const object = unwrap(ts, options);
    if (!ts.isObjectLiteralExpression(object)) return undefined;
    const factory = fieldOf(ts, object, 'useFactory');
    if (factory === undefined) return [];
    return this.returnsOf(ts.isMethodDeclaration(factory) ? factory : unwrap(ts, factory));
  }

  private returnsOf(made: ts.Node): ts.Expression[] | undefined {
    const { ts } = this.moved;
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
  moveFactory(method: ts.MethodDeclaration): void {
    const { ts } = this.moved;
    const isFactory = ts.isIdentifier(method.name) && method.name.text === 'createThrottlerOptions';
    if (!isFactory || this.moved.names.size === 0) return;
    const moved = this.returnsOf(method)?.map((place) => [place, this.optionsOf(place)] as const);
    if (moved === undefined || moved.some(([, text]) => text === undefined)) {
      this.moved.find(method, 'what it returns is not written out here: say it as policies');
      return;
    }
    this.moved.edits.replace(
      method.name.getStart(),
      method.name.getEnd(),
      'createRateLimitOptions',
    );
    for (const [place, text] of moved)
      this.moved.edits.replace(place.getStart(), place.getEnd(), text!);
  }

  /** Options of the throttler as options of this module; undefined if they are not written out. */
  private optionsOf(expression: ts.Expression): string | undefined {
    const { ts } = this.moved;
    const given = unwrap(ts, expression);
    const object = ts.isObjectLiteralExpression(given) ? given : undefined;
    const listed = object === undefined ? given : fieldOf(ts, object, 'throttlers');
    const isOld =
      listed === undefined && object !== undefined && fieldOf(ts, object, 'ttl') !== undefined;
    if (!isOld && (listed === undefined || !ts.isArrayLiteralExpression(listed))) return undefined;
    const throttlers = isOld ? [object] : [...(listed as ts.ArrayLiteralExpression).elements];
    if (throttlers.length === 0) return '{ enabled: false }';
    const policies: (readonly [name: string, text: string])[] = [];
    for (const throttler of throttlers) {
      const policy = this.policyOf(throttler, isOld ? undefined : object);
      if (policy === undefined) return undefined;
      policies.push(policy);
    }
    const indent = indentAt(this.moved.text, expression.getStart());
    const lines = [
      'policies: {',
      ...policies.flatMap(([, policy]) => `${policy},`.split('\n').map((line) => `  ${line}`)),
      '},',
      ...(this.isForAll()
        ? [`apply: [${this.moved.namesOf(policies.map(([name]) => name))}],`]
        : []),
      ...this.headerLines(object, expression, policies.length),
      ...(object === undefined ? [] : this.moduleLines(object)),
    ];
    const text = `{\n${lines.map((line) => `${indent}  ${line}\n`).join('')}${indent}}`;
    // Without them it would be the body of the function.
    return ts.isArrowFunction(expression.parent) ? `(${text})` : text;
  }

  /** Whether a guard asks for every route; a test that makes a module of its own mounts its own guard, or none. */
  private isForAll(): boolean {
    const { project, source } = this.moved;
    return SPEC.test(source.fileName) ? project.globals.has(source.fileName) : project.isGlobal;
  }

  private moduleLines(object: ts.ObjectLiteralExpression): string[] {
    const { ts } = this.moved;
    const lines: string[] = [];
    const storage = fieldOf(ts, object, 'storage');
    if (storage !== undefined) {
      const store = ts.isMethodDeclaration(storage) ? undefined : this.storeOf(unwrap(ts, storage));
      if (store === undefined)
        this.moved.find(storage, 'this storage has no counterpart: name a store');
      else lines.push(`store: ${store},`);
    }
    const message = fieldOf(ts, object, 'errorMessage');
    if (
      message !== undefined &&
      !ts.isMethodDeclaration(message) &&
      ts.isStringLiteralLike(message)
    ) {
      const made = `new ${this.moved.need('HttpException', '@nestjs/common')}(${message.getText()}, 429)`;
      lines.push(`rejection: () => ${made},`);
    } else if (message !== undefined) {
      this.moved.find(
        message,
        'errorMessage as a function becomes rejection: (decision, context) => …',
        ANSWERS,
      );
    }
    return lines;
  }

  private headerLines(
    object: ts.ObjectLiteralExpression | undefined,
    place: ts.Expression,
    policies: number,
  ): string[] {
    const { ts, project } = this.moved;
    const headers = object && fieldOf(ts, object, 'setHeaders');
    if (headers?.kind === ts.SyntaxKind.FalseKeyword) {
      return [`headers: { draft: ${this.moved.quoted('off')}, retryAfter: false },`];
    }
    if (!project.readsHeaders) return [];
    if (policies > 1) {
      this.moved.find(
        place,
        'X-RateLimit-… tell of the tightest policy, without its name',
        HEADERS,
      );
    }
    return ['headers: { legacy: true },'];
  }

  private storeOf(storage: ts.Expression): string | undefined {
    const { ts } = this.moved;
    if (!ts.isNewExpression(storage) || !ts.isIdentifier(storage.expression)) return undefined;
    if (this.moved.names.get(storage.expression.text) !== 'ThrottlerStorageRedisService')
      return undefined;
    const [given] = storage.arguments ?? [];
    const type = `type: ${this.moved.quoted('redis')}`;
    if (given === undefined)
      return `{ ${type}, url: ${this.moved.quoted('redis://127.0.0.1:6379')} }`;
    const text = given.getText();
    if (ts.isObjectLiteralExpression(given)) return `{ ${type}, options: ${text} }`;
    if (ts.isNewExpression(given)) return `{ ${type}, client: ${text} }`;
    const isText = ts.isStringLiteralLike(given) || ts.isTemplateExpression(given);
    if (isText || /\.get\w*(<.*>)?\(|process\.env/.test(text)) return `{ ${type}, url: ${text} }`;
    this.moved.find(
      given,
      'client: is right if this is a connection; if it is an address, write url:',
    );
    return `{ ${type}, client: ${text} }`;
  }

  /** `name: { … }` of one throttler. `around` has what holds for all of them. */
  private policyOf(
    throttler: ts.Expression,
    around: ts.ObjectLiteralExpression | undefined,
  ): readonly [name: string, text: string] | undefined {
    const { ts } = this.moved;
    const object = unwrap(ts, throttler);
    if (!ts.isObjectLiteralExpression(object)) return undefined;
    const figures = this.figures.of(object, 'default');
    const name = fieldOf(ts, object, 'name');
    if (figures === undefined) return undefined;
    if (name !== undefined && !ts.isStringLiteralLike(name)) return undefined;
    const fields = [`algorithm: ${this.moved.quoted('sliding-window')}`, ...figures];
    fields.push(`key: [${this.moved.quoted('ip')}, ${this.moved.quoted('route')}]`);
    for (const place of [object, around]) {
      if (place === undefined) continue;
      const skipIf = fieldOf(ts, place, 'skipIf');
      if (skipIf !== undefined && !ts.isMethodDeclaration(skipIf)) {
        fields.push(`skipIf: ${skipIf.getText()}`);
      }
      this.figures.tellFields(place);
    }
    const key = name === undefined ? 'default' : name.text;
    const own = /^[a-z_$][\w$]*$/i.test(key) ? key : this.moved.quoted(key);
    const line = `${own}: { ${fields.join(', ')} }`;
    const isLong = line.length > LONGEST_LINE;
    return [key, isLong ? `${own}: {\n  ${fields.join(',\n  ')},\n}` : line];
  }
}
