import { type CanActivate, type INestApplication } from '@nestjs/common';
import { type RateLimitModuleInput } from 'nestjs-weir';
import { RateLimitDashboardModule, type DashboardInput } from 'nestjs-weir/dashboard';
import { startShop } from '../observability/watched-app.js';
import { type HttpApp, type Platform } from '../support/nest/http-apps.js';

const SHOP: RateLimitModuleInput = {
  nodeId: 'api-1',
  policies: {
    search: { rate: 3, period: '1h', key: 'ip' },
    page: { rate: 1, period: '1h', key: 'global' },
  },
};

export const open: CanActivate = { canActivate: () => true };
export const closed: CanActivate = { canActivate: () => false };

export interface OpsApp extends HttpApp {
  /** As the page sends it. */
  send(
    method: string,
    path: string,
    body: unknown,
    headers?: Record<string, string>,
  ): Promise<Response>;
}

/** The shop that is watched, with its dashboard at /ops/limits. */
export async function startOps(
  platform: Platform,
  options: RateLimitModuleInput = {},
  dashboard: Partial<DashboardInput> = {},
  prepare?: (app: INestApplication) => void,
): Promise<OpsApp> {
  const page = RateLimitDashboardModule.forRoot({ path: 'ops/limits', guard: open, ...dashboard });
  const app = await startShop(platform, { ...SHOP, ...options }, [page], prepare);
  const send: OpsApp['send'] = (method, path, body, headers = {}) =>
    fetch(app.url + path, {
      method,
      body: JSON.stringify(body),
      headers: {
        'content-type': 'application/json',
        'x-weir-request': '1',
        origin: app.url,
        ...headers,
      },
    });
  return { ...app, send };
}
