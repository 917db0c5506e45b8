import { List, Named, number, text } from '../common/schema.js';
import { choice, duration, field, flag, group, part, whole } from '../common/schema-fields.js';
import {
  A_FLOOR,
  A_THRESHOLD,
  A_WEIGHT,
  isHeaders,
  isPaths,
  isTiers,
  MODES,
  MOST_WAITING,
  OverloadOptions,
  ScoreOptions,
  ScoreThresholds,
  ScoreWeights,
  SOME_HEADERS,
  SOME_PATHS,
  SOME_TIERS,
  SOURCES,
} from './settings.js';

const defaults = new OverloadOptions();
const score = new ScoreOptions();
const weights = new ScoreWeights();
const from = new ScoreThresholds();

const weight = () => number(A_WEIGHT, { minimum: 0, maximum: 1 });
const threshold = () => number(A_THRESHOLD, { minimum: 0, exclusiveMaximum: 1 });

const anyText = (expected: string) => text(expected, {}, () => true);

const texts = (isRight: (value: unknown) => boolean, expected: string) =>
  new List(expected, anyText(expected), {}, isRight);

const scoreSchema = group({
  weights: field(
    group({
      cpu: field(weight(), 'Of the processor', weights.cpu),
      memory: field(weight(), 'Of the memory', weights.memory),
      inFlight: field(weight(), 'Of the requests under way', weights.inFlight),
    }),
    'How much each signal counts; together 1',
  ),
  from: field(
    group({
      cpu: field(threshold(), 'Part of the processor time', from.cpu),
      memory: field(threshold(), 'Part of the memory', from.memory),
      inFlight: field(whole(), 'Requests under way; twice as many count in full', from.inFlight),
    }),
    'From where on each signal counts',
  ),
  floor: field(part(A_FLOOR), 'The least part of a limit that is left at full load', score.floor),
  source: field(
    choice(...SOURCES),
    'The processor alone, or the event loop where that is busier',
    score.source,
  ),
});

/** The section of the document. What it cannot say of fields together, `checkOverload` says. */
export const overloadSchema = group({
  enabled: field(flag(), 'Whether requests go through the line', defaults.enabled),
  mode: field(
    choice(...MODES),
    'Observe runs everything at once, and counts what would have waited or been refused',
    defaults.mode,
  ),
  target: field(
    duration(),
    'How long a request may wait while the loop has had no rest for interval',
    defaults.target,
  ),
  interval: field(duration(), 'How long it may wait else; more than target', defaults.interval),
  slice: field(
    duration(),
    'How long requests run in one turn of the event loop: 1 to 50 ms, less than target',
    defaults.slice,
  ),
  maxWaiting: field(whole(1, MOST_WAITING), 'Requests that wait, in all', defaults.maxWaiting),
  maxInFlight: field(whole(), 'Requests under way, at which the next wait; without it, any number'),
  tiers: field(
    texts(isTiers, SOME_TIERS),
    'The tiers, highest first; they count where the module has a tier resolver',
    defaults.tiers,
  ),
  exempt: field(
    texts(isPaths, SOME_PATHS),
    'Paths that are read (GET, HEAD) without the line; /ops/* stands for all below /ops/',
    defaults.exempt,
  ),
  retryAfter: field(
    duration(),
    'Refusals name this to twice as much, so that callers do not return together',
    defaults.retryAfter,
  ),
  headers: field(
    new Named(SOME_HEADERS, anyText(SOME_HEADERS), undefined, isHeaders),
    'More headers of refusals, such as those of CORS',
    defaults.headers,
  ),
  tick: field(duration(), 'How often the load is measured: 100 ms to 10 s', defaults.tick),
  score: field(scoreSchema, 'How the load is made one number, for policies with adaptive'),
});
