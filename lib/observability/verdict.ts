import { isNotClosed } from '../protection/breaker-state.js';
import { plain, type Alert } from './alerts/alert.js';
import {
  byUrgency,
  inState,
  isEnding,
  levelOf,
  ruleTitle,
  seriesTitle,
} from './alerts/alert-words.js';
import { STATE_RULES, type FigureRuleName } from './alerts/rule-names.js';
import { figure, percent } from './figures.js';
import { askedBy, causeOfApp, isShort, why } from './limited.js';
import {
  breakerCloses,
  breakerOpens,
  MANY_DENIED,
  OVERLOAD_BEGINS,
  OVERLOAD_ENDS,
  type AppState,
  type FleetNode,
  type SeriesState,
  type WatchedState,
} from './state.js';

/** The fact that matters most just now, in one sentence. */
export interface Verdict {
  readonly kind:
    | 'store'
    | 'overload'
    | 'line'
    | 'denials'
    | 'degraded'
    | 'breaker'
    | 'recovery'
    | 'silent'
    | 'behind'
    | 'alerts'
    | 'learning'
    | 'quiet';
  /** How bad that is. */
  readonly level: 'good' | 'info' | 'warning' | 'bad';
  /** One sentence, without control characters of any name. */
  readonly text: string;
  /** Why, in one clause; undefined where the sentence says all. */
  readonly why: string | undefined;
  /** The series that it is about, for a link. */
  readonly series: string | undefined;
  /** Since when that is so, in wall-clock milliseconds; undefined where it is not known. */
  readonly sinceMs: number | undefined;
}

/** Nodes that say nothing, or have a breaker open; only a fleet has some. */
export type WatchedFleet = WatchedState & {
  readonly nodes?: readonly Pick<FleetNode, 'node' | 'isSilent' | 'open'>[];
};

/** Fewer are not worth a sentence, however large a part they are. */
const FEWEST_DENIED = 5;

/** The first that holds. Pure: the same state always gives the same sentence. */
export function verdict(state: WatchedFleet): Verdict {
  return (
    storeAway(state) ??
    overloaded(state) ??
    standing(state) ??
    denials(state) ??
    degraded(state) ??
    breakerOpen(state) ??
    recovering(state) ??
    crowded(state) ??
    silent(state) ??
    behind(state) ??
    alarmed(state) ??
    learning(state) ??
    say('quiet', 'good', `All quiet: ${summary(state)}.`)
  );
}

function storeAway({ store, nodeCount }: WatchedFleet): Verdict | undefined {
  if (store === undefined || store.awayNodes === 0) return undefined;
  const { isUp, awayNodes, sinceMs } = store;
  const who = isUp ? `${nodes(awayNodes)} of ${figure(nodeCount)}` : nodes(awayNodes);
  const decide = awayNodes === 1 ? 'decides by itself' : 'decide by themselves';
  // Without Redis a process knows of no other.
  const isOneOfMany = !isUp && awayNodes === 1 && nodeCount > 1;
  const all = isOneOfMany
    ? 'this node decides by itself, as does each that does not reach it'
    : `${who} ${decide}`;
  return say('store', isUp ? 'warning' : 'bad', `Redis is away: ${all}.`, {
    why: "callers are answered by a share of each limit, or as a policy's failureMode says, until Redis answers again",
    series: 'store',
    sinceMs,
  });
}

function overloaded(state: WatchedFleet): Verdict | undefined {
  const { quota, series } = state;
  if (quota?.overloaded !== true) return undefined;
  const { capacity, demand, apps } = quota;
  const [loser, ...others] = apps
    .filter(({ denied }) => denied > 0)
    .sort((one, other) => other.denied - one.denied);
  if (loser === undefined) return undefined;
  const cause = capacity === undefined ? undefined : why({ tier: 'cluster', demand, capacity });
  const own = series.find(({ name }) => name === `app:${loser.app}`);
  const away = turnedAway(own, loser.denied);
  const link = `app:${loser.app}`;
  if (!isShort(state)) {
    return say('denials', 'warning', `${capital(loser.app)} is limited: ${away}.`, {
      why: `${causeOfLoss(loser, state)}; ${alsoLose(others)}`,
      series: link,
      sinceMs: agoOf(state, own?.deniedForMs),
    });
  }
  const lost = `${capital(loser.app)} loses most: ${away}.`;
  const part = demand === undefined || !capacity ? undefined : percent(demand / capacity);
  const asked = part === undefined ? ABOUT_ALL : `${part} of capacity`;
  const causes = [cause, causeOfLoss(loser, state), alsoLose(others)];
  return say('overload', 'bad', `Overload: ${asked} asked for. ${lost}`, {
    why: causes.filter(Boolean).join('; '),
    series: link,
    sinceMs: overloadBegan(state),
  });
}

