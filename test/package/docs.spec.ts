import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { COMMANDS } from '../../lib/cli/run-command.js';
import { parseText } from '../../lib/config/sources/parse-text.js';
import { root } from '../setup/ensure-built.js';
import { exportedNames, membersOf, parseSource } from './exported-names.js';
import { blocksOf, PAGES, readPage, tablesOf, withoutBlocks, type Table } from './markdown.js';

const LONGEST_PAGE = 1500;
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};

describe('a page', () => {
  const docs = PAGES.filter((page) => page !== 'README.md');

  it.each(docs)('is read in ten minutes: %s', (page) => {
    const words = readPage(page).split(/\s+/).length;
    expect(words).toBeLessThanOrEqual(LONGEST_PAGE);
  });

  it('has one title, and says what it is for before its first part', () => {
    const wrong = docs.filter((page) => {
      const text = withoutBlocks(readPage(page));
      const [, lead = ''] = /^# .+\n([\s\S]*?)(?=^## |$(?![\s\S]))/m.exec(text) ?? [];
      return text.match(/^# /gm)?.length !== 1 || lead.trim() === '';
    });
    expect(wrong).toEqual([]);
  });

  /** Those that list what there is, and those that are about nothing but failures. */
  const LISTS = [
    ...['options', 'histories', 'quota-events', 'protection-responses', 'metrics'],
    ...['configuration', 'configuration-limits', 'configuration-resilience'],
    ...['configuration-alerts', 'alert-runbook', 'failure-modes', 'redis-outages'],
  ];

  it('of a feature says what can go wrong with it', async () => {
    const { SIDEBAR } = (await import(join(root, 'docs/site/sidebar.mjs'))) as {
      SIDEBAR: readonly { readonly text: string; readonly items?: { readonly link: string }[] }[];
    };
    const groups = ['Limits on routes', 'Transports', 'Redis and quotas', 'Changing limits'];
    const features = [...groups, 'Fallbacks and protection', 'Operations'];
    const pages = SIDEBAR.filter(({ text }) => features.includes(text)).flatMap(({ items }) =>
      items!.map(({ link }) => link.slice(1)),
    );
    const told = pages.filter((page) => /^##+ .*go wrong/m.test(readPage(`docs/${page}.md`)));
    expect(pages.filter((page) => !told.includes(page) && !LISTS.includes(page))).toEqual([]);
    expect(told.length).toBeGreaterThan(30);
  });

  /** Words that people search for, each a part of a heading. */
  it.each([
    ...['global limit', 'per user', 'override', 'circuit breaker', 'failover', 'fallback', 'proxy'],
    ...[
      '429 body',
      'API key',
      'brute force',
      'passport-jwt',
      'Kubernetes',
      'serverless',
      'Swagger',
    ],
    ...[
      'health check',
      'multi-tenant',
      'bulkhead',
      'token bucket',
      'sliding window',
      'leaky bucket',
    ],
    ...['Redis', 'Sentinel', 'Cluster', 'ACL', 'eviction', 'hot reload', 'shadow mode', 'refund'],
    ...[
      'gRPC',
      'GraphQL',
      'WebSocket',
      'Kafka',
      'Prometheus',
      'OpenTelemetry',
      'Grafana',
      'alerts',
    ],
    ...[
      'dashboard',
      'testing',
      'troubleshooting',
      'error',
      'log lines',
      'glossary',
      'migrat',
      'tier',
    ],
    ...['concurrency', 'custom key', 'custom error message', 'cron', 'distributed', 'dry run'],
    ...['exclude', 'load shedding', 'mock', 'performance', 'queue', 'Redis is down', 'rollback'],
  ])('is found by the word “%s” in its headings', (word) => {
    const headings = PAGES.flatMap((page) => readPage(page).match(/^#+ .*$/gm) ?? []);
    const words = new RegExp(word.replace(/[\s-]+/g, '[\\s-]+'), 'i');
    expect(headings.some((heading) => words.test(heading))).toBe(true);
  });
});

describe('code on the pages', () => {
  const blocks = PAGES.flatMap((page) => blocksOf(readPage(page)).map((one) => ({ page, ...one })));
  const of = (language: string) => blocks.filter((one) => one.language === language);

  it('is of a kind that is checked', () => {
    // TypeScript is compiled, and run where it is marked, by pages.spec.ts.
    const known = ['ts', 'js', 'json', 'yaml', 'sh', 'text', 'http'];
    expect(blocks.filter(({ language }) => !known.includes(language))).toEqual([]);
  });

  it('of JSON and YAML can be read', async () => {
    for (const { code } of of('json')) JSON.parse(code);
    for (const { code } of of('yaml')) await parseText(code, 'block.yaml');
    expect(of('yaml').length + of('json').length).toBeGreaterThan(10);
  });

  it('of others, in JavaScript, has no errors of syntax', () => {
    const faults = of('js').flatMap(({ page, code }) => {
      const { diagnostics = [] } = ts.transpileModule(code, { reportDiagnostics: true });
      return diagnostics.map(({ messageText }) => {
        return `${page}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
      });
    });
    expect(faults).toEqual([]);
  });

  it('of the shell names commands and scripts that are there', () => {
    const lines = of('sh').flatMap(({ code }) => code.split('\n'));
    const commands = lines.flatMap((line) => /npx weir ([a-z ]+)/.exec(line)?.[1] ?? []);
    expect(commands.length).toBeGreaterThan(15);
    const isKnown = (words: string) =>
      COMMANDS.some(({ name }) => `${words} `.startsWith(`${name} `));
    expect(commands.filter((words) => !isKnown(words.trim()))).toEqual([]);
    const runs = PAGES.flatMap((page) => [...readPage(page).matchAll(/npm run ([\w:-]+)/g)]);
    const names = runs.map(([, name]) => name!).filter((name) => name !== 'sample');
    expect(names.filter((name) => !(name in scripts) && name !== 'sample:')).toEqual([]);
  });
});

/** The classes and interfaces that a table of options has to have all of. */
const OPTIONS: Readonly<Record<string, readonly (readonly [file: string, name: string])[]>> = {
  'docs/bulkhead.md Bulkhead': [['lib/protection/resource-options.ts', 'BulkheadOptions']],
  'docs/circuit-breaker.md Breaker': [['lib/protection/resource-options.ts', 'BreakerOptions']],
  'docs/circuit-breaker.md Throttle': [['lib/protection/resource-options.ts', 'ThrottleOptions']],
  'docs/dashboard.md Who may look, and who may change': [
    ['lib/dashboard/dashboard.options.ts', 'DashboardOptions'],
  ],
  'docs/decorators.md Custom keys, tiers and cost of a route': [
    ['lib/limits/route-policy.ts', 'RouteOptions'],
  ],
  'docs/degradation.md Options of `@Degrade`': [
    ['lib/degradation/degrade-options.ts', 'DegradeOptions'],
  ],
  'docs/grpc.md Client calls: limitCalls': [
    ['lib/transports/grpc/limit-calls.ts', 'LimitCallsOptions'],
  ],
  'docs/hot-reload.md Options of config': [['lib/config/config.options.ts', 'ConfigOptions']],
  'docs/hot-reload.md `RateLimitConfig`: update, history, rollback': [
    ['lib/config/rate-limit-config.ts', 'UpdateOptions'],
    ['lib/config/rate-limit-config.ts', 'RollbackOptions'],
  ],
  'docs/monitoring.md Options of monitor': [
    ['lib/observability/monitor-options.ts', 'MonitorOptions'],
  ],
  'docs/options.md Module options': [['lib/rate-limit.options.ts', 'RateLimitModuleOptions']],
  'docs/options.md Limiter': [['lib/limiter/options.ts', 'RateLimiterOptions']],
  'docs/options.md Memory store': [['lib/limiter/options.ts', 'MemoryStoreOptions']],
  'docs/options.md Redis store': [['lib/limiter/options.ts', 'RedisStoreOptions']],
  'docs/policies.md Policy options': [['lib/limiter/policy-options.ts', 'PolicyOptions']],
  'docs/protection.md Options': [['lib/protection/resource-options.ts', 'ResourceOptions']],
  'docs/protection.md Slow calls': [['lib/protection/resource-options.ts', 'SlowCallOptions']],
  'docs/quotas.md Quota options': [],
  'docs/recovery.md Figures': [['lib/degradation/core/options.ts', 'RecoveryOptions']],
  'docs/recovery.md Caches and levels': [
    ['lib/degradation/core/options.ts', 'DegradationOptions'],
    ['lib/degradation/degrade-module-options.ts', 'DegradeModuleOptions'],
  ],
  'docs/responses.md Headers': [['lib/transports/shared/rate-limit-headers.ts', 'HeaderOptions']],
  // Compared with what --help prints, by test/cli/simulator.
  'docs/simulator.md Options': [],
};

describe('tables of options', () => {
  const tables = new Map<string, Table>(
    PAGES.flatMap((page) =>
      tablesOf(readPage(page))
        .filter(({ head }) => /^option/.test(head[0]!))
        .map((table) => [`${page} ${table.heading}`, table] as const),
    ),
  );

  it('are all compared with the options', () => {
    expect([...tables.keys()].sort()).toEqual(Object.keys(OPTIONS).sort());
  });

  it.each(Object.entries(OPTIONS).filter(([, sources]) => sources.length > 0))(
    'have every option and its default: %s',
    (name, sources) => {
      const { head, rows } = tables.get(name)!;
      const at = head.indexOf('default');
      const told = new Map(
        rows.flatMap((row) => {
          const names = row[0]!.split(', ').map((one) => /^`(\w+)/.exec(one)![1]!);
          const defaults = at < 0 ? [] : row[at]!.split(', ');
          return names.map((one, i) => [one, names.length === 1 ? row[at] : defaults[i]] as const);
        }),
      );
      const members = new Map(sources.flatMap(([file, type]) => [...membersOf(file, type)]));
      expect([...told.keys()].sort()).toEqual([...members.keys()].sort());
      for (const [option, value] of members) {
        const cell = told.get(option);
        // Words in the place of a value say what no value can.
        if (value === undefined || value.startsWith('new ') || !/^`[^`]*`$/.test(cell ?? ''))
          continue;
        expect(`${option}: ${plain(cell!.slice(1, -1))}`).toBe(`${option}: ${plain(value)}`);
      }
    },
  );

  it('have every option of a quota and its default', () => {
    const file = 'lib/limiter/quota-options.ts';
    const members = [
      ...[...membersOf(file, 'ClusterOptions')].map(([name, value]) => [`cluster.${name}`, value]),
      ...[...membersOf(file, 'AppOptions')].map(([name, value]) => [`apps.<name>.${name}`, value]),
      ...[...membersOf(file, 'LocalOptions')].map(([name, value]) => [`local.${name}`, value]),
    ] as [string, string | undefined][];
    const { rows } = tables.get('docs/quotas.md Quota options')!;
    const told = new Map(rows.map(([name, value]) => [name!.replaceAll('`', ''), value!]));
    for (const [name, value] of members) {
      const cell = told.get(name);
      expect([name, typeof cell]).toEqual([name, 'string']);
      if (value === undefined || !cell!.startsWith('`')) continue;
      expect(`${name}: ${plain(cell!.slice(1, -1))}`).toBe(`${name}: ${plain(value)}`);
    }
    const more = [...told.keys()].filter((name) => !members.some(([known]) => known === name));
    expect(more).toEqual(['clusterId', 'maxCost']);
  });
});

/** Values are written in several ways: 10_000, 64 * 1024, { … }. */
const plain = (text: string): string => text.replace(/[_\s]/g, '').replace(/asconst$/, '');

describe('error codes', () => {
  const table = (heading: string): string[] => {
    const found = tablesOf(readPage('docs/errors.md')).find((one) => one.heading === heading)!;
    return found.rows.map(([code]) => code!.replaceAll('`', ''));
  };

  it('of errors and responses are all in docs/errors.md', () => {
    const codes = sources()
      .filter((file) => !file.startsWith('lib/cli'))
      .flatMap((file) => {
        const text = readFileSync(join(root, file), 'utf8');
        const declared = text.match(/readonly code(?:: string)?(?::| =)(?: '[A-Z_]+'(?: \|)?)+/g);
        return (declared ?? []).flatMap(
          (one) => one.match(/[A-Z]+(?:_[A-Z]+)+|DEGRADED|OVERLOADED/g) ?? [],
        );
      });
    expect(new Set(codes).size).toBeGreaterThan(35);
    const told = [...table('Errors and their codes'), ...table('Codes of responses')];
    expect([...new Set(codes)].filter((code) => !told.includes(code))).toEqual([]);
    expect(told.filter((code) => !codes.includes(code))).toEqual([]);
  });
});

describe('log lines', () => {
  const pages = ['docs/log.md', 'docs/log-features.md']
    .map(readPage)
    .join('\n')
    .replace(/\s+/g, ' ');
  /** In files that also write to the log: messages of errors, and words of the page. */
  const NOT_LOGGED = [
    ...['to be imported in the place of', 'stands beside RateLimitModule.forRoot'],
    ...['import one of them only, or switch the limits', 'overrideRateLimits(builder'],
    'to be called once, in the root module',
    ...[
      'RateLimitModule.forRoot was called',
      'times in this application, and each',
      'of its own: call it once',
      'a configuration that can be used',
    ],
    ...['Changes are sent', 'Changes come from the page itself'],
    ...['what this process brings along', 'the configuration is closed', 'There is no such file'],
    ...[
      '`monitor: false` or',
      "fieldResolverEnhancers: ['guards']",
      'limits nothing: Nest guards fields',
    ],
    ...[
      'the query that gives the object',
      'a handler of a controller, gateway',
      'limits nothing, as no guard runs',
    ],
    ...['handlers of controllers, gateways and resolvers. In', 'put @Protect on the method'],
    ...[
      'The service could not answer in time',
      'refuses calls, so that this one was not made',
      'The service cannot answer this at the moment',
    ],
  ];
  const WRITES = /(?:logger|report|log|lines)\.(?:log|warn|error|info)\(|Log\(|warn\(/;

  /** The longest piece of a text that is always the same, if it is a few words. */
  const fixedPart = (node: ts.Node): string | undefined => {
    const parts = ts.isTemplateExpression(node)
      ? [node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)]
      : [(node as ts.StringLiteralLike).text];
    const longest = parts.toSorted((one, other) => other.length - one.length)[0]!.trim();
    return longest.split(' ').length >= 4 ? longest : undefined;
  };

  it('are in docs/log.md and docs/log-features.md, in their words', () => {
    const lines: string[] = [];
    for (const file of sources().filter((name) => !name.startsWith('lib/cli'))) {
      const source = parseSource(file);
      if (!WRITES.test(source.text) || /simulat/.test(file)) continue;
      const visit = (node: ts.Node): void => {
        if (ts.isImportDeclaration(node)) return;
        if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) {
          const part = fixedPart(node);
          if (part !== undefined) lines.push(part);
          return;
        }
        ts.forEachChild(node, visit);
      };
      visit(source);
    }
    expect(lines.length).toBeGreaterThan(60);
    const isTold = (line: string) =>
      pages.includes(line.replace(/\s+/g, ' ').replace(/[.:;,]$/, '')) ||
      NOT_LOGGED.some((known) => line.includes(known));
    expect(lines.filter((line) => !isTold(line))).toEqual([]);
  });
});

describe('figures', () => {
  const OF_FIGURES = ['docs/figures.md', 'docs/measured.md', 'docs/simulated.md'];
  const [table] = tablesOf(readPage('docs/figures.md'));
  const rows = table!.rows.map(([figure, page, source]) => ({
    figure: figure!.replaceAll('`', ''),
    page: `docs/${/\((.*)\)/.exec(page!)![1]!}`,
    source: /`(test\/[^`]+)`/.exec(source!)?.[1],
  }));

  it('stand on their pages, and what holds them is there', () => {
    const text = (page: string) => readPage(page).replace(/[*`]/g, '').replace(/\s+/g, ' ');
    expect(rows.filter(({ figure, page }) => !text(page).includes(figure))).toEqual([]);
    const missing = rows.filter(({ source }) => source && !existsSync(join(root, source)));
    expect(missing).toEqual([]);
  });

  it('that were found by a model or a measurement are all in the table', () => {
    const found = PAGES.filter((page) => !OF_FIGURES.includes(page)).flatMap((page) => {
      const prose = withoutBlocks(readPage(page)).replace(/^\|.*$/gm, '');
      const sentences = prose
        .replace(/[*`]/g, '')
        .replace(/\s+/g, ' ')
        .split(/(?<=[.:;]) /);
      return sentences.filter((one) => /simulat|\bmodel\b|measured/.test(one) && /\d/.test(one));
    });
    const unknown = found.filter((one) => !rows.some(({ figure }) => one.includes(figure)));
    expect(unknown).toEqual([]);
    expect(found.length).toBeGreaterThan(2);
  });

  it('of benchmarks and the simulator are those of the output in the repository', async () => {
    const { benchmarkRows, simulatedRows, RESULTS, SIMULATION } = (await import(
      join(root, 'scripts/support/measured-page.mjs')
    )) as {
      readonly benchmarkRows: (results: unknown) => string[][];
      readonly simulatedRows: (rows: unknown) => string[][];
      readonly RESULTS: string;
      readonly SIMULATION: string;
    };
    const output = (file: string): unknown => JSON.parse(readFileSync(join(root, file), 'utf8'));
    const [benchmarks] = tablesOf(readPage('docs/measured.md'));
    const [simulated] = tablesOf(readPage('docs/simulated.md'));
    expect(benchmarks!.rows).toEqual(benchmarkRows(output(RESULTS)));
    expect(simulated!.rows).toEqual(simulatedRows(output(SIMULATION)));
    expect(Math.min(benchmarks!.rows.length, simulated!.rows.length)).toBeGreaterThan(2);
  });

  it('of speed are nowhere: they would be those of one machine', () => {
    const speeds = PAGES.filter((page) => !OF_FIGURES.includes(page)).flatMap((page) => {
      const prose = withoutBlocks(readPage(page)).match(/\d[\d.]* ?(?:ns|µs|ops\/s)\b/g) ?? [];
      return prose.map((found) => `${page}: ${found}`);
    });
    // The smallest bucket of a histogram, which is a definition.
    expect(speeds).toEqual(['docs/metrics.md: 128 µs']);
  });
});

describe('the reference', () => {
  it('has a sentence for every name that an entry exports', () => {
    const entries = readdirSync(join(root, 'lib')).filter((name) =>
      /^(index|algorithms|config|dashboard|degradation|grpc|otel|prometheus|protection|terminus)\.ts$/.test(
        name,
      ),
    );
    const files = [...entries.map((name) => `lib/${name}`), 'lib/testing/index.ts'];
    expect(files).toHaveLength(11);
    const names = files.flatMap(exportedNames);
    expect(names.length).toBeGreaterThan(400);
    const silent = names.filter(({ sentence }) => sentence === '');
    expect(silent.map(({ name, file }) => `${name} of ${file}`)).toEqual([]);
  });
});

function sources(): string[] {
  return readdirSync(join(root, 'lib'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join('lib', name));
}
