// The types of reducers.
import type { EventOf, EventType } from "../api/types.ts";
import type { Change, Part, State } from "./state.ts";

// Reducer applies events of one type to the state.
export type Reducer<T extends EventType> = (c: Change, e: EventOf<T>) => void;

// unknownOp reports an event whose op the store does not know: only a newer server sends it. In a switch that has a case for
// each op, the compiler knows that there is no other.
export function unknownOp(e: never): never {
  throw new Error(`unknown op: ${JSON.stringify(e)}`);
}

// replace puts a new value for a part.
export function replace<P extends Part>(c: Change, part: P, value: State[P]): void {
  c.state[part] = value;
  c.touch(part);
}
