import { Controller, Get, Post, type Type } from '@nestjs/common';
import {
  Degrade,
  RateLimitConfig,
  RateLimitModule,
  type ConfigLayer,
  type DegradeContext,
} from 'nestjs-weir';
import { DegradeRoutes } from '../../lib/degradation/degrade-routes.js';
import { ManualClock } from '../support/manual-clock.js';
import { moduleOptions } from './degrade-routes.js';
import { Stage } from './degrade-stage.js';
import { startHttp, type HttpApp } from '../support/nest/http-apps.js';

const NO_CACHES = { level1: false, level2: false } as const;

function pagesOf(stage: Stage): Type {
  @Controller()
  class Pages {
    @Get('plain')
    @Degrade({ ...NO_CACHES, level3: 'left' })
    plain(): unknown {
      return stage.play();
    }

    left({ remainingMs }: DegradeContext): object {
      return { remainingMs };
    }

    @Get('bare')
    @Degrade(NO_CACHES)
    bare(): unknown {
      return stage.play();
    }

    @Get('own')
    @Degrade({ ...NO_CACHES, slow: '300ms', deadline: '3s' })
    own(): unknown {
      return stage.play();
    }

    @Get('patient')
    @Degrade({ ...NO_CACHES, slow: '700ms' })
    patient(): unknown {
      return stage.play();
    }

    @Post('write')
    @Degrade(NO_CACHES)
    write(): unknown {
      return stage.play();
    }
  }
  return Pages;
}

describe('the deadlines of routes, when the configuration changes', () => {
  let stage: Stage;
  let http: HttpApp;
  let pages: Type;

  beforeEach(async () => {
    stage = new Stage(new ManualClock());
    pages = pagesOf(stage);
    const degradation = { slow: '900ms', deadline: '2s' } as const;
    const imports = [RateLimitModule.forRoot(moduleOptions(stage, { degradation }))];
    http = await startHttp('express', { imports, controllers: [pages] });
  });
  afterEach(() => http.close());

  const change = (degradation: ConfigLayer['degradation']) =>
    http.app.get(RateLimitConfig).update({ degradation });

  /** The time that a request to a handler may take from now on: until it is slow, and in all. */
  function deadlinesOf(name: string): (number | undefined)[] {
    const handler = (pages.prototype as Record<string, () => unknown>)[name]!;
    const { reads, writes } = http.app.get(DegradeRoutes).of(pages, handler)!;
    const { slow, rest, deadlineMs } = name === 'write' ? writes : reads;
    expect(rest === undefined || slow!.timeoutMs + rest.timeoutMs === deadlineMs).toBe(true);
    return [slow?.timeoutMs, deadlineMs];
  }

  /** Asks, and resolves when the handler has been reached. */
  async function begin(path: string): Promise<{ answer: Promise<readonly [string, unknown]> }> {
    stage.hangs();
    const entered = stage.entered();
    const answer = http.get(path).then(async (response) => {
      const mark = response.headers.get('x-degraded') ?? 'as it is';
      return [`${response.status} ${mark}`, await response.json()] as const;
    });
    await entered;
    return { answer };
  }

  it('is what the code says, and then what the document says', async () => {
    const document = http.app.get(RateLimitConfig).current().document;
    expect(document.degradation).toEqual({ slow: '900ms', deadline: '2s' });
    expect(deadlinesOf('plain')).toEqual([900, 2000]);
    await change({ slow: '100ms', deadline: '1700ms' });
    expect(deadlinesOf('plain')).toEqual([100, 1700]);
    const { answer } = await begin('/plain');
    stage.clock.advance(100);
    expect(await answer).toEqual(['200 level=3; reason=slow', { remainingMs: 1600 }]);
    await change({ slow: null, deadline: null });
    expect(deadlinesOf('plain')).toEqual([1000, 2000]);
  });

  it('is its own where it has one', async () => {
    await change({ slow: '100ms', deadline: '1700ms' });
    expect(deadlinesOf('own')).toEqual([300, 3000]);
    expect(deadlinesOf('patient')).toEqual([700, 1700]);
    expect(deadlinesOf('write')[0]).toBeUndefined();
  });

  it('stays what it was for requests that have begun', async () => {
    const bare = await begin('/bare');
    const plain = await begin('/plain');
    await change({ slow: '200ms', deadline: '1600ms' });
    await change({ slow: '10ms', deadline: '750ms' });
    stage.clock.advance(900);
    // Its levels have the time that it began with.
    expect(await plain.answer).toEqual(['200 level=3; reason=slow', { remainingMs: 1100 }]);
    stage.clock.advance(1099);
    stage.finish();
    expect((await bare.answer)[0]).toBe('200 as it is');
    const { answer } = await begin('/bare');
    stage.clock.advance(10);
    stage.clock.advance(740);
    expect((await answer)[0]).toMatch(/^503/);
  });

  it('is not changed to what a route could not live with', async () => {
    await expect(change({ deadline: '600ms', slow: '10ms' })).rejects.toThrow(
      '@Degrade on Pages.patient.slow: expected less than the deadline, 600 ms, got "700ms"',
    );
    await expect(change({ slow: '3s' })).rejects.toThrow(
      'degradation.slow: expected less than the deadline, 2000 ms, got "3s"',
    );
    expect(deadlinesOf('plain')).toEqual([900, 2000]);
  });
});
