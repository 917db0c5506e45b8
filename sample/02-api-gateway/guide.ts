import { type Guide } from '../support/serve.js';
import { askAtOnce, seeBurst, type Answers, type Tour } from '../support/tour.js';

export const guide: Guide = { command: 'npm run sample:gateway', welcome, tour };

const DETAIL = '/api/product/detail?id=1';

function welcome(address: string): string {
  // One curl for many requests: a program for each would be slower than the limits are.
  const many = (count: number, headers: string): string =>
    `curl -s -o /dev/null -w '%{http_code}\\n' ${headers} "${address}${DETAIL}&n=[1-${count}]"`;
  const counted = '| sort | uniq -c';
  const merchant = many(
    120,
    `-H "x-user: u$u" -H "x-forwarded-for: 10.0.2.$u" -H 'x-user-tier: vip' -H 'x-merchant: m1'`,
  );
  return `
Listening on ${address} (Ctrl-C ends it). Try in another terminal:

# A user has 10 a second, one of the tier "vip" 50.
${many(60, "-H 'x-user: ada' -H 'x-forwarded-for: 10.0.0.1'")} ${counted}
${many(60, "-H 'x-user: bob' -H 'x-user-tier: vip' -H 'x-forwarded-for: 10.0.1.1'")} ${counted}

# A merchant has 100 a second, whoever calls on its behalf: here five users, each with 50 of its own.
(for u in 1 2 3 4 5; do ${merchant} & done; wait) ${counted}

# An address has 100 a second. Of 60 at once one goes, 20 wait for their turn, the others are refused.
curl -sZ --parallel-immediate --parallel-max 60 -o /dev/null -w '%{http_code}\\n' -H 'x-user-tier: vip' -H 'x-forwarded-for: 10.0.3.1' "${address}${DETAIL}&n=[1-60]" ${counted}
`;
}

async function tour(address: string, tour: Tour): Promise<void> {
  let addresses = 0;
  /** From so many addresses, where the limit on them is not what is looked at. */
  const ask = (
    count: number,
    path: string,
    headersOf: (id: number) => Record<string, string>,
  ): Promise<Answers> =>
    askAtOnce(count, address + path, (id) => {
      const forwarded = `10.1.${addresses >> 8}.${addresses++ & 255}`;
      return { 'x-forwarded-for': forwarded, ...headersOf(id) };
    });

  for (const [tier, rate] of [
    ['normal', 10],
    ['vip', 50],
  ] as const) {
    tour.scene(`A user of the tier ${tier} asks ${rate + 60} times at once`);
    const user = { 'x-user': `user-${tier}`, 'x-user-tier': tier };
    const answers = await ask(rate + 60, DETAIL, () => user);
    seeBurst(tour, `${rate} a second`, answers, { burst: rate, rate });
  }

  for (const [tier, rate] of [
    ['normal', 100],
    ['S', 1000],
  ] as const) {
    tour.scene(`150 users ask on behalf of a merchant of the tier ${tier}`);
    const merchant = { 'x-merchant': `merchant-${tier}`, 'x-merchant-tier': tier };
    const users = (id: number): Record<string, string> => ({
      ...merchant,
      'x-user': `${tier}-${id}`,
    });
    const answers = await ask(150, '/api/product/detail?id=2', users);
    seeBurst(tour, `${rate} a second`, answers, { burst: rate, rate });
  }

  tour.scene('One address asks 60 times at once (nginx: rate=100r/s, burst=20)');
  const one = (id: number): Record<string, string> => ({
    'x-forwarded-for': '192.0.2.1',
    'x-user': `at-once-${id}`,
  });
  const answers = await ask(60, DETAIL, one);
  seeBurst(tour, 'one goes, 20 wait, the others are refused', answers, { burst: 21, rate: 100 });
  tour.see(
    'those who wait go every 10 ms: the last of them after 200 ms',
    `the last answer after ${(answers.seconds * 1000).toFixed(0)} ms`,
    answers.seconds >= 0.19,
  );

  tour.scene('What the path has (nginx: rate=5000r/s, burst=1000, nodelay)');
  const { headers } = await fetch(address + DETAIL, { headers: one(60) });
  const policies = headers.get('ratelimit-policy') ?? '';
  tour.see('one and 1000 more at once', policies, policies.includes('"uri";q=1001;w=1'));

  tour.scene('60 users ask for reviews, without which the shop can do');
  const reviews = await ask(60, '/api/product/reviews?id=1', (id) => ({ 'x-user': `crowd-${id}` }));
  seeBurst(tour, '20 a second for all of them', reviews, { burst: 20, rate: 20 });
}
