// The usage of the organization: totals for owners, and charts for all members.
import { useEffect, useState } from "preact/hooks";
import { getChart, getUsage, type Chart as Data, type Totals } from "../api/usage.ts";
import { serverNow } from "../api/clock.ts";
import { Card, RowTable } from "../forms/forms.tsx";
import { PlainChoice } from "../forms/fields.tsx";
import { formatNumber, t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { read } from "../store/store.ts";
import { formatDayInYear } from "../ui/time.ts";
import { Chart } from "./chart.tsx";
import { fileSize } from "./uploads.tsx";
import { byDay, dayOfEnd, largest, type Series } from "./usage_numbers.ts";

const day = 24 * 3600; // seconds
const spans = [30, 90, 365, 1826]; // days
const maxSeries = 6; // of one chart; styles have a colour for each
const maxChannels = 50; // rows of the table

interface Loaded {
  people: Data;
  sent: Data;
  read: Data;
  kinds: Data;
  clients: Data;
  totals: Totals | undefined;
}

async function load(days: number, owner: boolean): Promise<Loaded> {
  const start = Math.floor(serverNow() / 1000) - days * day;
  const [people, sent, read, kinds, clients, totals] = await Promise.all([
    getChart("number_of_humans", start),
    getChart("messages_sent_over_time", start),
    getChart("messages_read_over_time", start),
    getChart("messages_sent_by_message_type", start),
    getChart("messages_sent_by_client", start),
    owner ? getUsage(days) : undefined,
  ]);
  return { people, sent, read, kinds, clients, totals };
}

export function Usage() {
  const { is_owner, is_guest } = read("me");
  const [days, setDays] = useState(30);
  const [data, setData] = useState<Loaded | null>(null);
  useEffect(() => {
    let current = true;
    if (!is_guest) void attempt(load(days, is_owner)).then((d) => d && current && setData(d));
    return () => {
      current = false;
    };
  }, [days, is_owner, is_guest]);
  if (is_guest) return <p class="quiet">{t("Guests cannot see the usage.")}</p>;
  return (
    <>
      <PlainChoice label={t("Period")} value={days} options={spans.map((n) => ({ value: n, label: spanName(n) }))} choose={setDays} />
      {data ? <Charts data={data} /> : <p aria-busy="true" />}
    </>
  );
}

function spanName(days: number): string {
  switch (days) {
    case 30:
      return t("The last 30 days");
    case 90:
      return t("The last 90 days");
    case 365:
      return t("The last year");
  }
  return t("The last five years");
}

function Charts({ data }: { data: Loaded }) {
  const days = data.people.end_times.map(dayOfEnd);
  const hourly = (d: Data, label: string): number[] => byDay(d.end_times, d.everyone[label] ?? []).values;
  const kindNames: Record<string, string> = {
    "Public channels": t("Public channels"),
    "Private channels": t("Private channels"),
    "Direct messages": t("Direct messages"),
    "Group direct messages": t("Group direct messages"),
  };
  const labelled = (d: Data, name: (label: string) => string): Series[] => (d.display_order ?? []).map((l) => ({ label: name(l), values: d.everyone[l] ?? [] }));
  return (
    <>
      {data.totals && <Summary totals={data.totals} />}
      <Chart
        title={t("Active people")}
        kind="lines"
        days={days}
        series={[
          { label: t("Accounts"), values: data.people.everyone.all_time ?? [] },
          { label: t("Active in 15 days"), values: data.people.everyone._15day ?? [] },
          { label: t("Active on the day"), values: data.people.everyone._1day ?? [] },
        ]}
      />
      <Chart
        title={t("Messages sent")}
        kind="bars"
        days={byDay(data.sent.end_times, []).days}
        series={[
          { label: t("People"), values: hourly(data.sent, "human") },
          { label: t("Bots"), values: hourly(data.sent, "bot") },
        ]}
      />
      <Chart title={t("Messages by conversation")} kind="bars" days={data.kinds.end_times.map(dayOfEnd)} series={largest(labelled(data.kinds, (l) => kindNames[l] ?? l), maxSeries, t("Others"))} />
      <Chart title={t("Messages by program")} kind="bars" days={data.clients.end_times.map(dayOfEnd)} series={largest(labelled(data.clients, (l) => l), maxSeries, t("Others"))} />
      <Chart title={t("Messages read")} kind="bars" days={byDay(data.read.end_times, []).days} series={[{ label: t("Read"), values: hourly(data.read, "read") }]} />
      {data.totals && <ChannelTable totals={data.totals} />}
      {data.totals && <Chart title={t("Uploaded files")} kind="lines" days={data.totals.end_times.map(dayOfEnd)} series={[{ label: t("Size"), values: data.totals.upload_space_by_day }]} format={fileSize} />}
    </>
  );
}

function Summary({ totals }: { totals: Totals }) {
  const rows: [string, string][] = [
    [t("Accounts"), formatNumber(totals.active_accounts)],
    [t("Guests"), formatNumber(totals.guest_accounts)],
    [t("Bots"), formatNumber(totals.bots)],
    [t("Active today"), formatNumber(totals.active_today)],
    [t("Active in 15 days"), formatNumber(totals.active_15day)],
    [t("Messages sent"), formatNumber(totals.messages_sent)],
    [t("Uploaded files"), fileSize(totals.upload_space_used)],
  ];
  if (totals.counted_since) rows.push([t("Counted since"), formatDayInYear(totals.counted_since)]);
  return (
    <Card title={t("Totals")}>
      <dl class="usage-totals">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}

function ChannelTable({ totals }: { totals: Totals }) {
  const channels = read("channels");
  // Owners do not know the names of all private channels.
  const name = (id: number): string => channels.get(id)?.name ?? t("Private channel {id}", { id });
  return (
    <RowTable
      label={t("Messages by channel")}
      rows={totals.channels.slice(0, maxChannels)}
      name={(c) => name(c.channel_id)}
      empty={t("No messages in this period")}
      columns={[
        { title: t("Channel"), cell: (c) => name(c.channel_id) },
        { title: t("People"), cell: (c) => formatNumber(c.human), order: (a, b) => b.human - a.human },
        { title: t("Bots"), cell: (c) => formatNumber(c.bot), order: (a, b) => b.bot - a.bot },
      ]}
    />
  );
}
