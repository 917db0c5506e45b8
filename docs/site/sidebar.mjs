/** The pages of docs/ in the order in which they are read; test/package/site.spec.ts sees that none is missing. */
const GROUPS = {
  Begin: {
    'getting-started': 'Getting started',
    comparison: 'Comparison',
    glossary: 'Glossary',
  },
  'Limits on routes': {
    decorators: 'Decorators and keys',
    'users-and-tiers': 'Users, tiers, plans',
    policies: 'Policies',
    algorithms: 'Algorithms',
    'hot-values': 'Hot values',
    'adaptive-limits': 'Adaptive limits',
    responses: 'Headers and 429 bodies',
    limiter: 'The limiter in services',
    options: 'Options',
  },
  Transports: {
    grpc: 'gRPC',
    microservices: 'Microservices',
    websocket: 'WebSocket gateways',
    graphql: 'GraphQL',
  },
  Recipes: {
    recipes: 'All recipes',
    'recipes-access': 'Login, JWT, API keys, tenants',
    'recipes-deployment': 'Proxies, Kubernetes, serverless',
    'recipes-responses': '429 body, Swagger, clients',
    'recipes-downstream': "A partner's API, ORMs",
    'protection-recipes': 'Redis, HTTP, SQL pools',
  },
  'Redis and quotas': {
    redis: 'Redis in production',
    'redis-permissions': 'Permissions (ACL)',
    'redis-outages': 'Outages and failover',
    'failure-modes': 'Failure modes and bounds',
    quotas: 'Quotas',
    'quota-events': 'Status and events of quotas',
    simulator: 'Simulator',
    histories: 'Histories of faults',
  },
  'Changing limits': {
    'hot-reload': 'Hot reload',
    'changing-the-configuration': 'Layers and deploys',
    'changing-limits': 'What becomes of buckets',
    'changing-quotas': 'What becomes of quotas',
    configuration: 'Configuration',
    'configuration-limits': 'Fields: limits',
    'configuration-resilience': 'Fields: resilience',
    'configuration-alerts': 'Fields: alerts',
    'command-line': 'Command line',
  },
  'Fallbacks and protection': {
    degradation: 'Fallbacks',
    'degradation-caches': 'Caches of fallbacks',
    recovery: 'Recovery',
    protection: 'Protection',
    bulkhead: 'Bulkhead',
    'circuit-breaker': 'Circuit breaker',
    'protection-fallbacks': 'Fallbacks of calls',
    'protection-responses': 'Errors and responses',
    overload: 'Overload',
    'overload-tiers': 'Priority tiers',
  },
  Operations: {
    monitoring: 'Monitoring',
    metrics: 'Metrics',
    fleet: 'The whole fleet',
    alerts: 'Alerts',
    'alert-runbook': 'When an alert fires',
    capacity: 'Capacity',
    dashboard: 'Dashboard',
    testing: 'Testing',
  },
  Help: {
    troubleshooting: 'Troubleshooting',
    errors: 'Errors by code',
    log: 'Log lines',
    'log-features': 'Log lines of features',
    'trade-offs': 'Limits and trade-offs',
  },
  Migrating: {
    'migrating-from-throttler': 'From @nestjs/throttler',
    'throttler-differences': 'What is different',
    'migrating-from-rate-limiter-flexible': 'From rate-limiter-flexible',
    'migrating-from-express-rate-limit': 'From express-rate-limit',
  },
  Project: {
    stability: 'Stability and upgrades',
    architecture: 'Architecture',
    'architecture-walks': 'Further walks',
    figures: 'Figures',
    measured: 'Benchmarks',
    simulated: 'Simulated promises',
    changelog: 'Changelog',
    security: 'Security',
  },
};

export const SIDEBAR = [
  // Groups that fold would be buttons within buttons, which screen readers cannot tell apart.
  ...Object.entries(GROUPS).map(([text, pages]) => ({
    text,
    items: Object.entries(pages).map(([page, title]) => ({ text: title, link: `/${page}` })),
  })),
  { text: 'Reference', link: '/reference/' },
];

/** The names of the pages that the sidebar has. */
export const SIDEBAR_PAGES = Object.values(GROUPS).flatMap((pages) => Object.keys(pages));
