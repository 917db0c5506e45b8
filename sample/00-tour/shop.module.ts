import { Module, type DynamicModule } from '@nestjs/common';
import { RateLimitModule, type RateLimitModuleInput, type StoreInput } from 'nestjs-weir';
import {
  loopbackOnly,
  RateLimitDashboardModule,
  type DashboardAction,
} from 'nestjs-weir/dashboard';
import { Catalog } from './catalog.js';
import { ADDRESSES, ShopController } from './shop.controller.js';

export interface NodeSettings {
  readonly nodeId: string;
  readonly store: StoreInput;
  readonly actions: readonly DashboardAction[];
  /** Of all nodes, api-1 first; they are filled in as soon as all listen. */
  readonly addresses: readonly string[];
}

/** One node of the shop: its limits, and the page that shows them. */
@Module({})
export class ShopModule {
  static on({ nodeId, store, actions, addresses }: NodeSettings): DynamicModule {
    return {
      module: ShopModule,
      imports: [
        RateLimitModule.forRoot(limitsOf(nodeId, store)),
        RateLimitDashboardModule.forRoot({
          path: 'weir',
          guard: loopbackOnly(),
          write: { guard: loopbackOnly() },
          actions,
        }),
      ],
      controllers: [ShopController],
      providers: [Catalog, { provide: ADDRESSES, useValue: addresses }],
    };
  }
}

function limitsOf(nodeId: string, store: StoreInput): RateLimitModuleInput {
  return {
    nodeId,
    store,
    service: 'shop',
    // The first part of the path is the app: /checkout, /search, /reports.
    app: (context) => {
      const { url } = context.switchToHttp().getRequest<{ url: string }>();
      return url.split(/[/?]/)[1]!;
    },
    quota: {
      clusterId: 'shop',
      // Callers come in bunches where they share a loop or a busy machine with the nodes; a second's worth may be taken at once,
      // and of a guarantee half a second's.
      cluster: { capacity: 500, burstRatio: 2 },
      apps: {
        checkout: { guaranteed: 180, burst: 320, priority: 0 },
        search: { guaranteed: 100, burst: 200, priority: 2 },
        reports: { guaranteed: 50, burst: 150, priority: 3 },
      },
    },
    policies: {
      'login-ip': { rate: '5/min', key: { header: 'x-client' } },
      'search-user': { rate: '50/s', key: { header: 'x-client' } },
      'product-view': { rate: '100/s', key: { header: 'x-client' } },
    },
    protection: {
      'catalog-db': {
        deadline: '500ms',
        breaker: { window: '5s', minimumCalls: 10, openFor: '1s' },
      },
    },
    degradation: {
      slow: '300ms',
      recovery: {
        // The breaker judges the database, at half of its calls; the page gives up at more than that, and never for answers
        // that are merely slow (a rate above 1), or it would keep the calls away that open the breaker.
        ...{ window: '5s', minCalls: 10, errorRate: 0.75, slowRate: 2, tolerance: 0.2 },
        // The library waits ten seconds between two probes and for each stage; here people are watching.
        ...{ probeInterval: '1s', stageMin: '2s', minSamples: 3, stageMax: '6s' },
      },
    },
    // These callers are made up, so their names may be shown and looked up. By default the page has hashes of them.
    monitor: { keys: 'plain' },
    // Denials are compared with the quarter of an hour before; here with the minutes before, and logins are too few to say.
    alerts: { minutes: { denialRise: { window: '1m', baseline: '3m', minRequests: 1000 } } },
  };
}
