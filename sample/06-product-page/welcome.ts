/** What to try, and what there is to see. */
export function printWelcome(address: string, redisUrl: string | undefined): void {
  const turn = (switches: string): string =>
    `curl -s -o /dev/null -H 'content-type: application/json' -d '${switches}' ${address}/switches`;
  const look = (id: number, user = 'ada'): string =>
    `curl -s -o /dev/null -D - -H 'x-user: ${user}' ${address}/products/${id}`;
  const store = redisUrl
    ? `on Redis, ${redisUrl}`
    : 'in memory; REDIS_URL=redis://… puts it on Redis';
  console.log(`
Open ${address} in a browser (Ctrl-C ends it). Shared state is ${store}.
Everything is on that page; in a terminal the same is:

# Level 0: all four services answer.
${look(1)}

# Level 1: over the limit, so the answer of a moment ago, from the store.
${turn('{"limit":"small"}')}; for i in 1 2 3 4 5; do ${look(1)} | grep -i degraded; done; ${turn('{"limit":"large"}')}

# Level 2: from the cache of this process, as when Redis is away.
${turn('{"operator":"force 2"}')}; ${look(1)}; ${turn('{"operator":"resume"}')}

# Level 3: the reviews are dead, and nobody has asked for this product before.
${turn('{"reviews":"dead"}')}; ${look(2)}

# Level 4: so is the base information.
${turn('{"base":"dead"}')}; ${look(3)}

# And the way back, by probes and 10, 30, 50, 100 %, while somebody asks.
${turn('{"base":"normal","reviews":"normal"}')}; curl -s ${address}/state
`);
}
