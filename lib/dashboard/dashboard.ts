import { type ServerResponse } from 'node:http';
import { type BeforeApplicationShutdown } from '@nestjs/common';
import { type Clock } from '../common/clock.js';
import { InvalidConfigError, RateLimitError, StoreUnavailableError } from '../common/errors.js';
import {
  ConfigConflictError,
  ConfigRefusedError,
  UnknownRevisionError,
} from '../config/config-errors.js';
import { diff, isEmptyDiff, type ConfigDiff } from '../config/document/diff.js';
import { effective, NORMAL_PROFILE } from '../config/document/effective.js';
import { joined } from '../config/layers.js';
import { mergePatch, patchBetween } from '../config/document/merge-patch.js';
import { type PastRevision, type RateLimitConfig } from '../config/rate-limit-config.js';
import { ConfigSyntaxError, parseText } from '../config/sources/parse-text.js';
import { type ConfigLayer } from '../config/schema/check.js';
import { type ConfigDocument } from '../config/schema/document.schema.js';
import { type RateLimiter } from '../limiter/rate-limiter.js';
import { type RateLimitMonitor } from '../observability/monitor.js';
import { HORIZONS, type Horizon } from '../observability/series.js';
import { MOST_REVISIONS } from '../stores/config-store.js';
import { RequestProblem } from './answers.js';
import { Assets } from './assets.js';
import { type DashboardLog } from './dashboard.log.js';
import { type DashboardOptions } from './dashboard.options.js';
import { effectsOf, type Effect } from './effects.js';
import { type Looked } from './frame.js';
import { Frames, type FramesDeps } from './frames.js';
import { lookAt } from './look.js';
import { Viewers } from './viewers.js';

export interface DashboardDeps extends Omit<
  FramesDeps,
  'build' | 'canWrite' | 'viewers' | 'actions'
> {
  readonly options: DashboardOptions;
  readonly log: DashboardLog;
  /** How much of an IPv6 address is a key. */
  readonly ipv6Prefix?: number | undefined;
}

const REPORTED_DAYS = 7;
const SHOWN_REVISIONS = 30;
const LONGEST_KEY = 512;
const LOOKS_PER_SECOND = 5;
const NAME_OF_TEXT = 'configuration';

/** The answers to the page, without the framework. */
export class Dashboard implements BeforeApplicationShutdown {
  readonly assets = new Assets();
  readonly frames: Frames;
  readonly viewers: Viewers;
  private readonly looks: number[] = [];
  private readonly monitor: RateLimitMonitor;
  private readonly limiter: RateLimiter;
  private readonly config: RateLimitConfig;
  private readonly clock: Clock;

  constructor(private readonly deps: DashboardDeps) {
    const { monitor, limiter, config, clock, options } = deps;
    this.monitor = monitor;
    this.limiter = limiter;
    this.config = config;
    this.clock = clock;
    this.frames = new Frames({
      ...deps,
      build: this.assets.build,
      canWrite: options.write !== undefined,
      actions: options.actions.map(({ name, text, link = null }) => ({ name, text, link })),
      viewers: () => this.viewers.count,
    });
    this.viewers = new Viewers({
      clock,
      most: options.maxViewers,
      eachSecond: (task) => monitor.on('tick', task),
      frame: () => this.frames.events(),
      failed: deps.log.frameFailed,
    });
  }

  get log(): DashboardLog {
    return this.deps.log;
  }

  get origins(): readonly string[] {
    return this.deps.options.origins;
  }

  beforeApplicationShutdown(): void {
    this.viewers.close();
  }

  stream(response: ServerResponse): Promise<void> {
    return this.viewers.add(response);
  }

  async series(name: string, horizon: string): Promise<unknown> {
    if (!HORIZONS.includes(horizon as Horizon)) {
      throw new RequestProblem(400, `There is no horizon of that name: ${HORIZONS.join(', ')}.`);
    }
    const of = horizon as Horizon;
    const isAlone = this.limiter.redis === undefined;
    const found =
      (isAlone ? undefined : await this.monitor.fleetHistory(name, of)) ??
      this.monitor.history(name, of);
    if (found !== undefined) return found;
    // A browser writes each 404 into its console, and that weeks are kept of few is no fault.
    if (this.monitor.history(name, 'seconds') !== undefined) return null;
    throw new RequestProblem(404, 'Nothing is kept of that.');
  }

