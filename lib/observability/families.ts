import { type LogLinear } from '../common/histogram.js';
import { LEVELS, REASONS, type RecoveryPhase } from '../degradation/core/contract.js';
import { type BreakerKind } from '../protection/breaker-state.js';
import { type ResourceCounts } from '../protection/resource-stats.js';
import { FAILURE_KINDS, STORE_OPS } from '../stores/call-times.js';
import { type NodeMode } from '../local/lease-calls.js';
import { type NamedKind } from './series-table.js';
import { type Facts } from './sources.js';

/** The kinds of metrics. */
export type MetricKind = 'counter' | 'gauge' | 'histogram';

/** A metric as data. Three writers make of it what their readers expect. */
export interface FamilyInfo {
  /** The name in Prometheus: with its unit, and `_total` of a counter. */
  readonly name: string;
  /** The name in OpenTelemetry. */
  readonly otel: string;
  /** The unit in OpenTelemetry: `s`, `{request}`. Empty where there is none. */
  readonly unit: string;
  readonly kind: MetricKind;
  readonly help: string;
  /** Names of labels. Their values come from code and configuration only: never a key, a user or an address. */
  readonly labels: readonly string[];
}

/** One series of a metric. */
export interface Sample {
  /** Values in the order of the family's labels. */
  readonly labels: readonly string[];
  /** The figure; of a histogram the times themselves. */
  readonly value: number | LogLinear;
}

/** A metric: its names, kind, labels and what it means. */
export interface Family extends FamilyInfo {
  readonly samples: readonly Sample[];
}

/** The borders of a histogram's buckets, in microseconds: borders of its cells as well, so counts are exact. */
export const BUCKET_MICROS: readonly number[] = Array.from({ length: 17 }, (_, i) => 2 ** (i + 7));

export interface FiringCount {
  readonly rule: string;
  readonly severity: string;
  readonly count: number;
}

/** The names that families are made of, beside the facts. */
export interface MetricNames {
  /** The label of a name: itself, `(other)` if it found no room, undefined if it has counted nothing yet. */
  of(kind: NamedKind, name: string): string | undefined;
  /** Names that found no room. */
  readonly dropped: number;
  readonly version: string;
  /** Alerts that fire, by rule. */
  readonly firing?: readonly FiringCount[];
}

type Add = (value: number | LogLinear, ...labels: string[]) => void;

/** A metric, and how it is read. */
export interface Definition extends FamilyInfo {
  read(facts: Facts, names: MetricNames, add: Add): void;
}

const MODES: readonly NodeMode[] = ['batch', 'paced', 'direct', 'offline'];
const BREAKER_STATES: readonly BreakerKind[] = ['closed', 'open', 'half-open'];
const PHASES: readonly RecoveryPhase[] = [
  ...(['normal', 'degraded', 'probing', 'ramp', 'forced', 'disabled'] as const),
];
const CALL_OUTCOMES: readonly (keyof ResourceCounts)[] = [
  ...(['succeeded', 'failed', 'neutral', 'limited', 'full', 'waited', 'open'] as const),
];
const LINE_OUTCOMES = ['ran', 'waited', 'full', 'late', 'gone'] as const;
const SOURCES = ['local', 'store', 'fallback'] as const;

const isOn = (one: string, other: string): number => (one === other ? 1 : 0);

