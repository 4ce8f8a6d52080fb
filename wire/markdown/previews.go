package markdown

import (
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxPreviews is the greatest number of different addresses in a text with previews; with more there are none.
	maxPreviews = 24
	// StillThumbnail and AnimatedThumbnail are the thumbnails shown for images: greatest width, greatest height, file
	// type.
	StillThumbnail    = "840x560.jpg"
	AnimatedThumbnail = "840x560-anim.gif"
	// loadingImage is shown until a thumbnail is ready.
	loadingImage = "/static/images/loading/loader-black.svg"
)

// Preview is the metadata of a fetched page. The page of a video site has only a title.
type Preview struct {
	Title, Description, Image string
}

// shownLink is a link of the rendered text.
type shownLink struct {
	a      *node
	url    string
	quoted bool
}

// attachments finds the uploads that the source refers to.
func (r *renderer) attachments(text string) {
	const prefix = "/user_uploads/"
	for {
		i := strings.Index(text, prefix)
		if i < 0 {
			return
		}
		text = text[i+len(prefix):]
		id, length := uploadPath(text)
		text = text[length:]
		if id != "" && !slices.Contains(r.result.Attachments, id) {
			r.result.Attachments = append(r.result.Attachments, id)
			r.result.HasAttachment = true
		}
	}
}

// maxUploadPath bounds the address of an upload, in bytes.
const maxUploadPath = 1024

// uploadPath reads a path id (organization/random/name) at the start of s and returns its length in s.
func uploadPath(s string) (id string, length int) {
	n, slashes := 0, 0
	for n < len(s) && n < maxUploadPath && s[n] > ' ' && strings.IndexByte(")(\"'<>[]\\?#", s[n]) < 0 {
		if s[n] == '/' {
			slashes++
		}
		n++
	}
	id = strings.TrimRight(s[:n], ".,:;!")
	if slashes < 1 || strings.HasPrefix(id, "thumbnail/") || strings.HasSuffix(id, "/") {
		return "", n
	}
	if plain, err := url.PathUnescape(id); err == nil {
		return plain, n
	}
	return id, n
}

// uploadOf returns the path id of an address in this organization.
func uploadOf(address string) (string, bool) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(address, "/"), "user_uploads/")
	if !ok {
		return "", false
	}
	id, _ := uploadPath(rest)
	return id, id != ""
}

// previews adds previews of links after the blocks that contain them. Quoted links have none.
func (r *renderer) previews() {
	var links []shownLink
	links = r.collectLinks(r.root, false, links)
	seen := map[string]bool{}
	for _, l := range links {
		if !l.quoted {
			seen[l.url] = true
		}
	}
	if len(seen) > maxPreviews {
		return
	}
	for _, l := range links {
		if l.quoted || !seen[l.url] {
			continue
		}
		delete(seen, l.url)
		r.preview(l)
	}
}

func (r *renderer) collectLinks(n *node, quoted bool, links []shownLink) []shownLink {
	for c := n.first; c != nil; c = c.next {
		if c.kind != kindElement {
			continue
		}
		if c.tag == tagA && c.attr("class") == "" {
			links = append(links, shownLink{c, c.attr("href"), quoted})
			continue
		}
		links = r.collectLinks(c, quoted || c.tag == tagBlockquote, links)
	}
	return links
}

func (r *renderer) preview(l shownLink) {
	if id, ok := uploadOf(l.url); ok {
		// Only paths that occur in the source are known: a link can be written with spaces, which no path has.
		if r.options.InlineImages && slices.Contains(r.result.Attachments, id) {
			r.uploadPreview(l, id)
		}
		return
	}
	u, err := url.Parse(l.url)
	own := err == nil && u.Scheme == "" && u.Host == "" && strings.HasPrefix(u.Path, "/")
	if err != nil || !own && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return
	}
	if r.options.InlineImages && (own || !r.options.NoExternalImages) {
		switch ending(u.Path) {
		case "bmp", "gif", "jpe", "jpeg", "jpg", "png", "webp":
			if strings.EqualFold(u.Host, "pasteboard.co") { // addresses of its pages end like images
				break
			}
			r.result.HasImage = true
			if file, ok := fileOf(l.url, u); ok {
				a := r.element(tagA, attr{"href", file})
				a.append(r.element(tagImg, attr{"src", r.proxied(file)}))
				r.placePreview(l, r.box("message_inline_image", a))
				return
			}
			if picture, ok := dropboxPicture(u); ok {
				img := r.element(tagImg, attr{"src", r.proxied(picture)})
				r.insertPreview(l, r.mediaBox(l, "message_inline_image", l.url, img), false)
				return
			}
			src := l.url
			if !own {
				src = r.proxied(imageOf(l.url, u))
			}
			img := r.element(tagImg, attr{"src", src})
			r.placePreview(l, r.mediaBox(l, "message_inline_image", l.url, img))
			return
		case "mp4", "webm":
			if own {
				return
			}
			video := r.element(tagVideo, attr{"preload", "metadata"}, attr{"src", r.proxied(l.url)})
			r.placePreview(l, r.mediaBox(l, "message_inline_image message_inline_video", l.url, video))
			return
		}
	}
	if !own {
		r.pagePreview(l, u)
	}
}

