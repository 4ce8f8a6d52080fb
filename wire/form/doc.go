// Package form turns the parameters of a request into Go values.
//
//	query, body, path, headers ---Values.Add---> Values
//	                                               |
//	Go struct with tags ---Of, once---> Form ---Decode---> struct, or *Error for the client
//
// A form is a struct type whose fields declare the parameters of an endpoint. Nothing else decodes a parameter.
//
//	type markForm struct {
//		Message  int64              `path:"message_id"`
//		Op       string             `form:"op,required,enum=add|remove"`
//		Messages []int64            `form:"messages,required"`
//		Topic    form.Opt[string]   `form:"topic,alias=subject,strip,maxlen=60"`
//		Folder   form.Null[int64]   `form:"folder_id"`
//		Markdown bool               `form:"apply_markdown,default=true"`
//	}
//
// There are two encodings. A string field, also inside Opt or a pointer, is the text itself. Every other field is JSON
// inside the parameter; inside lists, maps and structs strings are JSON strings. JSON is read strictly: 1 is not a
// boolean, true, "5" and 1.0 are not integers, and a lone surrogate is not a string.
//
// Fields are decoded in order, and the first failing check is the answer.
//
// # Tags
//
// `path:"name"` declares a path parameter, `header:"Name,option,…"` a request header, and `form:"name,option,…"` a
// query or body parameter. In a nested struct, form declares a key, and `json:"name"` may name it as well. Fields of
// an embedded struct belong to the form itself. `form:"-"` and unexported fields without a tag are skipped. Commas
// inside brackets do not separate options.
//
//	required      absent is an error; without this option an absent parameter leaves the zero value
//	default=x     value if absent, written as a client would send it; Opt.Set stays false
//	alias=n       another name of the parameter; sending both is an error (top level only)
//	json, raw     the string is JSON; the nullable string is plain text (top level only)
//	strip         removes surrounding white space before all checks
//	minlen, maxlen, len=n   length in code points
//	pattern=re, date        the text must match; must be a YYYY-MM-DD date
//	min, max=n    bounds of a number
//	enum=a|b      allowed values, other values are refused with "Invalid x"
//	in=1|2        the same, refused with "Not in the list of possible values"
//	minitems, maxitems=n    bounds of a list
//	extra         unknown keys of the struct are skipped instead of refused; the field `_ struct{}` with
//	              `form:",extra"` inside the struct has the same effect wherever the struct is used
//	hidden        accepted but not documented: Describe marks it
//	extension=why the protocol does not have the parameter: Describe has the reason (top level only)
//
// Options about texts and numbers on a list or a map apply to its elements.
//
// # Absent and null
//
// Opt[T] distinguishes absent from zero and refuses null. A pointer treats null like absent. Null[T] distinguishes all
// three, and is JSON even when T is a string.
//
// # Text
//
// Names and values are valid UTF-8 in every Decode: Values.Add replaces ill-formed sequences by U+FFFD, like browsers
// and the reference server. So ill-formed text is not an error, and never reaches an endpoint. NUL is an ordinary
// character here; the endpoints that refuse it do so with their own messages.
package form
