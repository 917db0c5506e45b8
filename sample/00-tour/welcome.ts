/** What `GET /` of a node says; the addresses are those of all nodes, api-1 first. */
export function welcome([first = '', ...others]: readonly string[]): string {
  const lines = TRIALS.map(
    ([what, ...lines]) => `<p>${what}\n<pre>${lines.join('\n').replaceAll('SHOP', first)}</pre>`,
  );
  const pages = [first, ...others].map(
    (address, index) => `<a href="${address}/weir/">api-${index + 1}</a>`,
  );
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>The shop of the tour</title>
<style>
  :root { color-scheme: light dark; }
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
  pre { font-size: .85rem; background: #8882; border-radius: 6px; padding: .6rem .8rem; overflow-x: auto; }
</style>
<h1>A small shop behind nestjs-weir</h1>
<p>Three nodes take orders (<code>/checkout</code>), searches (<code>/search</code>) and reports (<code>/reports</code>). They share
one Redis, and with it 500 requests a second; about 280 come all the time, which the tour makes itself.
<p><b><a href="weir/">The dashboard</a></b> shows what becomes of them. Press a button there: each says what to look at.
<h2>What to try</h2>
<p>In another terminal, while you look at the dashboard. A caller is the header <code>x-client</code>.
${lines.join('\n')}
<h2>Each node has a dashboard</h2>
<p>${pages.join(', ')}: all show the whole fleet. Press <b>Store away</b>, and each shows what it decides by itself.
`;
}

const STATUSES = `curl -s -o /dev/null -w '%{http_code}\\n'`;

/** What it shows, and the lines. */
const TRIALS = [
  [
    'Search: the headers say that this caller has 50 a second, and how many are left.',
    `curl -i 'SHOP/search?q=lamp'`,
  ],
  [
    'Checkout is served first: press <b>Overload</b>, and compare with reports. 503 says that all together ask for too much.',
    `${STATUSES} 'SHOP/checkout?n=[1-40]' | sort | uniq -c`,
    `${STATUSES} 'SHOP/reports?n=[1-40]' | sort | uniq -c`,
  ],
  [
    'Login: five a minute for each caller, on all nodes together. Then 429, which says when to come back.',
    `${STATUSES} -X POST -H 'x-client: you' 'SHOP/login?n=[1-7]'`,
    `curl -i -X POST -H 'x-client: you' SHOP/login`,
  ],
  [
    'Products: press <b>Slow database</b>, and they are answered fast all the same, from caches.',
    `${STATUSES.replace('code}', 'code} %{time_total}')} 'SHOP/products/[1-9]'`,
  ],
] as const;
