package mattermost

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"parley/wire/imports"
)

// lineFiles are the names of the file of lines, the best first.
var lineFiles = []string{"import.jsonl", "*.jsonl", "export.json"}

// find finds the file of lines, and the folder that it is in.
func (e *export) find() error {
	e.file = e.o.Main
	for _, pattern := range lineFiles {
		if e.file != "" {
			break
		}
		folder, ok := imports.FindFolder(e.archive, pattern)
		if !ok {
			continue
		}
		sub, err := fs.Sub(e.archive, folder)
		if err != nil {
			return err
		}
		found, err := fs.Glob(sub, pattern)
		if err != nil || len(found) != 1 {
			return fmt.Errorf("a Mattermost export has one file import.jsonl or export.json, not %d", len(found))
		}
		e.archive, e.file = sub, found[0]
	}
	if e.file == "" {
		return errors.New("a Mattermost export has one file import.jsonl or export.json, not 0")
	}
	info, err := fs.Stat(e.archive, e.file)
	if err == nil {
		e.size = info.Size()
	}
	return err
}

var errFirstLine = errors.New("this is not a Mattermost export: exactly its first line is the version 1")

// headReader is the state of readHead.
type headReader struct {
	*export
	faults       []func(team string) // of the present line, and of damaged lines before it
	damaged      bool                // a line before the first sound one cannot be read
	first        bool
	version      bool // the first line is the version 1
	badTeams     int  // rows of teams without a name
	badChannels  int
	postChannels map[channelKey]bool
}

type channelKey struct{ team, channel string }

// readHead reads everything but the messages, and the names of their senders.
func (e *export) readHead() error {
	h := &headReader{export: e, first: true, postChannels: map[channelKey]bool{}}
	in := imports.Reading{Bad: func(kind, reason, place string) {
		if kind != "values" { // the line may be of any type
			h.damaged = h.damaged || h.first
			h.badTeams++
			h.badChannels++
		}
		h.faults = append(h.faults, func(team string) { e.faultsOf(team).Add(kind, reason, place) })
	}}
	if err := imports.EachLine(e.archive, e.file, in, h.line); err != nil {
		return fmt.Errorf("%s: %w", e.file, err)
	}
	h.addFaults("")
	if h.first {
		return errors.New("this is not a Mattermost export: it is empty")
	}
	h.findTeams()
	if len(e.teams) == 0 && !h.version {
		return errFirstLine
	}
	h.findChannels()
	return nil
}

// addFaults adds the faults that were found so far to those of a team; "": of all teams.
func (h *headReader) addFaults(team string) {
	for _, add := range h.faults {
		add(team)
	}
	h.faults = h.faults[:0]
}

// line adds a line.
func (h *headReader) line(l *line, row imports.Row) error {
	isVersion := l.Type == "version" || l.Version != 0
	switch {
	case h.first && !isVersion && slices.Contains(lineTypes, l.Type) && !h.damaged:
		return errFirstLine
	case h.first && isVersion:
		h.version = l.Version == 1
		if !h.version {
			h.fault("values", "the version is not 1: the lines are read as those of version 1", row)
		}
	case isVersion:
		h.fault("lines", "a second version", row)
	}
	h.first = false
	team := ""
	switch {
	case isVersion:
	case l.Team != nil:
		if l.Team.Name == "" {
			h.badTeams++
			h.fault("teams", "the name is missing", row)
		} else {
			h.teams = append(h.teams, *l.Team)
		}
	case l.Channel != nil:
		if l.Channel.Name == "" {
			h.badChannels++
			h.fault("channels", "the name is missing", row)
		} else {
			h.channels = append(h.channels, *l.Channel)
		}
	case l.User != nil:
		if l.User.Username == "" {
			h.fault("users", "the name is missing", row)
		} else {
			h.users = append(h.users, *l.User)
		}
	case l.Bot != nil:
		h.bots = append(h.bots, *l.Bot)
	case l.Emoji != nil:
		h.emoji = append(h.emoji, *l.Emoji)
	case l.Post != nil:
		team = l.Post.Team
		h.addSenders(team, l.Post)
		h.addPostChannel(channelKey{team, l.Post.Channel})
	case l.DirectPost != nil:
		for _, name := range l.DirectPost.Members {
			h.sendersOf("").add(name)
		}
		h.addSenders("", l.DirectPost)
	case l.DirectChannel == nil && !slices.Contains([]string{"scheme", "role"}, l.Type):
		if l.Type == "channel" {
			h.badChannels++
		}
		if l.Type == "team" {
			h.badTeams++
		}
		reason := "unknown type " + l.Type
		if slices.Contains(lineTypes, l.Type) {
			reason = "the row is missing"
		}
		h.fault("lines", reason, row)
	}
	h.addFaults(team)
	return nil
}

