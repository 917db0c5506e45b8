// The part that needs @grpc/grpc-js and @nestjs/microservices; the main entry does without them.
import { optionalPackage } from './stores/optional-package.js';

export { type LimitedCall } from './transports/grpc/call-gate.js';
export { limitCalls, LimitCallsOptions, type CallCharge } from './transports/grpc/limit-calls.js';
export {
  limitStream,
  LimitedStreamException,
  RefusedStreamException,
  LimitStreamOptions,
  type MessageCharge,
  type PausableCall,
} from './transports/grpc/limit-stream.js';

optionalPackage('@grpc/grpc-js', 'nestjs-weir/grpc');
