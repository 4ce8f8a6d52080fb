#!/bin/sh
# Proves that the backups in a bucket become the running server: makes one more, restores it into an empty directory,
# and compares the digests of all organizations.
#   restore-drill.sh DATA PLACE KEY
# PARLEY is the program (parley). An organization that was changed after the backup cannot be compared: the drill is
# repeated up to five times.
set -eu
data=$1 place=$2 key=$3
parley=${PARLEY:-parley}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# digests prints a line for each organization: number, last change, digest.
digests() {
  "$parley" realm digest --data "$1" |
    sed -nE 's/.*realm ([0-9]+) at ([0-9]+): .*digest ([0-9a-f]{64}).*/\1 \2 \3/p'
}

for attempt in 1 2 3 4 5; do
  rm -rf "$dir/restored"
  "$parley" backup --to "$place" --key "$key" --data "$data"
  digests "$data" >"$dir/live"
  "$parley" restore --from "$place" --key "$key" "$dir/restored" >"$dir/log" || { cat "$dir/log"; exit 1; }
  digests "$dir/restored" >"$dir/again"
  [ -s "$dir/live" ] || { echo "the server has no organization" >&2; exit 1; }
  if cmp -s "$dir/live" "$dir/again"; then
    echo "the digests of $(wc -l <"$dir/live") organizations are equal"
    exit 0
  fi
  cut -d' ' -f1,2 "$dir/live" >"$dir/live.at"
  cut -d' ' -f1,2 "$dir/again" >"$dir/again.at"
  if cmp -s "$dir/live.at" "$dir/again.at"; then
    echo "the restored organizations differ:" >&2
    diff "$dir/live" "$dir/again" >&2
    exit 1
  fi
  echo "organizations were changed meanwhile, attempt $attempt"
done
echo "the organizations are changed too often to compare them" >&2
exit 1
