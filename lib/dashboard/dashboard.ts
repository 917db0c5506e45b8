import { type ServerResponse } from 'node:http';
import { type BeforeApplicationShutdown } from '@nestjs/common';
import { type Clock } from '../common/clock.js';
import { InvalidConfigError, RateLimitError, StoreUnavailableError } from '../common/errors.js';
import {
  ConfigConflictError,
  ConfigRefusedError,
  UnknownRevisionError,
} from '../config/config-errors.js';
import { diff, type ConfigDiff } from '../config/document/diff.js';
import { patchBetween } from '../config/document/merge-patch.js';
import { type RateLimitConfig } from '../config/rate-limit-config.js';
import { ConfigSyntaxError, parseText } from '../config/sources/parse-text.js';
import { type ConfigLayer } from '../config/schema/check.js';
import { type ConfigDocument } from '../config/schema/document.schema.js';
import { type Decision } from '../limiter/decision.js';
import { type RateLimiter } from '../limiter/rate-limiter.js';
import { type RateLimitMonitor } from '../observability/monitor.js';
import { HORIZONS, type Horizon } from '../observability/series.js';
import { Problem } from './answers.js';
import { Assets } from './assets.js';
import { type DashboardOptions } from './dashboard.options.js';
import { Frames, type FrameParts } from './frames.js';
import { Viewers } from './viewers.js';

export interface DashboardParts extends Omit<
  FrameParts,
  'build' | 'canWrite' | 'viewers' | 'actions'
> {
  readonly options: DashboardOptions;
}

const REPORTED_DAYS = 7;
const SHOWN_REVISIONS = 30;
const MOST_LOOKED_AT = 20;
const LONGEST_KEY = 512;
const LOOKS_PER_SECOND = 5;
const NAME_OF_TEXT = 'configuration';

/** The answers to the page, without the framework. */
export class Dashboard implements BeforeApplicationShutdown {
  readonly assets = new Assets();
  readonly frames: Frames;
  readonly viewers: Viewers;
  /** Requests that were refused because another site may have sent them. */
  crossSite = 0;
  private readonly looks: number[] = [];
  private readonly monitor: RateLimitMonitor;
  private readonly limiter: RateLimiter;
  private readonly config: RateLimitConfig;
  private readonly clock: Clock;

  constructor(private readonly parts: DashboardParts) {
    const { monitor, limiter, config, clock, options } = parts;
    this.monitor = monitor;
    this.limiter = limiter;
    this.config = config;
    this.clock = clock;
    this.frames = new Frames({
      ...parts,
      build: this.assets.build,
      canWrite: options.write !== undefined,
      actions: options.actions.map(({ name, text, link = null }) => ({ name, text, link })),
      viewers: () => this.viewers.count,
    });
    this.viewers = new Viewers({
      clock,
      most: options.maxViewers,
      eachSecond: (task) => monitor.on('tick', task),
      frame: () => this.frames.event(),
    });
  }

  get origins(): readonly string[] {
    return this.parts.options.origins;
  }

  beforeApplicationShutdown(): void {
    this.viewers.close();
  }

  stream(response: ServerResponse): Promise<void> {
    return this.viewers.add(response);
  }

  async series(name: string, horizon: string): Promise<unknown> {
    if (!HORIZONS.includes(horizon as Horizon)) {
      throw new Problem(400, `There is no horizon of that name: ${HORIZONS.join(', ')}.`);
    }
    const of = horizon as Horizon;
    const isAlone = this.limiter.redis === undefined;
    const found =
      (isAlone ? undefined : await this.monitor.fleetHistory(name, of)) ??
      this.monitor.history(name, of);
    if (found === undefined) throw new Problem(404, 'Nothing is kept of that, or not for so long.');
    return found;
  }

  report(): Promise<unknown> {
    return this.monitor.report(REPORTED_DAYS);
  }

  configuration(): unknown {
    const { revision, profile, document, staged = [] } = this.config.current();
    return { revision, profile, document, staged };
  }

  async history(): Promise<unknown> {
    const past = await this.config.history(SHOWN_REVISIONS);
    return past.map(({ revision, kind, by, atMs, diff: changes, about, reason }) => {
      return { revision, kind, by, atMs, diff: changes, about, reason };
    });
  }

