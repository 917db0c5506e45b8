import { type PageFrame } from '../../lib/dashboard/frame.js';

/** Names as somebody could write them to Redis, or send them as a key: whoever shows them must not obey them. */
export const HOSTILE_NAMES = [
  '<img src=x onerror="document.title=1"><script>document.title=2</script>',
  'a\u0000b\u0007c\u001b[31mred\nnew line\ttab',
  '\u202enoitcerid eht\u2066 of \u05e9\u05dc\u05d5\u05dd \u200f\u2069\ufeff',
  `${'long'.repeat(80)}\u2028javascript:alert(1)`,
] as const;

/** A frame as it is, with such names wherever it has any. */
export function hostileFrame(frame: PageFrame): PageFrame {
  const each = <T>(make: (name: string, index: number) => T): T[] => HOSTILE_NAMES.map(make);
  const [name] = HOSTILE_NAMES;
  const total = frame.state.series.find((one) => one.name === 'total')!;
  const nowMs = frame.nowMs;
  return {
    ...frame,
    ...{ seenFrom: name, version: name },
    verdict: { ...frame.verdict, text: `${HOSTILE_NAMES[3]} is limited.`, why: HOSTILE_NAMES[2] },
    nodes: each((node, index) => ({
      ...{ node, rate: 90 - index, denied: 3, revision: index, storeIsUp: index !== 1 },
      ...{ isSilent: index === 2, apps: each((app) => ({ app, used: 20 })), open: HOSTILE_NAMES },
    })),
    unseen: {
      ...{ count: 9, seenMs: nowMs, said: HOSTILE_NAMES[1] },
      nodes: each((node) => ({
        ...{ node: `unseen ${node}`, rate: 9, denied: 1, revision: 2, storeIsUp: true },
        isSilent: false,
      })),
    },
    limited: each((who, index) => ({
      ...{ kind: index % 2 === 0 ? ('key' as const) : ('app' as const), who, policy: who },
      ...{ denied: 40, weight: 40, why: who },
    })),
    policies: each((policy) => ({
      ...{ name: policy, capacity: 5, windowMs: 60_000, shadow: true },
      ...{ isGlobal: false, isNodes: true },
    })),
    resources: each((resource) => ({
      ...{ resource, cause: 'errors', level: 2, observing: false, sinceMs: nowMs - 5000 },
      ...{ breakerMode: null, inFlight: 1, waiting: 0, stages: [10, 30, 50, 100] },
    })),
    change: {
      ...{ revision: 3, profile: name, by: HOSTILE_NAMES[2], atMs: nowMs - 1000 },
      ...{ told: HOSTILE_NAMES.join(', '), staged: 1 },
    },
    actions: each((action) => ({ name: action, text: action, link: null })),
    overload: frame.overload && {
      ...frame.overload,
      tiers: each((tier) => ({ tier, ran: 5, waited: 2, refused: 1 })),
    },
    state: {
      ...frame.state,
      cluster: HOSTILE_NAMES[3],
      nodeCount: HOSTILE_NAMES.length,
      config: { revision: 3, behind: 2 },
      series: [
        total,
        ...['app', 'policy', 'resource'].flatMap((kind) =>
          each((of) => ({ ...total, name: `${kind}:${of}`, rate: 30, denied: 8 })),
        ),
      ],
      deniedKeys: each((key) => ({ policy: key, key, denied: 40 })),
      quota: {
        ...{ capacity: 200, demand: 190, stock: 3, depth: 40, outstanding: 4, overloaded: true },
        apps: each((app, index) => ({
          ...{ app, guaranteed: 20, burst: 40, priority: index, used: 20, denied: 8 },
          ...{ demand: 28, outstanding: 1, nodes: 3, modes: {} },
        })),
      },
      resources: each((resource, index) => ({
        ...{ resource, breaker: 'open' as const, openNodes: 1, percent: 30 },
        phase: index % 2 === 0 ? ('degraded' as const) : ('ramp' as const),
      })),
      marks: each((text, index) => ({ atMs: nowMs - 9000 * index, kind: 'mode' as const, text })),
    },
  };
}

const numbered = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));

const CROWD = { nodes: 1000, apps: 20, policies: 5000 };

/** A frame as it is, of a large fleet: it has the busiest 200 nodes and policies alone. */
export function crowdedFrame(frame: PageFrame): PageFrame {
  const total = frame.state.series.find((one) => one.name === 'total')!;
  const apps = numbered(CROWD.apps, (index) => ({
    ...{ app: `app-${index}`, guaranteed: 40, burst: 400, priority: index % 4 },
    // Of all nodes together, the last ones most.
    ...{ used: (index + 1) * 10, denied: 0, demand: (index + 1) * 10, outstanding: 1 },
    ...{ nodes: CROWD.nodes, modes: {} },
  }));
  return {
    ...frame,
    ...{ scope: 'fleet', unseen: null, leftOut: '', policyCount: CROWD.policies },
    nodes: numbered(200, (index) => ({
      // The busiest first: names go the other way.
      ...{ node: `node-${999 - index}`, rate: 300 - index, denied: 0, isSilent: false },
      ...{ revision: index === 150 ? 41 : 42, storeIsUp: index !== 160 },
      apps: apps.map(({ app, used }) => ({
        app,
        used: (used / CROWD.nodes) * (index < 20 ? 2 : 1),
      })),
      ...(index === 170 && { open: ['catalog-db'] }),
    })),
    policies: numbered(200, (index) => ({
      ...{ name: `policy-${index}`, capacity: 5, windowMs: 60_000, shadow: false },
      ...{ isGlobal: false, isNodes: false },
    })),
    state: {
      ...frame.state,
      nodeCount: CROWD.nodes,
      config: { revision: 42, behind: 3 },
      store: { isUp: true, awayNodes: 1, sinceMs: undefined },
      series: [{ ...total, rate: 100_000 }],
      quota: {
        ...{ capacity: 4000, demand: 2100, stock: 300, depth: 400, outstanding: 40 },
        ...{ overloaded: false, apps },
      },
    },
  };
}
