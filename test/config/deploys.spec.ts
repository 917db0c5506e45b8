import { type OwnLayer } from '../../lib/config/rate-limit-config.js';
import { Fleet, limitOf, ONE_POLL_MS, type FleetNode } from './fleet.js';

describe('processes with different layers of their own', () => {
  let fleet: Fleet;

  beforeEach(() => {
    fleet = new Fleet();
  });

  afterEach(() => fleet.close());

  const warnings = (): string[] => fleet.nodes.flatMap((node) => node.warnings);
  const rates = (): unknown[] => [...new Set(fleet.nodes.map(({ rate }) => rate))];
  const revisions = (): number[] => [...new Set(fleet.nodes.map(({ revision }) => revision))];

  async function start(names: string, code: OwnLayer): Promise<FleetNode[]> {
    const started: FleetNode[] = [];
    for (const name of names) started.push(await fleet.start(name, { code }));
    await fleet.settle();
    return started;
  }

  async function nothingMoves(): Promise<void> {
    const before = revisions();
    for (let i = 0; i < 5; i++) await fleet.poll();
    expect(revisions()).toEqual(before);
  }

  it('settle on the last to start where there are no versions, with one warning', async () => {
    const old = { document: limitOf(100) };
    const young = { document: limitOf(200) };
    await start('abc', old);
    await start('de', young);
    expect([rates(), revisions()]).toEqual([['200/s'], [2]]);
    expect(warnings()).toEqual([
      'the code layer of this process replaces another one of the fleet, as the last to start; set configVersion ' +
        'to decide which one holds, or, if that is another service, give this one another store.prefix',
    ]);
    await nothingMoves();
  });

  it('settle on the highest version, whoever starts last', async () => {
    await start('abc', { document: limitOf(100), version: 1 });
    await start('de', { document: limitOf(200), version: 2 });
    expect(warnings()).toEqual([]);
    const [late] = await start('f', { document: limitOf(100), version: 1 });
    expect([rates(), revisions()]).toEqual([['200/s'], [2]]);
    expect(warnings()).toEqual([expect.stringContaining('is version 1, that of the fleet is')]);
    expect(late!.warnings).toHaveLength(1);
    await nothingMoves();
    expect(warnings()).toHaveLength(1);
  });

  it('keep what is stored if two say different things under one version, and warn', async () => {
    await start('abc', { document: limitOf(100), version: 7 });
    await start('d', { document: limitOf(200), version: 7 });
    expect([rates(), revisions()]).toEqual([['100/s'], [1]]);
    expect(warnings()).toEqual([expect.stringContaining('both are version 7')]);
  });

  it('follow a version if they have none', async () => {
    await start('a', { document: limitOf(100), version: 1 });
    await start('b', { document: limitOf(200) });
    expect([rates(), revisions()]).toEqual([['100/s'], [1]]);
    expect(warnings()).toEqual([expect.stringContaining('has no version')]);
  });

  it('replace what has no version if they have one', async () => {
    await start('a', { document: limitOf(100) });
    await start('b', { document: limitOf(200), version: 1 });
    expect([rates(), revisions()]).toEqual([['200/s'], [2]]);
    expect(warnings()).toEqual([]);
  });

  it('note a higher version of the same', async () => {
    await start('a', { document: limitOf(100), version: 1 });
    await start('b', { document: limitOf(100), version: 3 });
    await start('c', { document: limitOf(200), version: 2 });
    expect(rates()).toEqual(['100/s']);
    expect((await fleet.store.read()).current).toMatchObject({ code: { default: { version: 3 } } });
  });

  it('starting all at once settle as well', async () => {
    const nodes = [1, 2, 3, 4, 5].map((version) =>
      fleet.node(`n${version}`, { code: { document: limitOf(version), version } }),
    );
    await Promise.all(nodes.map(({ config }) => config.start()));
    await fleet.settle();
    expect(rates()).toEqual(['5/s']);
    await nothingMoves();
  });

  it('keep updates over a deploy', async () => {
    const [a] = await start('a', { document: limitOf(100) });
    await a!.config.update({ policies: { api: { burst: 70 } } });
    await start('b', { document: limitOf(200) });
    expect(a!.config.current().document.policies!.api).toEqual({ rate: '200/s', burst: 70 });
  });

  it('do not publish what does not go together with the updates of the fleet', async () => {
    const document = {
      cluster: { capacity: 1000 },
      apps: { shop: { guaranteed: 100, burst: 200 } },
    };
    const [a] = await start('a', { document });
    await a!.config.update({ apps: { shop: { guaranteed: 800, burst: 900 } } });
    const [b] = await start('b', { document: { ...document, cluster: { capacity: 500 } } });
    expect([b!.revision, b!.config.current().document.cluster]).toEqual([2, { capacity: 1000 }]);
    expect(b!.errors).toEqual([expect.stringContaining('was not published')]);
    await nothingMoves();
    expect(b!.errors).toHaveLength(1);
  });

  it('do not start at all with code that can never work', async () => {
    const node = fleet.node('a', { code: { document: { policies: { api: { rate: '0/s' } } } } });
    await expect(node.config.start()).rejects.toThrow('policies.api.rate');
    expect((await fleet.store.read()).revision).toBe(0);
  });

  describe('and a file', () => {
    it('lay it over the code, and updates over it', async () => {
      const code = { document: { policies: { api: { rate: '1/s', burst: 5 } } } };
      const file = { document: limitOf(50) };
      const a = await fleet.start('a', { code, file });
      expect(a.config.current().document.policies!.api).toEqual({ rate: '50/s', burst: 5 });
      await a.config.update({ policies: { api: { burst: 60 } } });
      expect(a.config.current().document.policies!.api).toEqual({ rate: '50/s', burst: 60 });
      // A process without a file has no opinion about it; one that says there is none has.
      const b = await fleet.start('b', { code });
      expect(b.rate).toBe('50/s');
      await fleet.start('c', { code, file: { document: null } });
      await fleet.settle();
      expect(b.rate).toBe('1/s');
    });

    it('publish it again when it changes, and only the process whose file it is', async () => {
      const [a, b] = [
        await fleet.start('a', { file: { document: limitOf(10) } }),
        await fleet.start('b', { file: { document: limitOf(10) } }),
      ];
      a.config.replaceFile({ document: limitOf(20) });
      await fleet.settle();
      expect([a.rate, b.rate, b.revision]).toEqual(['20/s', '20/s', 2]);
      b.config.replaceFile({ document: limitOf(20) });
      await nothingMoves();
      expect(rates()).toEqual(['20/s']);
      expect(warnings()).toEqual([]);
    });

    it('may edit it as often as they like, but are told if it replaces that of others', async () => {
      const a = await fleet.start('a', { file: { document: limitOf(10) } });
      a.config.replaceFile({ document: limitOf(20) });
      a.config.replaceFile({ document: limitOf(30) });
      await fleet.settle();
      a.config.replaceFile({ document: { policies: { api: { burst: 1 } } } });
      await fleet.settle();
      expect(a.errors).toEqual([
        expect.stringContaining('the file layer of this process was not published: '),
      ]);
      expect(a.refusals).toMatchObject([{ revision: 0, kind: 'invalid' }]);
      a.config.replaceFile({ document: limitOf(40) });
      await fleet.settle();
      expect([a.rate, warnings()]).toEqual(['40/s', []]);
      await fleet.start('b', { file: { document: limitOf(50) } });
      a.config.replaceFile({ document: limitOf(60) });
      await fleet.settle();
      expect(rates()).toEqual(['60/s']);
      expect(warnings()).toEqual(
        Array(2).fill(expect.stringContaining('replaces another one of the fleet')),
      );
    });

    it('let the file with the higher version hold', async () => {
      const a = await fleet.start('a', { file: { document: limitOf(10), version: 5 } });
      a.config.replaceFile({ document: limitOf(20), version: 4 });
      await fleet.settle();
      expect(a.rate).toBe('10/s');
      expect(a.warnings).toEqual([
        expect.stringContaining('raise the version in the file above 5'),
      ]);
      a.config.replaceFile({ document: limitOf(30), version: 6 });
      await fleet.settle();
      expect(a.rate).toBe('30/s');
    });

    it('use it while the store is away, and publish it later', async () => {
      const a = fleet.node('a', { file: { document: limitOf(10) } });
      a.wire.isDown = true;
      await a.config.start();
      a.config.replaceFile({ document: limitOf(20) });
      expect([a.revision, a.rate]).toEqual([0, '20/s']);
      a.config.replaceFile({ document: { policies: { api: { burst: 1 } } } });
      expect([a.revision, a.rate]).toEqual([0, '20/s']);
      expect(a.refusals).toMatchObject([{ revision: 0, kind: 'invalid' }]);
      a.config.replaceFile({ document: limitOf(30) });
      a.wire.isDown = false;
      await fleet.clock.advanceAsync(ONE_POLL_MS);
      await fleet.settle();
      expect([a.revision, a.rate]).toEqual([1, '30/s']);
    });
  });

  describe('of several services', () => {
    const policy = (name: string, rate: number) => ({ policies: { [name]: { rate } } });

    it('stand side by side, and each replaces only its own', async () => {
      await fleet.start('a', { service: 'shop', code: { document: policy('browse', 1) } });
      await fleet.start('b', { service: 'search', code: { document: policy('find', 2) } });
      await fleet.start('c', { service: 'shop', code: { document: policy('buy', 3) } });
      await fleet.settle();
      const documents = fleet.nodes.map(({ config }) => config.current().document);
      const expected = { policies: { find: { rate: 2 }, buy: { rate: 3 } } };
      expect(documents).toEqual([expected, expected, expected]);
      expect(warnings()).toEqual([expect.stringContaining('replaces another one of the fleet')]);
      await nothingMoves();
    });

    it('are told of a policy that they do not agree on', async () => {
      await fleet.start('a', { service: 'shop', code: { document: policy('api', 1) } });
      await fleet.start('b', { service: 'search', code: { document: policy('api', 2) } });
      await fleet.settle();
      expect(fleet.nodes[1]!.config.current().document).toEqual(policy('api', 1));
      expect(warnings()).toEqual([
        expect.stringMatching(
          /search and shop .* 'api': that of shop holds; give one of the policies another name, or this service another store\.prefix$/,
        ),
      ]);
    });
  });
});
