package integrations

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"
)

const (
	// MaxSteps bounds the work of one template: passes of loops, calls of templates and functions. The largest known
	// payload, a push of 1,000 commits, needs 15,000.
	MaxSteps = 200_000
	// MaxTextBytes bounds the output of one template. Messages have at most 10,000 characters of at most 4 bytes.
	MaxTextBytes = 64 << 10
	// maxPattern bounds the length of a regular expression in a template, whose compilation takes memory.
	maxPattern = 1000
)

// errFull ends a template whose output is longer than a message can be.
var errFull = errors.New("the output is full")

// errSteps ends a template that runs too long.
var errSteps = fmt.Errorf("more than %d steps", MaxSteps)

// program is the compiled set of a service's templates. Instances are reused, because binding the functions to a
// request takes a copy of the set.
type program struct {
	set      *template.Template
	patterns map[string]*regexp.Regexp
	read     map[string]bool      // the names of fields that templates read
	done     map[*parse.Tree]bool // the trees that the rewriter has changed
	idle     sync.Pool            // of *instance
}

// instance runs the templates of a program for one request at a time.
type instance struct {
	set *template.Template
	run *execution
}

// newProgram returns an empty program.
func newProgram() *program {
	p := &program{patterns: map[string]*regexp.Regexp{}, read: map[string]bool{}, done: map[*parse.Tree]bool{}}
	p.set = template.New("").Option("missingkey=error").Funcs((&execution{program: p}).functions())
	return p
}

// clone returns a program with the same templates, to which others can be added. The templates are not parsed again.
func (p *program) clone() *program {
	return &program{set: p.cloneSet(), patterns: maps.Clone(p.patterns), read: maps.Clone(p.read),
		done: maps.Clone(p.done)}
}

func (p *program) cloneSet() *template.Template {
	set, err := p.set.Clone()
	if err != nil {
		panic("BUG: a parsed template cannot be cloned: " + err.Error()) // only after an execution
	}
	return set
}

// add parses a template and stores it under a name. The templates that it defines become part of the program.
func (p *program) add(name, text string) error {
	before := map[string]*parse.Tree{}
	for _, t := range p.set.Templates() {
		before[t.Name()] = t.Tree
	}
	if _, err := p.set.New(name).Parse(text); err != nil {
		return err
	}
	for _, t := range p.set.Templates() {
		if tree := before[t.Name()]; tree != nil && tree != t.Tree {
			return fmt.Errorf("template %q is defined twice", t.Name())
		}
		if t.Tree == nil || p.done[t.Tree] {
			continue
		}
		p.done[t.Tree] = true
		r := rewriter{program: p, tree: t.Tree}
		r.list(t.Tree.Root)
		r.count(t.Tree.Root)
		if r.err != nil {
			return r.err
		}
	}
	return nil
}

// finish checks that every template that is called exists.
func (p *program) finish() error {
	for _, t := range p.set.Templates() {
		if t.Tree == nil {
			continue
		}
		for _, name := range called(t.Tree.Root) {
			if p.set.Lookup(name) == nil {
				return fmt.Errorf("template %q calls %q, which is not defined", t.Name(), name)
			}
		}
	}
	return nil
}

// take returns an instance bound to an execution. give returns it.
func (p *program) take(root any, r Request) *instance {
	i, ok := p.idle.Get().(*instance)
	if !ok {
		run := &execution{program: p}
		i = &instance{set: p.cloneSet().Funcs(run.functions()), run: run}
	}
	i.run.root, i.run.request = root, r
	i.run.restart(false)
	return i
}

func (p *program) give(i *instance) {
	i.run.root, i.run.request, i.run.captured, i.run.orders = nil, Request{}, nil, nil
	p.idle.Put(i)
}

// render returns the output of a template. If the output is too long, it is cut off.
func (i *instance) render(name string, dot any) (string, error) {
	var w limitedWriter
	err := i.set.ExecuteTemplate(&w, name, dot)
	if errors.Is(err, errFull) {
		err = nil
	}
	return w.String(), err
}

// renderOptional is render for a template that a service's file may leave out; text is the template in the file.
func (i *instance) renderOptional(name, text string, dot any) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", nil
	}
	return i.render(name, dot)
}

// limitedWriter takes up to MaxTextBytes.
type limitedWriter struct{ bytes.Buffer }

func (w *limitedWriter) Write(p []byte) (int, error) {
	if room := MaxTextBytes - w.Len(); len(p) > room {
		w.Buffer.Write(p[:room])
		return room, errFull
	}
	return w.Buffer.Write(p)
}

// rewriter changes the tree of a template: fields are read through "field", values are printed through "printed", lists
// of loops pass through "ranged", and loops and called templates begin with "step". Regular expressions are compiled.
type rewriter struct {
	program *program
	tree    *parse.Tree
	err     error
}

