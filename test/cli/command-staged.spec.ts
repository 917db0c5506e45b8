import { commandStand } from './weir-command.js';

const stand = commandStand();
const { weir, json } = stand;
const LATER = '2100-01-01T00:00:00Z';

beforeEach(async () => {
  await weir('config', 'set', '--new', 'policies.api.rate', '5', '--by', 'ann');
});

describe('updates that wait', () => {
  const stage = (path: string, value: string, ...more: string[]) =>
    weir('config', 'set', path, value, '--by', 'ann', '--at', LATER, ...more);

  it('are told with what they will change, and shown wherever the configuration is', async () => {
    const { code, out } = await stage('policies.api.rate', '6');
    expect([code, out]).toEqual([
      0,
      'revision 2 takes effect at 2100-01-01T00:00:00Z; weir config cancel 2 takes it back until then\n' +
        '   path               before  after\n~  policies.api.rate  5       6\n',
    ]);
    const { out: got } = await weir('config', 'get', 'policies.api');
    expect(got).toContain('# update 2 takes effect at 2100-01-01T00:00:00Z\nrate: 5\n');
    expect((await weir('status')).out).toContain(`update 2 by ann takes effect at ${LATER}\n`);
    expect((await weir('config', 'history', '--count', '1')).out).toMatch(
      / 2 {2}stage {2}ann .* update 2 for 2100-01-01T00:00:00Z\n$/,
    );
  });

  it('keep nobody from other changes, and are listed, each over those before it', async () => {
    await stage('policies.api.rate', '6');
    expect((await weir('config', 'set', 'policies.api.rate', '7')).out).toContain('revision 3\n');
    await stage('policies.api.burst', '20', '--at', '2099-01-01T00:00:00Z');
    expect((await weir('config', 'staged')).out).toBe(
      'id  takes effect          by   changes\n' +
        '4   2099-01-01T00:00:00Z  ann  policies.api.burst\n' +
        '2   2100-01-01T00:00:00Z  ann  policies.api.rate\n',
    );
    expect(await json('config', 'staged')).toMatchObject([
      { id: 4, patch: { policies: { api: { burst: 20 } } } },
      { id: 2, diff: { changed: [{ path: 'policies.api.rate', before: 7, after: 6 }] } },
    ]);
  });

  it('can be cancelled by their id', async () => {
    await stage('policies.api.rate', '6');
    expect((await weir('config', 'cancel', '2', '--by', 'ben')).out).toBe(
      'revision 3: update 2 for 2100-01-01T00:00:00Z is cancelled\n',
    );
    expect((await weir('config', 'staged')).out).toBe('no update waits for its time\n');
    expect(await weir('config', 'cancel', '2')).toEqual({
      ...{ code: 1, out: '' },
      err: 'no update 2 waits; none waits\n',
    });
    const back = await weir('config', 'rollback', '2');
    expect(back.out).toContain('update 2 for 2100-01-01T00:00:00Z waits again\n');
    const away = await weir('config', 'rollback', '1');
    expect(away.out).toContain('update 2 for 2100-01-01T00:00:00Z is cancelled\n');
  });

  it('are no more than 16', async () => {
    for (let i = 0; i < 16; i++) await stage('policies.api.rate', `${i + 10}`);
    const { code, err } = await stage('policies.api.rate', '6');
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(/^16 updates wait already; cancel one of 2, 3,/),
    ]);
  });

  it('are told to fit no more, by whoever makes it so, and in the list', async () => {
    await weir('config', 'set', 'profiles.promo.policies.api.rate', '50');
    await stage('profile', 'promo');
    const { code, err } = await weir('config', 'set', 'profiles', 'null');
    expect([code, err]).toEqual([
      0,
      expect.stringMatching(/^update 3 by ann for .* does not fit: /),
    ]);
    expect((await weir('config', 'staged')).out).toMatch(/ann {2}does not fit: .*profile/);
  });

  it.each([
    ['2020-01-01T00:00:00Z', 1, "effectiveAt: expected a time to come: the store's clock says"],
    ['tomorrow', 2, '--at must be a time such as'],
  ])('are not for %s', async (time, exit, message) => {
    const { code, err } = await weir('config', 'set', 'policies.api.rate', '6', '--at', time);
    expect([code, err]).toEqual([exit, expect.stringContaining(message)]);
    expect(await json('config', 'get')).toMatchObject({ revision: 1 });
  });
});

