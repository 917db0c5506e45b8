import { VersioningType, type VersioningOptions } from '@nestjs/common';
import { headerOf, type HttpRequest } from '../shared/requests.js';

/** The version of a route that a request asks for, where its path does not tell. As Nest reads it. */
export function versionOf(
  request: HttpRequest,
  versioning: VersioningOptions | undefined,
): string | undefined {
  switch (versioning?.type) {
    case VersioningType.HEADER:
      return headerOf(request, versioning.header.toLowerCase())?.trim();
    case VersioningType.MEDIA_TYPE:
      return headerOf(request, 'accept')?.split(';')[1]?.split(versioning.key)[1];
    case VersioningType.CUSTOM:
      return [versioning.extractor(request)].flat().join();
    default:
      return undefined;
  }
}
