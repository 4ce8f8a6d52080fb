// The numbers of the charts of usage, as plain data.

// Series is one line or one kind of bar of a chart.
export interface Series {
  label: string;
  values: number[];
}

const day = 24 * 3600; // seconds

// byDay adds the numbers of hours to those of their days. ends are the ends of the hours. The last day can lack hours.
export function byDay(ends: number[], values: number[]): { days: number[]; values: number[] } {
  const days: number[] = [];
  const out: number[] = [];
  ends.forEach((end, i) => {
    const at = end - 1 - ((end - 1) % day);
    if (days[days.length - 1] !== at) {
      days.push(at);
      out.push(0);
    }
    out[out.length - 1]! += values[i] ?? 0;
  });
  return { days, values: out };
}

// dayOfEnd returns the beginning of the day that ends at a time.
export function dayOfEnd(end: number): number {
  return end - day;
}

export function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}

// largest returns the series with the largest sums, and one with the sum of all others if there are more.
export function largest(list: Series[], count: number, others: string): Series[] {
  const sorted = list.filter((s) => sum(s.values) > 0).sort((a, b) => sum(b.values) - sum(a.values));
  if (sorted.length <= count) return sorted;
  const rest = sorted.slice(count - 1);
  const values = (rest[0]?.values ?? []).map((_, i) => sum(rest.map((s) => s.values[i] ?? 0)));
  return [...sorted.slice(0, count - 1), { label: others, values }];
}

// niceMaximum returns the number at the top of an axis: 1, 2 or 5 times a power of ten.
export function niceMaximum(highest: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, highest)));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= highest) ?? 10 * power;
}