/** All metrics, in the order in which they are shown. A part that is not there adds nothing, and so has none. */
export const DEFINITIONS: readonly Definition[] = [
  {
    name: 'weir_requests_total',
    otel: 'weir.requests',
    unit: '{request}',
    kind: 'counter',
    help: 'Requests that met a rate limit, each once.',
    labels: ['transport', 'outcome'],
    read({ requests }, _, add) {
      for (const [transport, { requests: all, denied, handedOver }] of requests) {
        if (all === 0) continue;
        add(all - denied - handedOver, transport, 'passed');
        add(denied, transport, 'denied');
        add(handedOver, transport, 'degraded');
      }
    },
  },
  {
    name: 'weir_decisions_total',
    otel: 'weir.decisions',
    unit: '{decision}',
    kind: 'counter',
    help: 'Decisions on policies.',
    labels: ['policy', 'outcome', 'source'],
    read({ limiter }, names, add) {
      for (const [policy, { bySource }] of Object.entries(limiter.policies)) {
        const label = names.of('policy', policy);
        if (label === undefined) continue;
        for (const source of SOURCES) {
          const { allowed, denied, shadowDenied } = bySource[source];
          add(allowed, label, 'allowed', source);
          add(denied, label, 'denied', source);
          add(shadowDenied, label, 'shadow_denied', source);
        }
      }
    },
  },
  {
    name: 'weir_quota_decisions_total',
    otel: 'weir.quota.decisions',
    unit: '{decision}',
    kind: 'counter',
    help: 'Decisions on quotas; tier is the level that had not enough, or app.',
    labels: ['app', 'outcome', 'tier', 'source'],
    read({ limiter }, names, add) {
      for (const [app, { bySource }] of Object.entries(limiter.quota?.apps ?? {})) {
        const label = names.of('app', app);
        if (label === undefined) continue;
        for (const source of SOURCES) {
          const { allowed, denied, deniedByCluster } = bySource[source];
          add(allowed, label, 'allowed', 'app', source);
          add(denied - deniedByCluster, label, 'denied', 'app', source);
          add(deniedByCluster, label, 'denied', 'cluster', source);
        }
      }
    },
  },
  {
    name: 'weir_quota_local_hits_total',
    otel: 'weir.quota.local_hits',
    unit: '{decision}',
    kind: 'counter',
    help: 'Decisions on quotas that did not wait for the store.',
    labels: [],
    read: ({ limiter }, _, add) => limiter.quota && add(limiter.quota.localHits),
  },
  {
    name: 'weir_quota_remote_calls_total',
    otel: 'weir.quota.remote_calls',
    unit: '{call}',
    kind: 'counter',
    help: 'Calls to the store for leases, of all apps together.',
    labels: [],
    read: ({ limiter }, _, add) => limiter.quota && add(limiter.quota.remoteCalls),
  },
  {
    name: 'weir_local_ratio',
    otel: 'weir.local_ratio',
    unit: '1',
    kind: 'gauge',
    help: 'Part of the decisions on quotas in the last minute that did not wait for the store.',
    labels: [],
    read({ quotaHits }, _, add) {
      if (quotaHits !== undefined && !Number.isNaN(quotaHits.ratio)) add(quotaHits.ratio);
    },
  },
  {
    name: 'weir_quota_used_tokens_total',
    otel: 'weir.quota.used',
    unit: '{token}',
    kind: 'counter',
    help: 'Tokens of allowed requests.',
    labels: ['app'],
    read({ limiter }, names, add) {
      for (const [app, { used }] of Object.entries(limiter.quota?.apps ?? {})) {
        const label = names.of('app', app);
        if (label !== undefined) add(used, label);
      }
    },
  },
  {
    name: 'weir_lease_tokens',
    otel: 'weir.lease',
    unit: '{token}',
    kind: 'gauge',
    help: 'Tokens that this process holds on lease.',
    labels: ['app'],
    read({ limiter }, names, add) {
      for (const [app, { tokens }] of Object.entries(limiter.quota?.apps ?? {})) {
        const label = names.of('app', app);
        if (label !== undefined) add(tokens, label);
      }
    },
  },
  {
    name: 'weir_mode',
    otel: 'weir.mode',
    unit: '1',
    kind: 'gauge',
    help: '1 for the mode in which requests of an app are decided here.',
    labels: ['app', 'mode'],
    read({ limiter }, names, add) {
      for (const [app, { mode }] of Object.entries(limiter.quota?.apps ?? {})) {
        if (names.of('app', app) !== app) continue;
        for (const one of MODES) add(isOn(mode, one), app, one);
      }
    },
  },
  {
    name: 'weir_cluster_capacity_tokens',
    otel: 'weir.cluster.capacity',
    unit: '{token}',
    kind: 'gauge',
    help: 'Tokens per second that all apps share; by the process that leads, so take the max.',
    labels: [],
    read: ({ ledger }, _, add) => ledger && ledger.capacity > 0 && add(ledger.capacity),
  },
  {
    name: 'weir_cluster_demand_tokens',
    otel: 'weir.cluster.demand',
    unit: '{token}',
    kind: 'gauge',
    help: 'Tokens per second that all apps together ask for; by the process that leads.',
    labels: [],
    read: ({ ledger }, _, add) => ledger && add(ledger.demand),
  },
  {
    name: 'weir_cluster_outstanding_tokens',
    otel: 'weir.cluster.outstanding',
    unit: '{token}',
    kind: 'gauge',
    help: 'Tokens that are leased to processes; by the process that leads.',
    labels: [],
    read: ({ ledger }, _, add) => ledger && add(ledger.outstanding),
  },
  {
    name: 'weir_cluster_stock_tokens',
    otel: 'weir.cluster.stock',
    unit: '{token}',
    kind: 'gauge',
    help: 'Tokens of the cluster that may be taken at once now; by the process that leads.',
    labels: [],
    read: ({ ledger }, _, add) => ledger && ledger.capacity > 0 && add(ledger.level),
  },
  {
    name: 'weir_cluster_overloaded',
    otel: 'weir.cluster.overloaded',
    unit: '1',
    kind: 'gauge',
    help: '1 while all apps together ask for more than nine tenths of the capacity; by the process that leads.',
    labels: [],
    read: ({ ledger }, _, add) => ledger && add(ledger.overloaded ? 1 : 0),
  },
  {
    name: 'weir_app_guaranteed_tokens',
    otel: 'weir.app.guaranteed',
    unit: '{token}',
    kind: 'gauge',
    help: 'Tokens per second that the app is sure of; by the process that leads.',
    labels: ['app'],
    read: ({ ledger }, names, add) => addApps(ledger, names, add, 'guaranteed'),
  },
  {
    name: 'weir_app_ceiling_tokens',
    otel: 'weir.app.ceiling',
    unit: '{token}',
    kind: 'gauge',
    help: 'Tokens per second that the app never exceeds; by the process that leads.',
    labels: ['app'],
    read: ({ ledger }, names, add) => addApps(ledger, names, add, 'burst'),
  },
  {
    name: 'weir_app_demand_tokens',
    otel: 'weir.app.demand',
    unit: '{token}',
    kind: 'gauge',
    help: 'Tokens per second that the app asks for; by the process that leads.',
    labels: ['app'],
    read: ({ ledger }, names, add) => addApps(ledger, names, add, 'demand'),
  },
  {
    name: 'weir_app_outstanding_tokens',
    otel: 'weir.app.outstanding',
    unit: '{token}',
    kind: 'gauge',
    help: 'Tokens of the app that are leased to processes; by the process that leads.',
    labels: ['app'],
    read: ({ ledger }, names, add) => addApps(ledger, names, add, 'outstanding'),
  },
  {
    name: 'weir_store_up',
    otel: 'weir.store.up',
    unit: '1',
    kind: 'gauge',
    help: '1 while Redis answers in time.',
    labels: [],
    read: ({ calls, storeIsUp }, _, add) => calls && add(storeIsUp ? 1 : 0),
  },
  {
    name: 'weir_store_call_seconds',
    otel: 'weir.store.call.duration',
    unit: 's',
    kind: 'histogram',
    help: 'Calls to Redis, from the sending to the answer.',
    labels: ['op'],
    read({ calls }, _, add) {
      if (calls !== undefined) for (const op of STORE_OPS) add(calls[op].times, op);
    },
  },
  {
    name: 'weir_store_failures_total',
    otel: 'weir.store.failures',
    unit: '{call}',
    kind: 'counter',
    help: 'Calls to Redis without a useful answer.',
    labels: ['op', 'kind'],
    read({ calls }, _, add) {
      if (calls === undefined) return;
      for (const op of STORE_OPS) {
        for (const kind of FAILURE_KINDS) add(calls[op].failures[kind], op, kind);
      }
    },
  },
  {
    name: 'weir_store_items_total',
    otel: 'weir.store.items',
    unit: '{item}',
    kind: 'counter',
    help: 'Decisions and other items that calls to Redis carried; by calls, how many travel together.',
    labels: ['op'],
    read({ calls }, _, add) {
      if (calls !== undefined) for (const op of STORE_OPS) add(calls[op].items, op);
    },
  },
  {
    name: 'weir_epoch',
    otel: 'weir.epoch',
    unit: '1',
    kind: 'gauge',
    help: "The store's epoch: it changes when the store has lost state.",
    labels: [],
    read: ({ limiter, epoch }, _, add) => limiter.quota && add(epoch),
  },
  {
    name: 'weir_nodes',
    otel: 'weir.nodes',
    unit: '{node}',
    kind: 'gauge',
    help: 'Processes that share the store, as this one knows it.',
    labels: [],
    read: ({ limiter }, _, add) => limiter.store && add(limiter.store.nodes),
  },
  {
    name: 'weir_keys',
    otel: 'weir.keys',
    unit: '{key}',
    kind: 'gauge',
    help: 'Keys that have a bucket of their own in this process.',
    labels: [],
    read: ({ limiter }, _, add) => add(limiter.keys),
  },
  {
    name: 'weir_waiting',
    otel: 'weir.waiting',
    unit: '{caller}',
    kind: 'gauge',
    help: 'Callers of acquire that wait for tokens, by policy.',
    labels: ['policy'],
    read({ limiter }, names, add) {
      for (const policy of Object.keys(limiter.policies)) {
        const label = names.of('policy', policy);
        if (label !== undefined) add(limiter.waiting[policy] ?? 0, label);
      }
    },
  },
  {
    name: 'weir_overflowed_total',
    otel: 'weir.overflowed',
    unit: '{decision}',
    kind: 'counter',
    help: 'Decisions for keys that found no room and shared a bucket.',
    labels: ['policy'],
    read({ limiter }, names, add) {
      for (const [policy, { overflowed }] of Object.entries(limiter.policies)) {
        const label = names.of('policy', policy);
        if (label !== undefined) add(overflowed, label);
      }
    },
  },
  {
    name: 'weir_dropped_events_total',
    otel: 'weir.dropped_events',
    unit: '{event}',
    kind: 'counter',
    help: 'Events over their limit that were dropped.',
    labels: [],
    read: ({ droppedEvents }, _, add) => droppedEvents !== undefined && add(droppedEvents),
  },
  {
    name: 'weir_response_seconds',
    otel: 'weir.response.duration',
    unit: 's',
    kind: 'histogram',
    help: 'Answers of guarded HTTP routes, from the first guard on; without denials.',
    labels: [],
    read: ({ responses }, _, add) => responses && add(responses.times),
  },
  {
    name: 'weir_response_errors_total',
    otel: 'weir.response.errors',
    unit: '{request}',
    kind: 'counter',
    help: 'Answers of guarded HTTP routes with a status of 500 and more; denials are none.',
    labels: [],
    read: ({ responses }, _, add) => responses && add(responses.errors),
  },
  {
    name: 'weir_degraded_answers_total',
    otel: 'weir.degraded_answers',
    unit: '{request}',
    kind: 'counter',
    help: 'Answers in the place of normal ones, by degrade level and cause.',
    labels: ['level', 'reason'],
    read({ degradation }, _, add) {
      if (degradation === undefined) return;
      for (const level of LEVELS) {
        for (const reason of REASONS) {
          add(degradation.fallbacks.answers[level][reason], String(level), reason);
        }
      }
    },
  },
  {
    name: 'weir_unanswered_total',
    otel: 'weir.unanswered',
    unit: '{request}',
    kind: 'counter',
    help: 'Requests that no degrade level had an answer for.',
    labels: ['reason'],
    read({ degradation }, _, add) {
      if (degradation === undefined) return;
      for (const reason of REASONS) add(degradation.fallbacks.unanswered[reason], reason);
    },
  },
  {
    name: 'weir_recovery_state',
    otel: 'weir.recovery.state',
    unit: '1',
    kind: 'gauge',
    help: '1 for the state that a degradable resource is in.',
    labels: ['resource', 'state'],
    read({ degradation }, names, add) {
      for (const { resource, phase } of degradation?.resources ?? []) {
        if (names.of('resource', resource) !== resource) continue;
        for (const one of PHASES) add(isOn(phase, one), resource, one);
      }
    },
  },
  {
    name: 'weir_recovery_percent',
    otel: 'weir.recovery.percent',
    unit: '%',
    kind: 'gauge',
    help: 'Part of the requests that reaches the resource, 0 to 100.',
    labels: ['resource'],
    read({ degradation }, names, add) {
      for (const { resource, percent } of degradation?.resources ?? []) {
        if (names.of('resource', resource) === resource) add(percent, resource);
      }
    },
  },
  {
    name: 'weir_recovery_trips_total',
    otel: 'weir.recovery.trips',
    unit: '{trip}',
    kind: 'counter',
    help: 'How often a resource fell to degraded, by cause.',
    labels: ['resource', 'cause'],
    read({ degradation }, names, add) {
      for (const { resource, trips } of degradation?.resources ?? []) {
        const label = names.of('resource', resource);
        if (label === undefined) continue;
        for (const [cause, count] of Object.entries(trips)) add(count, label, cause);
      }
    },
  },
  {
    name: 'weir_resource_calls_total',
    otel: 'weir.resource.calls',
    unit: '{call}',
    kind: 'counter',
    help: 'Calls of protected resources, by how they ended or why they did not begin.',
    labels: ['resource', 'outcome'],
    read({ protection }, names, add) {
      for (const [resource, stats] of Object.entries(protection)) {
        const label = names.of('resource', resource);
        if (label === undefined) continue;
        for (const outcome of CALL_OUTCOMES) add(stats[outcome], label, outcome);
      }
    },
  },
  {
    name: 'weir_resource_call_seconds',
    otel: 'weir.resource.call.duration',
    unit: 's',
    kind: 'histogram',
    help: 'How long the work of a protected resource took.',
    labels: ['resource'],
    read({ protection, timesOf }, names, add) {
      for (const resource of Object.keys(protection)) {
        const label = names.of('resource', resource);
        const times = timesOf(resource);
        if (label !== undefined && times !== undefined) add(times, label);
      }
    },
  },
  {
    name: 'weir_resource_in_flight',
    otel: 'weir.resource.in_flight',
    unit: '{call}',
    kind: 'gauge',
    help: 'Calls of a protected resource whose work goes on.',
    labels: ['resource'],
    read({ protection }, names, add) {
      for (const [resource, { inFlight }] of Object.entries(protection)) {
        const label = names.of('resource', resource);
        if (label !== undefined) add(inFlight, label);
      }
    },
  },
  {
    name: 'weir_resource_waiting',
    otel: 'weir.resource.waiting',
    unit: '{call}',
    kind: 'gauge',
    help: 'Calls that wait for a slot of a protected resource.',
    labels: ['resource'],
    read({ protection }, names, add) {
      for (const [resource, { waiting }] of Object.entries(protection)) {
        const label = names.of('resource', resource);
        if (label !== undefined) add(waiting, label);
      }
    },
  },
  {
    name: 'weir_breaker_state',
    otel: 'weir.breaker.state',
    unit: '1',
    kind: 'gauge',
    help: '1 for the state that the breaker of a resource is in.',
    labels: ['resource', 'state'],
    read({ protection }, names, add) {
      for (const [resource, { breaker }] of Object.entries(protection)) {
        if (breaker === undefined || names.of('resource', resource) !== resource) continue;
        for (const one of BREAKER_STATES) {
          add(isOn(breaker.state, one), resource, one.replace('-', '_'));
        }
      }
    },
  },
  {
    name: 'weir_breaker_openings_total',
    otel: 'weir.breaker.openings',
    unit: '{opening}',
    kind: 'counter',
    help: 'How often the breaker of a resource has opened.',
    labels: ['resource'],
    read({ protection }, names, add) {
      for (const [resource, { breaker }] of Object.entries(protection)) {
        const label = names.of('resource', resource);
        if (breaker !== undefined && label !== undefined) add(breaker.openings, label);
      }
    },
  },
  {
    name: 'weir_answer_cache_total',
    otel: 'weir.answer_cache',
    unit: '{lookup}',
    kind: 'counter',
    help: 'What became of answers in the caches of degrade levels 1 (shared) and 2 (process).',
    labels: ['level', 'result'],
    read({ degradation }, _, add) {
      if (degradation === undefined) return;
      const { shared, process, refused, rejected } = degradation.caches;
      if (shared !== undefined) {
        add(shared.hits, '1', 'hit');
        add(shared.misses, '1', 'miss');
        add(shared.tooBig, '1', 'refused');
      }
      add(process.hits, '2', 'hit');
      add(process.misses, '2', 'miss');
      add(sumOf(refused), '2', 'refused');
      add(sumOf(rejected), '2', 'rejected');
    },
  },
  {
    name: 'weir_resource_throttled_total',
    otel: 'weir.resource.throttled',
    unit: '{call}',
    kind: 'counter',
    help: 'Calls of a protected resource that were not made because it is throttled.',
    labels: ['resource'],
    read({ protection }, names, add) {
      for (const [resource, { throttled }] of Object.entries(protection)) {
        const label = names.of('resource', resource);
        if (label !== undefined) add(throttled, label);
      }
    },
  },
  {
    name: 'weir_policy_passed_over_total',
    otel: 'weir.policy.passed_over',
    unit: '{decision}',
    kind: 'counter',
    help: 'Decisions that a tier denied and passThrough let pass.',
    labels: ['policy', 'tier'],
    read({ limiter }, names, add) {
      for (const [policy, { passedOver }] of Object.entries(limiter.policies)) {
        const label = names.of('policy', policy);
        if (label === undefined) continue;
        for (const [tier, count] of Object.entries(passedOver)) add(count, label, tier);
      }
    },
  },
  {
    name: 'weir_hot_values',
    otel: 'weir.hot_values',
    unit: '{value}',
    kind: 'gauge',
    help: 'Values in demand, of policies with hot; at most 64 are known of a tier.',
    labels: ['policy'],
    read({ hotCounts }, names, add) {
      for (const [policy, count] of Object.entries(hotCounts())) {
        const label = names.of('policy', policy);
        if (label !== undefined) add(count, label);
      }
    },
  },
  {
    name: 'weir_overload_standing',
    otel: 'weir.overload.standing',
    unit: '1',
    kind: 'gauge',
    help: '1 while the event loop has had no rest, so that requests stand in line.',
    labels: [],
    read: ({ overload }, _, add) => overload && add(overload.standing ? 1 : 0),
  },
  {
    name: 'weir_overload_waiting',
    otel: 'weir.overload.waiting',
    unit: '{request}',
    kind: 'gauge',
    help: 'Requests in line.',
    labels: [],
    read: ({ overload }, _, add) => overload && add(overload.waiting),
  },
  {
    name: 'weir_overload_requests_total',
    otel: 'weir.overload.requests',
    unit: '{request}',
    kind: 'counter',
    help: 'Requests at the line, by tier and what became of them; those that need not wait have the tier none.',
    labels: ['tier', 'outcome'],
    read({ overload }, _, add) {
      if (overload === undefined) return;
      for (const [tier, counts] of Object.entries(overload.byTier)) {
        for (const outcome of LINE_OUTCOMES) add(counts[outcome], tier, outcome);
      }
      add(overload.exempt + overload.upgrades, 'none', 'exempt');
    },
  },
  {
    name: 'weir_overload_wait_seconds',
    otel: 'weir.overload.wait',
    unit: 's',
    kind: 'histogram',
    help: 'How long requests stood in line that ran in the end.',
    labels: [],
    read: ({ waitTimes }, _, add) => waitTimes && add(waitTimes),
  },
  {
    name: 'weir_overload_turn_seconds',
    otel: 'weir.overload.turn',
    unit: 's',
    kind: 'gauge',
    help: 'The last turn of the event loop.',
    labels: [],
    read: ({ overload }, _, add) => overload && add(overload.turnMs / 1000),
  },
  {
    name: 'weir_load',
    otel: 'weir.load',
    unit: '1',
    kind: 'gauge',
    help: 'The load by signal, 0 to 1.',
    labels: ['signal'],
    read({ overload }, _, add) {
      if (overload?.load === undefined) return;
      const { cpu, loop, memory, score } = overload.load;
      for (const [signal, value] of Object.entries({ cpu, loop, memory, score }))
        add(value, signal);
    },
  },
  {
    name: 'weir_load_factor',
    otel: 'weir.load.factor',
    unit: '1',
    kind: 'gauge',
    help: 'The part of their limits that adaptive policies have left.',
    labels: [],
    read: ({ overload }, _, add) => overload && add(overload.factor),
  },
  {
    name: 'weir_config_revision',
    otel: 'weir.config.revision',
    unit: '1',
    kind: 'gauge',
    help: 'The revision of the configuration that holds here.',
    labels: [],
    read: ({ config }, _, add) => config && add(config.revision),
  },
  {
    name: 'weir_config_refused_total',
    otel: 'weir.config.refused',
    unit: '{document}',
    kind: 'counter',
    help: 'Configurations that were not taken.',
    labels: ['kind'],
    read({ config }, _, add) {
      for (const [kind, count] of Object.entries(config?.refused ?? {})) add(count, kind);
    },
  },
  {
    name: 'weir_config_nodes_behind',
    otel: 'weir.config.nodes_behind',
    unit: '{node}',
    kind: 'gauge',
    help: 'Processes that are not on the latest revision; by the process that leads.',
    labels: [],
    read: ({ nodesBehind }, _, add) => nodesBehind !== undefined && add(nodesBehind),
  },
  {
    name: 'weir_alerts_firing',
    otel: 'weir.alerts.firing',
    unit: '{alert}',
    kind: 'gauge',
    help: 'Alerts that fire, of all series.',
    labels: ['rule', 'severity'],
    read(_, { firing = [] }, add) {
      for (const { rule, severity, count } of firing) add(count, rule, severity);
    },
  },
  {
    name: 'weir_series_dropped_total',
    otel: 'weir.series.dropped',
    unit: '{name}',
    kind: 'counter',
    help: 'Policies, apps and resources that found no room and are part of (other).',
    labels: [],
    read: (_, names, add) => add(names.dropped),
  },
  {
    name: 'weir_build_info',
    otel: 'weir.build.info',
    unit: '1',
    kind: 'gauge',
    help: '1, with the version of the library.',
    labels: ['version'],
    read: (_, { version }, add) => add(1, version),
  },
];

function addApps(
  ledger: Facts['ledger'],
  names: MetricNames,
  add: Add,
  field: 'guaranteed' | 'burst' | 'demand' | 'outstanding',
): void {
  for (const [app, status] of Object.entries(ledger?.apps ?? {})) {
    if (names.of('app', app) === app) add(status[field], app);
  }
}

const sumOf = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((sum, count) => sum + count, 0);

/** All metrics that there can be; for those who have to name them beforehand. */
export const FAMILIES: readonly FamilyInfo[] = DEFINITIONS;