// fileOf returns the address of the image on sites whose pages have the image's name; the preview links to the image
// too.
func fileOf(address string, u *url.URL) (string, bool) {
	const page, file = "/wiki/File:", "/wiki/Special:FilePath/File:"
	switch host := strings.ToLower(u.Host); {
	case strings.HasSuffix(host, ".wikipedia.org") && strings.HasPrefix(u.Path, page):
		return strings.Replace(address, page, file, 1), true
	case host == "linx.li":
		return "https://linx.li/s" + u.EscapedPath(), true
	}
	return "", false
}

// imageOf returns the address of the image if the linked page only shows it.
func imageOf(address string, u *url.URL) string {
	parts := strings.Split(u.EscapedPath(), "/")
	host := strings.ToLower(u.Host)
	if (host == "github.com" || strings.HasSuffix(host, ".github.com")) && len(parts) > 4 && parts[3] == "blob" {
		return "https://raw.githubusercontent.com" + strings.Join(slices.Delete(parts, 3, 4), "/")
	}
	return address
}

// dropboxPicture returns the address of the picture that a shared Dropbox page shows. The page itself has a name like
// a picture. Newer pages need their other parameters.
func dropboxPicture(u *url.URL) (string, bool) {
	host := strings.ToLower(u.Host)
	if host != "dropbox.com" && !strings.HasSuffix(host, ".dropbox.com") {
		return "", false
	}
	raw := *u
	switch first, _, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/"); first {
	case "s", "sh":
		raw.RawQuery = "raw=1"
	case "scl":
		query := u.Query()
		query.Del("dl")
		query.Set("raw", "1")
		raw.RawQuery = query.Encode()
	default:
		return "", false
	}
	return raw.String(), true
}

// pagePreview adds the picture of a video or the card of a fetched page, and records pages that could be fetched.
func (r *renderer) pagePreview(l shownLink, u *url.URL) {
	id := youtubeID(u)
	if id != "" && r.options.InlineImages && !r.options.NoExternalImages {
		a := r.element(tagA, attr{"data-id", id}, attr{"href", l.url})
		a.append(r.element(tagImg, attr{"src", r.proxied("https://i.ytimg.com/vi/" + id + "/mqdefault.jpg")}))
		r.placePreview(l, r.box("youtube-video message_inline_image", a))
	}
	if !r.options.LinkPreviews {
		return
	}
	p, fetched := r.options.Previews[l.url]
	switch {
	case !fetched:
		r.result.PreviewURLs = append(r.result.PreviewURLs, l.url)
	case id != "":
		if p.Title != "" && l.a.innerText() == l.url {
			r.retitle(l.a, "YouTube - "+p.Title)
		}
	case isVimeo(u):
		if p.Title == "" {
			return
		}
		if l.a.innerText() == l.url {
			r.retitle(l.a, "Vimeo - "+p.Title)
		}
		a := r.element(tagA, attr{"href", l.url}, attr{"title", p.Title})
		if p.Image != "" {
			a.append(r.element(tagImg, attr{"src", r.proxied(p.Image)}))
		}
		r.placePreview(l, r.box("embed-video message_inline_image", a))
	case p.Title != "" || p.Description != "":
		r.placePreview(l, r.embed(l.url, p))
	}
}

func (r *renderer) retitle(a *node, title string) {
	a.first, a.last = nil, nil
	a.append(r.textNode(kindText, title))
}

