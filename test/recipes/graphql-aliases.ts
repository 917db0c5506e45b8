import { type ExecutionContext } from '@nestjs/common';
import { Args, GqlExecutionContext, Mutation, Resolver } from '@nestjs/graphql';
import { Kind, type GraphQLResolveInfo, type SelectionSetNode } from 'graphql';
import { RateLimit } from 'nestjs-weir';

export function callsOfField(context: ExecutionContext): number {
  const info = GqlExecutionContext.create(context).getInfo<GraphQLResolveInfo>();
  const [calls, followed] = [new Set<string>(), new Set<string>()];
  const count = ({ selections }: SelectionSetNode): void => {
    for (const one of selections) {
      if (one.kind === Kind.INLINE_FRAGMENT) count(one.selectionSet);
      else if (one.kind === Kind.FIELD) {
        if (one.name.value === info.fieldName) calls.add(one.alias?.value ?? one.name.value);
      } else if (!followed.has(one.name.value)) {
        followed.add(one.name.value);
        count(info.fragments[one.name.value]!.selectionSet);
      }
    }
  };
  count(info.operation.selectionSet);
  return calls.size;
}

@Resolver()
export class LoginResolver {
  @Mutation(() => String, { nullable: true })
  @RateLimit({ rate: '5/min', key: { param: 'args.email' }, cost: callsOfField })
  login(@Args('email', { type: () => String }) email: string): string {
    return email;
  }
}
