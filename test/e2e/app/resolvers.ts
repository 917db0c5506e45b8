import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { GraphQLModule, Query, Resolver } from '@nestjs/graphql';
import { moduleOf } from './modules.js';
import { type Shape } from './routes.js';

const RESOLVER: Shape = {
  host: () => Resolver(),
  route: (name) => Query(() => String, { name, nullable: true }),
  reply: (_parent, text) => text,
};

export function startGraphql(): Promise<INestApplication> {
  const graphql = GraphQLModule.forRoot<ApolloDriverConfig>({
    driver: ApolloDriver,
    autoSchemaFile: true,
    includeStacktraceInErrorResponses: false,
  });
  return NestFactory.create(moduleOf([RESOLVER], 'providers', [graphql]), { logger: ['error'] });
}