func (r *rewriter) list(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			r.pipe(n.Pipe)
			if len(n.Pipe.Decl) == 0 {
				n.Pipe.Cmds = append(n.Pipe.Cmds, r.call("printed", n.Pos))
			}
		case *parse.IfNode:
			r.branch(&n.BranchNode)
		case *parse.WithNode:
			r.branch(&n.BranchNode)
		case *parse.RangeNode:
			r.branch(&n.BranchNode)
			n.Pipe.Cmds = append(n.Pipe.Cmds, r.call("ranged", n.Pos))
			r.count(n.List)
		case *parse.TemplateNode:
			r.pipe(n.Pipe)
		}
	}
}

func (r *rewriter) branch(b *parse.BranchNode) {
	r.pipe(b.Pipe)
	r.list(b.List)
	r.list(b.ElseList)
}

// pipe replaces the fields in a pipeline and compiles its regular expressions.
func (r *rewriter) pipe(p *parse.PipeNode) {
	if p == nil {
		return
	}
	for _, cmd := range p.Cmds {
		for i, arg := range cmd.Args {
			cmd.Args[i] = r.field(arg)
		}
		r.notePath(cmd)
		name, ok := cmd.Args[0].(*parse.IdentifierNode)
		if !ok || !takesPattern[name.Ident] {
			continue
		}
		if len(cmd.Args) < 2 {
			r.fail("%s needs a pattern", name.Ident)
			continue
		}
		pattern, ok := cmd.Args[1].(*parse.StringNode)
		if !ok || len(pattern.Text) > maxPattern {
			r.fail("the pattern of %s must be a constant of at most %d bytes", name.Ident, maxPattern)
			continue
		}
		re, err := regexp.Compile(pattern.Text)
		if err != nil {
			r.fail("%v", err)
			continue
		}
		r.program.patterns[pattern.Text] = re
	}
}

// field returns the call of "field" that replaces a field of the dot, of a variable or of a pipeline. Other nodes are
// returned as they are, after their own fields were replaced.
func (r *rewriter) field(n parse.Node) parse.Node {
	var of parse.Node
	var path []string
	switch n := n.(type) {
	case *parse.PipeNode:
		r.pipe(n)
		return n
	case *parse.FieldNode:
		of, path = &parse.DotNode{NodeType: parse.NodeDot, Pos: n.Pos}, n.Ident
	case *parse.VariableNode:
		if len(n.Ident) == 1 {
			return n
		}
		of = &parse.VariableNode{NodeType: parse.NodeVariable, Pos: n.Pos, Ident: n.Ident[:1]}
		path = n.Ident[1:]
	case *parse.ChainNode:
		of, path = r.field(n.Node), n.Field
	default:
		return n
	}
	for _, name := range path {
		r.program.read[name] = true
	}
	at := strings.Join(path, ".")
	cmd := r.call("field", n.Position())
	cmd.Args = append(cmd.Args, of,
		&parse.StringNode{NodeType: parse.NodeString, Pos: n.Position(), Quoted: strconv.Quote(at), Text: at})
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: n.Position(), Line: 1, Cmds: []*parse.CommandNode{cmd}}
}

// notePath notes the names in the constant paths of a call, such as that of get, as read.
func (r *rewriter) notePath(cmd *parse.CommandNode) {
	for _, arg := range cmd.Args {
		if s, ok := arg.(*parse.StringNode); ok {
			for name := range strings.SplitSeq(s.Text, ".") {
				r.program.read[name] = true
			}
		}
	}
}

func (r *rewriter) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("template %q: "+format, append([]any{r.tree.Name}, args...)...)
	}
}

// count puts a call of "step" at the beginning of a list.
func (r *rewriter) count(l *parse.ListNode) {
	pipe := &parse.PipeNode{NodeType: parse.NodePipe, Pos: l.Pos, Line: 1,
		Cmds: []*parse.CommandNode{r.call("step", l.Pos)}}
	step := &parse.ActionNode{NodeType: parse.NodeAction, Pos: l.Pos, Line: 1, Pipe: pipe}
	l.Nodes = append([]parse.Node{step}, l.Nodes...)
}

func (r *rewriter) call(function string, at parse.Pos) *parse.CommandNode {
	name := parse.NewIdentifier(function).SetTree(r.tree).SetPos(at)
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: at, Args: []parse.Node{name}}
}

// called returns the names of the templates that a list calls.
func called(l *parse.ListNode) (names []string) {
	if l == nil {
		return nil
	}
	branch := func(b parse.BranchNode) {
		names = append(append(names, called(b.List)...), called(b.ElseList)...)
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.TemplateNode:
			names = append(names, n.Name)
		case *parse.IfNode:
			branch(n.BranchNode)
		case *parse.WithNode:
			branch(n.BranchNode)
		case *parse.RangeNode:
			branch(n.BranchNode)
		}
	}
	return names
}