  report(): Promise<unknown> {
    return this.monitor.report(REPORTED_DAYS);
  }

  configuration(): unknown {
    const { revision, profile, document, staged = [] } = this.config.current();
    return { revision, profile, document, staged };
  }

  async revision(number: unknown): Promise<unknown> {
    const past = await this.kept(revisionIn(number));
    const { revision, kind, by, atMs, staged } = past;
    const document = effective(joined(past));
    const profile = document.profile ?? NORMAL_PROFILE;
    return { revision, kind, by, atMs, profile, document, staged };
  }

  /** The history is read from its newest end, and no further than to that revision. */
  private async kept(revision: number): Promise<PastRevision> {
    const [newest] = await this.config.history(1);
    const count = Math.min((newest?.revision ?? 0) - revision + 1, MOST_REVISIONS);
    const past = count < 1 ? [] : await this.config.history(count);
    const found = past.find((one) => one.revision === revision);
    if (found !== undefined) return found;
    throw new RequestProblem(404, `Revision ${revision} is not kept, or not any more.`);
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

  /** The faults of a text, a patch or a revision, the changes that it would make, and their effect on the last hours. */
  async validate(body: Readonly<Record<string, unknown>>): Promise<unknown> {
    if ('revision' in body) return this.judgeRollback(revisionIn(body.revision));
    if ('patch' in body) return this.judge(patchIn(body));
    const { revision, document } = this.config.current();
    const read = await this.read(body.text);
    if ('issues' in read) return { revision, ...read, diff: NO_DIFF };
    return this.judge(patchBetween(document, read.document) as ConfigLayer);
  }

  private async judge(patch: ConfigLayer): Promise<unknown> {
    const { revision, document } = this.config.current();
    const next = mergePatch(document, patch) as ConfigDocument;
    const changes = diff(document, next);
    const issues = isEmptyDiff(changes) ? [] : this.config.validate(patch);
    if (isEmptyDiff(changes) || issues.length > 0) return { revision, issues, diff: changes };
    return { revision, issues, diff: changes, effects: await this.effects(document, next) };
  }

  /** The difference that going back to a revision would make to the current one, and its effects. */
  private async judgeRollback(to: number): Promise<unknown> {
    const { revision, document } = this.config.current();
    const next = effective(joined(await this.kept(to)));
    const changes = diff(document, next);
    const effects = isEmptyDiff(changes) ? [] : await this.effects(document, next);
    return { revision, issues: [], diff: changes, effects };
  }

  private async effects(before: ConfigDocument, after: ConfigDocument): Promise<Effect[]> {
    return effectsOf(await this.monitor.impact(before, after));
  }

  async update(body: Readonly<Record<string, unknown>>, by: string): Promise<unknown> {
    const expectedRevision = revisionIn(body.expectedRevision);
    const read = await this.read(body.text);
    if ('issues' in read) throw new RequestProblem(422, 'The text cannot be read.', read);
    const before = this.config.current();
    if (before.revision !== expectedRevision) throw await this.conflict(expectedRevision);
    const patch = patchBetween(before.document, read.document) as ConfigLayer;
    return this.written(expectedRevision, () =>
      this.config.update(patch, { expectedRevision, by }),
    );
  }

  /** Lays a patch over what holds: a profile that is switched, a policy that only watches. */
  async patch(body: Readonly<Record<string, unknown>>, by: string): Promise<unknown> {
    const patch = patchIn(body);
    const expectedRevision = revisionIn(body.expectedRevision);
    return this.written(expectedRevision, () =>
      this.config.update(patch, { expectedRevision, by }),
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
  async look({ key }: Readonly<Record<string, unknown>>): Promise<Looked> {
    if (typeof key !== 'string' || key.trim() === '' || key.length > LONGEST_KEY) {
      throw new RequestProblem(400, `A key is a text of 1 to ${LONGEST_KEY} characters.`);
    }
    const now = this.clock.now();
    while (this.looks.length > 0 && now - this.looks[0]! > 1_000_000) this.looks.shift();
    if (this.looks.length >= LOOKS_PER_SECOND)
      throw new RequestProblem(429, 'Too many looks at once.');
    this.looks.push(now);
    const deps = {
      limiter: this.limiter,
      document: this.config.current().document,
      ipv6Prefix: this.deps.ipv6Prefix,
      limited: await this.frames.limited(),
      shownKey: (one: string) => this.monitor.shownKey(one),
    };
    return lookAt(deps, key.trim());
  }

  /** For the whole fleet, as a revision like any other: it is in the history, and can be rolled back. */
  async resource(
    name: string,
    { mode, level }: Readonly<Record<string, unknown>>,
    by: string,
  ): Promise<unknown> {
    if (!(await this.isDegraded(name))) {
      throw new RequestProblem(404, 'No route degrades under that name.');
    }
    const wanted = { mode: mode === 'auto' ? null : mode, level: level ?? null };
    const patch = { degradation: { resources: { [name]: wanted } } };
    const { revision: expectedRevision } = this.config.current();
    return this.written(expectedRevision, () =>
      this.config.update(patch, { expectedRevision, by }),
    );
  }

  /** Here, or on another node: applications of other code share the configuration. */
  private async isDegraded(name: string): Promise<boolean> {
    const here = this.deps.degradation()?.resources ?? [];
    const { state } = await this.frames.latest();
    return (
      here.some(({ resource }) => resource === name) ||
      state.resources.some(({ resource, phase }) => resource === name && phase !== undefined)
    );
  }

  async act(name: string): Promise<unknown> {
    const action = this.deps.options.actions.find((one) => one.name === name);
    if (action === undefined) throw new RequestProblem(404, 'There is no such button.');
    return { said: (await action.run()) ?? '' };
  }

  async mute({ rule, series, minutes }: Readonly<Record<string, unknown>>): Promise<unknown> {
    if (typeof minutes !== 'number' || !(minutes > 0 && minutes <= MOST_MUTED_MINUTES)) {
      throw new RequestProblem(400, `Minutes are a number of up to ${MOST_MUTED_MINUTES}.`);
    }
    if (series !== undefined && typeof series !== 'string') {
      throw new RequestProblem(400, 'A series is a name, or is left out for all of them.');
    }
    const until = new Date(this.clock.epochMs(this.clock.now()) + minutes * 60_000);
    await this.monitor.mute(rule as Parameters<RateLimitMonitor['mute']>[0], series, until);
    return { done: true, untilMs: until.getTime() };
  }

  private async read(
    text: unknown,
  ): Promise<{ readonly document: unknown } | { readonly issues: readonly object[] }> {
    if (typeof text !== 'string') throw new RequestProblem(400, 'There is no text.');
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

  private async conflict(expectedRevision: number): Promise<RequestProblem> {
    const past = await this.config.history(SHOWN_REVISIONS).catch(() => []);
    const others = past.filter(({ revision }) => revision > expectedRevision);
    const { revision } = this.config.current();
    const [latest] = others;
    const who = latest === undefined ? '' : ` by ${latest.by}`;
    return new RequestProblem(
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

function patchIn({ patch }: Readonly<Record<string, unknown>>): ConfigLayer {
  if (typeof patch === 'object' && patch !== null) return patch as ConfigLayer;
  throw new RequestProblem(400, 'There is no patch.');
}

function revisionIn(value: unknown): number {
  const revision = typeof value === 'string' && value !== '' ? Number(value) : value;
  if (Number.isSafeInteger(revision) && (revision as number) >= 0) return revision as number;
  throw new RequestProblem(
    400,
    'A revision is a whole number from 0 on; of a change, expectedRevision is the one that you have seen.',
  );
}

/** The library's own errors say what to do; those of others may say too much. */
export function problemOf(error: unknown): RequestProblem {
  if (error instanceof RequestProblem) return error;
  if (error instanceof InvalidConfigError) {
    const issues = error.issues.map(({ path, message }) => ({ path, message }));
    return new RequestProblem(422, 'The configuration is not valid. Nothing was changed.', {
      issues,
    });
  }
  if (error instanceof ConfigRefusedError) return new RequestProblem(422, error.message);
  if (error instanceof UnknownRevisionError) return new RequestProblem(404, error.message);
  if (error instanceof StoreUnavailableError) {
    return new RequestProblem(503, 'Redis does not answer; nothing was changed.');
  }
  if (error instanceof RateLimitError) return new RequestProblem(400, error.message);
  return new RequestProblem(500, 'That did not work; the log of the process may say why.');
}