describe('a policy that is not there yet', () => {
  it.each([
    ['policies.apo.rate', "there is no policy 'apo'; did you mean 'api'?"],
    ['policies.something.rate', "there is no policy 'something'; there are api"],
    ['profiles.promo.policies.apo.rate', "there is no policy 'apo'; did you mean 'api'?"],
  ])('has to be meant: %s', async (path, message) => {
    const refused = await weir('config', 'set', path, '9');
    const rest = 'nothing was written; add --new if it is to be a new one';
    expect(refused).toEqual({ code: 1, out: '', err: `${message}\n${rest}\n` });
    expect(await json('config', 'get')).toMatchObject({ revision: 1 });
    expect((await weir('config', 'set', path, '9', '--new')).code).toBe(0);
    expect((await weir('config', 'set', path, '10')).code).toBe(0);
  });

  it('is told where it was looked for', async () => {
    const { code, err } = await weir(
      ...['config', 'set', 'policies.api.rate', '9', '--prefix', 'shop'],
    );
    expect(code).toBe(1);
    expect(err).toContain("there is no policy 'api'; there are none under --prefix shop");
  });

  it('may be there by then', async () => {
    const at = ['--at', LATER];
    expect((await weir('config', 'set', 'policies.more.rate', '9', '--new', ...at)).code).toBe(0);
    expect((await weir('config', 'set', 'policies.more.rate', '10', ...at)).code).toBe(0);
    expect((await weir('config', 'set', 'policies.more.rate', '10')).code).toBe(1);
    expect((await weir('config', 'set', 'policies.more', 'null')).code).toBe(0);
  });
});

describe('a field that the profile in force also sets', () => {
  beforeEach(async () => {
    await weir('config', 'set', 'policies.api.tiers.S', '1000');
    await weir('config', 'set', 'profiles.promo.policies.api.tiers.S', '{"rate":3000}');
    await weir('config', 'set', 'profile', 'promo');
  });

  it('is not written, and the field of the profile is named', async () => {
    expect(await weir('config', 'set', 'policies.api.tiers.S', '2000')).toEqual({
      ...{ code: 1, out: '' },
      err:
        "policies.api.tiers.S: the profile 'promo' is in force and sets it too, so that nothing would change\n" +
        'nothing was written; set profiles.promo.policies.api.tiers.S, or add --base for what holds without ' +
        'the profile\n',
    });
    expect(await json('config', 'get')).toMatchObject({ revision: 4 });
    const { out } = await weir('config', 'set', 'profiles.promo.policies.api.tiers.S', '2000');
    expect(out).toContain('~  policies.api.tiers.S ');
  });

  it('is written if that is meant', async () => {
    expect((await weir('config', 'set', 'policies.api.tiers.S', '2000', '--base')).code).toBe(0);
    await weir('config', 'set', 'profile', 'normal');
    expect((await weir('config', 'get', 'policies.api.tiers')).out).toContain('S: 2000\n');
  });

  it.each([
    ['what the profile leaves alone', 'policies.api.tiers.A', '9', 0],
    ['the profile itself', 'profile', 'normal', 0],
    ['all of the policy', 'policies.api', 'null', 1],
    ['a part of it by object', 'policies', '{"api":{"burst":9,"tiers":{"S":5}}}', 1],
  ])('is not %s', async (_, path, value, exit) => {
    expect((await weir('config', 'set', path, value)).code).toBe(exit);
  });

  it('is looked for in the profile that is in force by then', async () => {
    await weir('config', 'set', 'profile', 'normal', '--at', LATER);
    const set = ['config', 'set', 'policies.api.tiers.S', '2000'];
    expect((await weir(...set, '--at', '2099-01-01')).code).toBe(1);
    expect((await weir(...set, '--at', '2101-01-01')).code).toBe(0);
  });
});
