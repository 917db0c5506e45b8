/** What to try, and what there is to see. */
export function printWelcome(address: string): void {
  const many = (count: number, headers: string): string =>
    `seq ${count} | xargs -P 20 -I{} curl -s -o /dev/null -w '%{http_code}\\n' ${headers} "${address}/api/product/detail?id=1" | sort | uniq -c`;
  console.log(`
Listening on ${address} (Ctrl-C ends it). Try in another terminal:

# A user has 10 a second, one of the tier "vip" 50. Each request comes from an address of its own.
${many(60, "-H 'x-user: ada' -H 'x-forwarded-for: 10.0.0.{}'")}
${many(60, "-H 'x-user: bob' -H 'x-user-tier: vip' -H 'x-forwarded-for: 10.0.1.{}'")}

# A merchant has 100 a second, whoever calls on its behalf; one of the tier "S" has 1000.
${many(200, "-H 'x-user: u{}' -H 'x-merchant: m1' -H 'x-forwarded-for: 10.0.2.{}'")}

# An address has 100 a second and is slowed down before it is refused.
${many(200, "-H 'x-user: u{}' -H 'x-forwarded-for: 10.0.3.1'")}
`);
}
