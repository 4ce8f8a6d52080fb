// Package web renders the pages that the server shows in browsers. It knows nothing of HTTP or of organizations.
//
//	templates/layout.html ─┐
//	templates/NAME.html ───┼─▶ Render ─▶ one HTML page
//	locale/LANGUAGE.json ──┘
//
// The contract:
//
//   - A page works without scripts and loads nothing but the stylesheet, the icon and at most one script, so that a
//     strict content security policy holds.
//   - Every text of a template is translated: {{t "Log in"}}. A text without a translation is shown in English.
//   - To add a page, add a template that defines "content", a View for it in views.go, and its texts to locale. The
//     tests render every template in every language.
package web
