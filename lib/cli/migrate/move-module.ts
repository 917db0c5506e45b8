import type ts from 'typescript';
import { type MovedFigures } from './figures.js';
import { ANSWERS, HEADERS, WORDS, type MovedSource } from './moved-source.js';
import { dedent, indentAt, indented, SourceEdits } from './source-edits.js';
import { agentsOf, constKey, fieldOf, SPEC, unwrap, type Ts } from './survey.js';

const LONGEST_LINE = 90;
const OF_MODULE = ['throttlers', 'storage', 'errorMessage', 'setHeaders'];

/** Moves `ThrottlerModule.forRoot`, `forRootAsync` and classes that make their options. */
export class ModuleMove {
  constructor(
    private readonly moved: MovedSource,
    private readonly figures: MovedFigures,
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
    const isKnown = options !== undefined && (name === 'forRoot' || name === 'forRootAsync');
    const isMoved =
      isKnown &&
      (this.moved.isMovedConst(options) || this.moveOptions(options, name === 'forRootAsync'));
    if (!isMoved) {
      this.moved.find(
        call,
        `the options of ${name} are not written out here: say them as policies`,
      );
      this.moved.told.add(owner);
      return;
    }
    edits.replace(owner.getStart(), owner.getEnd(), this.moved.need('RateLimitModule'));
  }

  /** A const with options that the module is given, here or in another file. */
  moveConst(declared: ts.VariableDeclaration): void {
    if (!this.moved.project.consts.has(constKey(declared))) return;
    this.moveDeclared(declared);
  }

  /** Whether they could be moved. */
  moveDeclared(declared: ts.VariableDeclaration): boolean {
    const { ts } = this.moved;
    if (declared.initializer === undefined) return false;
    const options = unwrap(ts, declared.initializer);
    const isAsync =
      ts.isObjectLiteralExpression(options) &&
      ['useFactory', 'useClass', 'useExisting'].some((name) => fieldOf(ts, options, name));
    const isMoved = this.moveOptions(options, isAsync);
    if (isMoved) this.moved.movedOwners.add(declared);
    return isMoved;
  }

  private moveOptions(options: ts.Expression, isAsync: boolean): boolean {
    return this.movePlaces(isAsync ? this.madeBy(options) : [options]);
  }

  private movePlaces(places: readonly ts.Expression[] | undefined): boolean {
    const moved = places?.map((place) => [place, this.optionsOf(place)] as const);
    if (moved === undefined || moved.some(([, text]) => text === undefined)) return false;
    for (const [place, text] of moved) {
      this.moved.edits.replace(place.getStart(), place.getEnd(), text!);
    }
    return true;
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
    this.moved.movedOwners.add(made);
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
    if (!this.movePlaces(this.returnsOf(method))) {
      this.moved.movedOwners.delete(method);
      this.moved.find(method, 'what it returns is not written out here: say it as policies');
      return;
    }
    this.moved.movedOwners.add(method.parent);
    this.moved.edits.replace(
      method.name.getStart(),
      method.name.getEnd(),
      'createRateLimitOptions',
    );
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
    if (object !== undefined && !this.figures.isKnown(object, OF_MODULE)) return undefined;
    const list = isOld ? undefined : (listed as ts.ArrayLiteralExpression).elements;
    const throttlers: readonly ts.Expression[] = list ?? [object!];
    if (throttlers.length === 0) return '{ enabled: false }';
    const policies: (readonly [name: string, lines: readonly string[]])[] = [];
    const comments = list === undefined ? undefined : commentsIn(ts, this.moved.text, list);
    for (const throttler of throttlers) {
      const policy = this.policyOf(throttler, isOld ? undefined : object);
      if (policy === undefined) return undefined;
      policies.push([policy[0], [...(comments?.of.get(throttler) ?? []), ...policy[1]]]);
    }
    const indent = indentAt(this.moved.text, expression.getStart());
    const { indent: step } = this.moved;
    const ofModule = isOld || object === undefined ? [] : [...object.properties];
    const around = commentsIn(ts, this.moved.text, isOld ? undefined : object?.properties);
    const lines = [
      ...ofModule.flatMap((property) => around.of.get(property) ?? []),
      'policies: {',
      ...indented([...policies.flatMap(([, policy]) => policy), ...(comments?.rest ?? [])], step),
      '},',
      ...(this.isForAll()
        ? [`apply: [${this.moved.namesOf(policies.map(([name]) => name))}],`]
        : []),
      ...this.headerLines(object, expression, policies.length),
      ...(object === undefined ? [] : this.moduleLines(object)),
      ...around.rest,
    ];
    const text = ['{', ...indented(lines, indent + step), `${indent}}`].join('\n');
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
      if (store === undefined) {
        const kept = this.moved.keep(storage.parent);
        const text = 'this storage has no counterpart and is a comment now: name a store';
        this.moved.find(storage, text, WORDS, kept);
        lines.push(kept);
      } else lines.push(`store: ${store},`);
    }
    const message = fieldOf(ts, object, 'errorMessage');
    if (message === undefined) return lines;
    const exception = this.moved.need('HttpException', '@nestjs/common');
    const isText = !ts.isMethodDeclaration(message) && ts.isStringLiteralLike(message);
    const made = isText ? message.getText() : messageOf(this.moved, message, object);
    if (made !== undefined) {
      const given = isText ? '()' : '(decision, context)';
      lines.push(`rejection: ${given} => new ${exception}(${made}, 429),`);
      return lines;
    }
    const kept = this.moved.keep(ts.isMethodDeclaration(message) ? message : message.parent);
    const text =
      'errorMessage is a comment now: write rejection: (decision, context) => new HttpException(<the text>, 429)';
    this.moved.find(message, text, ANSWERS, kept);
    lines.push(kept);
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
    const text = this.moved.textOf(given);
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

