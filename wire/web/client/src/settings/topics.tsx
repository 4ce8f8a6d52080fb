// The topics that the user mutes, unmutes or follows.
import { useState } from "preact/hooks";
import { setTopicPolicy } from "../api/endpoints.ts";
import { TopicPolicy, type UserTopic } from "../api/types.ts";
import { t } from "../i18n/text.ts";
import { attempt } from "../store/actions.ts";
import { hashOf, narrowTo } from "../store/narrow.ts";
import { topicName } from "../store/queries.ts";
import { peek, read } from "../store/store.ts";
import { Picker } from "../ui/picker.tsx";
import { formatDate } from "../ui/time.ts";
import { policyNames } from "../channels/topic_policy.tsx";
import { FilterField, RowTable } from "../forms/forms.tsx";

const maxRows = 200;

export function Topics() {
  const [filter, setFilter] = useState("");
  const channels = read("channels");
  const wanted = filter.trim().toLowerCase();
  const rows = [...read("topicPolicies").values()]
    .flatMap((topics) => [...topics.values()])
    .filter((x) => `${channels.get(x.stream_id)?.name ?? ""} ${x.topic_name}`.toLowerCase().includes(wanted))
    .sort((a, b) => b.last_updated - a.last_updated);
  return (
    <>
      <FilterField value={filter} set={setFilter} />
      <RowTable
        label={t("Topics")}
        rows={rows.slice(0, maxRows)}
        name={(x) => topicName(x.topic_name)}
        empty={t("No muted or followed topics")}
        columns={[
          { title: t("Channel"), cell: (x) => channels.get(x.stream_id)?.name ?? t("Unknown channel") },
          { title: t("Topic"), cell: (x) => <a href={hashOf(narrowTo({ channel: x.stream_id, topic: x.topic_name }), peek())}>{topicName(x.topic_name)}</a> },
          { title: t("Notifications"), cell: (x) => <PolicyChoice topic={x} /> },
          { title: t("Changed"), cell: (x) => formatDate(x.last_updated) },
        ]}
        actions={[{ label: t("Reset to the default"), icon: "trash", run: (x) => setTopicPolicy(x.stream_id, x.topic_name, TopicPolicy.inherit) }]}
      />
    </>
  );
}

function PolicyChoice({ topic: x }: { topic: UserTopic }) {
  return (
    <Picker
      label={t("Notifications of {topic}", { topic: topicName(x.topic_name) })}
      value={x.visibility_policy}
      options={policyNames().map((p) => ({ value: p.policy, label: p.label, icon: p.icon }))}
      choose={(policy) => void attempt(setTopicPolicy(x.stream_id, x.topic_name, policy))}
    />
  );
}
