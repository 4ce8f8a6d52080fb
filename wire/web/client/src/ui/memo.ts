import { Component, h, type ComponentType, type FunctionComponent } from "preact";

// memo draws a component again only when a property has changed.
export function memo<P extends object>(inner: FunctionComponent<P>): ComponentType<P> {
  return class Memo extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      const a = this.props as Record<string, unknown>;
      const b = next as Record<string, unknown>;
      for (const k in a) if (!(k in b)) return true;
      for (const k in b) if (a[k] !== b[k]) return true;
      return false;
    }
    override render() {
      return h(inner as FunctionComponent, this.props);
    }
  } as unknown as ComponentType<P>;
}
