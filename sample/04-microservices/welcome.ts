/** What to try, and what there is to see. */
export function printWelcome(url: string): void {
  const address = url.replace('[::1]', 'localhost');
  const status = `curl -s -o /dev/null -w '%{http_code} '`;
  console.log(`
A gateway on ${address}, and a service behind it (Ctrl-C ends both). Try in another terminal:

# Two quotes a second for each tenant, three at once: then 429, which the service has said over TCP.
for i in 1 2 3 4 5; do ${status} ${address}/quotes/acme/lamp; done; curl -si ${address}/quotes/acme/lamp

# The same, but the gateway waits for as long as the service says: all are answered.
seq 6 | xargs -P 6 -I{} curl -s -w '\\n' ${address}/patient-quotes/acme/lamp-{}

# Five visits of a page count in a minute. Events have no answer: the others are dropped, and counted.
for i in 1 2 3 4 5 6 7 8; do ${status} -X POST ${address}/visits/home; done; curl -s ${address}/visits
`);
}