// lineTypes are the types of lines that are imported.
var lineTypes = []string{"team", "channel", "user", "bot", "emoji", "post", "direct_post", "direct_channel"}

func (h *headReader) fault(kind, reason string, row imports.Row) {
	place := row.Place()
	h.faults = append(h.faults, func(string) { h.faultsOf("").Add(kind, reason, place) })
}

// maxPostChannels limits the channels of messages that are in memory: a server has no more channels.
const maxPostChannels = 1_000_000

func (h *headReader) addPostChannel(k channelKey) {
	if k.channel != "" && len(h.postChannels) < maxPostChannels {
		h.postChannels[k] = true
	}
}

// findTeams adds the teams whose rows have lost their names, as far as channels name them.
func (h *headReader) findTeams() {
	for i := range h.channels {
		if name := h.channels[i].Team; h.badTeams > 0 && name != "" && !h.hasTeam(name) {
			h.badTeams--
			h.teams = append(h.teams, teamRow{Name: name})
		}
	}
}

// findChannels adds the channels whose rows have lost their names, as far as messages name them. They are private,
// because nothing says that they are not.
func (h *headReader) findChannels() {
	known := map[channelKey]bool{}
	for i := range h.channels {
		c := &h.channels[i]
		if c.Team = h.teamOf(c.Team); !h.hasTeam(c.Team) {
			h.badChannels++
			h.faultsOf("").Add("channels", "the team is missing", c.Name)
		}
		known[channelKey{c.Team, c.Name}] = true
	}
	if h.badChannels == 0 {
		return
	}
	var lost []channelKey
	for k := range h.postChannels {
		k.team = h.teamOf(k.team)
		if !known[k] {
			known[k] = true
			lost = append(lost, k)
		}
	}
	slices.SortFunc(lost, func(a, b channelKey) int {
		return slices.Compare([]string{a.team, a.channel},
			[]string{b.team, b.channel})
	})
	for _, k := range lost[:min(len(lost), h.badChannels)] {
		h.channels = append(h.channels, channelRow{Team: k.team, Name: k.channel, Type: "P"})
		h.faultsOf("").Add("channels", "the row is missing: the channel is private", k.channel)
	}
}

// hasTeam reports whether the export has a team.
func (e *export) hasTeam(name string) bool {
	return slices.ContainsFunc(e.teams, func(t teamRow) bool { return t.Name == name })
}

// teamOf returns the team that a row names. If there is only one team, a missing or unknown name is that of the team.
func (e *export) teamOf(name string) string {
	if len(e.teams) == 1 && e.o.Team == "" || len(e.teams) == 1 && e.o.Team == e.teams[0].Name {
		return e.teams[0].Name
	}
	return name
}

// maxFaultTeams limits the teams whose faults are apart: the names come from the archive.
const maxFaultTeams = 1000

// faultsOf returns the faults of the messages of a team; "": the faults that concern all teams.
func (e *export) faultsOf(team string) *imports.Faults {
	if e.faults[team] == nil {
		if len(e.faults) >= maxFaultTeams && team != "" {
			return e.faultsOf("")
		}
		e.faults[team] = &imports.Faults{}
	}
	return e.faults[team]
}
