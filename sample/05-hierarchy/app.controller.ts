import { Controller, Get } from '@nestjs/common';
import { ClusterQuota, RateLimit, type QuotaStatus } from 'nestjs-weir';

@Controller()
export class AppController {
  constructor(private readonly quota: ClusterQuota) {}

  @Get('work')
  @RateLimit()
  work(): object {
    return { app: process.env.APP };
  }

  @Get('status')
  status(): QuotaStatus | Promise<QuotaStatus> {
    return this.quota.status();
  }
}