/** Where it is not known how much: an overload begins above nine tenths of the capacity and ends below 85 %. */
const ABOUT_ALL = 'about all of the capacity or more';

const overloadBegan = (state: WatchedFleet): number | undefined =>
  beganBy(state, OVERLOAD_BEGINS, OVERLOAD_ENDS);

/** By the last of these marks: after one of an end, the beginning was not seen. */
function beganBy({ marks }: WatchedFleet, begins: string, ends: string): number | undefined {
  const last = marks.findLast(({ text }) => text.startsWith(begins) || text === ends);
  return last?.text === ends ? undefined : last?.atMs;
}

const agoOf = ({ atMs }: WatchedFleet, forMs: number | undefined): number | undefined =>
  forMs === undefined ? undefined : atMs - forMs;

/** An overload that hurts nobody just now, though it may have a minute ago: what callers feel comes before it. */
function crowded(state: WatchedFleet): Verdict | undefined {
  if (!isShort(state)) return undefined;
  const { capacity, demand } = state.quota!;
  const part = demand === undefined || !capacity ? undefined : percent(demand / capacity);
  const asked = part === undefined ? ABOUT_ALL : `${part} of the capacity`;
  return say(
    'overload',
    'warning',
    `All apps together ask for ${asked}; nobody is turned away now.`,
    {
      sinceMs: overloadBegan(state),
    },
  );
}

/** Beyond its own limits an app would be turned away on an idle cluster as well. */
function causeOfLoss(loser: AppState, state: WatchedFleet): string {
  const found = causeOfApp(loser, state);
  const name = `${plain(loser.app)} asks for ${figure(askedBy(loser))}/s`;
  return found.tier === 'cluster'
    ? `${name} and is sure of ${figure(loser.guaranteed)}/s, beyond which it gets what others leave`
    : `${name}, ${why(found)}`;
}

const MOST_LOSERS = 2;

/** `catalog loses 140/s, reports 90/s and 3 more apps lose`. */
function alsoLose(others: readonly AppState[]): string {
  if (others.length === 0) return 'no other app is turned away';
  const named = others
    .slice(0, MOST_LOSERS)
    .map(
      ({ app, denied }, index) => `${plain(app)} ${index === 0 ? 'loses ' : ''}${figure(denied)}/s`,
    )
    .join(', ');
  const more = others.length - MOST_LOSERS;
  return more > 0 ? `${named} and ${more} more ${more === 1 ? 'app loses' : 'apps lose'}` : named;
}

function standing({ line }: WatchedFleet): Verdict | undefined {
  if (line?.standing !== true) return undefined;
  const waiting = line.waiting === 0 ? '' : `: ${figure(line.waiting)} wait`;
  return say('line', 'warning', `Requests stand in line before the application${waiting}.`, {
    why: 'the event loop has had no rest; the highest tiers go first',
  });
}

function denials(state: WatchedFleet): Verdict | undefined {
  const { series, alerts, learning: isLearning } = state;
  // An alert lasts for a while; the sentence is about now.
  const rises = alerts.filter(
    (one) => one.rule === 'denialRise' && one.state === 'firing' && !isEnding(one),
  );
  const isRising = ({ name, rate, denied }: SeriesState): boolean =>
    rises.some((one) => one.series === name && !(denied < (one.threshold / 2) * rate));
  const found = series
    .filter((one) => isNamed(one) || one.name === 'total')
    .filter((one) => isRising(one) || (isLearning !== undefined && isMany(one)))
    // The name of an app or a policy says more than that of all requests.
    .sort((one, other) => rank(one) - rank(other) || other.denied - one.denied)[0];
  if (found === undefined || found.denied === 0) return undefined;
  return limited(found, state);
}

