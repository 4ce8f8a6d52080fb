// Package webapp reads the official web app from an unpacked official release. It knows nothing of HTTP or of
// organizations.
//
//	DIR/prod-static/serve/**             ──▶ Release.Open: files below /static/
//	DIR/webpack-stats-production.json    ─┐
//	DIR/templates/zerver/app/index.html  ─┼▶ Release.Page: the HTML of the page
//	DIR/locale/language_name_map.json    ─┘
//	DIR/locale/LOCALE/translations.json  ──▶ Release.Translations
//
// The contract:
//
//   - Open reads and checks everything that a page needs, and says why a directory cannot be served. The directory must
//     not change while the server runs: a new release gets a new directory, and the server is upgraded.
//   - The page's blocks come from the release, because their elements differ between releases. Of the template language
//     only the constructs that these blocks use are known; a template with any other is rejected.
//   - No path leads out of the directory of static files, also not by a symbolic link. Their content is not kept in
//     memory.
package webapp
