import { BadRequestException, Body, Controller, Get, Header, HttpCode, Post } from '@nestjs/common';
import { Callers } from './callers.js';
import { tableOf } from './figures.js';
import { Sale } from './sale.js';

/** What the page shows, and what its buttons do. */
@Controller()
export class SaleController {
  constructor(
    private readonly sale: Sale,
    private readonly callers: Callers,
  ) {}

  @Get('state')
  state(): object {
    return { ...this.sale.state(), history: this.callers.history() };
  }

  @Get('table')
  @Header('content-type', 'text/plain; charset=utf-8')
  table(): string {
    const { isLineOn, figures } = this.sale.state();
    return `${tableOf({ [isLineOn ? 'with the line' : 'without']: figures })}\n`;
  }

  @Post('switches')
  @HttpCode(200)
  turn(@Body() wanted: Record<string, unknown> = {}): object {
    const fault = this.sale.turn(wanted);
    if (fault !== undefined) throw new BadRequestException(fault);
    return this.state();
  }
}
