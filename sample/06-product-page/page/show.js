// What is seen. Texts go in as texts, never as HTML.

const LEVELS = {
  0: 'normal: all four services answered',
  1: 'shared cache: an answer of a moment ago',
  2: 'local cache: the data may be late',
  3: 'simplified: only what matters most',
  4: 'default: words in the place of an answer',
  error: 'no answer of any level',
};
const SHORT = { 0: 'normal', 1: 'shared cache', 2: 'local cache', 3: 'simplified', 4: 'default' };
const UPSTREAMS = ['base', 'reviews', 'sales', 'recommendations'];
const STEPS = [10, 30, 50, 100];
const SHOWN_REVIEWS = 100;

const byId = (id) => document.getElementById(id);

/** Touches the page only where something is another than before. */
function setText(id, text) {
  const element = byId(id);
  if (element.textContent !== text) element.textContent = text;
}

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function fill(id, key, make) {
  const parent = byId(id);
  if (parent.dataset.key === key) return;
  parent.dataset.key = key;
  parent.replaceChildren(...make());
}

export function showAnswer({ level, reason, ageS, body, tookMs }) {
  byId('answer').dataset.level = level;
  setText('level', level === 'error' ? '✕' : level);
  setText('level-name', LEVELS[level]);
  setText('reason', reason ?? '–');
  setText('age', ageS === undefined ? (level === '4' ? '–' : 'new') : `${ageS} s`);
  setText('took', `${Math.round(tookMs)} ms`);
  const isProduct = level !== '4' && level !== 'error';
  byId('product').hidden = !isProduct;
  byId('message').hidden = isProduct;
  if (isProduct) showProduct(body, level, ageS);
  else
    setText('message-text', body.detail ?? body.message ?? body.title ?? 'Something went wrong.');
}

function showProduct(product, level, ageS) {
  const { id, name, price, description = '', sales, reviews, recommendations } = product;
  setText('name', name);
  setText('price', `€ ${price}`);
  setText('description', description);
  setText('sales', sales ? `${sales.today} sold today, ${sales.total} in all` : '');
  const isLate = level === '2';
  byId('notice').hidden = !isLate;
  if (isLate) setText('notice', `This may be out of date: it is ${ageS} s old`);
  fill('reviews', reviews ? id : 'loading', () =>
    reviews
      ? reviews.slice(0, SHOWN_REVIEWS).map(showReview)
      : [element('li', 'Reviews are loading…', { class: 'loading' })],
  );
  const { viewer = product.viewer, names = [] } = recommendations ?? {};
  setText('for-you-title', names.length > 0 ? `For ${viewer}` : '');
  fill('for-you', names.join(), () => names.map((text) => element('li', text)));
}

function showReview({ by, stars, text }) {
  const item = element('li', ` ${text} `);
  item.prepend(element('span', '★'.repeat(stars), { class: 'stars' }));
  item.append(element('span', by, { class: 'small' }));
  return item;
}

export function showStrip(levels) {
  const cells = byId('cells');
  while (cells.children.length < 100) cells.append(document.createElement('i'));
  const first = 100 - levels.length;
  levels.forEach((level, n) => {
    const { dataset } = cells.children[first + n];
    if (dataset.level !== level) dataset.level = level;
  });
  const counts = Object.keys(SHORT).map(
    (level) => `${SHORT[level]} ${levels.filter((one) => one === level).length}`,
  );
  fill('legend', counts.join(), () =>
    counts.map((text, level) => element('li', `${level} ${text}`, { 'data-level': level })),
  );
}

