// A list of rows of unknown heights, of which only those near the window exist in the document. It keeps its place:
// whatever changes above, below or in the rows, the row at the top edge stays where it is; at the end it stays at the
// end. The heights of rows that were never drawn are estimated.
import { Component, createRef, type ComponentChildren, type VNode } from "preact";

export interface RowSource<R> {
  key(row: R): string;
  estimate(row: R): number; // pixels
  draw(row: R): VNode;
}

export interface Placement {
  key: string;
  align: "start" | "center" | "end" | "nearest";
  delta?: number; // pixels from the top of the row to the top edge, instead of align
}

interface Props<R> {
  handle?: { current: VirtualList<R> | null }; // set to the list: this version of Preact gives classes their ref as a property
  rows: readonly R[];
  source: RowSource<R>;
  start: Placement | "end"; // where the list begins
  label: string;
  head?: ComponentChildren; // above the rows
  foot?: ComponentChildren; // below the rows
  onView?(first: number, last: number, atEnd: boolean): void; // the rows in the window
  onNearStart?(): void;
  onNearEnd?(): void;
}

interface Layout {
  tops: Float64Array; // of each row, and of the end
  first: number; // drawn rows
  last: number; // exclusive
}

const overscan = 900; // pixels drawn beyond each edge
const near = 1500; // pixels from an edge at which more rows are asked for
const endSlack = 8; // pixels from the end that count as the end

export class VirtualList<R> extends Component<Props<R>, { tick: number }> {
  private scroller = createRef<HTMLDivElement>();
  private headBox = createRef<HTMLDivElement>();
  private heights = new Map<string, number>();
  private elements = new Map<string, HTMLElement>();
  private anchor: { key: string; index: number; delta: number } | null = null;
  private atEnd = false;
  private headHeight = 0;
  private viewHeight = 800;
  private layout: Layout = { tops: new Float64Array(1), first: 0, last: 0 };
  private sizes = new ResizeObserver(() => this.measureSoon());
  private lastTop = -1;
  private frame = 0;

  override state = { tick: 0 };

  constructor(props: Props<R>) {
    super(props);
    if (props.handle) props.handle.current = this; // layout effects of the owner run before componentDidMount
    this.begin(props.start);
  }

  private begin(start: Props<R>["start"]): void {
    this.atEnd = start === "end";
    if (start !== "end") this.anchor = { key: start.key, index: 0, delta: this.alignedDelta(start) };
  }

  private alignedDelta(p: Placement): number {
    if (p.delta !== undefined) return p.delta;
    const height = this.heights.get(p.key) ?? 60;
    if (p.align === "center") return -(this.viewHeight - height) / 3;
    if (p.align === "end") return -(this.viewHeight - height);
    return -48;
  }

  // scrollTo moves to a row. With "nearest" it moves only if the row is not in the window.
  scrollTo(p: Placement): void {
    const i = this.indexOf(p.key);
    const el = this.scroller.current;
    if (i < 0 || !el) return;
    const top = this.layout.tops[i]! + this.headHeight;
    const bottom = this.layout.tops[i + 1]! + this.headHeight;
    let delta = this.alignedDelta(p);
    if (p.align === "nearest") {
      const margin = 56;
      if (top - margin < el.scrollTop) delta = -margin;
      else if (bottom + margin > el.scrollTop + this.viewHeight) delta = -(this.viewHeight - (bottom - top) - margin);
      else return;
    }
    this.atEnd = false;
    this.anchor = { key: p.key, index: i, delta };
    this.redraw();
  }

  scrollToEnd(): void {
    this.atEnd = true;
    this.redraw();
  }

  // deltaOf returns the pixels from the top of a row to the top edge, with which Placement finds the same place again.
  deltaOf(key: string): number {
    const i = this.indexOf(key);
    return i < 0 ? 0 : Math.round((this.scroller.current?.scrollTop ?? 0) - this.headHeight - this.layout.tops[i]!);
  }

  page(direction: 1 | -1): void {
    this.scroller.current?.scrollBy({ top: direction * (this.viewHeight - 80), behavior: "auto" });
  }

  private redraw(): void {
    this.setState((s) => ({ tick: s.tick + 1 }));
  }

  private indexOf(key: string): number {
    const { rows, source } = this.props;
    const guess = this.anchor?.key === key ? this.anchor.index : -1;
    if (guess >= 0 && guess < rows.length && source.key(rows[guess]!) === key) return guess;
    return rows.findIndex((r) => source.key(r) === key);
  }

  // arrange computes the tops of all rows and which are drawn.
  private arrange(): void {
    const { rows, source } = this.props;
    const tops = new Float64Array(rows.length + 1);
    let y = 0;
    for (let i = 0; i < rows.length; i++) {
      tops[i] = y;
      y += this.heights.get(source.key(rows[i]!)) ?? source.estimate(rows[i]!);
    }
    tops[rows.length] = y;
    const top = this.wantedTop(tops) - this.headHeight;
    const first = Math.max(0, search(tops, top - overscan) - 1);
    const last = Math.min(rows.length, search(tops, top + this.viewHeight + overscan) + 1);
    this.layout = { tops, first, last };
  }

  // wantedTop is the scroll position that keeps the anchor in its place.
  private wantedTop(tops: Float64Array): number {
    const end = tops[tops.length - 1]! + this.headHeight - this.viewHeight;
    if (this.atEnd || !this.anchor) return this.atEnd ? Math.max(0, end) : 0;
    let i = this.indexOf(this.anchor.key);
    if (i < 0) i = Math.min(this.anchor.index, tops.length - 2);
    if (i < 0) return 0;
    this.anchor.index = i;
    return Math.max(0, Math.min(tops[i]! + this.headHeight + this.anchor.delta, Math.max(end, 0) + this.viewHeight));
  }