function limited(found: SeriesState, state: WatchedFleet): Verdict {
  const app = state.quota?.apps.find(({ app: name }) => `app:${name}` === found.name);
  const text = `${capital(titleOf(found.name))} is limited: ${turnedAway(found, found.denied)}.`;
  return say('denials', 'warning', text, {
    why: app && why(causeOfApp(app, state)),
    series: found.name,
    sinceMs: agoOf(state, found.deniedForMs),
  });
}

const isMany = ({ rate, denied }: SeriesState): boolean =>
  denied > MANY_DENIED * rate && denied >= FEWEST_DENIED;

const isNamed = ({ name }: SeriesState): boolean => /^(?:app|policy):/.test(name);

function rank({ name }: SeriesState): number {
  if (name.startsWith('app:')) return 0;
  return name === 'total' ? 2 : 1;
}

function degraded(state: WatchedFleet): Verdict | undefined {
  const low = ({ degraded: [, , level3, level4] }: SeriesState): number => level3 + level4;
  const found = state.series
    .filter((one) => one.name.startsWith('resource:') && low(one) > 0)
    .sort((one, other) => low(other) - low(one))[0];
  if (found === undefined) return undefined;
  const [, , , level4] = found.degraded;
  const kind = level4 > 0 ? 'default' : 'simplified';
  const text = `${capital(titleOf(found.name))} gives ${kind} answers: ${figure(low(found))}/s.`;
  const causes = [openBreaker(state)?.text, insteadText(state)];
  return say('degraded', 'bad', text, {
    why: causes.filter(Boolean).join('; ') || undefined,
    series: found.name,
    sinceMs: agoOf(state, found.degradedForMs),
  });
}

function breakerOpen(state: WatchedFleet): Verdict | undefined {
  const found = openBreaker(state);
  if (found === undefined) return undefined;
  const { text, resource, sinceMs } = found;
  const series = `resource:${resource}`;
  const refused = state.series.find(({ name }) => name === series)?.denied ?? 0;
  const why =
    insteadText(state) ??
    (refused < LEAST ? undefined : `${figure(refused)}/s of its calls are refused at once`);
  return say('breaker', 'warning', `${upper(text)}.`, { why, series, sinceMs });
}

const MOST_NAMED = 3;

/** The breaker that is open on the most nodes, and which these are; one that tries again is not closed yet. */
function openBreaker(state: WatchedFleet):
  | {
      readonly text: string;
      readonly resource: string;
      readonly sinceMs: number | undefined;
    }
  | undefined {
  const { resources, nodeCount, nodes: all = [] } = state;
  const open = resources.filter(({ breaker }) => isNotClosed(breaker));
  const found = open.sort((one, other) => other.openNodes - one.openNodes)[0];
  if (found === undefined) return undefined;
  const { resource, openNodes } = found;
  const others = open.length === 1 ? '' : `, and ${open.length - 1} more`;
  const names = all
    .flatMap(({ node, open: own }) => (own?.includes(resource) === true ? [plain(node)] : []))
    .sort((one, other) => one.localeCompare(other, 'en', { numeric: true }))
    .slice(0, MOST_NAMED);
  const more = openNodes > names.length ? ` and ${openNodes - names.length} more` : '';
  const which = names.length === 0 ? '' : ` (${names.join(', ')}${more})`;
  const where =
    nodeCount === 1
      ? ''
      : openNodes === nodeCount
        ? ` on all ${nodes(nodeCount)}`
        : ` on ${openNodes} of ${nodes(nodeCount)}${which}`;
  const sinceMs = beganBy(state, breakerOpens(resource), breakerCloses(resource));
  return { text: `the breaker of ${plain(resource)} is open${where}${others}`, resource, sinceMs };
}

const LEAST = 0.05;
const MOST_INSTEAD = 2;
const LEVELS = [
  'from the shared cache (level 1)',
  'from the cache of the process (level 2)',
  'simplified (level 3)',
  'by default (level 4)',
];