  /** `name: { … }` of one throttler, with the comments for it. `around` has what holds for all of them. */
  private policyOf(
    throttler: ts.Expression,
    around: ts.ObjectLiteralExpression | undefined,
  ): readonly [name: string, lines: readonly string[]] | undefined {
    const { ts } = this.moved;
    const object = unwrap(ts, throttler);
    if (!ts.isObjectLiteralExpression(object)) return undefined;
    // Before version 5 the options of the module were those of its one throttler.
    if (!this.figures.isKnown(object, around === undefined ? OF_MODULE : [])) return undefined;
    const name = fieldOf(ts, object, 'name');
    if (name !== undefined && !ts.isStringLiteralLike(name)) return undefined;
    const figures = this.figures.of(object, 'default');
    if (figures === undefined) return undefined;
    const fields = [`algorithm: ${this.moved.quoted('sliding-window')}`, ...figures];
    fields.push(`key: [${this.moved.quoted('ip')}, ${this.moved.quoted('route')}]`);
    const places = around === undefined ? [object] : [object, around];
    fields.push(...this.skipOf(places));
    const comments = commentsIn(ts, this.moved.text, object.properties);
    const above = [
      ...object.properties.flatMap((property) => comments.of.get(property) ?? []),
      ...comments.rest,
      ...places.flatMap((place) => this.figures.leftOf(place)),
    ];
    const key = name === undefined ? 'default' : name.text;
    const own = /^[a-z_$][\w$]*$/i.test(key) ? key : this.moved.quoted(key);
    const line = `${own}: { ${fields.join(', ')} },`;
    if (line.length <= LONGEST_LINE && !line.includes('\n')) return [key, [...above, line]];
    const inner = indented(
      fields.map((field) => `${field},`),
      this.moved.indent,
    );
    return [key, [...above, `${own}: {`, ...inner, '},']];
  }

  /** `skipIf`, for whoever was skipped and for user agents that were ignored. */
  private skipOf(places: readonly ts.ObjectLiteralExpression[]): string[] {
    const { ts } = this.moved;
    const given = (name: string) => places.map((place) => fieldOf(ts, place, name)).find(Boolean);
    const skipIf = given('skipIf');
    const agents = agentsOf(ts, given('ignoreUserAgents'));
    if (skipIf === undefined) return agents === undefined ? [] : [`skipIf: (context) => ${agents}`];
    const text = this.moved.textOf(skipIf);
    if (ts.isMethodDeclaration(skipIf)) return [text];
    return [
      `skipIf: ${agents === undefined ? text : `(context) => (${text})(context) || ${agents}`}`,
    ];
  }
}

/** Arguments of `errorMessage` that a denial has as well. */
const OF_DETAIL: Readonly<Record<string, string>> = {
  limit: 'decision.limit',
  totalHits: '(decision.limit - decision.remaining + 1)',
  tracker: 'context.switchToHttp().getRequest().ip',
};

/** The text of an `errorMessage`, in terms of `decision` and `context`; undefined if that cannot be said. */
function messageOf(
  { ts, text }: MovedSource,
  made: ts.Node,
  module: ts.ObjectLiteralExpression,
): string | undefined {
  if (!ts.isArrowFunction(made) || ts.isBlock(made.body)) return undefined;
  const [context, detail] = made.parameters.map(({ name }) => name.getText());
  const isOther = context !== undefined && context !== 'context';
  // By a tracker of its own the caller is not its address.
  const isTracked = module.getText().includes('getTracker');
  if (isOther || isTracked) return undefined;
  const edits = new SourceEdits(text);
  let isSaid = true;
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node) && node.text === detail) {
      const { parent } = node;
      const said = ts.isPropertyAccessExpression(parent) ? OF_DETAIL[parent.name.text] : undefined;
      if (said === undefined) isSaid = false;
      else edits.replace(parent.getStart(), parent.getEnd(), said);
    }
    ts.forEachChild(node, visit);
  };
  visit(made.body);
  if (!isSaid) return undefined;
  const [start, end] = [made.body.getStart(), made.body.getEnd()];
  return edits.apply().slice(edits.positionAfter(start), edits.positionAfter(end));
}

/** Comments of a list of fields or elements, whose text is about to be written anew. */
interface ListComments {
  /** Those above each of them, and behind it on its line. */
  readonly of: ReadonlyMap<ts.Node, readonly string[]>;
  /** Those behind the last. */
  readonly rest: readonly string[];
}

function commentsIn(ts: Ts, text: string, list: ts.NodeArray<ts.Node> | undefined): ListComments {
  const written = (ranges: readonly ts.CommentRange[] = []): string[] =>
    ranges.map(({ pos, end }) => dedent(text.slice(pos, end), indentAt(text, pos)));
  const of = new Map<ts.Node, readonly string[]>();
  for (const node of list ?? []) {
    const comma = /^\s*,/.exec(text.slice(node.getEnd()))?.[0].length ?? 0;
    const behind = [node.getEnd(), node.getEnd() + comma].flatMap((at) =>
      written(ts.getTrailingCommentRanges(text, at)),
    );
    const above = written(ts.getLeadingCommentRanges(text, node.getFullStart()));
    of.set(node, [...above, ...new Set(behind)]);
  }
  const isEmpty = list === undefined || list.length === 0;
  return { of, rest: isEmpty ? [] : written(ts.getLeadingCommentRanges(text, list.end)) };
}
