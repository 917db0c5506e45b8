// One request an hour for each path. REDIS_URL says where to keep count; without it, here.
import { createServer } from 'node:http';
import process from 'node:process';
import { createRateLimiter } from 'nestjs-weir';

const url = process.env.REDIS_URL;
const limiter = createRateLimiter({
  store: url ? { type: 'redis', url, decisionTimeout: '5s' } : 'memory',
  policies: { hourly: { rate: '1/h' } },
});
await limiter.ready();

const server = createServer(async (request, response) => {
  const decision = await limiter.tryAcquire({ policy: 'hourly', key: request.url });
  response.writeHead(decision.allowed ? 200 : 429, {
    'x-source': decision.source,
    'retry-after': Math.ceil(decision.retryAfterMs / 1000),
  });
  response.end();
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`port ${server.address().port}\n`));
