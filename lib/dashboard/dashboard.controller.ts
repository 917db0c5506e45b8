import { type IncomingMessage, type ServerResponse } from 'node:http';
import {
  Controller,
  Get,
  Inject,
  Logger,
  Optional,
  Post,
  Put,
  Req,
  Res,
  UseFilters,
  UseGuards,
  VERSION_NEUTRAL,
  type Type,
} from '@nestjs/common';
import { SkipRateLimit } from '../limits/rate-limit.decorators.js';
import { quotedError } from '../common/quoted.js';
import {
  bodyOf,
  hideFromSwagger,
  isFromItsPage,
  redirectToFolder,
  RequestProblem,
  rawResponse,
  sendJson,
  sendProblem,
  type AnyRequest,
  type AnyResponse,
} from './answers.js';
import { Dashboard, problemOf } from './dashboard.js';
import { type DashboardOptions } from './dashboard.options.js';
import { SignInFilter } from './shared-token.js';

const RETRY_SECONDS = '10';

type Responder = (request: IncomingMessage, response: ServerResponse) => unknown;

/** The routes for whoever may look. A class for each path: Nest reads paths and guards from classes. */
export function viewController({ path, guard }: DashboardOptions): Type {
  @Controller({ path, version: VERSION_NEUTRAL })
  @UseGuards(guard)
  @UseFilters(SignInFilter)
  @SkipRateLimit()
  class RateLimitDashboardController {
    constructor(@Optional() @Inject(Dashboard) private readonly opened: Dashboard | undefined) {}

    // Fastify tells `/path/` from `/path`; of a slash at the end Nest takes one away.
    @Get(['/', '//'])
    page(@Req() request: AnyRequest, @Res() response: AnyResponse): Promise<void> {
      return answered(request, response, (raw, answer) => {
        if (!redirectToFolder(raw, answer)) this.dashboard.assets.sendPage(raw, answer);
      });
    }

    @Get('assets/:file')
    file(@Req() request: AnyRequest, @Res() response: AnyResponse): Promise<void> {
      return answered(request, response, (raw, answer) => {
        const name = String(request.params?.file);
        if (!this.dashboard.assets.sendFile(raw, answer, name)) {
          throw new RequestProblem(404, 'There is no such file.');
        }
      });
    }

    @Get('api/stream')
    stream(@Req() request: AnyRequest, @Res() response: AnyResponse): Promise<void> {
      return answered(request, response, (_, answer) => this.dashboard.stream(answer));
    }

    @Get('api/state')
    state(@Req() request: AnyRequest, @Res() response: AnyResponse): Promise<void> {
      return answered(request, response, () => this.dashboard.frames.latest());
    }

    @Get('api/series')
    series(@Req() request: AnyRequest, @Res() response: AnyResponse): Promise<void> {
      return answered(request, response, (raw) => {
        const { searchParams } = new URL(raw.url ?? '/', 'http://localhost');
        const [name, horizon] = [searchParams.get('name'), searchParams.get('horizon')];
        return this.dashboard.series(name ?? 'total', horizon ?? 'seconds');
      });
    }

    @Get('api/report')
    report(@Req() request: AnyRequest, @Res() response: AnyResponse): Promise<void> {
      return answered(request, response, () => this.dashboard.report());
    }

    @Get('api/config')
    config(@Req() request: AnyRequest, @Res() response: AnyResponse): Promise<void> {
      return answered(request, response, () => this.dashboard.configuration());
    }

    @Get('api/config/:revision')
    revision(@Req() request: AnyRequest, @Res() response: AnyResponse): Promise<void> {
      return answered(request, response, () => this.dashboard.revision(request.params?.revision));
    }

    @Get('api/history')
    history(@Req() request: AnyRequest, @Res() response: AnyResponse): Promise<void> {
      return answered(request, response, () => this.dashboard.history());
    }

    @Get('api/nodes')
    nodes(@Req() request: AnyRequest, @Res() response: AnyResponse): Promise<void> {
      return answered(request, response, () => this.dashboard.nodes());
    }

    @Post('api/validate')
    validate(@Req() request: AnyRequest, @Res() response: AnyResponse): Promise<void> {
      return sent(this.opened, request, response, (body) => this.dashboard.validate(body));
    }

    @Post('api/look')
    look(@Req() request: AnyRequest, @Res() response: AnyResponse): Promise<void> {
      return sent(this.opened, request, response, (body) => this.dashboard.look(body));
    }

    private get dashboard(): Dashboard {
      return mustBeOpen(this.opened);
    }
  }
  hideFromSwagger(RateLimitDashboardController);
  return RateLimitDashboardController;
}

