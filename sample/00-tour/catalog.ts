import { setTimeout as pause } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { Protect } from 'nestjs-weir';

export interface Product {
  readonly id: string;
  readonly name: string;
  readonly price: number;
}

const USUAL_MS = 4;
const SLOW_MS = 900;

/** A database that can be made slow. */
@Injectable()
export class Catalog {
  private isSlow = false;

  slowFor(seconds: number): void {
    this.isSlow = true;
    setTimeout(() => (this.isSlow = false), seconds * 1000).unref();
  }

  @Protect('catalog-db')
  async product(id: string): Promise<Product> {
    await pause(this.isSlow ? SLOW_MS : USUAL_MS);
    return { id, name: `Product ${id}`, price: 10 + (Number(id) % 90) };
  }
}