export function showState({ recovery, vitals, deadlineMs, upstreams }) {
  const { phase, percent, stages, probes, observing } = recovery;
  for (const item of byId('states').children) {
    item.classList.toggle('now', item.dataset.state === phase);
  }
  for (const stage of document.querySelectorAll('[data-percent]')) {
    const isNow = phase === 'ramp' && Number(stage.dataset.percent) === percent;
    stage.classList.toggle('now', isNow);
  }
  setText('word', (observing ? 'Only observed. ' : '') + wordsFor(recovery));
  byId('bar').style.width = `${percent}%`;
  const rows = STEPS.map((step) => stages.find((stage) => stage.percent === step));
  fill('stages', JSON.stringify(rows), () =>
    rows.map((stage, n) => {
      const row = document.createElement('tr');
      const { entered = 0, admitted = 0, held = 0 } = stage ?? {};
      row.append(...[`${STEPS[n]} %`, entered, admitted, held].map((text) => element('td', text)));
      return row;
    }),
  );
  const open = upstreams.filter(({ breaker }) => breaker !== 'closed').map(({ name }) => name);
  showCounters({
    'probes passed': `${probes.succeeded} of ${probes.begun}`,
    'came back': recovery.recovered,
    'held before': recovery.held,
    'open breakers': open.length === 0 ? 'none' : open.join(', '),
    '99.9 % answered in': `${Math.round(vitals.answers.p999Ms)} ms`,
    deadline: `${deadlineMs} ms`,
    'event loop late by': `${Math.round(vitals.loopDelay.p999Ms)} ms`,
  });
}

function showCounters(counters) {
  fill('counters', JSON.stringify(counters), () =>
    Object.entries(counters).map(([name, value]) => {
      const group = document.createElement('div');
      group.append(element('dt', name), element('dd', value));
      return group;
    }),
  );
}

function wordsFor({ phase, percent, level, cause }) {
  switch (phase) {
    case 'normal':
      return 'Every request reaches the services.';
    case 'degraded':
      return `No request reaches the services (${cause}); the next probe is due soon.`;
    case 'probing':
      return 'One request at a time tries the services out.';
    case 'ramp':
      return `${percent} of 100 requests reach the services.`;
    case 'forced':
      return `An operator holds all requests${level ? ` at level ${level}` : ''}.`;
    default:
      return 'An operator has switched degradation off.';
  }
}

export function showSwitches({ switches, recovery }, turn) {
  const { phase, level, observing } = recovery;
  const key = JSON.stringify([
    switches,
    phase === 'forced',
    phase === 'disabled',
    level,
    observing,
  ]);
  fill('switches', key, () => [
    ...UPSTREAMS.map((name) => row(name, ['normal', 'slow', 'dead'], switches[name], turn)),
    rowOfAll(turn),
    row('limit', ['large', 'small'], switches.limit, turn),
    ...(switches.redis ? [row('redis', ['on', 'off'], switches.redis, turn)] : []),
    row('operator', OPERATOR, operatorsWord(recovery), turn),
  ]);
}

const OPERATOR = ['force 1', 'force 2', 'force 3', 'force 4', 'disable', 'observe', 'resume'];

function operatorsWord({ phase, level, observing }) {
  if (observing) return 'observe';
  if (phase === 'forced') return `force ${level}`;
  return phase === 'disabled' ? 'disable' : undefined;
}

function row(name, positions, position, turn) {
  const buttons = positions.map((one) => {
    const made = element('button', one, { type: 'button', 'aria-pressed': one === position });
    made.addEventListener('click', () => turn({ [name]: one }));
    return made;
  });
  return rowOf(name, buttons);
}

function rowOfAll(turn) {
  const buttons = ['normal', 'slow', 'dead'].map((mode) => {
    const made = element('button', mode, { type: 'button' });
    const all = Object.fromEntries(UPSTREAMS.map((name) => [name, mode]));
    made.addEventListener('click', () => turn(all));
    return made;
  });
  return rowOf('all four', buttons);
}

function rowOf(name, buttons) {
  const made = element('div', '', { class: 'row', role: 'group', 'aria-label': name });
  const group = element('div', '');
  group.append(...buttons);
  made.append(element('span', name), group);
  return made;
}

export function showError(text) {
  setText('error', text);
}
