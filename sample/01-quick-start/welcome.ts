/** What to try, and what there is to see. */
export function printWelcome(address: string): void {
  const status = `curl -s -o /dev/null -w '%{http_code} '`;
  console.log(`
Listening on ${address} (Ctrl-C ends it). Try in another terminal:

# Five requests in ten seconds for each address: the sixth is told 429 and when to come back.
for i in 1 2 3 4 5 6 7; do ${status} ${address}/hello; done; curl -si ${address}/hello

# Three in the last ten seconds for each user, ten for those of the tier "vip".
for tier in normal vip; do for i in 1 2 3 4 5; do ${status} -H 'x-user: ada' -H "x-tier: $tier" ${address}/report; done; echo $tier; done

# Five at once, let through one every half second, in the order in which they came.
seq 5 | xargs -P 5 -I{} curl -s -w '\\n' ${address}/orders/{}
`);
}
