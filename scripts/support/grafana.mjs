// The dashboard for Grafana, made of the metrics that there are: a panel that names another one is an error.

const WIDTH = 24;
const HEIGHT = 8;
/** Of every query: the job of the scraper, chosen on the page. */
const JOB = 'job=~"$job"';

const QUOTA = `${JOB},app=~"$app"`;
const POLICY = `${JOB},policy=~"$policy"`;

/** The rows of the dashboard. `by` are the labels that a line stands for. */
const ROWS = [
  {
    title: 'Overview',
    panels: [
      {
        title: 'Requests by outcome',
        unit: 'reqps',
        queries: [rate('weir_requests_total', JOB, ['outcome'])],
      },
      {
        title: 'Answers of guarded routes',
        unit: 's',
        queries: [quantile(0.5, 'weir_response_seconds'), quantile(0.99, 'weir_response_seconds')],
      },
      {
        title: 'Errors of guarded routes',
        unit: 'percentunit',
        queries: [
          {
            expr:
              `sum(rate(weir_response_errors_total{${JOB}}[$__rate_interval])) / ` +
              `sum(rate(weir_response_seconds_count{${JOB}}[$__rate_interval]))`,
            legend: 'errors',
          },
        ],
      },
    ],
  },
  {
    title: 'Quota',
    panels: [
      {
        title: 'Tokens used by app, of the capacity',
        unit: 'short',
        queries: [
          rate('weir_quota_used_tokens_total', QUOTA, ['app']),
          { expr: `max(weir_cluster_capacity_tokens{${JOB}})`, legend: 'capacity' },
          { expr: `max(weir_cluster_demand_tokens{${JOB}})`, legend: 'asked for' },
        ],
      },
      {
        title: 'Denied by app and tier',
        unit: 'reqps',
        queries: [rate('weir_quota_decisions_total', `${QUOTA},outcome="denied"`, ['app', 'tier'])],
      },
      {
        title: 'Decided without waiting for the store',
        unit: 'percentunit',
        queries: [{ expr: `avg(weir_local_ratio{${JOB}})`, legend: 'local' }],
      },
    ],
  },
  {
    title: 'Policies',
    panels: [
      {
        title: 'Decisions by policy',
        unit: 'reqps',
        queries: [rate('weir_decisions_total', POLICY, ['policy'])],
      },
      {
        title: 'Denied by policy',
        unit: 'reqps',
        queries: [
          rate('weir_decisions_total', `${POLICY},outcome=~"denied|shadow_denied"`, [
            'policy',
            'outcome',
          ]),
        ],
      },
    ],
  },
  {
    title: 'Store',
    panels: [
      {
        title: 'Calls to Redis, p99',
        unit: 's',
        queries: [quantile(0.99, 'weir_store_call_seconds', ['op'])],
      },
      {
        title: 'Calls without a useful answer',
        unit: 'ops',
        queries: [rate('weir_store_failures_total', JOB, ['op', 'kind'])],
      },
    ],
  },
  {
    title: 'Degradation',
    panels: [
      {
        title: 'Answers in the place of normal ones, by level',
        unit: 'reqps',
        queries: [
          {
            ...rate('weir_degraded_answers_total', JOB, ['level']),
            legend: 'level {{level}}',
          },
        ],
      },
      {
        title: 'In line for the event loop, and refused',
        unit: 'reqps',
        queries: [
          rate('weir_overload_requests_total', `${JOB},outcome=~"waited|late|full"`, ['outcome']),
        ],
      },
    ],
  },
  {
    title: 'Resources',
    panels: [
      {
        title: 'Calls of resources, p99',
        unit: 's',
        queries: [quantile(0.99, 'weir_resource_call_seconds', ['resource'])],
      },
      {
        title: 'Breakers that are not closed',
        unit: 'short',
        queries: [
          {
            expr: `sum by (resource) (weir_breaker_state{${JOB},state=~"open|half_open"})`,
            legend: '{{resource}}',
          },
        ],
      },
    ],
  },
  {
    title: 'Fleet',
    panels: [
      {
        title: 'Processes, and those without Redis',
        unit: 'short',
        queries: [
          { expr: `count(weir_build_info{${JOB}})`, legend: 'processes' },
          { expr: `count(weir_store_up{${JOB}} == 0) or vector(0)`, legend: 'without Redis' },
        ],
      },
      {
        title: 'Alerts that fire',
        unit: 'short',
        queries: [
          {
            // Each process tells of itself, and one of them of all.
            expr: `max by (rule) (weir_alerts_firing{${JOB}})`,
            legend: '{{rule}}',
          },
        ],
      },
    ],
  },
];

