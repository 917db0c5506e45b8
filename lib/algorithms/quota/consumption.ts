import { type Consumption, type MethodUse, type QuotaCall } from './quota-protocol.js';

/** The consumption of one app, ever. */
export interface ConsumptionTotal {
  cost: number;
  count: number;
  readonly methods: Map<string, { cost: number; count: number }>;
}

/** Beyond so many methods of an app only its totals go on: names may come from outside. */
const MOST_METHODS = 1000;

/** Consumption by app and by method, for whoever plans capacity; no decision depends on it. */
export class ConsumptionBook {
  readonly apps = new Map<number, ConsumptionTotal>();

  enter({ apps }: QuotaCall): void {
    for (const { app, consumption } of apps) {
      if (consumption !== undefined) this.add(this.totalOf(app), consumption);
    }
  }

  private add(total: ConsumptionTotal, { cost, count, methods }: Consumption): void {
    total.cost += cost;
    total.count += count;
    for (const use of methods) addMethod(total, use);
  }

  private totalOf(app: number): ConsumptionTotal {
    let total = this.apps.get(app);
    if (total === undefined) {
      total = { cost: 0, count: 0, methods: new Map() };
      this.apps.set(app, total);
    }
    return total;
  }
}

function addMethod({ methods }: ConsumptionTotal, { method, cost, count }: MethodUse): void {
  let known = methods.get(method);
  if (known === undefined) {
    if (methods.size >= MOST_METHODS) return;
    known = { cost: 0, count: 0 };
    methods.set(method, known);
  }
  known.cost += cost;
  known.count += count;
}