  override componentDidMount(): void {
    const el = this.scroller.current!;
    this.viewHeight = el.clientHeight;
    this.sizes.observe(el);
    if (this.headBox.current) this.sizes.observe(this.headBox.current);
    if (this.props.start !== "end") this.begin(this.props.start);
    this.settle();
    this.redraw();
  }

  override componentDidUpdate(): void {
    this.settle();
  }

  override componentWillUnmount(): void {
    if (this.props.handle?.current === this) this.props.handle.current = null;
    this.sizes.disconnect();
    cancelAnimationFrame(this.frame);
  }

  // settle measures the drawn rows, corrects the scroll position and reports the rows in the window.
  private settle(): void {
    const changed = this.measure();
    const el = this.scroller.current!;
    if (changed) {
      this.redraw();
      return;
    }
    const wanted = this.atEnd ? el.scrollHeight - el.clientHeight : Math.round(this.wantedTop(this.layout.tops));
    if (Math.abs(el.scrollTop - wanted) > 1) {
      el.scrollTop = wanted;
      this.lastTop = el.scrollTop;
    }
    this.report();
  }

  private measure(): boolean {
    let changed = false;
    for (const [key, el] of this.elements) {
      const h = el.getBoundingClientRect().height;
      if (h > 0 && Math.abs((this.heights.get(key) ?? -1) - h) > 0.5) {
        this.heights.set(key, h);
        changed = true;
      }
    }
    const head = this.headBox.current?.offsetHeight ?? 0;
    const view = this.scroller.current?.clientHeight ?? this.viewHeight;
    if (head !== this.headHeight || view !== this.viewHeight) {
      this.headHeight = head;
      this.viewHeight = view;
      changed = true;
    }
    return changed;
  }

  private measureSoon(): void {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (this.measure()) this.redraw();
    });
  }

  private onScroll = (): void => {
    const el = this.scroller.current;
    // A scroll event may come when the list is no longer shown.
    if (!el || Math.abs(el.scrollTop - this.lastTop) < 1) return;
    this.lastTop = el.scrollTop;
    this.atEnd = el.scrollTop + el.clientHeight >= el.scrollHeight - endSlack;
    const { tops, first, last } = this.layout;
    const top = el.scrollTop - this.headHeight;
    const i = Math.max(0, Math.min(search(tops, top + 1) - 1, this.props.rows.length - 1));
    const row = this.props.rows[i];
    if (row) this.anchor = { key: this.props.source.key(row), index: i, delta: top - tops[i]! };
    const drawnTop = tops[first]!;
    const drawnBottom = tops[last]!;
    const runsOut = (top - drawnTop < overscan / 2 && first > 0) ||
      (drawnBottom - top - this.viewHeight < overscan / 2 && last < this.props.rows.length);
    if (runsOut) this.redraw();
    else this.report();
  };

  private report(): void {
    const { rows, onView, onNearStart, onNearEnd } = this.props;
    const el = this.scroller.current;
    if (!el || rows.length === 0) return;
    const { tops } = this.layout;
    const top = el.scrollTop - this.headHeight;
    if (top < near) onNearStart?.();
    if (tops[rows.length]! - top - this.viewHeight < near) onNearEnd?.();
    const first = Math.max(0, search(tops, top + 1) - 1);
    const last = Math.max(first, search(tops, top + this.viewHeight + 1) - 2);
    // A list that is shorter than its window never scrolls, and shows its end anyway.
    const atEnd = this.atEnd || el.scrollTop + el.clientHeight >= el.scrollHeight - endSlack;
    onView?.(first, Math.min(last, rows.length - 1), atEnd);
  }

  private element(key: string, el: HTMLElement | null): void {
    const old = this.elements.get(key);
    if (old === el) return;
    if (old) this.sizes.unobserve(old);
    if (el) {
      this.elements.set(key, el);
      this.sizes.observe(el);
    } else {
      this.elements.delete(key);
    }
  }

  private refs = new Map<string, (el: HTMLElement | null) => void>();

  private refOf(key: string): (el: HTMLElement | null) => void {
    let ref = this.refs.get(key);
    if (!ref) this.refs.set(key, (ref = (el) => this.element(key, el)));
    return ref;
  }

  override render(p: Props<R>) {
    this.arrange();
    const { tops, first, last } = this.layout;
    const drawn = p.rows.slice(first, last);
    return (
      <div class="virtual" ref={this.scroller} onScroll={this.onScroll} tabIndex={-1} role="log" aria-label={p.label} aria-live="off">
        <div class="virtual-head" ref={this.headBox}>
          {p.head}
        </div>
        <div class="virtual-rows" style={{ height: `${tops[p.rows.length]}px` }}>
          <div class="virtual-drawn" style={{ transform: `translateY(${tops[first]}px)` }}>
            {drawn.map((row) => {
              const key = p.source.key(row);
              return (
                <div class="virtual-row" key={key} ref={this.refOf(key)}>
                  {p.source.draw(row)}
                </div>
              );
            })}
          </div>
        </div>
        {p.foot}
      </div>
    );
  }
}

// search returns the first index whose value is greater than y.
function search(tops: Float64Array, y: number): number {
  let a = 0;
  let b = tops.length;
  while (a < b) {
    const middle = (a + b) >> 1;
    if (tops[middle]! <= y) a = middle + 1;
    else b = middle;
  }
  return a;
}
