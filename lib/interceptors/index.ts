export { AnswerKeys } from './answer-keys.js';
export { Controllers } from './controllers.js';
export { CREDENTIAL_HEADERS, CredentialHeaders } from './credential-headers.js';
export { checkDegradeOptions } from './degrade-check.js';
export { degradeOf, setDegrade } from './degrade-metadata.js';
export {
  degradeMessage,
  DegradeMessage,
  type DegradeContext,
  type DegradeNotice,
  type DegradeOptions,
  type WarmQuestion,
  type WarmQuestions,
} from './degrade-options.js';
export {
  checkDegradeModule,
  DegradeModuleOptions,
  type DegradeModuleInput,
  type DegradeSettings,
} from './degrade-module-options.js';
export { DegradeRoutes, type DegradeRoutesParts } from './degrade-routes.js';
export {
  DegradeTransports,
  type AnswerFacts,
  type Asked,
  type DegradeMark,
  type DegradeTransport,
  type RequestParts,
} from './degrade-transport.js';
export { DegradeInterceptor } from './degrade.interceptor.js';
export { DegradedException, type DegradedBody } from './degraded.exception.js';
export { DegradedFilter } from './degraded.filter.js';
export { Degradation } from './degradation.js';
export { RouteWarming, type WarmedResource } from './route-warming.js';
export { isServerFault } from './failures.js';
export { bindInnermost, isBoundTwice } from './innermost.js';
