// Asks for the state twice a second and shows it. The page comes from another process than the shop, so it is there
// also when the shop has no time for anybody.
const EVERY_MS = 500;
const FATES = ['inTime', 'late', 'refused', 'gaveUp'];
const TIERS = ['S', 'A', 'B', 'C'];
const byId = (id) => document.getElementById(id);
const number = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const percent = (part) => `${number.format(part * 100)} %`;
const ms = (time) => (time === undefined ? '–' : `${number.format(time)} ms`);

/** The last figures with the line and without it, each with the load that they are of. */
const seen = { on: undefined, off: undefined };
/** Figures are of some seconds: those right after a switch are of both. */
let switchedAt = 0;

function element(name, { className, text, ...attributes } = {}, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function showSwitches({ isLineOn, load, profile }) {
  const positions = { line: isLineOn ? 'on' : 'off', load: String(load.wanted), profile };
  for (const [id, position] of Object.entries(positions)) {
    for (const button of byId(id).querySelectorAll('button')) {
      button.setAttribute('aria-pressed', String(button.dataset.value === position));
    }
  }
}

function showChart({ history, capacity }) {
  const sums = history.map((one) => FATES.reduce((sum, fate) => sum + one[fate], 0));
  const most = Math.max(capacity * 1.25, ...sums);
  const [width, height] = [600 / history.length, 200];
  const parts = [];
  history.forEach((one, i) => {
    let y = height;
    for (const fate of FATES) {
      const tall = (one[fate] / most) * height;
      y -= tall;
      if (tall > 0) {
        parts.push(
          `<rect class="${fate}" x="${i * width}" y="${y}" width="${width - 1}" height="${tall}"/>`,
        );
      }
    }
  });
  const level = height * (1 - capacity / most);
  parts.push(`<line class="capacity" x1="0" x2="600" y1="${level}" y2="${level}"/>`);
  byId('plot').innerHTML = parts.join('');
  byId('most').textContent = number.format(most);
  byId('can').style.top = `${(level / height) * 100}%`;
}

function showTiers({ byTier, spanSeconds, shop }) {
  const rows = TIERS.map((tier) => {
    const fates = byTier[tier];
    const all = FATES.reduce((sum, fate) => sum + fates[fate], 0);
    const bar = element('div', { className: 'bar', role: 'img', 'aria-label': tellFates(fates) });
    for (const fate of FATES) {
      if (fates[fate] === 0) continue;
      bar.append(element('i', { className: fate, style: `flex: ${fates[fate]} 0 0` }));
    }
    const words = all === 0 ? 'nobody' : `${number.format(all / spanSeconds)}/s`;
    const limit = number.format(shop?.limits[tier] ?? 0);
    return element(
      'div',
      { className: 'tier', 'data-tier': tier },
      element('b', { text: tier }),
      bar,
      element('span', {
        className: 'part',
        text: all === 0 ? '–' : percent(fates.inTime / all),
      }),
      element('small', { text: `${words}; each merchant has ${limit}/s` }),
    );
  });
  byId('tiers').replaceChildren(...rows);
}

const tellFates = ({ inTime, late, refused, gaveUp }) =>
  `${inTime} in time, ${late} late, ${refused} refused, ${gaveUp} gave up`;

const ROWS = [
  ['answers in time, of what the shop can serve', ({ goodput }) => percent(goodput)],
  ['half of the answers are there after', ({ p50Ms }) => ms(p50Ms)],
  ['99 of 100 after', ({ p99Ms }) => ms(p99Ms)],
  ['tier S in time', ({ inTime }) => percent(inTime.S)],
  ['tier C in time', ({ inTime }) => percent(inTime.C)],
  ['refused', ({ refused }) => percent(refused)],
  ['without an answer', ({ gaveUp }) => percent(gaveUp)],
];

function showNumbers({ isLineOn, figures, load, spanSeconds, shop }) {
  // A shop without the line hears of the switch when the turn of its loop is over.
  if (shop?.isLineOn !== isLineOn) switchedAt = performance.now();
  const isSettled = performance.now() - switchedAt > (spanSeconds + 1.5) * 1000;
  if (isSettled && figures.sent > 0 && load.wanted > 0 && load.now === load.wanted) {
    const one = { figures, load: load.wanted };
    const other = seen[isLineOn ? 'off' : 'on'];
    // Figures of another load would not be a comparison.
    if (other !== undefined && other.load !== one.load) seen[isLineOn ? 'off' : 'on'] = undefined;
    seen[isLineOn ? 'on' : 'off'] = one;
  }
  const rows = ROWS.map(([name, tell]) =>
    element(
      'tr',
      {},
      element('th', { scope: 'row', text: name }),
      ...['on', 'off'].map((line) =>
        element('td', { 'data-line': line, text: seen[line] ? tell(seen[line].figures) : '–' }),
      ),
    ),
  );
  byId('numbers').replaceChildren(...rows);
  const known = seen.on ?? seen.off;
  byId('same').textContent =
    known === undefined
      ? 'Raise the load, and turn the line off and on.'
      : `At ${known.load} times what it can serve.`;
}

function showLoop({ shop, isLineOn }) {
  if (shop === undefined) return;
  const { turnMs, waiting, standing, heardMsAgo, hot } = shop;
  const facts = [
    ['last word of it', `${(heardMsAgo / 1000).toFixed(1)} s ago`],
    ['a turn takes', isLineOn ? `${turnMs.toFixed(1)} ms` : '–'],
    ['in line', isLineOn ? number.format(waiting) : '–'],
    ['state', isLineOn ? (standing ? 'no rest for 200 ms' : 'has time') : 'nobody looks'],
    ['most wanted', hot.map(({ key, perPeriod }) => `${key} (${perPeriod}/s)`).join(', ') || '–'],
  ];
  byId('loop').replaceChildren(
    ...facts.map(([name, value]) =>
      element('div', {}, element('dt', { text: name }), element('dd', { text: value })),
    ),
  );
}

function showWord({ isLineOn, shop }) {
  const isHeard = shop === undefined || shop.isLineOn === isLineOn;
  byId('word').textContent = isHeard
    ? ''
    : `The shop has not heard yet that the line is ${isLineOn ? 'on' : 'off'}: its event loop is busy with one turn.`;
}

function show(state) {
  showSwitches(state);
  showChart(state);
  showTiers(state);
  showNumbers(state);
  showWord(state);
  showLoop(state);
  byId('capacity').textContent = state.capacity;
  byId('in-time').textContent = state.inTimeMs;
  byId('span').textContent = state.spanSeconds;
}

async function turn(switches) {
  switchedAt = performance.now();
  await ask('/switches', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(switches),
  });
}

async function ask(path, options) {
  try {
    const response = await fetch(path, options);
    if (!response.ok) throw new Error((await response.json()).message);
    show(await response.json());
    byId('error').textContent = '';
  } catch (error) {
    byId('error').textContent = `The page does not answer: ${error.message}`;
  }
}

for (const id of ['line', 'load', 'profile']) {
  byId(id).addEventListener('click', ({ target }) => {
    const { value } = target.dataset;
    if (value !== undefined) void turn({ [id]: value });
  });
}

async function follow() {
  for (;;) {
    await ask('/state');
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
}

void follow();
