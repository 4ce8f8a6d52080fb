// Package katex sets formulas with KaTeX itself, run in an embedded JavaScript engine.
//
// KaTeX (katex.min.js, version in VERSION, MIT licence in LICENSE) comes from its npm package, unchanged. Engines are kept and
// shared, each used by one caller at a time; a formula that takes too long is given up and its engine thrown away. What comes out
// is checked against a list of elements and attributes before it is trusted.
package katex

import (
	_ "embed"
	"runtime"
	"sync"
	"time"

	"github.com/dop251/goja"
)

//go:embed katex.min.js
var source string

const (
	// maxFormula is the longest formula, in bytes.
	maxFormula = 10_000
	// maxTime bounds one formula.
	maxTime = 2 * time.Second
	// maxOutput bounds what one formula may become, in bytes.
	maxOutput = 1_000_000
	// maxExpand is how many macros one formula may expand; KaTeX's own default.
	maxExpand = 1000
	// maxStack is how deep calls may nest in an engine: formulas deeper than that are errors.
	maxStack = 4000
)

var program = sync.OnceValue(func() *goja.Program { return goja.MustCompile("katex.min.js", source, false) })

// engines bounds how many engines exist: each takes some ten megabytes.
var engines = make(chan *engine, max(1, runtime.GOMAXPROCS(0)))

func init() {
	for range cap(engines) {
		engines <- nil // made when first needed
	}
}

type engine struct {
	vm     *goja.Runtime
	render goja.Callable
}

// newEngine loads KaTeX: some tens of milliseconds.
func newEngine() (*engine, error) {
	vm := goja.New()
	vm.SetMaxCallStackSize(maxStack)
	if _, err := vm.RunProgram(program()); err != nil {
		return nil, err
	}
	v, err := vm.RunString(`(function (tex, display, limit) {
		return katex.renderToString(tex, {displayMode: display, throwOnError: true, trust: false, strict: "ignore", maxExpand: limit});
	})`)
	if err != nil {
		return nil, err
	}
	f, _ := goja.AssertFunction(v)
	return &engine{vm, f}, nil
}

// Render sets a formula. It is not ok if the formula is wrong; late says that the time until the deadline did not suffice.
func Render(tex string, display bool, deadline time.Time) (html string, ok, late bool) {
	if len(tex) > maxFormula {
		return "", false, false
	}
	if time.Until(deadline) <= 0 {
		return "", false, true // a free engine could be quick enough to answer nevertheless
	}
	wait := time.NewTimer(time.Until(deadline))
	defer wait.Stop()
	var e *engine
	select {
	case e = <-engines:
	case <-wait.C:
		return "", false, true
	}
	defer func() { engines <- e }()
	if e == nil {
		var err error
		if e, err = newEngine(); err != nil {
			panic("BUG: KaTeX does not load: " + err.Error())
		}
	}
	stop := time.AfterFunc(min(maxTime, time.Until(deadline)), func() { e.vm.Interrupt("late") })
	v, err := e.render(goja.Undefined(), e.vm.ToValue(tex), e.vm.ToValue(display), e.vm.ToValue(maxExpand))
	if !stop.Stop() {
		e = nil // the interruption may still be on its way
		return "", false, true
	}
	if err != nil {
		if _, ok := err.(*goja.Exception); !ok {
			e = nil // it ran out of stack: who knows what it holds
		}
		return "", false, false
	}
	html = v.String()
	if len(html) > maxOutput || !Safe(html) {
		return "", false, false
	}
	return html, true, false
}