// embed returns the card of a fetched page.
func (r *renderer) embed(address string, p Preview) *node {
	embed := r.element(tagDiv, attr{"class", "message_embed"})
	embed.atomic = true
	if p.Image != "" {
		if style, ok := imageStyle(r.proxied(p.Image)); ok {
			embed.append(r.element(tagA, attr{"class", "message_embed_image"}, attr{"href", address},
				attr{"style", style}))
		}
	}
	data := r.box("data-container")
	if p.Title != "" {
		title := r.box("message_embed_title", r.atom(tagA, p.Title, attr{"href", address}, attr{"title", p.Title}))
		data.append(title)
	}
	if p.Description != "" {
		data.append(r.box("message_embed_description", r.textNode(kindText, p.Description)))
	}
	embed.append(data)
	return embed
}

// imageStyle returns a style that shows an image. It returns false if the address could end the style.
func imageStyle(address string) (string, bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" && (u.Scheme != "" || !strings.HasPrefix(address, "/")) {
		return "", false
	}
	clean := strings.NewReplacer("(", "%28", ")", "%29", "'", "%27", `"`, "%22", `\`, "%5C", ";", "%3B", " ",
		"%20").Replace(u.String())
	return "background-image: url(" + clean + ")", true
}

// uploadPreview shows an uploaded image, video or sound.
func (r *renderer) uploadPreview(l shownLink, id string) {
	meta, ok := r.lookup.Upload(id)
	address := "/" + strings.TrimPrefix(l.url, "/")
	kind, _, _ := strings.Cut(meta.ContentType, "/")
	switch {
	case !ok:
	case kind == "image" && slices.Contains(thumbnailed, meta.ContentType) && meta.Width > 0 && meta.Height > 0:
		r.placePreview(l, r.mediaBox(l, "message_inline_image", address, r.thumbnail(id, meta)))
		r.result.HasImage = true
	case meta.ContentType == "video/mp4" || meta.ContentType == "video/webm":
		video := r.element(tagVideo, attr{"preload", "metadata"}, attr{"src", address})
		r.placePreview(l, r.mediaBox(l, "message_inline_image message_inline_video", address, video))
	case slices.Contains(playable, meta.ContentType):
		r.placePreview(l, r.element(tagAudio, attr{"controls", ""}, attr{"preload", "metadata"}, attr{"src", address},
			attr{"title", l.a.innerText()}))
	}
}

// thumbnail returns the element of an uploaded image.
func (g *nodePool) thumbnail(id string, meta UploadMeta) *node {
	img := g.element(tagImg, attr{"data-original-dimensions",
		strconv.Itoa(meta.Width) + "x" + strconv.Itoa(meta.Height)},
		attr{"data-original-content-type", meta.ContentType})
	if !meta.Thumbnailed {
		img.attrs = append(img.attrs, attr{"class", "image-loading-placeholder"}, attr{"src", loadingImage})
		return img
	}
	file := StillThumbnail
	if meta.Animated {
		file = AnimatedThumbnail
		img.attrs = append(img.attrs, attr{"data-animated", "true"})
	}
	img.attrs = append(img.attrs, attr{"src", "/user_uploads/thumbnail/" + (&url.URL{Path: id}).EscapedPath() + "/" +
		file})
	return img
}

// ShowThumbnail replaces the loading image of an upload in a text that was rendered before its thumbnail was ready:
// by the thumbnail, or by nothing if there will be none (shown is false). It returns other texts unchanged.
func ShowThumbnail(html, id string, meta UploadMeta, shown bool) string {
	const box, end = `<div class="message_inline_image"><a href="`, "</a></div>"
	const waiting = `<img class="image-loading-placeholder" `
	var out strings.Builder
	rest := html
	for {
		i := strings.Index(rest, box)
		if i < 0 {
			break
		}
		size := strings.Index(rest[i:], end) + len(end)
		whole := rest[i : i+size]
		img := strings.Index(whole, waiting)
		address, _, _ := strings.Cut(whole[len(box):], `"`)
		if path, ok := uploadOf(unescaped.Replace(address)); !ok || path != id || img < 0 {
			out.WriteString(rest[:i+size])
			rest = rest[i+size:]
			continue
		}
		out.WriteString(rest[:i])
		if shown {
			out.WriteString(whole[:img])
			var g nodePool
			out.Write(g.thumbnail(id, meta).write(nil))
			out.WriteString(end)
		}
		rest = rest[i+size:]
	}
	if out.Len() == 0 {
		return html
	}
	return out.String() + rest
}

