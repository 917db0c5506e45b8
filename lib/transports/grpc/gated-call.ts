import { Metadata, type InterceptingListener, type NextCall, type status } from '@grpc/grpc-js';
import { failed, type CallGate, type Verdict } from './call-gate.js';

/** A call as grpc-js hands it from one interceptor to the next. */
type Call = ReturnType<NextCall>;
type Context = Parameters<Call['sendMessageWithContext']>[0];

/**
 * A call that begins when its gate lets it. Until then everything asked of it is kept: a call that
 * exists runs against its deadline, and one that is never started would not say so.
 */
export class GatedCall implements Call {
  private inner: Call | undefined;
  private listener: Partial<InterceptingListener> | undefined;
  private readonly waiting: ((call: Call) => void)[] = [];
  private readonly unsent: Context[] = [];
  private isOver = false;

  constructor(
    private readonly makeCall: () => Call,
    private readonly ask: (metadata: Metadata) => Verdict | Promise<Verdict>,
    private readonly gate: CallGate,
  ) {}

  start(metadata: Metadata, listener?: Partial<InterceptingListener>): void {
    this.listener = listener;
    const verdict = this.ask(metadata);
    if (verdict instanceof Promise) void verdict.then((said) => this.follow(said, metadata));
    else this.follow(verdict, metadata);
  }

  sendMessageWithContext(context: Context, message: unknown): void {
    if (this.inner === undefined) this.unsent.push(context);
    this.whenMade((call) => call.sendMessageWithContext(context, message));
  }

  sendMessage(message: unknown): void {
    this.sendMessageWithContext({}, message);
  }

  startRead(): void {
    this.whenMade((call) => call.startRead());
  }

  halfClose(): void {
    this.whenMade((call) => call.halfClose());
  }

  cancelWithStatus(code: status, details: string): void {
    if (this.inner !== undefined) this.inner.cancelWithStatus(code, details);
    else this.end({ code, details, metadata: new Metadata() });
  }

  getPeer(): string {
    return this.inner?.getPeer() ?? 'unknown';
  }

  getAuthContext(): ReturnType<Call['getAuthContext']> {
    return this.inner?.getAuthContext() ?? null;
  }

  private whenMade(what: (call: Call) => void): void {
    if (this.inner !== undefined) what(this.inner);
    else this.waiting.push(what);
  }

  private follow(verdict: Verdict, metadata: Metadata): void {
    if (this.isOver) {
      if (verdict === undefined) this.gate.giveBack();
    } else if (verdict === undefined) {
      this.go(metadata);
    } else {
      this.end(verdict);
    }
  }

  private go(metadata: Metadata): void {
    const { listener } = this;
    let inner: Call;
    try {
      inner = this.inner = this.makeCall();
    } catch (error) {
      // A client that was closed meanwhile; there is nobody else whom to tell.
      return this.end(failed(error));
    }
    inner.start(metadata, {
      onReceiveMetadata: (received) => listener?.onReceiveMetadata?.(received),
      onReceiveMessage: (message: unknown) => listener?.onReceiveMessage?.(message),
      onReceiveStatus: (status) => {
        this.gate.ended(status);
        listener?.onReceiveStatus?.(status);
      },
    });
    for (const what of this.waiting.splice(0)) what(inner);
  }

  /** Later, as a real answer would be: nobody listens yet while a call is being started. */
  private end(status: NonNullable<Verdict>): void {
    if (this.isOver) return;
    this.isOver = true;
    this.waiting.length = 0;
    process.nextTick(() => {
      for (const { callback } of this.unsent.splice(0)) callback?.();
      this.listener?.onReceiveStatus?.(status);
    });
  }
}
