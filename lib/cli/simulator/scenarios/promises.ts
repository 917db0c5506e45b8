import { type Ground } from './ground.js';

/** The most that is promised of local decisions, however many tokens there are. */
const MOST_LOCAL = 0.95;
/** About what a run lasts, and fewer requests than this in it leave much to chance. */
const RUN_SECONDS = 10;
const FEW_REQUESTS = 1000;
/** Apps with fewer requests per node and horizon than this are left to the store, one by one. */
const REQUESTS_FOR_STOCK = 1.5;
/** Requests per second that each app should have on each node, or tokens lie idle in too many places. */
const REQUESTS_PER_NODE_AND_APP = 5;
/** Half of the burst is leased: what is used in one pace, and what is held for the next. */
const PACES_IN_BURST = 4;

/** Apps with fewer than this have stock that often lies idle; as much is lost where all are so small. */
const REQUESTS_FOR_USE = 5;
const LOST_WHERE_SMALL = 0.08;
/** Bursts, costs and priorities of any size leave a few tokens for a pace where no request needs them. */
const LOST_ON_ANY_FIGURES = 0.02;

/**
 * The least utilisation that is promised, if any is: less by the part of small apps, and a little less on
 * figures that are not the scenario's own.
 */
export function utilisationBar(ground: Ground, bar: number): number | undefined {
  if (reasonAgainstUtilisation(ground) !== undefined) return undefined;
  const rates = ground.requestRates();
  const small = rates.filter((rate) => perHorizon(ground, rate) < REQUESTS_FOR_USE);
  if (ground.isOwn) return bar;
  const lost = LOST_ON_ANY_FIGURES + (LOST_WHERE_SMALL * sum(small)) / sum(rates);
  // Of so few tokens the one that is in stock when the run ends counts, and the one that the bar would cut.
  const isFew = ratePerPlace(ground) < REQUESTS_PER_NODE_AND_APP;
  return bar - lost - (isFew ? 2 / (sum(rates) * RUN_SECONDS) : 0);
}

/**
 * The part of local decisions that is promised whatever the load: of each app 1 − 1 / 4t, where t are
 * the requests that a node has of it within a horizon, because each has a lease of its own. `moved` is the
 * part of all requests that comes to another node within its first pace there, before the store knows of
 * its demand: on figures that are not the scenario's own these may all wait for the store.
 */
export function localBar(ground: Ground, moved = 0): number | undefined {
  const all = sum(ground.requestRates());
  const promised = sum(
    ground.requestRates().map((rate) => {
      return (
        (rate / all) * Math.min(MOST_LOCAL, Math.max(0, 1 - 1 / (4 * perHorizon(ground, rate))))
      );
    }),
  );
  const lost = ground.isOwn ? 0 : moved + chanceOf(promised, all * RUN_SECONDS);
  return promised > lost ? promised - lost : undefined;
}

/** The error of a part of few requests: twice the standard deviation. */
function chanceOf(part: number, requests: number): number {
  return requests < FEW_REQUESTS ? 2 * Math.sqrt((part * (1 - part)) / requests) : 0;
}

/**
 * The most calls per second while there is a shortage: one per node and pace; one for each request of apps
 * that have too few of them to keep a stock; and one for each miss, 1 in 4t, of apps whose stock is small.
 * `load` is that of the run, as a part.
 */
export function callsBar(ground: Ground, load: number): number {
  const paced = ground.nodes / ground.paceSeconds;
  const rates = ground.requestRates();
  // An app that is alone is the one that is short, and keeps the pace itself.
  if (rates.length === 1) return paced;
  const urgent = rates.map((rate) => {
    const requests = perHorizon(ground, rate);
    if (requests < REQUESTS_FOR_STOCK) return rate;
    return requests < REQUESTS_FOR_USE ? rate / (4 * requests) : 0;
  });
  return paced + load * sum(urgent);
}

/** Figures without a promise on this ground, and the reason: a line for each. */
export function notPromised(ground: Ground, of = ''): string[] {
  const lines: string[] = [];
  const reason = reasonAgainstUtilisation(ground);
  if (reason !== undefined) lines.push(`utilisation${of}, because ${reason}`);
  if (localBar(ground) === undefined) {
    const most = Math.max(...ground.requestRates().map((rate) => perHorizon(ground, rate)));
    lines.push(
      `local decisions${of}, because no app has more than ${short(most)} requests per node and horizon`,
    );
  }
  return lines;
}

function reasonAgainstUtilisation(ground: Ground): string | undefined {
  const { capacity, depth, paceSeconds } = ground;
  const rate = ratePerPlace(ground);
  // Where there is only one place for tokens, none lies idle in another.
  if (rate < REQUESTS_PER_NODE_AND_APP && placesOf(ground) > 1) {
    return `an app has only ${short(rate)} requests per second on a node, of ${REQUESTS_PER_NODE_AND_APP} that it takes`;
  }
  const paces = depth / (capacity * paceSeconds);
  // A depth is a whole number of tokens.
  if (paces < PACES_IN_BURST - 0.01) {
    return `the burst is what flows in during ${short(paces)} paces, of ${PACES_IN_BURST} that it takes`;
  }
  return undefined;
}

/** Every app has a stock on every node. */
function placesOf({ nodes, figures }: Ground): number {
  return nodes * figures.apps.length;
}

/** Requests per second of an app on a node. */
function ratePerPlace(ground: Ground): number {
  return sum(ground.requestRates()) / placesOf(ground);
}

/** Requests that one node has of an app within a horizon. */
function perHorizon({ horizonSeconds, nodes }: Ground, rate: number): number {
  return (rate * horizonSeconds) / nodes;
}

const sum = (figures: readonly number[]): number => figures.reduce((a, b) => a + b, 0);
const short = (figure: number): string => String(Number(figure.toPrecision(2)));