/** What callers get in the place of an answer: `product-page answers 24/s from the shared cache (level 1), 3/s …`. */
function insteadText({ series }: WatchedFleet): string | undefined {
  const sum = ({ degraded: levels }: SeriesState): number => levels.reduce((a, b) => a + b, 0);
  const found = series
    .filter(({ name }) => name.startsWith('resource:'))
    .filter(({ degraded: levels }) => levels.some((rate) => rate >= LEAST))
    .sort((one, other) => sum(other) - sum(one));
  if (found.length === 0) return undefined;
  const told = found.slice(0, MOST_INSTEAD).map(({ name, degraded: levels }) => {
    const each = LEVELS.flatMap((level, index) => {
      const rate = levels[index] ?? 0;
      return rate < LEAST ? [] : `${figure(rate)}/s ${level}`;
    });
    return `${plain(titleOf(name))} answers ${each.join(', ')}`;
  });
  const more = found.length - MOST_INSTEAD;
  if (more > 0) told.push(`${more} more ${more === 1 ? 'gives' : 'give'} such answers`);
  return told.join('; ');
}

/** Of `disabled` all requests reach it, as in `normal`. */
const RECOVERIES = {
  degraded: ['warning', 'is degraded: its requests get fallbacks'],
  probing: ['warning', 'is degraded, and asked whether it is back'],
  ramp: ['info', 'is on its way back'],
  forced: ['info', 'is held degraded by an operator'],
} as const;

function recovering(state: WatchedFleet): Verdict | undefined {
  const found = Object.entries(RECOVERIES).flatMap(([phase, said]) =>
    state.resources.filter((one) => one.phase === phase).map((one) => ({ ...one, said })),
  );
  if (found.length === 0) return undefined;
  const { resource, phase, percent: part = 0, said } = found[0]!;
  const reach = phase === 'ramp' ? `: ${part} % of its requests reach it` : '';
  const others = found.length === 1 ? '' : `; ${found.length - 1} more are not normal`;
  const text = `${capital(resource)} ${said[1]}${reach}${others}.`;
  const name = `resource:${resource}`;
  const own = state.series.find((one) => one.name === name);
  return say('recovery', said[0], text, {
    why: insteadText(state),
    series: name,
    // It has been degraded for longer than it has been on its way back.
    sinceMs: phase === 'ramp' ? undefined : agoOf(state, own?.degradedForMs),
  });
}

function silent({ nodes: all = [] }: WatchedFleet): Verdict | undefined {
  const gone = all.filter(({ isSilent }) => isSilent);
  if (gone.length === 0) return undefined;
  const others = gone.length === 1 ? ' is' : ` and ${gone.length - 1} more are`;
  const text = `Node ${plain(gone[0]!.node)}${others} silent, and did not say goodbye.`;
  return say('silent', 'warning', text);
}

function behind({ config, nodeCount }: WatchedFleet): Verdict | undefined {
  if (config === undefined || config.behind === 0) return undefined;
  const are = config.behind === 1 ? 'is' : 'are';
  const text = `${config.behind} of ${nodes(nodeCount)} ${are} not on revision ${config.revision} yet.`;
  return say('behind', 'info', text);
}

const MOST_ALERTS = 4;

/** Alerts that no other sentence tells. */
function alarmed(state: WatchedFleet): Verdict | undefined {
  const { alerts } = state;
  const firing = inState(alerts, 'firing').sort(byUrgency);
  const [first] = firing;
  if (first === undefined) {
    const ending = inState(alerts, 'ending').sort(byUrgency);
    if (ending.length === 0) return undefined;
    const end = ending.length === 1 ? 'An alert ends' : `${ending.length} alerts end`;
    return say('alerts', 'info', `Calm again. ${end} if it stays so: ${listed(ending, '"')}.`);
  }
  // Alerts of figures come later than what they are about: that an app is turned away now says more than their names.
  const loser = state.series
    .filter((one) => one.name.startsWith('app:') && isMany(one))
    .sort((one, other) => other.denied - one.denied)[0];
  if (loser !== undefined) return limited(loser, state);
  const { text, series, rule, severity } = first;
  const isOver = firing.every((one) => isPast(one, state));
  const isOne = firing.length === 1;
  const still = isOne ? 'An alert still fires' : `${firing.length} alerts still fire`;
  const begin = isOver
    ? `Calm again. ${still} for the minutes before`
    : isOne
      ? '1 alert fires'
      : `${firing.length} alerts fire`;
  return say('alerts', isOver ? 'info' : levelOf(severity), `${begin}: ${listed(firing)}.`, {
    // Of a figure it is worth to know how much; it is of a while ago, and may be over.
    why: isState(rule)
      ? undefined
      : `${plain(text.replace(`${plain(series)}: `, ''))}; now ${summary(state)}`,
    series,
  });
}

