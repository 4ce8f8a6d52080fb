package realm

import "strings"

// welcomeAnswers is the welcome bot's answers to single words, with the words that trigger each.
var welcomeAnswers = []struct {
	words []string
	say   string
}{
	{
		[]string{"app", "apps"},
		"There are apps for phones and for the desktop. Log in there with the address of this " +
			"organization; what you have read is kept the same everywhere.",
	},
	{
		[]string{"profile", "edit profile"},
		"In your settings you can change your name, upload a picture, and fill in what others should know of you.",
	},
	{
		[]string{"theme", "themes"},
		"In your settings, under preferences, you can choose a light or a dark theme, or have it follow your system.",
	},
	{
		[]string{"channel", "channels", "stream", "streams"},
		"Channels decide who gets a message. You get what is said in the channels you are " +
			"subscribed to; browse the others to find what interests you.",
	},
	{
		[]string{"topic", "topics"},
		"Every message in a channel has a topic, like the subject of a mail. Topics let you " +
			"follow some conversations closely and skip others.",
	},
	{
		[]string{"shortcut", "shortcuts", "keyboard shortcuts"},
		"Most things can be done from the keyboard: press `?` outside the text box to see all shortcuts.",
	},
	{
		[]string{"format", "formatting", "message formatting"},
		"Messages are written in Markdown: `**bold**`, `*italic*`, lists, quotes, code in " +
			"back-ticks, and `@` to mention somebody.",
	},
}

// welcomeHint is sent to a user once if the bot does not understand, and always on "help".
const welcomeHint = "I know a few words: `apps`, `profile`, `theme`, `channels`, `topics`, `shortcuts` and " +
	"`formatting`. Write me one of them, or `help` to read this again."

// welcomeHintKind is the message kind of the hint.
const welcomeHintKind = "welcome hint"

// answerAsWelcomeBot lets the welcome bot answer a direct message to it alone.
func (t *Turn) answerAsWelcomeBot(me *User, f *MessageSent) {
	if f.Channel != 0 || me.IsBot() || len(f.People) != 2 || !containsSorted(f.People, WelcomeBot) {
		return
	}
	asked := strings.Trim(fold(f.Body.Text), " \t\n.!?*`\"'")
	for _, a := range welcomeAnswers {
		for _, w := range a.words {
			if w == asked {
				t.SendBotMessage(BotMessage{Bot: WelcomeBot, People: []UserID{me.ID}, Text: a.say})
				return
			}
		}
	}
	if help := asked == "help" || asked == ""; help || !t.welcomeHintSent(f.Talk) {
		t.SendBotMessage(BotMessage{Bot: WelcomeBot, People: []UserID{me.ID}, Text: welcomeHint, Kind: welcomeHintKind})
	}
}

// maxHintScan is how many messages of the conversation are searched for the hint. After so many messages, a second hint
// does no harm.
const maxHintScan = 100

// welcomeHintSent reports whether one of the last maxHintScan messages of the conversation is the hint.
func (t *Turn) welcomeHintSent(conversation DirectConversationID) bool {
	messages := t.index.conversations[conversation].ids
	for i := messages.Len() - 1; i >= max(0, messages.Len()-maxHintScan); i-- {
		if t.extraOrEmpty(MessageID(messages.At(i))).Notice == welcomeHintKind {
			return true
		}
	}
	return false
}
