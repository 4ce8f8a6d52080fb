import type { ServerEvent } from "../api/types.ts";

// unknownOp reports an event whose op the store does not know: a newer server sends it, or a reducer is incomplete.
export function unknownOp(e: ServerEvent): never {
  throw new Error(`unknown op ${String(e.op)}`);
}

// expectOp fails if the op of an event is none of these.
export function expectOp(e: ServerEvent, ...ops: string[]): void {
  if (!ops.includes(String(e.op))) unknownOp(e);
}