  async nodes(): Promise<unknown> {
    return (await this.config.nodes()).map(({ node, revision, status, about, reason, atMs }) => {
      return { node, revision, status, about, reason, atMs };
    });
  }

  /** The faults of a text, the changes that it would make, and their effect on the last hours. */
  async validate({ text }: Readonly<Record<string, unknown>>): Promise<unknown> {
    const { revision, document } = this.config.current();
    const read = await this.read(text);
    if ('issues' in read) return { revision, ...read, diff: NO_DIFF };
    const patch = patchBetween(document, read.document) as ConfigLayer;
    const changes = diff(document, read.document);
    const issues = isEmpty(changes) ? [] : this.config.validate(patch);
    if (isEmpty(changes) || issues.length > 0) return { revision, issues, diff: changes };
    const impact = await this.monitor.impact(document, read.document as ConfigDocument);
    return { revision, issues, diff: changes, impact };
  }

  async update(body: Readonly<Record<string, unknown>>, by: string): Promise<unknown> {
    const expectedRevision = revisionIn(body.expectedRevision);
    const read = await this.read(body.text);
    if ('issues' in read) throw new Problem(422, 'The text cannot be read.', read);
    const before = this.config.current();
    if (before.revision !== expectedRevision) throw await this.conflict(expectedRevision);
    const patch = patchBetween(before.document, read.document) as ConfigLayer;
    return this.written(expectedRevision, () =>
      this.config.update(patch, { expectedRevision, by }),
    );
  }

  /** Lays a patch over what holds: a profile that is switched, a policy that only watches. */
  async patch(body: Readonly<Record<string, unknown>>, by: string): Promise<unknown> {
    const { patch } = body;
    if (typeof patch !== 'object' || patch === null) throw new Problem(400, 'There is no patch.');
    const expectedRevision = revisionIn(body.expectedRevision);
    return this.written(expectedRevision, () =>
      this.config.update(patch as ConfigLayer, { expectedRevision, by }),
    );
  }

  async rollback(
    revision: unknown,
    body: Readonly<Record<string, unknown>>,
    by: string,
  ): Promise<unknown> {
    const expectedRevision = revisionIn(body.expectedRevision);
    return this.written(expectedRevision, () =>
      this.config.rollback(revisionIn(revision), { expectedRevision, by }),
    );
  }

  /** Which policies would turn this key away now, and why; nothing is taken. */
  async look({ key }: Readonly<Record<string, unknown>>): Promise<unknown> {
    if (typeof key !== 'string' || key === '' || key.length > LONGEST_KEY) {
      throw new Problem(400, `A key is a text of 1 to ${LONGEST_KEY} characters.`);
    }
    const now = this.clock.now();
    while (this.looks.length > 0 && now - this.looks[0]! > 1_000_000) this.looks.shift();
    if (this.looks.length >= LOOKS_PER_SECOND) throw new Problem(429, 'Too many looks at once.');
    this.looks.push(now);
    const names = this.limiter.policyNames();
    const looked = await Promise.all(
      names.slice(0, MOST_LOOKED_AT).map(async (policy) => {
        try {
          const decision = await this.limiter.peek({ policy, key });
          return seenOf(policy, decision);
        } catch {
          // A policy whose requests bring their figures along cannot be asked without them.
          return undefined;
        }
      }),
    );
    return { policies: looked.filter((one) => one !== undefined), of: names.length };
  }

  /** For the whole fleet, as a revision like any other: it is in the history, and can be rolled back. */
  async resource(
    name: string,
    { mode, level }: Readonly<Record<string, unknown>>,
    by: string,
  ): Promise<unknown> {
    const known = this.parts.degradation()?.resources.map(({ resource }) => resource) ?? [];
    if (!known.includes(name)) throw new Problem(404, 'No route degrades under that name.');
    const wanted = { mode: mode === 'auto' ? null : mode, level: level ?? null };
    const patch = { degradation: { resources: { [name]: wanted } } };
    const { revision: expectedRevision } = this.config.current();
    return this.written(expectedRevision, () =>
      this.config.update(patch, { expectedRevision, by }),
    );
  }

  async act(name: string): Promise<unknown> {
    const action = this.parts.options.actions.find((one) => one.name === name);
    if (action === undefined) throw new Problem(404, 'There is no such button.');
    return { said: (await action.run()) ?? '' };
  }

  async mute({ rule, series, minutes }: Readonly<Record<string, unknown>>): Promise<unknown> {
    if (typeof minutes !== 'number' || !(minutes > 0 && minutes <= MOST_MUTED_MINUTES)) {
      throw new Problem(400, `Minutes are a number of up to ${MOST_MUTED_MINUTES}.`);
    }
    const until = new Date(this.clock.epochMs(this.clock.now()) + minutes * 60_000);
    await this.monitor.mute(
      rule as Parameters<RateLimitMonitor['mute']>[0],
      typeof series === 'string' ? series : undefined,
      until,
    );
    return { done: true, untilMs: until.getTime() };
  }

  private async read(
    text: unknown,
  ): Promise<{ readonly document: unknown } | { readonly issues: readonly object[] }> {
    if (typeof text !== 'string') throw new Problem(400, 'There is no text.');
    try {
      const format = text.trimStart().startsWith('{') ? 'json' : 'yaml';
      return { document: await parseText(text, NAME_OF_TEXT, format) };
    } catch (error) {
      if (!(error instanceof ConfigSyntaxError)) throw error;
      const { reason, line, column } = error;
      return { issues: [{ path: '', message: reason, line, column }] };
    }
  }

  private async written(
    expectedRevision: number,
    write: () => Promise<{ readonly revision: number }>,
  ): Promise<unknown> {
    try {
      const { revision } = await write();
      return { revision };
    } catch (error) {
      if (error instanceof ConfigConflictError) throw await this.conflict(expectedRevision);
      throw problemOf(error);
    }
  }

  private async conflict(expectedRevision: number): Promise<Problem> {
    const past = await this.config.history(SHOWN_REVISIONS).catch(() => []);
    const others = past.filter(({ revision }) => revision > expectedRevision);
    const { revision } = this.config.current();
    const [latest] = others;
    const who = latest === undefined ? '' : ` by ${latest.by}`;
    return new Problem(
      409,
      `Somebody was faster: revision ${latest?.revision ?? revision}${who} is in force. Nothing was changed.`,
      {
        revision: latest?.revision ?? revision,
        others: others.map(({ revision: number, by, atMs, diff: changes }) => {
          return { revision: number, by, atMs, diff: changes };
        }),
      },
    );
  }
}

const MOST_MUTED_MINUTES = 7 * 24 * 60;
const NO_DIFF: ConfigDiff = { added: [], removed: [], changed: [] };
const isEmpty = ({ added, removed, changed }: ConfigDiff): boolean =>
  added.length + removed.length + changed.length === 0;

function revisionIn(value: unknown): number {
  const revision = typeof value === 'string' && value !== '' ? Number(value) : value;
  if (Number.isSafeInteger(revision) && (revision as number) >= 0) return revision as number;
  throw new Problem(400, 'Say which revision you have seen: expectedRevision.');
}

function seenOf(policy: string, decision: Decision) {
  const { allowed, remaining, limit, retryAfterMs, resetMs, tier, source } = decision;
  return { policy, allowed, remaining, limit, retryAfterMs, resetMs, tier, source };
}

/** The library's own errors say what to do; those of others may say too much. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof InvalidConfigError) {
    const issues = error.issues.map(({ path, message }) => ({ path, message }));
    return new Problem(422, 'The configuration is not valid. Nothing was changed.', { issues });
  }
  if (error instanceof ConfigRefusedError) return new Problem(422, error.message);
  if (error instanceof UnknownRevisionError) return new Problem(404, error.message);
  if (error instanceof StoreUnavailableError) {
    return new Problem(503, 'Redis does not answer; nothing was changed.');
  }
  if (error instanceof RateLimitError) return new Problem(400, error.message);
  return new Problem(500, 'That did not work; the log of the process may say why.');
}
