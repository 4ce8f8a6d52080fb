// A chart of a few series over days, drawn as SVG, with its numbers as a table for those who do not see it.
import { formatNumber, t } from "../i18n/text.ts";
import { formatDayInYear } from "../ui/time.ts";
import { niceMaximum, sum, type Series } from "./usage_numbers.ts";

const width = 640;
const height = 180;
const inset = { left: 52, right: 10, top: 10, bottom: 24 };
const seriesClasses = ["series-0", "series-1", "series-2", "series-3", "series-4", "series-5"];
const maxTableRows = 400; // the newest days; older ones are only in the picture

interface Props {
  title: string;
  days: number[]; // beginnings, in seconds since 1970
  series: Series[];
  kind: "lines" | "bars"; // bars of all series stand on each other
  format?: (n: number) => string;
}

export function Chart({ title, days, series, kind, format = formatNumber }: Props) {
  const highest = days.map((_, i) => (kind === "bars" ? sum(series.map((s) => s.values[i] ?? 0)) : Math.max(0, ...series.map((s) => s.values[i] ?? 0))));
  const top = niceMaximum(Math.max(1, ...highest));
  const step = (width - inset.left - inset.right) / Math.max(1, days.length);
  const x = (i: number): number => inset.left + (i + 0.5) * step;
  const y = (n: number): number => inset.top + (1 - n / top) * (height - inset.top - inset.bottom);
  const shown = days.map((d, i) => ({ d, i })).slice(-maxTableRows).reverse();
  return (
    <figure class="usage-chart">
      <figcaption>{title}</figcaption>
      {days.length === 0 ? (
        <p class="empty-rows">{t("There are no full days yet.")}</p>
      ) : (
        <>
          <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={title}>
            {[0, top / 2, top].map((n) => (
              <g key={n}>
                <line class="grid" x1={inset.left} x2={width - inset.right} y1={y(n)} y2={y(n)} />
                <text x={inset.left - 6} y={y(n) + 4} text-anchor="end">
                  {format(n)}
                </text>
              </g>
            ))}
            {kind === "bars" ? <Bars days={days} series={series} x={x} y={y} step={step} /> : series.map((s, n) => <polyline key={s.label} class={seriesClasses[n]} points={days.map((_, i) => `${x(i)},${y(s.values[i] ?? 0)}`).join(" ")} />)}
            <text x={inset.left} y={height - 6}>
              {formatDayInYear(days[0]!)}
            </text>
            <text x={width - inset.right} y={height - 6} text-anchor="end">
              {formatDayInYear(days[days.length - 1]!)}
            </text>
          </svg>
          <ul class="chart-legend">
            {series.map((s, n) => (
              <li key={s.label}>
                <span class={`swatch ${seriesClasses[n]}`} /> {s.label}
              </li>
            ))}
          </ul>
          <details class="more-settings">
            <summary>{t("Numbers")}</summary>
            <div class="table-scroll" tabIndex={0} role="region" aria-label={title}>
              <table class="settings-table">
                <thead>
                  <tr>
                    <th scope="col">{t("Date")}</th>
                    {series.map((s) => (
                      <th key={s.label} scope="col">
                        {s.label}
                      </th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {shown.map(({ d, i }) => (
                    <tr key={d}>
                      <td>{formatDayInYear(d)}</td>
                      {series.map((s) => (
                        <td key={s.label}>{format(s.values[i] ?? 0)}</td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </details>
        </>
      )}
    </figure>
  );
}

function Bars(p: { days: number[]; series: Series[]; x: (i: number) => number; y: (n: number) => number; step: number }) {
  const wide = Math.max(0.5, p.step * 0.8);
  return (
    <>
      {p.days.map((d, i) => {
        let below = 0;
        return (
          <g key={d}>
            {p.series.map((s, n) => {
              const from = below;
              below += s.values[i] ?? 0;
              if (below === from) return null;
              return <rect key={s.label} class={seriesClasses[n]} x={p.x(i) - wide / 2} y={p.y(below)} width={wide} height={p.y(from) - p.y(below)} />;
            })}
          </g>
        );
      })}
    </>
  );
}
