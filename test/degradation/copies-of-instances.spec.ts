import {
  Controller,
  Get,
  Headers,
  Injectable,
  UseInterceptors,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { Degrade } from 'nestjs-weir';
import { map, type Observable } from 'rxjs';
import { HTTP_WIRES } from '../support/nest/http-wires.js';
import { AttackedServer, forgetAll, Handlers } from './attacked-server.js';

// Copies are made of plain values only: an instance may know what callers must not see.

const handlers = new Handlers();

class Account {
  constructor(
    readonly name: string,
    readonly password: string,
  ) {}

  toJSON(): object {
    return { name: this.name, password: this.password };
  }
}

class Accounts extends Array<Account> {}

class Instant extends Date {
  override toJSON(): string {
    return 'hunter2';
  }
}

const MARK = Symbol('secret');

/** Leaves the password out by the class, as serialisers do. */
@Injectable()
class Redactor implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map(redacted));
  }
}

function redacted(value: unknown): unknown {
  if (value instanceof Account) return { name: value.name };
  if (value instanceof Accounts) return { names: value.map(({ name }) => name) };
  if (value instanceof Instant) return 'some day';
  if (Array.isArray(value)) return value.map(redacted);
  if (value === null || typeof value !== 'object') return value;
  if (MARK in value) return {};
  if (value instanceof Date || value instanceof URL) return value;
  const fields = Object.entries(value).filter(([, is]) => typeof is !== 'function');
  return Object.fromEntries(fields.map(([name, is]) => [name, redacted(is)]));
}

const ada = (): Account => new Account('ada', 'hunter2');
const INSTANCES: Readonly<Record<string, () => unknown>> = {
  instance: ada,
  list: () => [ada()],
  field: () => ({ account: ada() }),
  'own list': () => Accounts.from([ada()]),
  'own date': () => ({ at: new Instant() }),
  'own toJSON': () => ({ toJSON: () => ({ password: 'hunter2' }), account: ada() }),
  marked: () => ({ [MARK]: true, password: 'hunter2' }),
};
const PLAIN: Readonly<Record<string, () => unknown>> = {
  values: () => ({ a: [1, 'b', null, true, { c: 1.5 }], d: undefined }),
  'no prototype': () => Object.assign(Object.create(null) as object, { a: 1 }),
  date: () => ({ at: new Date(0) }),
  url: () => ({ at: new URL('http://weir.test/') }),
};

@Controller()
class Pages {
  @Get('data')
  @UseInterceptors(Redactor)
  @Degrade({ vary: ['x-what'] })
  data(@Headers('x-what') what: string): unknown {
    return handlers.answer({ ...INSTANCES, ...PLAIN }[what]!());
  }
}

beforeEach(() => {
  handlers.isDown = false;
  forgetAll();
});

describe.each(HTTP_WIRES)('callers on %s', (name) => {
  let server: AttackedServer;

  beforeAll(async () => {
    server = await AttackedServer.start(name, Pages, handlers);
  });

  afterAll(() => server.close());

  it.each(Object.keys(INSTANCES))('get no copy of an instance: %s', async (what) => {
    const normal = await server.ask('/data', { headers: { 'x-what': what } });
    expect(normal.text).not.toContain('hunter2');
    const before = server.stored();
    const degraded = await server.whenDown('/data', { headers: { 'x-what': what } });
    expect([degraded.status, server.stored()]).toEqual([500, before]);
  });

  it.each(Object.keys(PLAIN))('get a copy of plain data: %s', async (what) => {
    const normal = await server.ask('/data', { headers: { 'x-what': what } });
    const degraded = await server.whenDown('/data', { headers: { 'x-what': what } });
    expect([degraded.status, degraded.json]).toEqual([200, normal.json]);
  });
});
