import { LogLinear } from '../common/histogram.js';
import { DEFINITIONS, type Definition, type Family, type MetricNames } from './families.js';
import { OTHER } from './series-table.js';
import { type Facts } from './sources.js';

/**
 * Makes metrics of facts. A counter that is a difference of others never shows less than it has shown: what
 * reads it would take that for a restart.
 */
export class FamilyReader {
  private readonly highest = new Map<string, number>();

  read(facts: Facts, names: MetricNames): Family[] {
    return DEFINITIONS.map((definition) => this.family(definition, facts, names)).filter(
      ({ samples }) => samples.length > 0,
    );
  }

  private family(definition: Definition, facts: Facts, names: MetricNames): Family {
    const samples = new Map<string, { labels: readonly string[]; value: number | LogLinear }>();
    definition.read(facts, names, (value, ...labels) => {
      const id = labels.join('\n');
      const known = samples.get(id);
      if (known === undefined) samples.set(id, { labels, value });
      else known.value = added(known.value, value, labels.includes(OTHER));
    });
    const { name, otel, unit, kind, help, labels } = definition;
    const all = [...samples.values()];
    if (DIFFERENCES.has(name)) for (const sample of all) this.keepHighest(name, sample);
    return { name, otel, unit, kind, help, labels, samples: all };
  }

  private keepHighest(
    name: string,
    sample: { labels: readonly string[]; value: number | LogLinear },
  ): void {
    const id = `${name}\n${sample.labels.join('\n')}`;
    const highest = Math.max(this.highest.get(id) ?? 0, sample.value as number);
    this.highest.set(id, highest);
    sample.value = highest;
  }
}

/** A later guard turns a request away that an earlier one let pass; a message stands in for a missing answer. */
const DIFFERENCES: ReadonlySet<string> = new Set(['weir_requests_total', 'weir_unanswered_total']);

function added(
  before: number | LogLinear,
  value: number | LogLinear,
  isOther: boolean,
): number | LogLinear {
  if (typeof before === 'number' || typeof value === 'number') {
    return (before as number) + (value as number);
  }
  if (!isOther) return value;
  // The first of several is still the histogram of a resource itself, which must not be written to.
  const sum = new LogLinear();
  sum.merge(before);
  sum.merge(value);
  return sum;
}