/** Whether what an alert tells of its last minutes is not so any more, in the last seconds. */
function isPast({ rule, series }: Alert, state: WatchedFleet): boolean {
  const now = state.series.find(({ name }) => name === series);
  if (now === undefined) return false;
  switch (rule.split('.')[0] as FigureRuleName) {
    case 'denialRise':
      return now.denied <= FEW_LEFT * now.rate;
    case 'errorRate':
      return now.errors <= FEW_LEFT * now.rate;
    case 'degraded':
      return now.degraded.every((rate) => rate < LEAST);
    default:
      return false;
  }
}

const FEW_LEFT = 0.01;

/** The name of a state says all of it; that of a figure does not say whose. */
const isState = (rule: string): boolean => (STATE_RULES as readonly string[]).includes(rule);

/** `Traffic rises (search, all requests), Calls are slow (catalog-db) and 2 more`. */
function listed(alerts: readonly Alert[], quote = ''): string {
  const byTitle = new Map<string, string[]>();
  for (const { rule, series } of alerts.slice(0, MOST_ALERTS)) {
    const whole = series === 'store' ? 'Redis' : 'all requests';
    const subject = seriesTitle(series) || (isState(rule) ? '' : whole);
    const title = `${quote}${plain(ruleTitle(rule))}${quote}`;
    byTitle.set(title, [
      ...(byTitle.get(title) ?? []),
      ...(subject === '' ? [] : [plain(subject)]),
    ]);
  }
  const all = Array.from(byTitle, ([title, subjects]) =>
    subjects.length === 0 ? title : `${title} (${subjects.join(', ')})`,
  );
  const more = alerts.length > MOST_ALERTS ? ` and ${alerts.length - MOST_ALERTS} more` : '';
  return `${all.join(', ')}${more}`;
}

function learning(state: WatchedFleet): Verdict | undefined {
  if (state.learning === undefined) return undefined;
  const { minutes, needed } = state.learning;
  const text = `Learning what is usual (${minutes} of ${needed} min): ${summary(state)}.`;
  return say('learning', 'info', text);
}

function summary({ series, nodeCount }: WatchedFleet): string {
  const total = series.find(({ name }) => name === 'total');
  const rate = total?.rate ?? 0;
  const who = `${nodes(nodeCount)} ${nodeCount === 1 ? 'decides' : 'decide'}`;
  if (rate === 0)
    return `${nodeCount === 1 ? '1 node has' : `${nodes(nodeCount)} have`} nothing to decide`;
  return `${who} ${figure(rate)}/s, ${percent((total?.denied ?? 0) / rate)} denied`;
}

function turnedAway(series: SeriesState | undefined, denied: number): string {
  const rate = series?.rate ?? 0;
  if (rate <= 0 || denied <= 0) return `${figure(denied)}/s turned away`;
  const part = denied / rate;
  if (part >= NEARLY_ALL) return 'nearly all turned away';
  const isPlain = part >= 1 / 20 && part <= 0.55;
  return `${isPlain ? `1 in ${Math.round(1 / part)}` : percent(part)} turned away`;
}

const NEARLY_ALL = 0.95;

function say(
  kind: Verdict['kind'],
  level: Verdict['level'],
  text: string,
  { why: cause, series, sinceMs }: Partial<Pick<Verdict, 'why' | 'series' | 'sinceMs'>> = {},
): Verdict {
  return { kind, level, text, why: cause, series, sinceMs };
}

const titleOf = (name: string): string => seriesTitle(name) || 'traffic';

const upper = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;

const capital = (name: string): string => upper(plain(name));

const nodes = (count: number): string => `${figure(count)} ${count === 1 ? 'node' : 'nodes'}`;

/** As the clock of the process has it; with the day where that is another. */
export function timeOf(ms: number, nowMs = ms): string {
  return `${dayOf(ms, nowMs)}${new Date(ms).toISOString().slice(11, 16)} UTC`;
}

/** Empty of the last hours, which have one such time. */
export const dayOf = (ms: number, nowMs: number): string =>
  nowMs - ms < SAME_DAY_MS ? '' : `${DAY.format(ms)} `;

const SAME_DAY_MS = 20 * 3_600_000;
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });
