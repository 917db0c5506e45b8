import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkAlerts, type Rule } from '../../lib/observability/alerts/rules.js';
import { BUCKET_MICROS, FAMILIES, type FamilyInfo } from '../../lib/observability/families.js';
import { root } from '../setup/ensure-built.js';
import { VECTORS, type Part, type Steady, type Vector } from './alert-vectors.js';

interface Maker {
  prometheusRules(rules: readonly Rule[], families: readonly FamilyInfo[]): string;
  alertName(id: string): string;
}

const FILE = join(root, 'ops/prometheus-rules.yml');
const script = (name: string): Promise<unknown> => import(join(root, 'scripts/support', name));

describe('ops/prometheus-rules.yml', () => {
  let maker: Maker;
  let promtool: string;
  let folder: string;

  beforeAll(async () => {
    maker = (await script('prometheus-rules.mjs')) as Maker;
    const tools = (await script('tools.mjs')) as { ensurePromtool(): string };
    promtool = tools.ensurePromtool();
    folder = mkdtempSync(join(tmpdir(), 'weir-rules-'));
  }, 120_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const run = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(promtool, args, { encoding: 'utf8' });
    return { status, said: stdout + stderr };
  };

  it('is what `npm run ops-files` makes of the rules, and of metrics that there are', () => {
    const { rules } = checkAlerts();
    expect(readFileSync(FILE, 'utf8')).toBe(maker.prometheusRules(rules, FAMILIES));
    const lacking = FAMILIES.filter(({ name }) => name !== 'weir_store_up');
    expect(() => maker.prometheusRules(rules, lacking)).toThrow(
      'weir_store_up, which is no metric',
    );
  });

  it('passes the check of promtool', () => {
    expect(run('check', 'rules', FILE)).toMatchObject({ status: 0 });
  });

  const said = VECTORS.filter(({ promtool: isSaid }) => isSaid);
  it.each([...new Set(said.map(({ rule }) => rule))])(
    'fires and is quiet as %s of the library, by the same vectors',
    (rule) => {
      const name = maker.alertName(rule);
      const tests = said.filter((one) => one.rule === rule).map((one) => testOf(one, name));
      const [rules, file] = [join(folder, `${rule}.yml`), join(folder, `${rule}.test.yml`)];
      // The other rules would be evaluated as well; and sentences hold figures, which promtool compares to the letter.
      const [head, ...blocks] = readFileSync(FILE, 'utf8').split(/(?=^ +- alert:)/m);
      const own = blocks.find((block) => block.includes(`alert: ${name}\n`))!;
      writeFileSync(rules, head + own.replace(/ +annotations:\n.*\n/, ''));
      const runTests = (some: readonly PromTest[]) => {
        const asked = { rule_files: [rules], evaluation_interval: '15s', tests: some };
        if (isState(rule)) asked.evaluation_interval = '5s';
        // Hours of series, of which each look reads one: half as many looks take half the time.
        if (rule === 'p99Rise') asked.evaluation_interval = '30s';
        writeFileSync(file, JSON.stringify(asked));
        return run('test', 'rules', file);
      };
      expect(runTests(tests)).toEqual({ status: 0, said: expect.any(String) as string });
      // And fails where the vectors say something else.
      expect(runTests([{ ...tests[0]!, alert_rule_test: inverted(tests[0]!) }]).status).toBe(1);
    },
  );
});

const STATES = [
  ...['storeAway', 'breakerOpen', 'configBehind', 'overload', 'line', 'levelHeld', 'relapse'],
];
const isState = (rule: string): boolean => STATES.includes(rule);

type PromTest = ReturnType<typeof testOf>;

const inverted = ({ alert_rule_test }: PromTest) =>
  alert_rule_test.map((one) => ({
    ...one,
    exp_alerts: one.exp_alerts.length === 0 ? [{ exp_labels: { job: 'none' } }] : [],
  }));

/** Windows of Prometheus are not those of the rings to the second; so nothing is asked so near to a change. */
const UNSURE_S = 80;
/** States have no windows. */
const UNSURE_STATE_S = 15;
const STEP_S = 30;