var unescaped = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">", "&quot;", `"`, "&#39;", "'")

// thumbnailed are the image types that get thumbnails; playable are the audio types that browsers play. The type of an
// upload is detected from its content, which gives audio/wave for WAV files.
var (
	thumbnailed = []string{"image/avif", "image/gif", "image/heic", "image/jpeg", "image/png", "image/tiff",
		"image/webp"}
	playable = []string{"audio/aac", "audio/flac", "audio/mp4", "audio/mpeg", "audio/ogg", "audio/wav",
		"audio/wave", "audio/webm", "audio/x-flac", "audio/x-wav"}
)

func (r *renderer) proxied(address string) string {
	if r.options.ImageProxy == nil {
		return address
	}
	return r.options.ImageProxy(address)
}

// box returns a division that follows another element without a line end.
func (r *renderer) box(class string, inside ...*node) *node {
	div := r.element(tagDiv, attr{"class", class})
	div.atomic = true
	for _, n := range inside {
		div.append(n)
	}
	return div
}

// mediaBox returns media that link to address; those of a named link have its name as title.
func (r *renderer) mediaBox(l shownLink, class, address string, media *node) *node {
	a := r.element(tagA, attr{"href", address})
	if name := l.a.innerText(); name != l.url {
		a.attrs = append(a.attrs, attr{"title", name})
	}
	a.append(media)
	return r.box(class, a)
}

// placePreview inserts a preview after the paragraph of its link, at the end of its list item, or at the end of the
// text. A paragraph that consists only of the bare link is replaced.
func (r *renderer) placePreview(l shownLink, preview *node) {
	class := preview.attr("class")
	r.insertPreview(l, preview, l.a.innerText() == l.url && class != "message_embed" && preview.tag == tagDiv &&
		!strings.HasPrefix(class, "youtube") && !strings.HasPrefix(class, "embed"))
}

// insertPreview is placePreview; replace says whether a paragraph that consists only of the link is replaced.
func (r *renderer) insertPreview(l shownLink, preview *node, replace bool) {
	p := l.a.parent
	if p == nil { // an earlier preview has replaced the paragraph
		r.root.append(preview)
		return
	}
	switch p.tag {
	case tagLi:
		p.append(preview)
		if replace && p.first == l.a && l.a.next == preview {
			l.a.remove()
		}
	case tagP:
		at := p
		for at.next != nil && at.next.atomic && at.next.tag != tagPre && r.previewOf[at.next] == p {
			at = at.next
		}
		p.parent.insertAfter(at, preview)
		if r.previewOf == nil {
			r.previewOf = map[*node]*node{}
		}
		r.previewOf[preview] = p
		if replace && p.first == l.a && p.last == l.a {
			if p.prev == nil {
				p.parent.opened = true
			}
			p.remove()
		}
	default:
		r.root.append(preview)
	}
}

func ending(p string) string {
	return strings.ToLower(strings.TrimPrefix(path.Ext(p), "."))
}

// youtubeID returns the id of a video from the address of its page.
func youtubeID(u *url.URL) string {
	id, host := "", strings.ToLower(u.Hostname())
	switch {
	case host == "youtu.be":
		id = strings.TrimPrefix(u.Path, "/")
	case host == "youtube.com", strings.HasSuffix(host, ".youtube.com"), host == "youtube-nocookie.com",
		host == "www.youtube-nocookie.com":
		first, rest, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
		switch first {
		case "watch", "watch_popup", "playlist":
			id = u.Query().Get("v")
		case "watch_videos":
			id, _, _ = strings.Cut(u.Query().Get("video_ids"), ",")
		case "v", "embed", "e", "shorts":
			id, _, _ = strings.Cut(rest, "/")
		}
	}
	if len(id) < 6 || len(id) > 20 {
		return ""
	}
	for i := 0; i < len(id); i++ {
		if !isAlnum(id[i]) && id[i] != '-' && id[i] != '_' {
			return ""
		}
	}
	return id
}

func isVimeo(u *url.URL) bool {
	h := strings.TrimPrefix(strings.ToLower(u.Hostname()), "www.")
	return h == "vimeo.com" || h == "player.vimeo.com"
}
