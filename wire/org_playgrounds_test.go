package wire

import "testing"

// Templates of playgrounds are URLs of web pages, at a host that the code cannot change: a click must not run code.
func TestPlaygroundTemplatesAreWebPages(t *testing.T) {
	for template, good := range map[string]bool{
		"https://play.example.com/?code={code}": true,
		"http://play.example.com/{code}":        true,
		"HTTPS://play.example.com/{code}":       true,
		"https://play.example.com{?code}":       true,
		"":                                      false,
		"{code}":                                false,
		"{+code}":                               false,
		"javascript:{code}":                     false,
		"JavaScript:alert(1)//{code}":           false,
		"data:text/html,{code}":                 false,
		"//play.example.com/{code}":             false,
		"/{code}":                               false,
		"play.example.com/{code}":               false,
		"https:{code}":                          false,
		"https://{code}":                        false,
		"https://{+code}.example.com":           false,
		"https:///{code}":                       false,
		"ftp://play.example.com/{code}":         false,
		"zulip://play.example.com/{code}":       false,
	} {
		if err := playgroundFault(template); (err == nil) != good {
			t.Errorf("template %q: %v; good: %v", template, err, good)
		}
	}
}
