package wire

import "parley/actors/realm"

// Commands of bots are an extension of the protocol: a message in a channel that begins with one triggers its bot like
// a mention, and clients complete them.
var botCommandEndpoints = []Endpoint{
	Get("/bot_commands", func(_ *Call, v realm.View, f botCommandListForm) (*botCommandsAnswer, error) {
		list, err := v.ListBotCommands(f.Channel)
		return &botCommandsAnswer{each(list, func(x realm.ListedCommand) listedCommandJSON {
			return listedCommandJSON{x.Bot, x.Name, x.Usage, x.Description}
		})}, err
	}).extension(commandsOfBots),
	CommandFromForm("PUT", "/bots/{bot_id}/commands", func(f botCommandsForm) realm.SetBotCommands {
		return realm.SetBotCommands{Bot: f.Bot, List: each(f.Commands, func(x botCommandForm) realm.BotCommand {
			return realm.BotCommand(x)
		})}
	}, emptyAnswer).extension(commandsOfBots),
}

// commandsOfBots is why these endpoints exist.
const commandsOfBots = "commands of bots, which clients complete after a slash"

type botCommandListForm struct {
	Channel realm.ChannelID `form:"channel_id"` // 0: in every channel
}

type botCommandsAnswer struct {
	Commands []listedCommandJSON `json:"commands"`
}

type listedCommandJSON struct {
	Bot         realm.UserID `json:"bot_id"`
	Name        string       `json:"name"`
	Usage       string       `json:"usage"`
	Description string       `json:"description"`
}

type botCommandsForm struct {
	Bot      realm.UserID     `path:"bot_id"`
	Commands []botCommandForm `form:"commands,required"`
}

type botCommandForm struct {
	Name        string `form:"name,required"`
	Usage       string `form:"usage"`
	Description string `form:"description"`
}
