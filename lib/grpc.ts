// What needs @grpc/grpc-js and @nestjs/microservices; the main entry does without them.
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
