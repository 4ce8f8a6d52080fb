package integrations

import (
	"regexp"
	"strings"
)

// Slack's markup, where it differs from Markdown: <address|text>, <address>, *strong*, _emphasis_, ~deleted~.
var (
	slackLink     = regexp.MustCompile(`<((?:https?|mailto|tel):[^|>\s]+)\|([^>\n]+)>`)
	slackBareLink = regexp.MustCompile(`<((?:https?|mailto|tel):[^|>\s]+)>`)
	slackStrong   = regexp.MustCompile(`(^|[\s({\[<"'.,:;!?*_~-])([*_~])([^\s*_~](?:[^*_~\n]*[^\s*_~])?)([*_~])`)
	slackEntities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
	slackMarks    = map[string]string{"*": "**", "_": "*", "~": "~~"}
)

// SlackMarkdown converts Slack's markup to Markdown.
func SlackMarkdown(s string) string {
	s = slackStrong.ReplaceAllStringFunc(s, func(m string) string {
		p := slackStrong.FindStringSubmatch(m)
		if p[2] != p[4] {
			return m
		}
		return p[1] + slackMarks[p[2]] + p[3] + slackMarks[p[2]]
	})
	s = slackLink.ReplaceAllString(s, "[$2]($1)")
	s = slackBareLink.ReplaceAllString(s, "$1")
	return slackEntities.Replace(s)
}
