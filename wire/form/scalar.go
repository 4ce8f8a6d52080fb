package form

import (
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// textRule holds the options of a string.
type textRule struct {
	strip, date            bool
	length, minLen, maxLen int // in code points, -1: no limit
	pattern                *regexp.Regexp
	enum, in               []string
}

func textCodec(o *options) codec {
	r := &textRule{strip: o.has("strip"), date: o.has("date"),
		length: o.count("len"), minLen: o.count("minlen"), maxLen: o.count("maxlen"),
		enum: o.choices("enum"), in: o.choices("in")}
	if text, ok := o.take("pattern"); ok {
		r.pattern = regexp.MustCompile(text)
	}
	return codec{
		kind:   reflect.String,
		schema: r.schema(),
		raw: func(dst reflect.Value, raw string) *Error {
			s, err := r.check(raw)
			dst.SetString(s)
			return err
		},
		value: func(dst reflect.Value, v Value) *Error {
			s, err := v.Text()
			if err == nil {
				s, err = r.check(s)
			}
			dst.SetString(s)
			return err
		},
	}
}

func (r *textRule) check(s string) (string, *Error) {
	if r.strip {
		s = strings.TrimSpace(s)
	}
	switch {
	case r.enum != nil && !slices.Contains(r.enum, s):
		return s, notAllowed()
	case r.in != nil && !slices.Contains(r.in, s):
		return s, notPossible()
	case r.length >= 0 && utf8.RuneCountInString(s) != r.length:
		return s, isNot("length " + itoa(r.length))
	case r.minLen == 1 && s == "":
		return s, blank()
	case r.minLen > 1 && utf8.RuneCountInString(s) < r.minLen:
		return s, tooShort()
	case r.maxLen >= 0 && len(s) > r.maxLen && utf8.RuneCountInString(s) > r.maxLen:
		return s, tooLong(r.maxLen, "characters")
	case r.pattern != nil && !r.pattern.MatchString(s):
		return s, badFormat()
	case r.date && !isDate(s):
		return s, isNot("a date")
	}
	return s, nil
}

func isDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

func (o *options) choices(key string) []string {
	if text, ok := o.take(key); ok {
		return strings.Split(text, "|")
	}
	return nil
}

func boolCodec() codec {
	return codec{
		kind:   reflect.Bool,
		schema: map[string]any{"type": "boolean"},
		value: func(dst reflect.Value, v Value) *Error {
			b, err := v.Bool()
			dst.SetBool(b)
			return err
		},
	}
}

// intRule holds the bounds of an integer, from its type and options.
type intRule struct {
	min, max int64
	enum, in []int64
}

func intCodec(t reflect.Type, o *options) codec {
	top := int64(math.MaxInt64) >> (64 - t.Bits())
	r := intRuleOf(-top-1, top, o)
	return codec{
		kind:   t.Kind(),
		schema: r.schema(o),
		value: func(dst reflect.Value, v Value) *Error {
			n, err := r.check(v)
			dst.SetInt(n)
			return err
		},
	}
}

// uintCodec accepts integers up to 63 bits, the largest in the protocol.
func uintCodec(t reflect.Type, o *options) codec {
	r := intRuleOf(0, int64(min(uint64(math.MaxUint64)>>(64-t.Bits()), math.MaxInt64)), o)
	return codec{
		kind:   t.Kind(),
		schema: r.schema(o),
		value: func(dst reflect.Value, v Value) *Error {
			n, err := r.check(v)
			dst.SetUint(uint64(n))
			return err
		},
	}
}

func intRuleOf(low, high int64, o *options) *intRule {
	r := &intRule{min: low, max: high, enum: o.ints("enum"), in: o.ints("in")}
	if text, ok := o.take("min"); ok {
		r.min = max(low, o.int("min", text))
	}
	if text, ok := o.take("max"); ok {
		r.max = min(high, o.int("max", text))
	}
	return r
}

func (r *intRule) check(v Value) (int64, *Error) {
	n, err := v.Int()
	switch {
	case err != nil:
		return 0, err
	case r.enum != nil && !slices.Contains(r.enum, n):
		return 0, notAllowed()
	case r.in != nil && !slices.Contains(r.in, n):
		return 0, notPossible()
	case n < r.min:
		return 0, tooSmall()
	case n > r.max:
		return 0, tooLarge()
	}
	return n, nil
}

func (o *options) int(key, text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		o.panicf(key + " is not an integer")
	}
	return n
}

func (o *options) ints(key string) []int64 {
	var ns []int64
	for _, text := range o.choices(key) {
		ns = append(ns, o.int(key, text))
	}
	return ns
}

func floatCodec(t reflect.Type, o *options) codec {
	high := math.MaxFloat64
	if t.Kind() == reflect.Float32 {
		high = math.MaxFloat32
	}
	low := -high
	schema := map[string]any{"type": "number"}
	if text, ok := o.take("min"); ok {
		low = o.float("min", text)
		schema["minimum"] = low
	}
	if text, ok := o.take("max"); ok {
		high = o.float("max", text)
		schema["maximum"] = high
	}
	return codec{
		kind:   t.Kind(),
		schema: schema,
		value: func(dst reflect.Value, v Value) *Error {
			x, err := v.Float()
			switch {
			case err != nil:
				return err
			case x < low:
				return tooSmall()
			case x > high:
				return tooLarge()
			}
			dst.SetFloat(x)
			return nil
		},
	}
}

func (o *options) float(key, text string) float64 {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		o.panicf(key + " is not a number")
	}
	return x
}

// pathRaw adapts a codec to a path parameter. An integer must be decimal digits, or the route does not fit. A
// number too large for its type becomes the largest of the type, which is the ID of nothing.
func pathRaw(raw func(reflect.Value, string) *Error, t reflect.Type, o *options) func(reflect.Value, string) *Error {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if reflect.PointerTo(t).Implements(reflect.TypeFor[Decoder]()) {
			return raw
		}
		if len(o.given) > 0 {
			o.panicf("an integer in the path takes no options")
		}
		return func(dst reflect.Value, raw string) *Error {
			if !isDigits(raw) {
				return routeMiss()
			}
			n, _ := strconv.ParseInt(raw, 10, t.Bits())
			dst.SetInt(n)
			return nil
		}
	case reflect.String:
		return raw
	}
	if !reflect.PointerTo(t).Implements(reflect.TypeFor[Decoder]()) {
		o.panicf("a path parameter must be a string, an integer or a Decoder")
	}
	return raw
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
