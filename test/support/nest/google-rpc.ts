import protobuf from 'protobufjs';

const { root } = protobuf.parse(`
  syntax = "proto3";
  package google.rpc;
  message Any { string type_url = 1; bytes value = 2; }
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
  message Duration { int64 seconds = 1; int32 nanos = 2; }
  message RetryInfo { Duration retry_delay = 1; }
  message QuotaFailure {
    message Violation { string subject = 1; string description = 2; }
    repeated Violation violations = 1;
  }
  message ErrorInfo { string reason = 1; string domain = 2; map<string, string> metadata = 3; }
`);

export interface RpcStatus {
  readonly code: number;
  readonly message: string;
  /** By the last part of their type. */
  readonly details: Readonly<Record<string, unknown>>;
}

/** Reads a google.rpc.Status as any client would. */
export function readStatus(bytes: Uint8Array): RpcStatus {
  const { code, message, details } = decode('Status', bytes) as {
    code: number;
    message: string;
    details: { typeUrl: string; value: Uint8Array }[];
  };
  const read = details.map(({ typeUrl, value }) => {
    const type = typeUrl.replace('type.googleapis.com/google.rpc.', '');
    return [type, decode(type, value)];
  });
  return { code, message, details: Object.fromEntries(read) as Record<string, unknown> };
}

function decode(type: string, bytes: Uint8Array): unknown {
  const message = root.lookupType(`google.rpc.${type}`);
  return message.toObject(message.decode(bytes), { longs: Number, arrays: true });
}