function testOf({ rule, name, parts, expect: changes }: Vector, alertname: string) {
  const lasts = (parts as Steady[]).reduce((sum, { seconds = 0 }) => sum + seconds, 0);
  const unsure = isState(rule) ? UNSURE_STATE_S : UNSURE_S;
  const told = changes.filter(([, phase]) => phase === 'firing' || phase === 'resolved');
  const isFar = (at: number): boolean => told.every(([second]) => Math.abs(at - second) > unsure);
  const phaseAt = (at: number): string => changes.filter(([second]) => second <= at).at(-1)![1];
  const instants = Array.from({ length: Math.floor(lasts / STEP_S) + 1 }, (_, i) => i * STEP_S);
  const asked = instants.filter((at) => at > 0 && isFar(at));
  const severity = checkAlerts().rules.find(({ id }) => id === rule)!.severity;
  const resource: Record<string, string> = ['breakerOpen', 'relapse'].includes(rule)
    ? { resource: 'db' }
    : {};
  const firing: { readonly exp_labels: Record<string, string> }[] = [
    { exp_labels: { job: 'shop', severity, ...resource } },
  ];
  return {
    name: `${rule}: ${name}`,
    interval: `${stepOf(parts)}s`,
    input_series: seriesOf(rule, parts),
    alert_rule_test: asked.map((at) => ({
      ...{ eval_time: `${at}s`, alertname },
      exp_alerts: phaseAt(at) === 'firing' ? firing : [],
    })),
  };
}

function seriesOf(rule: string, parts: readonly Part[]) {
  const counter = (labels: string, perSecond: (part: Steady) => number) => ({
    series: labels,
    values: valuesOf(parts, perSecond),
  });
  const job = 'job="shop",instance="a"';
  if (parts.some((part) => 'breaker' in part)) {
    return (['closed', 'open', 'half-open'] as const).map((state) => ({
      series: `weir_breaker_state{${job},resource="db",state="${state.replace('-', '_')}"}`,
      values: gaugeOf(parts, ({ breaker }) => (breaker === state ? 1 : 0)),
    }));
  }
  if (parts.some((part) => 'holds' in part)) {
    const states: Readonly<Record<string, [name: string, on: number, off: number]>> = {
      storeAway: [`weir_store_up{${job}}`, 0, 1],
      breakerOpen: [`weir_breaker_state{${job},resource="db",state="open"}`, 1, 0],
      configBehind: [`weir_config_nodes_behind{${job}}`, 2, 0],
      overload: [`weir_cluster_overloaded{${job}}`, 1, 0],
      line: [`weir_overload_standing{${job}}`, 1, 0],
      relapse: [`weir_recovery_trips_total{${job},resource="db",cause="failures"}`, 3, 0],
    };
    if (rule === 'levelHeld') {
      const answers = `weir_degraded_answers_total{${job},level="3",reason="limited"}`;
      return [counter(answers, ({ holds }) => (holds ? 1 : 0))];
    }
    const [name, on, off] = states[rule]!;
    return [{ series: name, values: gaugeOf(parts, ({ holds }) => (holds ? on : off)) }];
  }
  const levels = [1, 2, 3, 4] as const;
  return [
    counter(
      `weir_requests_total{${job},outcome="passed"}`,
      ({ rate = 0, denied = 0 }) => rate - denied,
    ),
    counter(`weir_requests_total{${job},outcome="denied"}`, ({ denied = 0 }) => denied),
    counter(`weir_response_errors_total{${job}}`, ({ errors = 0 }) => errors),
    ...levels.map((level) =>
      counter(
        `weir_degraded_answers_total{${job},level="${level}",reason="limited"}`,
        (part) => part[`degraded${level}`] ?? 0,
      ),
    ),
    ...[...BUCKET_MICROS, Infinity].map((micros) => {
      const le = micros === Infinity ? '+Inf' : micros / 1e6;
      return counter(`weir_response_seconds_bucket{${job},le="${le}"}`, ({ rate = 0, ms = 0 }) =>
        ms * 1000 <= micros ? rate : 0,
      );
    }),
    counter(`weir_response_seconds_count{${job}}`, ({ rate = 0 }) => rate),
  ];
}

/** A sample each second. */
const gaugeOf = (parts: readonly Part[], value: (part: Steady) => number): string =>
  (parts as Steady[]).map((part) => `${value(part)}x${part.seconds - 1}`).join(' ');

/** Seconds between two samples. */
const stepOf = (parts: readonly Part[]): number =>
  parts.every(
    (part) =>
      !('holds' in part || 'breaker' in part) && !(('seconds' in part ? part.seconds : 0) % 5),
  )
    ? 5
    : 1;

/** In promtool's notation: from, step and how often, part by part. */
function valuesOf(parts: readonly Part[], perSecond: (part: Steady) => number): string {
  const pieces: string[] = ['0'];
  const seconds = stepOf(parts);
  let value = 0;
  for (const part of parts) {
    if ('restart' in part) value = 0;
    else if ('seconds' in part) {
      const step = perSecond(part) * seconds;
      pieces.push(`${value + step}+${step}x${part.seconds / seconds - 1}`);
      value += perSecond(part) * part.seconds;
    }
  }
  return pieces.join(' ');
}
