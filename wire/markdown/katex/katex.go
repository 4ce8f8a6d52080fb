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
	// maxOutput bounds the HTML of one formula, in bytes.
	maxOutput = 1_000_000
	// maxExpand is the number of macros that one formula can expand: the default of KaTeX.
	maxExpand = 1000
	// maxStack is the depth of nested calls in an engine: deeper formulas are errors.
	maxStack = 4000
)

var program = sync.OnceValue(func() *goja.Program { return goja.MustCompile("katex.min.js", source, false) })

// engines is the pool of engines, and bounds their number: each takes about ten megabytes.
var engines = make(chan *engine, max(1, runtime.GOMAXPROCS(0)))

// idleTime is how long engines are kept after the last formula. To load one again takes some tens of milliseconds.
const idleTime = 2 * time.Minute

// idle removes the engines. Each formula sets it again.
var idle = time.AfterFunc(idleTime, removeEngines)

func init() {
	for range cap(engines) {
		engines <- nil // created on first use
	}
}

// removeEngines removes the engines that render no formula now.
func removeEngines() {
	for range cap(engines) {
		select {
		case <-engines:
			engines <- nil
		default:
		}
	}
}

type engine struct {
	vm     *goja.Runtime
	render goja.Callable
}

// newEngine loads KaTeX, which takes some tens of milliseconds.
func newEngine() (*engine, error) {
	vm := goja.New()
	vm.SetMaxCallStackSize(maxStack)
	if _, err := vm.RunProgram(program()); err != nil {
		return nil, err
	}
	v, err := vm.RunString(`(function (tex, display, limit) {
		return katex.renderToString(tex, {displayMode: display, throwOnError: true, trust: false,
			strict: "ignore", maxExpand: limit});
	})`)
	if err != nil {
		return nil, err
	}
	f, _ := goja.AssertFunction(v)
	return &engine{vm, f}, nil
}

// Render converts a formula to HTML. ok is false if the formula is invalid; late reports that the deadline was
// reached.
func Render(tex string, display bool, deadline time.Time) (html string, ok, late bool) {
	if len(tex) > maxFormula {
		return "", false, false
	}
	if time.Until(deadline) <= 0 {
		return "", false, true // a free engine could answer in time nevertheless
	}
	wait := time.NewTimer(time.Until(deadline))
	defer wait.Stop()
	var e *engine
	select {
	case e = <-engines:
	case <-wait.C:
		return "", false, true
	}
	defer func() {
		engines <- e
		idle.Reset(idleTime)
	}()
	if e == nil {
		var err error
		if e, err = newEngine(); err != nil {
			panic("BUG: KaTeX does not load: " + err.Error())
		}
	}
	stop := time.AfterFunc(min(maxTime, time.Until(deadline)), func() { e.vm.Interrupt("late") })
	v, err := e.render(goja.Undefined(), e.vm.ToValue(tex), e.vm.ToValue(display), e.vm.ToValue(maxExpand))
	if !stop.Stop() {
		e = nil // the interruption may still be pending
		return "", false, true
	}
	if err != nil {
		if _, ok := err.(*goja.Exception); !ok {
			e = nil // the stack overflowed: the state of the engine is unknown
		}
		return "", false, false
	}
	html = v.String()
	if len(html) > maxOutput || !Safe(html) {
		return "", false, false
	}
	return html, true, false
}
