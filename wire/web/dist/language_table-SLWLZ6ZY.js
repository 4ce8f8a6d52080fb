import"./chunk-74IXTQGT.js";var a=`# Languages of code blocks: class of white space, name, aliases; from Pygments==2.20.0 (PyPI, BSD-2-Clause); written by generate.
w	ABAP	abap
w	ABNF	abnf
-	ADL	adl
w	AMDGPU	amdgpu
w	ANSYS parametric design language	ansys	apdl
w	ANTLR	antlr
w	ANTLR With ActionScript Target	antlr-actionscript	antlr-as
w	ANTLR With C# Target	antlr-csharp	antlr-c#
w	ANTLR With CPP Target	antlr-cpp
w	ANTLR With Java Target	antlr-java
w	ANTLR With ObjectiveC Target	antlr-objc
w	ANTLR With Perl Target	antlr-perl
w	ANTLR With Python Target	antlr-python
w	ANTLR With Ruby Target	antlr-ruby	antlr-rb
w	APL	apl
w	ASCII armored	asc	pem
w	ASN.1	asn1
w	ActionScript	actionscript	as
w	ActionScript 3	actionscript3	as3
-	Ada	ada	ada95	ada2005
w	Agda	agda
-	Aheui	aheui
w	Alloy	alloy
w	AmbientTalk	ambienttalk	ambienttalk/2	at
w	Ampl	ampl
-	Angular2	ng2
w	ApacheConf	apacheconf	aconf	apache
-	AppleScript	applescript
w	Arduino	arduino
w	Arrow	arrow
w	Arturo	arturo	art
w	AspectJ	aspectj
w	Asymptote	asymptote	asy
-	Augeas	augeas
-	AutoIt	autoit
-	Awk	awk	gawk	mawk	nawk
w	BARE	bare
w	BBC Basic	bbcbasic
-	BBCode	bbcode
-	BC	bc
-	BNF	bnf
w	BQN	bqn
w	BST	bst	bst-pybtex
-	BUGS	bugs	winbugs	openbugs
w	Base Makefile	basemake
w	Bash	bash	sh	ksh	zsh	shell	openrc
-	Bash Session	console	shell-session
-	Batchfile	batch	bat	dosbatch	winbatch
w	Bdd	bdd
w	Befunge	befunge
w	Berry	berry	be
w	BibTeX	bibtex	bib
w	BlitzBasic	blitzbasic	b3d	bplus
w	BlitzMax	blitzmax	bmax
w	Blueprint	blueprint
w	Boa	boa
w	Boo	boo
-	Boogie	boogie
-	Brainfuck	brainfuck	bf
w	C	c
w	C#	csharp	c#	cs
w	C++	cpp	c++
w	CAmkES	camkes	idl4
w	CBM BASIC V2	cbmbas
w	CDDL	cddl
w	CFEngine3	cfengine3	cf3
w	CMake	cmake
w	COBOL	cobol
w	COBOLFree	cobolfree
w	COMAL-80	comal	comal80
w	CPSA	cpsa
w	CSS	css
w	CSS+Django/Jinja	css+django	css+jinja
w	CSS+Genshi Text	css+genshitext	css+genshi
w	CSS+Lasso	css+lasso
w	CSS+Mako	css+mako
w	CSS+Myghty	css+myghty
w	CSS+PHP	css+php
w	CSS+Ruby	css+ruby	css+erb
w	CSS+Smarty	css+smarty
w	CSS+UL4	css+ul4
w	CSS+mozpreproc	css+mozpreproc
w	CUDA	cuda	cu
w	Cap'n Proto	capnp
w	CapDL	capdl
w	Carbon	carbon
w	Ceylon	ceylon
-	ChaiScript	chaiscript	chai
w	Chapel	chapel	chpl
w	Charmci	charmci
-	Cheetah	cheetah	spitfire
w	Cirru	cirru
w	Clay	clay
w	Clean	clean
w	Clojure	clojure	clj
w	ClojureScript	clojurescript	cljs
w	CodeQL	codeql	ql
w	CoffeeScript	coffeescript	coffee-script	coffee
-	Coldfusion CFC	cfc
-	Coldfusion HTML	cfm
w	Common Lisp	common-lisp	cl	lisp
-	Component Pascal	componentpascal	cp
w	Crmsh	crmsh	pcmk
w	Croc	croc
w	Cryptol	cryptol	cry
w	Crystal	cr	crystal
-	Csound Document	csound-document	csound-csd
w	Csound Orchestra	csound	csound-orc
w	Csound Score	csound-score	csound-sco
w	Cypher	cypher
-	Cython	cython	pyx	pyrex
w	D	d
w	DASM16	dasm16
-	DTD	dtd
w	Darcs Patch	dpatch
w	Dart	dart
-	Dax	dax
-	Debian Control file	debcontrol	control
w	Debian Sourcelist	debsources	sourceslist	sources.list
-	Debian Sources file	debian.sources
w	Delphi	delphi	pas	pascal	objectpascal
w	Desktop file	desktop
w	Devicetree	devicetree	dts
w	Diff	diff	udiff
-	Django/Jinja	django	jinja
w	Docker	docker	dockerfile
-	Duel	duel	jbst	jsonml+bst
w	Dylan	dylan
-	Dylan session	dylan-console	dylan-repl
w	DylanLID	dylan-lid	lid
-	E-mail	email	eml
-	EBNF	ebnf
w	ECL	ecl
-	ERB	erb
-	Earl Grey	earl-grey	earlgrey	eg
w	Easytrieve	easytrieve
w	Eiffel	eiffel
w	Elixir	elixir	ex	exs
-	Elixir iex session	iex
w	Elm	elm
w	Elpi	elpi
w	EmacsLisp	emacs-lisp	elisp	emacs
-	Embedded Ragel	ragel-em
w	Erlang	erlang
-	Erlang erl session	erl
-	Evoque	evoque
w	Ezhil	ezhil
w	F#	fsharp	f#
-	FStar	fstar
w	Factor	factor
w	Fancy	fancy	fy
w	Fantom	fan
w	Felix	felix	flx
w	Fennel	fennel	fnl
w	Fift	fift	fif
-	Fish	fish	fishshell
w	Flatline	flatline
w	FloScript	floscript	flo
w	Forth	forth
w	Fortran	fortran	f90
w	FortranFixed	fortranfixed
-	FoxPro	foxpro	vfp	clipper	xbase
w	Freefem	freefem
w	FunC	func	fc
w	Futhark	futhark
-	GAP	gap
-	GAP session	gap-console	gap-repl
w	GAS	gas	asm
w	GDScript	gdscript	gd
w	GLSL	glsl
w	GSQL	gsql
w	Genshi	genshi	kid	xml+genshi	xml+kid
-	Genshi Text	genshitext
-	Gettext Catalog	pot	po
-	Gherkin	gherkin	cucumber
w	Gleam	gleam
w	Gnuplot	gnuplot
w	Go	go	golang
w	Golo	golo
-	GoodData-CL	gooddata-cl
w	GoogleSQL	googlesql	zetasql
w	Gosu	gosu
-	Gosu Template	gst
w	GraphQL	graphql
w	Graphviz	graphviz	dot
-	Groff	groff	nroff	man
w	Groovy	groovy
w	HLSL	hlsl
w	HSAIL	hsail	hsa
-	HTML	html
-	HTML + Angular2	html+ng2
-	HTML+Cheetah	html+cheetah	html+spitfire	htmlcheetah
-	HTML+Django/Jinja	html+django	html+jinja	htmldjango
-	HTML+Evoque	html+evoque
-	HTML+Genshi	html+genshi	html+kid
-	HTML+Handlebars	html+handlebars
w	HTML+Lasso	html+lasso
-	HTML+Mako	html+mako
-	HTML+Myghty	html+myghty
-	HTML+PHP	html+php
-	HTML+Smarty	html+smarty
-	HTML+Twig	html+twig
-	HTML+UL4	html+ul4
-	HTML+Velocity	html+velocity
-	HTTP	http
-	Haml	haml
-	Handlebars	handlebars
w	Hare	hare
w	Haskell	haskell	hs
w	Haxe	haxe	hxsl	hx
w	Hexdump	hexdump
w	Hspec	hspec
-	Hxml	haxeml	hxml
w	Hy	hylang	hy
-	Hybris	hybris
w	IDL	idl
w	INI	ini	cfg	dosini
-	IRC logs	irc
-	Icon	icon
w	Idris	idris	idr
w	Igor	igor	igorpro
-	Inform 6	inform6	i6
-	Inform 6 template	i6t
-	Inform 7	inform7	i7
w	Io	io
w	Ioke	ioke	ik
w	Isabelle	isabelle
w	J	j
-	JAGS	jags
-	JCL	jcl
w	JMESPath	jmespath	jp
w	JSGF	jsgf
w	JSLT	jslt
w	JSON	json	json-object
w	JSON-LD	jsonld	json-ld
w	JSON5	json5
w	JSX	jsx	react
w	Janet	janet
w	Jasmin	jasmin	jasminxt
w	Java	java
w	Java Server Page	jsp
w	JavaScript	javascript	js
w	JavaScript+Cheetah	javascript+cheetah	js+cheetah	javascript+spitfire	js+spitfire
w	JavaScript+Django/Jinja	javascript+django	js+django	javascript+jinja	js+jinja
w	JavaScript+Genshi Text	js+genshitext	js+genshi	javascript+genshitext	javascript+genshi
w	JavaScript+Lasso	javascript+lasso	js+lasso
w	JavaScript+Mako	javascript+mako	js+mako
w	JavaScript+Myghty	javascript+myghty	js+myghty
w	JavaScript+PHP	javascript+php	js+php
w	JavaScript+Ruby	javascript+ruby	js+ruby	javascript+erb	js+erb
w	JavaScript+Smarty	javascript+smarty	js+smarty
w	Javascript+UL4	js+ul4
w	Javascript+mozpreproc	javascript+mozpreproc
w	Jsonnet	jsonnet
w	Julia	julia	jl
-	Julia console	jlcon	julia-repl
w	Juttle	juttle
w	K	k
w	Kal	kal
w	Kconfig	kconfig	menuconfig	linux-config	kernel-config
-	Kernel log	kmsg	dmesg
w	Koka	koka
w	Kotlin	kotlin
w	Kuin	kuin
w	Kusto	kql	kusto
w	LDAP configuration file	ldapconf	ldaprc
-	LDIF	ldif
w	LLVM	llvm
-	LLVM-MIR	llvm-mir
-	LLVM-MIR Body	llvm-mir-body
w	LSL	lsl
w	Lasso	lasso	lassoscript
w	Lean	lean	lean3
w	Lean4	lean4
w	LessCss	less
w	Lighttpd configuration file	lighttpd	lighty
w	LilyPond	lilypond
w	Limbo	limbo
-	Literate Agda	literate-agda	lagda
-	Literate Cryptol	literate-cryptol	lcryptol	lcry
-	Literate Haskell	literate-haskell	lhaskell	lhs
-	Literate Idris	literate-idris	lidris	lidr
w	LiveScript	livescript	live-script
w	Logos	logos
-	Logtalk	logtalk
w	Lua	lua
w	Luau	luau
w	MAQL	maql
w	MCFunction	mcfunction	mcf
-	MCSchema	mcschema
-	MIME	mime
w	MIPS	mips
-	MOOCode	moocode	moo
w	MQL	mql	mq4	mq5	mql4	mql5
-	MSDOS Session	doscon
-	MXML	mxml
w	Macaulay2	macaulay2
w	Makefile	make	makefile	mf	bsdmake
-	Mako	mako
w	Maple	maple
-	Markdown	markdown	md
w	Mask	mask
-	Mason	mason
w	Mathematica	mathematica	mma	nb	wl	wolfram
w	Matlab	matlab
-	Matlab session	matlabsession
w	Maxima	maxima	macsyma
w	Meson	meson	meson.build
w	MiniD	minid
-	MiniScript	miniscript	ms
-	Modelica	modelica
-	Modula-2	modula2	m2
-	MoinMoin/Trac Wiki markup	trac-wiki	moin
w	Mojo	mojo	🔥
w	Monkey	monkey
w	Monte	monte
-	MoonScript	moonscript	moon
w	Mosel	mosel
w	Mscgen	mscgen	msc
w	MuPAD	mupad
w	MySQL	mysql
-	Myghty	myghty
w	NASM	nasm
-	NCL	ncl
w	NSIS	nsis	nsi	nsh
w	Nemerle	nemerle
-	NestedText	nestedtext	nt
w	NewLisp	newlisp
-	Newspeak	newspeak
w	Nginx configuration file	nginx
w	Nimrod	nimrod	nim
-	Nit	nit
-	Nix	nixos	nix
w	Node.js REPL console session	nodejsrepl
-	Notmuch	notmuch
w	NuSMV	nusmv
-	NumPy	numpy
w	Numba_IR	numba_ir	numbair
-	OCaml	ocaml
w	ODIN	odin
w	OMG Interface Definition Language	omg-idl
w	Objective-C	objective-c	objectivec	obj-c	objc
w	Objective-C++	objective-c++	objectivec++	obj-c++	objc++
w	Objective-J	objective-j	objectivej	obj-j	objj
-	Octave	octave
-	Ooc	ooc
-	Opa	opa
w	OpenEdge ABL	openedge	abl	progress
w	OpenSCAD	openscad
-	Org Mode	org	orgmode	org-mode
w	PDDL	pddl
-	PEG	peg
-	PHP	php	php3	php4	php5
w	PL/pgSQL	plpgsql
w	POVRay	pov
w	PRQL	prql
w	PTX	ptx
w	PacmanConf	pacmanconf
w	Pan	pan
-	ParaSail	parasail
-	Pawn	pawn
w	Perl	perl	pl
-	Perl6	perl6	pl6	raku
w	Phix	phix
w	Pig	pig
w	Pike	pike
w	PkgConfig	pkgconfig
-	Pointless	pointless
-	Pony	pony
w	Portugol	portugol
w	PostScript	postscript	postscr
w	PostgreSQL EXPLAIN dialect	postgres-explain
w	PostgreSQL SQL dialect	postgresql	postgres
w	PostgreSQL console (psql)	psql	postgresql-console	postgres-console
-	PowerShell	powershell	pwsh	posh	ps1	psm1
-	PowerShell Session	pwsh-session	ps1con
w	Praat	praat
w	Procfile	procfile
-	Prolog	prolog
w	PromQL	promql
w	Promela	promela
w	Properties	properties	jproperties
w	Protocol Buffer	protobuf	proto
-	PsySH console session for PHP	psysh
-	Pug	pug	jade
w	Puppet	puppet
w	PyPy Log	pypylog	pypy
-	Python	python	py	sage	python3	py3	bazel	starlark	pyi
-	Python 2.x	python2	py2
-	Python 2.x Traceback	py2tb
-	Python Traceback	pytb	py3tb
-	Python console session	pycon	python-console
-	Python+UL4	py+ul4
w	Q	q
w	QBasic	qbasic	basic
-	QML	qml	qbs
-	QVTO	qvto	qvt
w	Qlik	qlik	qlikview	qliksense	qlikscript
-	RConsole	rconsole	rout
-	REBOL	rebol
-	RHTML	rhtml	html+erb	html+ruby
w	RPMSpec	spec
w	RQL	rql
w	RSL	rsl
w	Racket	racket	rkt
w	Ragel	ragel
w	Ragel in C Host	ragel-c
w	Ragel in CPP Host	ragel-cpp
w	Ragel in D Host	ragel-d
w	Ragel in Java Host	ragel-java
w	Ragel in Objective C Host	ragel-objc
w	Ragel in Ruby Host	ragel-ruby	ragel-rb
w	Rd	rd
-	ReasonML	reasonml	reason
-	Red	red	red/system
w	Redcode	redcode
w	Rego	rego
-	Relax-NG Compact	rng-compact	rnc
w	Rell	rell
-	ResourceBundle	resourcebundle	resource
w	Rexx	rexx	arexx
-	Ride	ride
w	Rita	rita
-	Roboconf Graph	roboconf-graph
-	Roboconf Instances	roboconf-instances
-	RobotFramework	robotframework
-	Rocq Prover	coq	rocq	rocq-prover
w	Ruby	ruby	rb	duby
-	Ruby irb session	rbcon	irb
w	Rust	rust	rs
w	S	splus	s	r
w	SARL	sarl
-	SAS	sas
w	SCSS	scss
-	SNBT	snbt
-	SPARQL	sparql
w	SQL	sql
w	SQL+Jinja	sql+jinja
w	SWIG	swig
w	Sass	sass
w	Savi	savi
w	Scala	scala
w	Scalate Server Page	ssp
-	Scaml	scaml
w	Scheme	scheme	scm
w	Scilab	scilab
w	Sed	sed	gsed	ssed
-	ShExC	shexc	shex
w	Shen	shen
-	Sieve	sieve
-	Silver	silver
w	Singularity	singularity
-	Slash	slash
w	Slim	slim
w	Slurm	slurm	sbatch
w	Smali	smali
-	Smalltalk	smalltalk	squeak	st
w	SmartGameFormat	sgf
-	Smarty	smarty
w	Smithy	smithy
-	Snobol	snobol
w	Snowball	snowball
w	Solidity	solidity
w	Soong	androidbp	bp	soong
w	Sophia	sophia
-	SourcePawn	sp
w	Spice	spice	spicelang
w	SquidConf	squidconf	squid.conf	squid
w	Srcinfo	srcinfo
-	Stan	stan
-	Standard ML	sml
-	Stata	stata	do
-	SuperCollider	supercollider	sc
w	Swift	swift
w	Systemd	systemd
-	TADS 3	tads3
-	TAP	tap
w	TASM	tasm
w	TLS Presentation Language	tls
w	TOML	toml
w	TSX	tsx
w	TableGen	tablegen	td
w	Tact	tact
w	Tal	tal	uxntal
w	Tcl	tcl
-	Tcsh	tcsh	csh
-	Tcsh Session	tcshcon
-	TeX	tex	latex
w	Tea	tea
w	Tera Term macro	teratermmacro	teraterm	ttl
-	Termcap	termcap
-	Terminfo	terminfo
w	Terraform	terraform	tf	hcl
-	Text only	text
-	Text output	output
w	ThingsDB	ti	thingsdb
w	Thrift	thrift
w	Tl-b	tlb
-	Todotxt	todotxt
-	TrafficScript	trafficscript	rts
w	Transact-SQL	tsql	t-sql
w	Treetop	treetop
-	Turtle	turtle
-	Twig	twig
w	TypeScript	typescript	ts
-	TypoScript	typoscript
-	TypoScriptCssData	typoscriptcssdata
-	TypoScriptHtmlData	typoscripthtmldata
-	Typographic Number Theory	tnt
w	Typst	typst
-	UL4	ul4
w	USD	usd	usda
-	Unicon	unicon
w	Unix/Linux config files	unixconfig	linuxconfig
-	UrbiScript	urbiscript
w	VB.net	vb.net	vbnet	lobas	oobas	sobas	visual-basic	visualbasic
w	VBScript	vbscript
w	VCL	vcl
w	VCLSnippets	vclsnippets	vclsnippet
w	VCTreeStatus	vctreestatus
w	VGL	vgl
w	Vala	vala	vapi
-	Velocity	velocity
w	Verifpal	verifpal
-	VimL	vim
w	Visual Prolog	visualprolog
w	Visual Prolog Grammar	visualprologgrammar
-	Vue	vue
w	Vyper	vyper
-	WDiff	wdiff
-	Web IDL	webidl
-	WebAssembly	wast	wat
w	WebGPU Shading Language	wgsl
-	Whiley	whiley
-	Wikitext	wikitext	mediawiki
w	World of Warcraft TOC	wowtoc
w	Wren	wren
w	X++	xpp	x++
-	X10	x10	xten
w	XML	xml
w	XML+Cheetah	xml+cheetah	xml+spitfire
w	XML+Django/Jinja	xml+django	xml+jinja
w	XML+Evoque	xml+evoque
w	XML+Lasso	xml+lasso
w	XML+Mako	xml+mako
w	XML+Myghty	xml+myghty
w	XML+PHP	xml+php
w	XML+Ruby	xml+ruby	xml+erb
w	XML+Smarty	xml+smarty
w	XML+UL4	xml+ul4
w	XML+Velocity	xml+velocity
w	XQuery	xquery	xqy	xq	xql	xqm
w	XSLT	xslt
w	XUL+mozpreproc	xul+mozpreproc
-	Xorg	xorg.conf
w	Xtend	xtend
-	YAML	yaml
-	YAML+Jinja	yaml+jinja	salt	sls
w	YANG	yang
w	YARA	yara	yar
w	Zeek	zeek	bro
-	Zephir	zephir
w	Zig	zig
-	Zone	zone
w	aspx-cs	aspx-cs
w	aspx-vb	aspx-vb
-	autohotkey	autohotkey	ahk
w	c-objdump	c-objdump
w	cADL	cadl
w	ca65 assembler	ca65
-	cfstatement	cfs
-	cplint	cplint
w	cpp-objdump	cpp-objdump	c++-objdumb	cxx-objdump
w	d-objdump	d-objdump
-	dg	dg
w	eC	ec
-	execline	execline
-	g-code	gcode
-	liquid	liquid
w	mozhashpreproc	mozhashpreproc
w	mozpercentpreproc	mozpercentpreproc
w	nesC	nesc
-	objdump	objdump
-	objdump-nasm	objdump-nasm
w	reStructuredText	restructuredtext	rst	rest
w	reg	registry
-	scdoc	scdoc	scd
-	sqlite3con	sqlite3
w	systemverilog	systemverilog	sv
w	teal	teal
-	tiddler	tid
-	ucode	ucode
-	urlencoded	urlencoded
w	verilog	verilog	v
w	vhdl	vhdl
w	xtlang	extempore
`;export{a as table};