/** The dashboard as Grafana imports it; throws if a query names a metric or a label that there is not. */
export function dashboardOf(families) {
  const panels = [];
  let [id, y] = [1, 0];
  for (const row of ROWS) {
    panels.push({
      id: id++,
      type: 'row',
      title: row.title,
      collapsed: false,
      panels: [],
      gridPos: { h: 1, w: WIDTH, x: 0, y },
    });
    y++;
    const w = WIDTH / row.panels.length;
    row.panels.forEach((panel, index) => {
      for (const { expr } of panel.queries) checkQuery(expr, families);
      panels.push(panelOf(panel, id++, { h: HEIGHT, w, x: index * w, y }));
    });
    y += HEIGHT;
  }
  return {
    __inputs: [
      {
        name: 'DS_PROMETHEUS',
        label: 'Prometheus',
        description: '',
        type: 'datasource',
        pluginId: 'prometheus',
        pluginName: 'Prometheus',
      },
    ],
    __requires: [{ type: 'datasource', id: 'prometheus', name: 'Prometheus', version: '1.0.0' }],
    uid: 'nestjs-weir',
    title: 'nestjs-weir',
    tags: ['nestjs-weir'],
    schemaVersion: 39,
    version: 1,
    editable: true,
    graphTooltip: 1,
    time: { from: 'now-3h', to: 'now' },
    refresh: '30s',
    templating: {
      list: [
        variable('job', 'weir_build_info'),
        variable('app', 'weir_quota_used_tokens_total'),
        variable('policy', 'weir_decisions_total'),
      ],
    },
    panels,
  };
}

const DATASOURCE = { type: 'prometheus', uid: '${DS_PROMETHEUS}' };

function panelOf({ title, unit, queries }, id, gridPos) {
  return {
    id,
    type: 'timeseries',
    title,
    datasource: DATASOURCE,
    gridPos,
    fieldConfig: {
      defaults: { unit, min: 0, custom: { lineWidth: 1, fillOpacity: 10 } },
      overrides: [],
    },
    options: {
      legend: { displayMode: 'list', placement: 'bottom' },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
    targets: queries.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode(65 + index),
      datasource: DATASOURCE,
      expr,
      legendFormat: legend,
    })),
  };
}

function variable(label, metric) {
  const query = `label_values(${metric}, ${label})`;
  return {
    name: label,
    label,
    type: 'query',
    datasource: DATASOURCE,
    definition: query,
    query: { query, refId: 'A' },
    includeAll: true,
    multi: true,
    allValue: '.*',
    current: { text: 'All', value: '$__all' },
    refresh: 2,
    sort: 1,
  };
}

function rate(metric, selector, by) {
  const legend = by.map((label) => `{{${label}}}`).join(' ');
  return {
    expr: `sum by (${by.join(', ')}) (rate(${metric}{${selector}}[$__rate_interval]))`,
    legend,
  };
}

function quantile(part, metric, by = []) {
  const legend = ['p' + part * 100, ...by.map((label) => `{{${label}}}`)].join(' ');
  const labels = ['le', ...by].join(', ');
  const buckets = `sum by (${labels}) (rate(${metric}_bucket{${JOB}}[$__rate_interval]))`;
  return { expr: `histogram_quantile(${part}, ${buckets})`, legend };
}

/** Of a scraper, and not of the process. */
const FOREIGN_LABELS = ['job', 'instance', 'le'];

function checkQuery(expr, families) {
  for (const [, name, selector = ''] of expr.matchAll(/(weir_\w+)(?:\{([^}]*)\})?/g)) {
    const family = families.find((one) => {
      const suffixes = one.kind === 'histogram' ? ['_bucket', '_sum', '_count'] : [''];
      return suffixes.some((suffix) => one.name + suffix === name);
    });
    if (family === undefined) throw new Error(`the dashboard names ${name}, which is no metric`);
    const used = [...selector.matchAll(/(\w+)(?:=~|!~|!=|=)/g)].map(([, label]) => label);
    const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list]) => list.split(', '));
    for (const label of [...used, ...grouped]) {
      if (family.labels.includes(label) || FOREIGN_LABELS.includes(label)) continue;
      throw new Error(`the dashboard asks ${name} for the label ${label}, which it has not`);
    }
  }
}