/** The routes for whoever may change limits. They are not there unless that was asked for. */
export function changeController({ path, guard, write }: DashboardOptions): Type {
  @Controller({ path, version: VERSION_NEUTRAL })
  @UseGuards(guard, write!.guard)
  @UseFilters(SignInFilter)
  @SkipRateLimit()
  class RateLimitDashboardChangesController {
    constructor(@Optional() @Inject(Dashboard) private readonly opened: Dashboard | undefined) {}

    @Put('api/config')
    update(@Req() request: AnyRequest, @Res() response: AnyResponse): Promise<void> {
      return sent(this.opened, request, response, (body) =>
        'patch' in body
          ? this.dashboard.patch(body, nameOf(request))
          : this.dashboard.update(body, nameOf(request)),
      );
    }

    @Post('api/rollback/:revision')
    rollback(@Req() request: AnyRequest, @Res() response: AnyResponse): Promise<void> {
      return sent(this.opened, request, response, (body) =>
        this.dashboard.rollback(request.params?.revision, body, nameOf(request)),
      );
    }

    @Post('api/resources/:name')
    resource(@Req() request: AnyRequest, @Res() response: AnyResponse): Promise<void> {
      return sent(this.opened, request, response, (body) =>
        this.dashboard.resource(String(request.params?.name), body, nameOf(request)),
      );
    }

    @Post('api/actions/:name')
    act(@Req() request: AnyRequest, @Res() response: AnyResponse): Promise<void> {
      return sent(this.opened, request, response, () =>
        this.dashboard.act(String(request.params?.name)),
      );
    }

    @Post('api/mute')
    mute(@Req() request: AnyRequest, @Res() response: AnyResponse): Promise<void> {
      return sent(this.opened, request, response, (body) => this.dashboard.mute(body));
    }

    private get dashboard(): Dashboard {
      return mustBeOpen(this.opened);
    }
  }
  hideFromSwagger(RateLimitDashboardChangesController);
  return RateLimitDashboardChangesController;
}

const logger = new Logger('RateLimitDashboard');

/** The result of `make` is the answer, unless it has given one itself. */
async function answered(
  request: AnyRequest,
  response: AnyResponse,
  make: Responder,
): Promise<void> {
  const answer = rawResponse(response);
  try {
    const value = await make(request.raw ?? request, answer);
    if (value !== undefined && !answer.headersSent) sendJson(answer, value);
  } catch (error) {
    const problem = problemOf(error);
    if (problem.status === 500) logger.error(`The page got no answer: ${quotedError(error)}`);
    if (answer.headersSent) answer.destroy();
    else
      sendProblem(answer, problem, problem.status === 503 ? { 'retry-after': RETRY_SECONDS } : {});
  }
}

/** For what a browser sends: only from the page itself. */
function sent(
  opened: Dashboard | undefined,
  request: AnyRequest,
  response: AnyResponse,
  make: (body: Readonly<Record<string, unknown>>) => unknown,
): Promise<void> {
  return answered(request, response, async (raw) => {
    const dashboard = mustBeOpen(opened);
    try {
      mustBeSameSite(raw, dashboard.origins);
    } catch (error) {
      dashboard.log.foreignChange(error as Error);
      throw error;
    }
    return make(await bodyOf(request));
  });
}

function mustBeOpen(opened: Dashboard | undefined): Dashboard {
  if (opened !== undefined) return opened;
  const why = '`monitor: false` or `enabled: false` of RateLimitModule';
  throw new RequestProblem(503, `Nothing is watched here, because of ${why}.`);
}

const LONGEST_NAME = 64;
const NAMES = ['name', 'username', 'email', 'id', 'sub'] as const;

/** The author of a change, for the history: the user of the request, as a guard has left it. */
function nameOf({ user: found }: AnyRequest): string {
  const one: unknown =
    typeof found === 'object' && found !== null
      ? NAMES.map((name) => (found as Record<string, unknown>)[name]).find(Boolean)
      : found;
  const isName = typeof one === 'string' || typeof one === 'number';
  return isName && one !== '' ? String(one).slice(0, LONGEST_NAME) : 'dashboard';
}

/**
 * Refuses what another site could have made a browser send. A form or an image of another site can send neither JSON nor
 * a header of its own, and says where it comes from.
 */
function mustBeSameSite({ headers }: IncomingMessage, origins: readonly string[]): void {
  if (!/^application\/json\b/i.test(headers['content-type'] ?? '')) {
    throw new RequestProblem(403, 'Changes are sent as application/json.');
  }
  if (headers['x-weir-request'] !== '1') {
    throw new RequestProblem(403, 'Changes are sent with the header x-weir-request: 1.');
  }
  if (isFromItsPage(headers, origins)) return;
  throw new RequestProblem(
    403,
    headers.origin === undefined
      ? 'Changes come from the page itself: there is no Origin.'
      : 'Changes come from the page itself, not from another site.',
  );
}
