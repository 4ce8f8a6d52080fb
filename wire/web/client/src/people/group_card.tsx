// The card of a user group, which a mention of the group opens.
import { plural, t } from "../i18n/text.ts";
import { go } from "../store/router.ts";
import { PersonName } from "./card.tsx";
import { groupName } from "./group_names.ts";
import { read } from "../store/store.ts";
import { closePopover, openPopover } from "../ui/dialogs.tsx";

const maxNames = 10;

export function openGroupCard(id: number, at: Element): void {
  openPopover(at, <GroupCard id={id} />);
}

function GroupCard({ id }: { id: number }) {
  const g = read("groups").get(id);
  if (!g) return <div class="card">{t("Unknown group")}</div>;
  const names = [
    ...g.direct_subgroup_ids.map((x) => ({ key: `g${x}`, draw: () => <>{groupName(read("groups").get(x))}</> })),
    ...g.members.map((x) => ({ key: `u${x}`, draw: () => <PersonName id={x} /> })),
  ];
  return (
    <div class="card" role="dialog" aria-label={groupName(g)}>
      <strong class="card-name">{groupName(g)}</strong>
      {g.description && <p>{g.description}</p>}
      <p class="quiet">{g.deactivated ? t("Deactivated") : plural(g.member_count ?? g.members.length, "{count} member", "{count} members")}</p>
      <ul>
        {names.slice(0, maxNames).map((x) => (
          <li key={x.key}>
            <x.draw />
          </li>
        ))}
        {names.length > maxNames && <li>…</li>}
      </ul>
      <div class="card-actions">
        <button
          type="button"
          class="button small quiet"
          onClick={() => {
            closePopover();
            go(`#groups/${g.id}/${encodeURIComponent(g.name)}`);
          }}
        >
          {t("Open the group")}
        </button>
      </div>
    </div>
  );
}
