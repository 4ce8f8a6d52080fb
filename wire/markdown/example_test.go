package markdown_test

import (
	"fmt"

	"parley/wire/markdown"
)

// Render needs a Lookup for mentions and links; without one, mentions stay text.
func ExampleRender() {
	result, err := markdown.Render("**Hello** @**Ann**\n\n* one\n* two", markdown.EmptyLookup{}, &markdown.Options{})
	fmt.Println(result.HTML, err)
	// Output:
	// <p><strong>Hello</strong> @<strong>Ann</strong></p>
	// <ul>
	// <li>one</li>
	// <li>two</li>
	// </ul> <nil>
}

// Scan returns the references that a Lookup must resolve before Render.
func ExampleScan() {
	refs := markdown.Scan("@**Ann|12**, see :party:")
	fmt.Println(refs.Users, refs.Emoji)
	// Output:
	// [{Ann 12}] [party]
}
