package realm

import (
	"cmp"
	"slices"
	"strings"
)

// A bot with a service can have commands. A message in a channel that begins with one of them, such as "/deploy web",
// triggers the bot like a mention. This is an extension of the protocol.
//
// A command gives a bot no message that it is not allowed to read. The sender names a command, and does not say which
// bot gets the text; a mention names the bot. So a command triggers its bot only where the bot is allowed to read. The
// service is called only if that is still so: the bot can have lost its subscription, and the message can have been
// moved.

// Limits of the commands of a bot.
const (
	MaxBotCommands    = 20
	maxCommandName    = 30  // characters
	maxCommandText    = 100 // characters of the usage and of the description
	maxCommandsOfBots = 500 // of the bots of an organization, which clients get in one list
)

// reservedCommands are the commands of the clients and of the protocol.
var reservedCommands = []string{"me", "poll", "todo", "dark", "light", "day", "night", "ping", "help", "settings",
	"fluid-width", "fixed-width"}

// BotCommand is a command of a bot.
type BotCommand struct {
	Name        string // without the slash
	Usage       string // the words after it, such as "SERVICE [VERSION]"
	Description string
}

// BotCommands is the row of a bot's commands.
type BotCommands struct{ List []BotCommand }

// SetBotCommands asks to replace the commands of a bot that the caller manages.
type SetBotCommands struct {
	Bot  UserID
	List []BotCommand
}

func (c SetBotCommands) Decide(t *Turn) (Done, error) {
	u, err := t.outgoingBot(c.Bot)
	switch {
	case err != nil:
		return Done{}, err
	case t.Level() < commandsLevel:
		return Done{}, errLowLevel()
	case len(c.List) > MaxBotCommands:
		return Done{}, BadRequest("A bot has too many commands (limit: %d)", MaxBotCommands)
	}
	list, names, all := slices.Clone(c.List), map[string]bool{}, len(c.List)
	for id, b := range t.small.botCommands.all() {
		if id == u.ID {
			continue
		}
		all += len(b.List)
		for _, x := range b.List {
			names[x.Name] = true
		}
	}
	if all > maxCommandsOfBots {
		return Done{}, BadRequest("The bots of this organization have too many commands (limit: %d)", maxCommandsOfBots)
	}
	for i := range list {
		x := &list[i]
		x.Usage, x.Description = strings.TrimSpace(x.Usage), strings.TrimSpace(x.Description)
		_, plainUsage := findSpoofing(x.Usage)
		_, plainDescription := findSpoofing(x.Description)
		switch {
		case !validCommandName(x.Name):
			return Done{}, BadRequest("The name of a command has 1 to %d lowercase letters, digits, hyphens and "+
				"underscores, not '%s'.", maxCommandName, x.Name)
		case slices.Contains(reservedCommands, x.Name) || names[x.Name]:
			return Done{}, BadRequest("There is a command '%s' already.", x.Name)
		case runeCount(x.Usage) > maxCommandText || runeCount(x.Description) > maxCommandText:
			return Done{}, BadRequest("The text of a command is too long (limit: %d characters)", maxCommandText)
		case !plainUsage || !plainDescription:
			return Done{}, BadRequest("Invalid characters in the text of a command.")
		}
		names[x.Name] = true
	}
	t.Record(&BotCommandsSet{u.ID, list})
	return Done{}, nil
}

func validCommandName(name string) bool {
	return name != "" && len(name) <= maxCommandName &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// BotCommandsSet says that a bot has other commands. Clients get no event: they ask for the commands when a user types
// a slash.
type BotCommandsSet struct {
	Bot  UserID
	List []BotCommand
}

func (f *BotCommandsSet) apply(r *Realm) {
	if len(f.List) == 0 {
		r.small.botCommands.remove(f.Bot)
		return
	}
	r.small.botCommands.put(f.Bot, &BotCommands{f.List})
}

func (*BotCommandsSet) notices(*Realm) []Notice { return nil }

// ListedCommand is a command with its bot.
type ListedCommand struct {
	Bot UserID
	BotCommand
}

// ListBotCommands returns the commands of the active bots, by name: everyone can see all bots. With a channel, which
// the caller must be allowed to read, it returns only those that trigger their bot there.
func (v View) ListBotCommands(channel ChannelID) (out []ListedCommand, err error) {
	var c *Channel
	if channel != 0 {
		if c, err = v.ReadableChannel(channel); err != nil {
			return nil, err
		}
	}
	for id, b := range v.small.botCommands.all() {
		if u := v.Find(id); u == nil || !u.Active || c != nil && !v.botReads(id, c) {
			continue
		}
		for _, x := range b.List {
			out = append(out, ListedCommand{id, x})
		}
	}
	slices.SortFunc(out, func(a, b ListedCommand) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// botReads reports whether a bot is allowed to read the messages of a channel.
func (r *Realm) botReads(bot UserID, c *Channel) bool {
	return r.ViewAs(Caller{User: bot}, 0).MayReadChannel(c)
}

// triggeredByCommand returns the bot whose command a message in a channel begins with, or 0 if there is none that the
// command triggers there.
func (r *Realm) triggeredByCommand(f *MessageSent) UserID {
	bot := r.commandBot(f.Body.Text)
	if bot == 0 {
		return 0
	}
	if c := r.channels.find(f.Channel); c == nil || !r.botReads(bot, c) {
		return 0
	}
	return bot
}

// commandBot returns the active bot whose command a text begins with; 0: none.
func (r *Realm) commandBot(text string) UserID {
	if r.small.botCommands.size() == 0 || !strings.HasPrefix(text, "/") {
		return 0
	}
	end := strings.IndexAny(text, " \n\t")
	if end < 0 {
		end = len(text)
	}
	name := text[1:end]
	for id, b := range r.small.botCommands.all() {
		if slices.ContainsFunc(b.List, func(x BotCommand) bool { return x.Name == name }) {
			return id
		}
	}
	return 0
}
