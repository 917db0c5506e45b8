import { setTimeout as pause } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Protect } from 'nestjs-weir';

export interface Product {
  readonly id: string;
  readonly name: string;
  readonly price: number;
}

const USUAL_MS = 4;
const SLOW_MS = 1000;

/** A database that can be made slow. */
@Injectable()
export class Catalog {
  private takesMs = USUAL_MS;
  private end: NodeJS.Timeout | undefined;

  slowFor(seconds: number, takesMs = SLOW_MS): void {
    this.takesMs = takesMs;
    clearTimeout(this.end);
    this.end = setTimeout(() => (this.takesMs = USUAL_MS), seconds * 1000).unref();
  }

  @Protect('catalog-db')
  async product(id: string): Promise<Product> {
    await pause(this.takesMs);
    return { id, name: `Product ${id}`, price: 10 + (Number(id) % 90) };
  }
}
