package integrations

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
)

// Jira's markup, where it differs from Markdown.
var (
	jiraBlock  = regexp.MustCompile(`(?s)\{(noformat|code|quote)(?::[^}\n]*)?\}(.*?)\{(?:noformat|code|quote)\}`)
	jiraMono   = regexp.MustCompile(`\{\{([^}\n]*)\}\}`)
	jiraStrong = regexp.MustCompile(`(^|[^\w*])\*([^*\s](?:[^*\n]*[^*\s])?)\*($|[^\w*])`)
	jiraLink   = regexp.MustCompile(`\[([^|\]\n]+)\|((?:https?|mailto):[^\]\s|]+)[^\]\n]*\]`)
	jiraBare   = regexp.MustCompile(`\[((?:https?|mailto):[^\]\s|]+)\]`)
	jiraUser   = regexp.MustCompile(`\[~(?:accountid:)?([^\]\n]+)\]`)
	jiraEscape = regexp.MustCompile(`\\([!-/:-@\[-` + "`" + `{-~])`)
)

// jiraMarkdown converts Jira's markup to Markdown. Markup that it does not know stays as it is.
func jiraMarkdown(s string) string {
	s = jiraBlock.ReplaceAllStringFunc(s, func(m string) string {
		p := jiraBlock.FindStringSubmatch(m)
		if p[1] == "quote" {
			return "~~~ quote\n" + p[2] + "\n~~~"
		}
		return "~~~\n" + p[2] + "\n~~~"
	})
	s = jiraMono.ReplaceAllString(s, "`$1`")
	s = jiraStrong.ReplaceAllString(s, "$1**$2**$3")
	s = jiraLink.ReplaceAllString(s, "[$1]($2)")
	s = jiraBare.ReplaceAllString(s, "[$1]($1)")
	s = jiraUser.ReplaceAllString(s, "**$1**")
	return jiraEscape.ReplaceAllString(s, "$1")
}

// htmlMarks are the Markdown marks around the text of an element.
var htmlMarks = map[string]string{"b": "**", "strong": "**", "i": "*", "em": "*", "code": "`", "del": "~~", "s": "~~"}

// htmlMarkdown converts the text of an HTML document to Markdown: paragraphs, lists, links and emphasis. Other
// elements are left out and their text is kept, without that of scripts and styles.
func htmlMarkdown(s string) string {
	z := html.NewTokenizer(strings.NewReader(s))
	var b strings.Builder
	var links []string
	hidden := 0
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		t := z.Token()
		switch {
		case t.Data == "script" || t.Data == "style":
			if kind == html.StartTagToken {
				hidden++
			} else if kind == html.EndTagToken {
				hidden = max(hidden-1, 0)
			}
		case kind == html.TextToken && hidden == 0:
			b.WriteString(t.Data)
		case t.Data == "br":
			b.WriteString("\n")
		case kind == html.StartTagToken && t.Data == "li":
			b.WriteString("\n* ")
		case kind == html.EndTagToken && (t.Data == "p" || t.Data == "div" || t.Data == "ul" || t.Data == "ol"):
			b.WriteString("\n\n")
		case kind == html.StartTagToken && t.Data == "a":
			to := ""
			for _, a := range t.Attr {
				if a.Key == "href" {
					to = a.Val
				}
			}
			links = append(links, to)
			if to != "" {
				b.WriteString("[")
			}
		case kind == html.EndTagToken && t.Data == "a" && len(links) > 0:
			if to := links[len(links)-1]; to != "" {
				b.WriteString("](" + linkTarget(to) + ")")
			}
			links = links[:len(links)-1]
		case kind == html.StartTagToken || kind == html.EndTagToken:
			b.WriteString(htmlMarks[t.Data])
		}
	}
	return strings.TrimSpace(manyLines.ReplaceAllString(b.String(), "\n\n"))
}

var manyLines = regexp.MustCompile(`\n{3,}`)
