package httpd

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/form"
)

// bodyResult is the result of reading a body: the parameters of some names, and its files.
type bodyResult struct {
	params map[string]string
	files  map[string]string
	err    error
}

// readBody reads a body, buffered or streamed.
func readBody(t *testing.T, kind string, body []byte, streams bool) bodyResult {
	var ctx fasthttp.RequestCtx
	ctx.Init(&fasthttp.Request{}, nil, nil)
	ctx.Request.Header.SetMethod("POST")
	ctx.Request.Header.SetContentType(kind)
	if streams {
		ctx.Request.SetBodyStream(bytes.NewReader(body), len(body))
	} else {
		ctx.Request.SetBody(body)
	}
	v := &form.Values{}
	x := bodyResult{map[string]string{}, map[string]string{}, readParams(&ctx, v)}
	files := func() ([]wire.File, error) { return multipartFiles(&ctx) }
	if streams && x.err == nil {
		files, x.err = streamedFiles(&ctx, v)
	}
	if x.err == nil {
		var list []wire.File
		list, x.err = files()
		for _, f := range list {
			r, err := f.Open()
			if err != nil {
				t.Fatalf("open %q: %v", f.Name, err)
			}
			text, err := io.ReadAll(r)
			r.Close()
			if err != nil {
				x.err = err
				break
			}
			x.files[f.Name] = string(text)
		}
	}
	for _, name := range []string{"a", "b", ""} {
		if text, ok := v.Get(name); ok {
			x.params[name] = text
			if !utf8.ValidString(text) {
				t.Fatalf("%q is %q", name, text)
			}
		}
	}
	var refused *realm.Refusal
	var misread *form.Error
	if x.err != nil && !errors.As(x.err, &refused) && !errors.As(x.err, &misread) {
		t.Fatalf("unexpected error %v", x.err)
	}
	return x
}

// Whatever its type and parts, a body is read or refused, and a streamed body has the same parts as a buffered
// one.
func FuzzBodies(f *testing.F) {
	part := func(head, text string) string {
		return "--x\r\nContent-Disposition: form-data; " + head + "\r\n\r\n" + text + "\r\n"
	}
	for _, kind := range []string{"", "application/x-www-form-urlencoded",
		"application/x-www-form-urlencoded; charset=utf-8", "APPLICATION/X-WWW-FORM-URLENCODED", "application/json",
		"text/plain", "a", ";", "multipart/form-data"} {
		for _, body := range []string{"", "a=1&b=2", "a=%ff%00&b=%zz&=&&a", `{"a":[[[[1]]]]}`,
			strings.Repeat("a=1&", 1100)} {
			f.Add(kind, []byte(body))
		}
	}
	for _, kind := range []string{"multipart/form-data; boundary=x",
		`Multipart/Form-Data; charset=utf-8; boundary="x"`, "multipart/form-data; boundary=",
		"multipart/form-data;boundary=x;boundary=y", "multipart/mixed; boundary=x",
		"multipart/form-data ; boundary=x"} {
		for _, body := range []string{
			"--x--\r\n", "--x\r\n", "\r\n--x--", "no parts",
			part(`name="a"`, "1") + part(`name="b"`, "\xff") + "--x--\r\n",
			part(`name="a"`, "1") + part(`name="f"; filename="n"`, "text") + "--x--\r\n",
			part(`name="f"; filename="../n"`, "text") + part(`name="a"`, "late") + "--x--\r\n",
			part(`name="f"; filename=""`, "text") + "--x--\r\n",
			part(`filename="n"`, "text") + part("name=a", "1") + "--x--\r\n",
			part(`name="f"; filename="n"`, "1") + part(`name="g"; filename="n"`, "2") + "--x--\r\n",
			part(`name="a"; name="b"`, "1") + part(`name*=utf-8''%61`, "2") + "--x--\r\n",
			part("name=\"a\"\r\nContent-Transfer-Encoding: quoted-printable", "=41=") + "--x--\r\n",
			part(`name="a"`, "cut"), part(`name="a"`, "cut") + "--x", "--x\r\nContent-Disposition",
		} {
			f.Add(kind, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		whole, stream := readBody(t, kind, body, false), readBody(t, kind, body, true)
		if whole.err != nil || stream.err != nil || !strings.HasPrefix(strings.ToLower(kind), "multipart/form-data") {
			return
		}
		if !reflect.DeepEqual(whole, stream) {
			t.Errorf("buffered %q, %q; streamed %q, %q", whole.params, whole.files, stream.params, stream.files)
		}
	})
}

func TestMediaTypeIgnoresCase(t *testing.T) {
	if x := readBody(t, "Application/X-WWW-Form-URLEncoded; Charset=UTF-8", []byte("a=1"),
		false); x.params["a"] != "1" {
		t.Errorf("read %+v", x)
	}
	body := []byte("--X\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--X--\r\n")
	for _, streams := range []bool{false, true} {
		if x := readBody(t, "MULTIPART/form-data; boundary=X", body, streams); x.params["a"] != "1" || x.err != nil {
			t.Errorf("streamed %v: read %+v", streams, x)
		}
	}
}
