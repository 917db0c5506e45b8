import { type PeerSocket } from './message-context.js';

/** Tells when a peer hangs up. One listener for each socket, however many of its messages wait. */
export class HangUps {
  private readonly listeners = new WeakMap<PeerSocket, Set<() => void>>();

  listen(socket: PeerSocket, callback: () => void): () => void {
    let callbacks = this.listeners.get(socket);
    if (callbacks === undefined) {
      const all = (callbacks = new Set());
      this.listeners.set(socket, all);
      socket.on('close', () => {
        for (const one of [...all]) one();
      });
    }
    callbacks.add(callback);
    return () => callbacks.delete(callback);
  }
}
