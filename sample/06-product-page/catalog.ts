// What the four services know. Everything follows from the number of a product, so that any number is one.

export interface BaseInfo {
  readonly id: string;
  readonly name: string;
  readonly price: number;
  readonly image: string;
  readonly description: string;
}

export interface Review {
  readonly by: string;
  readonly stars: number;
  readonly text: string;
}

export interface Sales {
  readonly today: number;
  readonly total: number;
}

export interface Recommendations {
  /** They are somebody's, and nobody else may see them. */
  readonly viewer: string;
  readonly names: readonly string[];
}

const ADJECTIVES = ['Quiet', 'Amber', 'Folding', 'Northern', 'Everyday', 'Linen'];
const NOUNS = ['Lamp', 'Kettle', 'Chair', 'Radio', 'Blanket', 'Notebook'];
const WORDS = [
  'Just what I was looking for.',
  'Came in two days, well packed.',
  'Smaller than I had thought, but lovely.',
  'My second one. The first is with my sister.',
  'The colour is even better than in the picture.',
];
const LATEST_REVIEWS = 100;

export function baseOf(id: string): BaseInfo {
  const number = Number(id);
  return {
    id,
    name: nameOf(number),
    price: 19 + ((number * 37) % 180),
    image: '/product.svg',
    description: 'Made to be used every day and to be repaired when it has been.',
  };
}

export function reviewsOf(id: string): Review[] {
  return Array.from({ length: LATEST_REVIEWS }, (_, n) => ({
    by: `reader-${(Number(id) + n * 7) % 500}`,
    stars: 3 + ((Number(id) + n) % 3),
    text: WORDS[(Number(id) + n) % WORDS.length]!,
  }));
}

export function salesOf(id: string): Sales {
  const today = (Number(id) * 13) % 90;
  return { today, total: today + 1000 + ((Number(id) * 101) % 9000) };
}

export function recommendationsFor(id: string, viewer: string): Recommendations {
  const taste = Array.from(viewer).reduce((sum, letter) => sum + letter.charCodeAt(0), 0);
  return { viewer, names: [1, 2, 3].map((n) => nameOf(Number(id) + taste + n * 5)) };
}

function nameOf(number: number): string {
  const [adjective, noun] = [number % 6, Math.floor(number / 6) % 6];
  return `${ADJECTIVES[adjective]} ${NOUNS[noun]}`;
}
