import { alertText } from '../../lib/observability/alerts/alert-words.js';

describe('the sentence of an alert beside its title', () => {
  const said = (rule: string, series: string, text: string, state = 'firing'): string =>
    alertText({ rule, series, state, text: `${series}: ${text}` });

  it('names whom it is about as people do, and nobody where the title says all', () => {
    expect(said('breakerOpen', 'resource:db', 'the breaker is open')).toBe(
      'db: the breaker is open',
    );
    expect(said('denialRise', 'policy:login', '9 % of the requests are denied')).toBe(
      'policy login: 9 % of the requests are denied',
    );
    expect(said('overload', 'total', 'all apps together ask')).toBe('all apps together ask');
    expect(said('storeAway', 'store', 'Redis does not answer')).toBe('Redis does not answer');
  });

  it('does not repeat by the name of the rule that it is over', () => {
    expect(said('storeAway', 'store', 'storeAway is over', 'resolved')).toBe('');
    expect(said('breakerOpen', 'resource:db', 'breakerOpen is over', 'resolved')).toBe('db');
    const removed = 'degraded.level2 is over (rule removed)';
    expect(said('degraded.level2', 'resource:db', removed, 'resolved')).toBe('db: (rule removed)');
  });

  it('stays as it is where its name was told in another way', () => {
    const text = 'resource:a·b: the breaker is open';
    expect(alertText({ rule: 'breakerOpen', series: 'resource:a\nb', state: 'firing', text })).toBe(
      text,
    );
  });
});
