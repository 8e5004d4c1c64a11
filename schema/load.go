package schema

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"opscope/schema/wire"
)

// Load reads every *.yaml of a directory. A file without a `protocol:` of its
// own belongs to the protocol of protocol.yaml beside it; a file may hold
// several documents. All checks of the notation happen here: the error is an
// *Error with file, line and column.
//
// The messages of packets with `proto:` are in the *.proto of the directory and of
// those below it.
func Load(fsys fs.FS, dir string) ([]*Protocol, error) {
	l := &loader{}
	return l.load(fsys, dir)
}

// load reads a directory.
func (l *loader) load(fsys fs.FS, dir string) ([]*Protocol, error) {
	files, err := schemaFiles(fsys, dir)
	if err != nil {
		return nil, err
	}
	if l.protos, err = findProtoFiles(fsys, dir, l.trusted); err != nil {
		return nil, err
	}
	if len(files) == 0 && (l.protos == nil || l.base == nil) {
		return nil, fmt.Errorf("no schema files (*.yaml) in %s", dir)
	}
	for _, f := range files {
		if err := l.file(fsys, f); err != nil {
			return nil, err
		}
	}
	if len(l.protocols) == 0 {
		if _, err := l.draft("", Pos{}); err != nil {
			return nil, err
		}
	}
	return l.finish()
}

// schemaFiles lists the schema files of a directory. protocol.yaml comes first: it
// names the protocol of the others.
func schemaFiles(fsys fs.FS, dir string) ([]string, error) {
	files, err := fs.Glob(fsys, path.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(files, func(a, b string) int {
		first := func(f string) int {
			if path.Base(f) == "protocol.yaml" {
				return 0
			}
			return 1
		}
		return (first(a)-first(b))*2 + strings.Compare(a, b)
	})
	return files, nil
}

// LoadFile reads the documents of one file.
func LoadFile(fsys fs.FS, name string) ([]*Protocol, error) {
	l := &loader{}
	var err error
	if l.protos, err = findProtoFiles(fsys, path.Dir(name), false); err != nil {
		return nil, err
	}
	if err := l.file(fsys, name); err != nil {
		return nil, err
	}
	return l.finish()
}

// Overlay returns p with the packets of a user's directory in the place of those
// with the same opcode, direction and build, and its other packets, types,
// enums and flags beside p's own.
func (p *Protocol) Overlay(fsys fs.FS, dir string) (*Protocol, error) {
	all, err := Extend(fsys, dir, p.base)
	if err != nil {
		return nil, err
	}
	for _, q := range all {
		if q.Name == p.Name {
			return q, nil
		}
	}
	return p, nil
}

// base is what p alone may be laid over.
func (p *Protocol) base(name string) (*Protocol, error) {
	if name != "" && name != p.Name {
		return nil, nil
	}
	return p, nil
}

// Extend reads a user's directory as Overlay does, over any of several protocols, and
// returns those that it adds to and those that are new in it. Base returns the protocol
// with a name, or nil for a name that is new; the empty name is that of documents that
// name none, and of a directory with *.proto alone.
func Extend(fsys fs.FS, dir string, base func(name string) (*Protocol, error)) ([]*Protocol, error) {
	l := &loader{base: base}
	return l.load(fsys, dir)
}

// WithOrder returns p with another order of bytes, in all that does not say its own.
func (p *Protocol) WithOrder(o wire.Order) (*Protocol, error) {
	if p.Order == o {
		return p, nil
	}
	l := &loader{base: p.base}
	d, err := l.draft(p.Name, Pos{})
	if err != nil {
		return nil, err
	}
	d.turn(o)
	all, err := l.finish()
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// loader collects the declarations of all files before anything is compiled.
type loader struct {
	protocols []*draft
	base      func(name string) (*Protocol, error) // for an overlay, as Extend has it
	protos    *protoFiles
	trusted   bool // the files are the program's own, and a test has loaded all of them
}

// draft is a protocol whose files are still being read.
type draft struct {
	*Protocol
	pos     Pos
	packets []*packetDecl
	enumPos map[string]Pos
	late    []func(*draft) error // what needs all declarations

	inherited []*typeDecl // of the protocol below an overlay
	trusted   bool        // as the loader has it
}

// packetDecl is an entry under `packets:` before it is compiled.
type packetDecl struct {
	*Packet
	bodies   [3][]*bodyDecl // by sender
	redact   []yamlPair
	from     Pos
	opcodeAt Pos
	protoAt  Pos
	user     bool // from an overlay

	redactAll Redaction // of every text and all bytes
	open      bool      // it says itself what it redacts
	heir      bool      // redact is that of the packet whose place it takes

	unread []yamlPair // bodies that are packed, until something needs them
}

// bodyDecl is one layout of a packet.
type bodyDecl struct {
	source     string
	confidence Confidence
	fields     []*fieldDecl
}

var documentKeys = []string{
	"protocol", "over", "doc", "order", "align", "ports", "opcode", "state", "defaults", "types", "packets", "enums", "flags",
	"envelopes", "framings", "groups", "limits", "builds", "open", "source", "confidence", "bodies",
}

func (l *loader) file(fsys fs.FS, name string) error {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	docs, err := l.documents(name, data, inDocument)
	if err != nil {
		return err
	}
	if len(docs) == 0 {
		return errorAt(Pos{path.Base(name), 1, 1}, "an empty file; a schema starts with `protocol: NAME`")
	}
	for _, d := range docs {
		if err := d.wantKeys("a schema document", documentKeys...); err != nil {
			return err
		}
		if err := l.document(d); err != nil {
			return err
		}
	}
	return nil
}

// documents returns the documents of a file; of a built-in one, with some of it packed.
func (l *loader) documents(name string, data []byte, part treePart) ([]*yamlNode, error) {
	if l.trusted {
		if docs, ok := packedTree(name, data, part); ok {
			return docs, nil
		}
	}
	return parseYAML(path.Base(name), data)
}

// document reads one document into the protocol that it belongs to.
func (l *loader) document(n *yamlNode) error {
	var p *draft
	name := n.get("protocol")
	switch {
	case name != nil:
		if _, err := name.word("protocol"); err != nil {
			return err
		}
		var err error
		if p, err = l.draft(name.text, name.pos); err != nil {
			return err
		}
	case len(l.protocols) == 1:
		p = l.protocols[0]
	case l.base != nil:
		var err error
		if p, err = l.draft("", n.pos); err != nil {
			return err
		}
	default:
		return errorAt(n.pos, "no `protocol: NAME` here, and no protocol.yaml beside it")
	}
	for _, pair := range n.pairs {
		if pair.value.kind == yamlNull {
			return errorAt(pair.key.pos, "%q has no value", pair.key.text)
		}
		if err := p.section(pair.key.text, pair.value, l.base != nil); err != nil {
			return err
		}
	}
	return nil
}

// draft returns the draft of a protocol, which begins with what it is laid over.
func (l *loader) draft(name string, pos Pos) (*draft, error) {
	var b *Protocol
	if l.base != nil {
		var err error
		if b, err = l.base(name); err != nil {
			return nil, err
		}
	}
	if b != nil {
		name = b.Name
	}
	for _, d := range l.protocols {
		if d.Name == name {
			return d, nil
		}
	}
	d := &draft{Protocol: &Protocol{Name: name, OpcodeBits: 8, protos: l.protos}, pos: pos, enumPos: map[string]Pos{}, trusted: l.trusted}
	if b != nil {
		d.Protocol, d.inherited = b.clone(), b.Types
		d.protos = l.protos.over(b.protos)
		for _, e := range b.drafts {
			c, err := e.read()
			if err != nil {
				return nil, err
			}
			q := *e.Packet
			q.layouts, q.compile = [3][]*Layout{}, nil
			c.Packet, c.user = &q, false
			d.packets = append(d.packets, c)
		}
	}
	l.protocols = append(l.protocols, d)
	return d, nil
}

// clone returns a copy of p to which declarations can be added.
func (p *Protocol) clone() *Protocol {
	c := *p
	c.Ports, c.State, c.Defaults = slices.Clone(p.Ports), slices.Clone(p.State), slices.Clone(p.Defaults)
	c.Enums, c.Flags, c.Types = slices.Clone(p.Enums), slices.Clone(p.Flags), slices.Clone(p.Types)
	c.Envelopes, c.Framings = slices.Clone(p.Envelopes), slices.Clone(p.Framings)
	c.Groups, c.Limits, c.Open = slices.Clone(p.Groups), slices.Clone(p.Limits), slices.Clone(p.Open)
	c.Builds = slices.Clone(p.Builds)
	return &c
}

func (d *draft) section(key string, v *yamlNode, user bool) error {
	switch key {
	case "protocol":
		return nil
	case "over":
		over, err := v.word("over")
		d.Over = over
		return err
	case "doc":
		d.Doc = v.text
	case "source":
		d.Source = v.text
	case "confidence":
		c, err := v.confidence()
		d.Confidence = c
		return err
	case "order":
		i, err := v.oneOf("order", []string{"be", "le"})
		d.Order = wire.Order(i)
		return err
	case "align":
		i, err := v.oneOf("align", []string{"byte", "bit"})
		d.BitAlign = i == 1
		return err
	case "bodies":
		_, err := v.oneOf("kind of bodies", []string{"protobuf"})
		d.Unknown = &Layout{} // until the source is known
		return err
	case "opcode":
		t, err := parseType(v.text, v.pos)
		if err != nil {
			return err
		}
		if t.kind != refUint || t.bits == 0 {
			return errorAt(v.pos, "an opcode is an unsigned number, such as u8")
		}
		d.OpcodeBits = t.bits
	case "open":
		q, err := parseQuestions(v)
		d.Open = append(d.Open, q...)
		return err
	case "builds":
		words, err := v.words("builds")
		for _, w := range words {
			d.Builds = append(d.Builds, w.text)
		}
		return err
	case "ports":
		return d.parsePorts(v)
	case "groups":
		return d.parseGroups(v)
	case "limits":
		return d.parseLimits(v)
	case "state":
		return d.parseState(v)
	case "defaults":
		d.late = append(d.late, func(d *draft) error { return d.parseDefaults(v) })
	case "enums":
		return d.parseEnums(v)
	case "flags":
		return d.parseFlagSets(v)
	case "types":
		return d.parseTypes(v)
	case "envelopes":
		return d.parseEnvelopes(v)
	case "framings":
		d.late = append(d.late, func(d *draft) error { return d.parseFramings(v) })
	case "packets":
		return d.parsePackets(v, user)
	}
	return nil
}

func (n *yamlNode) mapping(what string) ([]yamlPair, error) {
	if n.kind != yamlMap {
		return nil, errorAt(n.pos, "%s must be a mapping", what)
	}
	return n.pairs, nil
}

func parseQuestions(n *yamlNode) ([]Question, error) {
	if n.kind != yamlList {
		return nil, errorAt(n.pos, "open must be a list of questions")
	}
	var out []Question
	for _, item := range n.items {
		if err := item.wantKeys("a question", "question", "answer", "evidence"); err != nil {
			return nil, err
		}
		var q Question
		for _, p := range item.pairs {
			switch p.key.text {
			case "question":
				q.Question = p.value.text
			case "answer":
				q.Answer = p.value.text
			case "evidence":
				q.Evidence = p.value.text
			}
		}
		if q.Question == "" {
			return nil, errorAt(item.pos, "an open point needs a question")
		}
		out = append(out, q)
	}
	return out, nil
}

var transports = []string{"tcp", "udp"}

func (d *draft) parsePorts(n *yamlNode) error {
	if n.kind != yamlList {
		return errorAt(n.pos, "ports must be a list such as [{tcp: 2627}]")
	}
	for _, item := range n.items {
		if err := item.wantKeys("a port", transports...); err != nil {
			return err
		}
		for _, p := range item.pairs {
			v, err := p.value.integer("a port")
			if err != nil {
				return err
			}
			if v < 1 || v > 65535 {
				return errorAt(p.value.pos, "port %d is not from 1 to 65535", v)
			}
			d.Ports = append(d.Ports, Port{int(v), Transport(1 << slices.Index(transports, p.key.text))})
		}
	}
	return nil
}

func (d *draft) parseGroups(n *yamlNode) error {
	pairs, err := n.mapping("groups")
	if err != nil {
		return err
	}
	for _, p := range pairs {
		g := Group{Name: p.key.text}
		if p.value.kind != yamlList {
			return errorAt(p.value.pos, "a group is a list of opcodes")
		}
		for _, item := range p.value.items {
			v, err := item.integer("an opcode")
			if err != nil {
				return err
			}
			g.Opcodes = append(g.Opcodes, uint64(v))
		}
		d.Groups = append(d.Groups, g)
	}
	return nil
}

func (d *draft) parseLimits(n *yamlNode) error {
	pairs, err := n.mapping("limits")
	if err != nil {
		return err
	}
	for _, p := range pairs {
		limit := Limit{Name: p.key.text}
		v := p.value
		if v.kind == yamlMap {
			if err := v.wantKeys("a limit", "value", "doc", "source", "confidence"); err != nil {
				return err
			}
			if doc := v.get("doc"); doc != nil {
				limit.Doc = doc.text
			}
			if v = v.get("value"); v == nil {
				return errorAt(p.key.pos, "limit %q needs a value", p.key.text)
			}
		}
		if limit.Value, err = v.integer("a limit"); err != nil {
			return err
		}
		d.Limits = append(d.Limits, limit)
	}
	return nil
}

func (d *draft) parseState(n *yamlNode) error {
	pairs, err := n.mapping("state")
	if err != nil {
		return err
	}
	for _, p := range pairs {
		t := TableDecl{Name: p.key.text}
		columns := p.value
		if p.value.kind == yamlMap {
			if len(p.value.pairs) != 1 {
				return errorAt(p.value.pos, "a table is {KEY: [MEMBERS]}")
			}
			t.Key, columns = p.value.pairs[0].key.text, p.value.pairs[0].value
		}
		words, err := columns.words("the members of a table")
		if err != nil {
			return err
		}
		for _, w := range words {
			t.Columns = append(t.Columns, w.text)
		}
		d.State = append(d.State, t)
	}
	return nil
}

func (d *draft) parseEnums(n *yamlNode) error {
	pairs, err := n.mapping("enums")
	if err != nil {
		return err
	}
	for _, p := range pairs {
		if err := d.claim(p.key); err != nil {
			return err
		}
		e, err := parseEnum(p.key.text, p.value)
		if err != nil {
			return err
		}
		d.Enums = append(slices.DeleteFunc(d.Enums, func(x *Enum) bool { return x.Name == e.Name }), e)
	}
	return nil
}

func (d *draft) parseFlagSets(n *yamlNode) error {
	pairs, err := n.mapping("flags")
	if err != nil {
		return err
	}
	for _, p := range pairs {
		if err := d.claim(p.key); err != nil {
			return err
		}
		f, err := parseFlags(p.key.text, p.value)
		if err != nil {
			return err
		}
		d.Flags = append(slices.DeleteFunc(d.Flags, func(x *Flags) bool { return x.Name == f.Name }), f)
	}
	return nil
}

// claim notes the name of an enum or of flags, which share one space.
func (d *draft) claim(key *yamlNode) error {
	if p, ok := d.enumPos[key.text]; ok {
		return errorAt(key.pos, "%q twice (first at line %d of %s)", key.text, p.Line, p.File)
	}
	if key.text == "opcode" || key.text == "hex" {
		return errorAt(key.pos, "%q is a name of the notation", key.text)
	}
	d.enumPos[key.text] = key.pos
	return nil
}

func (d *draft) parseTypes(n *yamlNode) error {
	pairs, err := n.mapping("types")
	if err != nil {
		return err
	}
	for _, p := range pairs {
		t, err := parseTypeDecl(p.key, p.value)
		if err != nil {
			return err
		}
		if old := d.typeNamed(t.name); old != nil && !slices.Contains(d.inherited, old) {
			return errorAt(p.key.pos, "%q twice (first at line %d of %s)", t.name, old.pos.Line, old.pos.File)
		}
		d.Types = append(slices.DeleteFunc(d.Types, func(x *typeDecl) bool { return x.name == t.name }), t)
	}
	return nil
}

// parseTypeDecl reads `NAME: TYPE`, `NAME(PARAMS): [fields]` or a switch.
// What is packed is read when something needs it.
func parseTypeDecl(key, value *yamlNode) (*typeDecl, error) {
	l := newLexer(key.text, key.pos)
	t := &typeDecl{name: l.word, pos: key.pos}
	if !isName(l.word) {
		return nil, l.unexpected("the name of a type")
	}
	l.next()
	if l.take("(") {
		for !l.take(")") {
			if len(t.params) > 0 {
				if err := l.expect(","); err != nil {
					return nil, err
				}
			}
			if !isName(l.word) {
				return nil, l.unexpected("the name of a parameter")
			}
			t.params = append(t.params, l.word)
			l.next()
		}
	}
	if l.word != "" {
		return nil, l.unexpected("the end of the name")
	}
	if isBuiltin(t.name) {
		return nil, errorAt(key.pos, "%q is a type of the notation", t.name)
	}
	if len(t.params) > maxParams {
		return nil, errorAt(key.pos, "%d parameters; a type takes at most %d", len(t.params), maxParams)
	}
	if value.packed {
		t.unread = sync.OnceFunc(func() {
			if err := t.read(value.unpacked()); err != nil {
				panic(err)
			}
		})
		return t, nil
	}
	return t, t.read(value)
}

// read reads what the type is.
func (t *typeDecl) read(value *yamlNode) (err error) {
	if value.kind == yamlMap {
		t.choice, err = parseChoice(value, false)
	} else {
		t.ref, err = parseTypeNode(value)
	}
	return err
}

func isBuiltin(name string) bool {
	return isNumberType(name) || slices.Contains(builtinTypes, name) || primitives[name] != nil
}

var builtinTypes = []string{"f32", "f64", "fx", "text", "bytes", "rest", "fill", "guid", "ipv4", "body", "join"}

var packetKeys = []string{
	"opcode", "from", "via", "build", "size", "source", "confidence", "doc", "deprecated", "teaches", "open", "redact",
	"fields", "client", "server", "alternatives", "proto",
}

// bodyKeys are those of packetKeys that hold layouts.
var bodyKeys = []string{"fields", "client", "server", "alternatives"}

func (d *draft) parsePackets(n *yamlNode, user bool) error {
	pairs, err := n.mapping("packets")
	if err != nil {
		return err
	}
	for _, p := range pairs {
		e, err := d.parsePacket(p.key, p.value)
		if err != nil {
			return err
		}
		e.user = user
		d.packets = append(d.packets, e)
	}
	return nil
}

func (d *draft) parsePacket(key, n *yamlNode) (*packetDecl, error) {
	if err := n.wantKeys("a packet", packetKeys...); err != nil {
		return nil, err
	}
	e := &packetDecl{Packet: &Packet{Name: key.text, Via: TCP | UDP, Pos: key.pos}, from: key.pos, opcodeAt: key.pos}
	op := n.get("opcode")
	if op == nil {
		return nil, errorAt(key.pos, "%s has no opcode", key.text)
	}
	v, err := op.integer("an opcode")
	if err != nil {
		return nil, err
	}
	e.Opcode, e.opcodeAt = uint64(v), op.pos
	bodies := 0
	for _, p := range n.pairs {
		if slices.Contains([]string{"fields", "client", "alternatives", "proto"}, p.key.text) ||
			p.key.text == "server" && n.get("client") == nil {
			if bodies++; bodies > 1 {
				return nil, errorAt(p.key.pos, "%s has more than one body; fields, client and server, alternatives and proto exclude each other", key.text)
			}
		}
		if p.value.packed {
			e.unread = append(e.unread, p)
			continue
		}
		if err := e.qualify(p.key.text, p.value); err != nil {
			return nil, err
		}
	}
	if e.From != AnySender && (n.get("client") != nil || n.get("server") != nil) {
		return nil, errorAt(e.from, "from does not go with client and server, which say who sends")
	}
	return e, nil
}

// read returns a copy of e with its bodies.
func (e *packetDecl) read() (*packetDecl, error) {
	c := *e
	c.unread = nil
	for _, p := range e.unread {
		if err := c.qualify(p.key.text, p.value.unpacked()); err != nil {
			return nil, err
		}
	}
	return &c, nil
}

func (e *packetDecl) qualify(key string, v *yamlNode) error {
	var err error
	switch key {
	case "from":
		i, err := v.oneOf("sender", []string{"any", "client", "server"})
		e.From, e.from = Sender(i), v.pos
		return err
	case "via":
		words, err := v.words("via")
		if err != nil {
			return err
		}
		e.Via = 0
		for _, w := range words {
			i, err := w.oneOf("transport", transports)
			if err != nil {
				return err
			}
			e.Via |= 1 << i
		}
	case "build":
		e.Build = v.text
	case "doc":
		e.Doc = v.text
	case "source":
		e.Source = v.text
	case "confidence":
		e.Confidence, err = v.confidence()
	case "size":
		e.size, err = parseExpr(v.text, v.pos)
	case "teaches":
		words, err := v.words("teaches")
		for _, w := range words {
			e.Teaches = append(e.Teaches, w.text)
		}
		e.teachesAt = v.pos
		return err
	case "open":
		e.Open, err = parseQuestions(v)
	case "deprecated":
		e.Deprecated, err = v.word("deprecated")
	case "redact":
		if e.open = true; v.kind == yamlScalar {
			e.redactAll, err = v.redaction()
			return err
		}
		e.redact, err = v.mapping("redact")
		for _, p := range e.redact {
			if _, err := p.value.redaction(); err != nil {
				return err
			}
		}
	case "proto":
		e.Proto, err = v.word("proto")
		e.protoAt = v.pos
	case "fields", "client", "server":
		fields, err := parseFields(v)
		if err != nil {
			return err
		}
		body := []*bodyDecl{{fields: fields}}
		switch key {
		case "fields":
			e.bodies = [3][]*bodyDecl{body, body, body}
		case "client":
			e.bodies[Client] = body
		case "server":
			e.bodies[Server] = body
		}
	case "alternatives":
		return e.alternatives(v)
	}
	return err
}

func (e *packetDecl) alternatives(n *yamlNode) error {
	if n.kind != yamlList || len(n.items) < 2 {
		return errorAt(n.pos, "alternatives must be a list of two layouts or more")
	}
	for _, item := range n.items {
		if err := item.wantKeys("an alternative", "source", "confidence", "fields", "doc"); err != nil {
			return err
		}
		b := &bodyDecl{}
		fields := item.get("fields")
		if fields == nil {
			return errorAt(item.pos, "an alternative needs fields")
		}
		var err error
		if b.fields, err = parseFields(fields); err != nil {
			return err
		}
		s := item.get("source")
		if s == nil {
			return errorAt(item.pos, "an alternative needs a source")
		}
		b.source = s.text
		if c := item.get("confidence"); c != nil {
			if b.confidence, err = c.confidence(); err != nil {
				return err
			}
		}
		for s := range e.bodies {
			e.bodies[s] = append(e.bodies[s], b)
		}
	}
	return nil
}

// finish compiles what was read.
func (l *loader) finish() ([]*Protocol, error) {
	var out []*Protocol
	for _, d := range l.protocols {
		if err := d.finish(); err != nil {
			return nil, err
		}
		out = append(out, d.Protocol)
	}
	return out, nil
}

func (d *draft) finish() error {
	if err := d.replace(); err != nil {
		return err
	}
	d.names = d.opcodeNames()
	if d.Unknown != nil {
		d.Unknown = guessBody(d.Source, Open)
	}
	for _, e := range d.packets {
		if e.Build != "" && !slices.Contains(d.Builds, e.Build) {
			return errorAt(e.Pos, "%s has an unknown build %q%s", e.Name, e.Build, hint(e.Build, slices.Clone(d.Builds)))
		}
	}
	for i := range d.State {
		d.State[i].KeyEnum = d.enum(d.State[i].Key)
		if t := d.typeNamed(d.State[i].Key); t != nil && t.ref != nil {
			d.State[i].HexKey = t.ref.label == "hex"
		}
		d.State[i].Flags = d.flags(d.State[i].Name)
		if len(d.State[i].Columns) == 1 {
			d.State[i].Enum = d.enum(d.State[i].Columns[0])
		}
	}
	if err := d.compileEnvelopes(); err != nil {
		return err
	}
	for _, late := range d.late {
		if err := late(d); err != nil {
			return err
		}
	}
	if !d.trusted {
		for _, t := range d.Types {
			if err := d.checkType(t); err != nil {
				return err
			}
		}
	}
	for _, e := range d.packets {
		e.Source, e.Confidence = cmp.Or(e.Source, d.Source), cmp.Or(e.Confidence, d.Confidence)
		if err := d.settlePacket(e); err != nil {
			return err
		}
		d.Packets = append(d.Packets, e.Packet)
	}
	d.drafts = d.packets
	d.indexPackets()
	return d.compileSizes()
}

// settlePacket compiles a packet; one whose bodies are unread, when something asks for
// them. That it does not compile then is a mistake in the program.
func (d *draft) settlePacket(e *packetDecl) error {
	e.bodied = len(e.unread) > 0 || slices.ContainsFunc(e.bodies[:], func(b []*bodyDecl) bool { return b != nil })
	if e.unread == nil {
		return d.compileLayouts(e)
	}
	e.compile = sync.OnceFunc(func() {
		c, err := e.read()
		if err == nil {
			err = d.compileLayouts(c)
		}
		if err != nil {
			panic(err)
		}
		atomic.StoreUint32(&e.compiled, 1)
	})
	return nil
}

// compileLayouts compiles a packet with its bodies.
func (d *draft) compileLayouts(e *packetDecl) error {
	if err := d.compilePacket(e); err != nil {
		return err
	}
	e.findStrictest()
	return nil
}

// enum returns the enum of a table's key or column: the one of the same name,
// or of the name with the table's habit of leaving a word out.
func (d *draft) enum(name string) *Enum {
	if name == "opcode" {
		return d.names
	}
	for _, e := range d.Enums {
		if e.Name == name || strings.HasSuffix(e.Name, "_"+name) {
			return e
		}
	}
	return nil
}

// flags returns the flags of this name, or nil.
func (d *draft) flags(name string) *Flags {
	i := slices.IndexFunc(d.Flags, func(f *Flags) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return d.Flags[i]
}

// replace lets a user's packets take the place of the built-in ones, and
// refuses two packets with one opcode.
func (d *draft) replace() error {
	d.Packets = nil
	var kept []*packetDecl
	for _, e := range d.packets {
		if e.yields(d.packets) {
			continue
		}
		for _, k := range kept {
			if k.overlaps(e) {
				return errorAt(e.opcodeAt, "opcode 0x%02X twice: %s and %s (first at line %d of %s)",
					e.Opcode, k.Name, e.Name, k.opcodeAt.Line, k.opcodeAt.File)
			}
			if k.Name == e.Name && k.Build == e.Build && k.From == e.From {
				return errorAt(e.Pos, "packet %q twice (first at line %d of %s)", e.Name, k.Pos.Line, k.Pos.File)
			}
		}
		kept = append(kept, e)
	}
	d.packets = kept
	return nil
}

// yields reports whether a user's packets take the place of e whole. Where they
// do so in one direction only, e keeps the other.
func (e *packetDecl) yields(all []*packetDecl) bool {
	for _, u := range all {
		switch {
		case e.user || !u.user || !u.overlaps(e):
		case e.From == AnySender && u.From != AnySender:
			u.inherit(e)
			e.From = 3 - u.From
		default:
			u.inherit(e)
			return true
		}
	}
	return false
}

// inherit redacts what the packet did whose place e takes, unless e says itself what
// it redacts: to know more of a packet shall not show its secrets.
func (e *packetDecl) inherit(from *packetDecl) {
	if !e.open {
		e.redact, e.redactAll, e.heir = from.redact, max(from.redactAll, e.redactAll), true
	}
}

func (e *packetDecl) overlaps(o *packetDecl) bool {
	senders := e.From == o.From || e.From == AnySender || o.From == AnySender
	return e != o && e.Opcode == o.Opcode && senders && e.Via&o.Via != 0 && e.Build == o.Build
}

func (d *draft) opcodeNames() *Enum {
	var values []Name
	for _, e := range d.packets {
		values = append(values, Name{e.Opcode, e.Name})
	}
	return NewEnum("opcode", values)
}

// indexPackets finds a place for each packet of the first build. One that names
// the build goes before one that serves all.
func (d *draft) indexPackets() {
	d.index = make(map[opcodeKey]*Packet, 6*len(d.Packets))
	for _, p := range d.Packets {
		if p.Build != "" && p.Build != d.Builds[0] {
			continue
		}
		for _, t := range []Transport{TCP, UDP} {
			for _, s := range []Sender{AnySender, Client, Server} {
				if p.Via&t != 0 && (p.From == s || p.From == AnySender || s == AnySender) {
					d.put(opcodeKey{p.Opcode, s, t}, p)
				}
			}
		}
	}
	d.pages = nil
	for k, p := range d.index {
		n := int(min(k.opcode>>8, maxPages))
		if n == maxPages {
			continue
		}
		for len(d.pages) <= n {
			d.pages = append(d.pages, new([3][4][256]*Packet))
		}
		d.pages[n][k.from][k.via][k.opcode&0xff] = p
	}
}

func (d *draft) put(k opcodeKey, p *Packet) {
	old, taken := d.index[k]
	switch {
	case taken && k.from == AnySender && (old == nil || old.From != p.From):
		d.index[k] = nil // either of two
	case !taken || old.Build == "":
		d.index[k] = p
	}
}

// parseDefaults reads the stated defaults of learned tables.
func (d *draft) parseDefaults(n *yamlNode) error {
	pairs, err := n.mapping("defaults")
	if err != nil {
		return err
	}
	for _, p := range pairs {
		i := slices.IndexFunc(d.State, func(t TableDecl) bool { return t.Name == p.key.text })
		if i < 0 {
			return d.unknownTable(p.key.text, p.key.pos)
		}
		if p.value.kind != yamlList {
			return errorAt(p.value.pos, "the defaults of a table are a list")
		}
		for _, item := range p.value.items {
			s, err := d.parseDefault(&d.State[i], item)
			if err != nil {
				return err
			}
			d.Defaults = append(d.Defaults, s)
		}
	}
	return nil
}

func (d *draft) parseDefault(t *TableDecl, n *yamlNode) (*StatedDefault, error) {
	if err := n.wantKeys("a default", "sender", "source", "confidence", "entries"); err != nil {
		return nil, err
	}
	s := &StatedDefault{table: NewTable(t)}
	if v := n.get("sender"); v != nil {
		i, err := v.oneOf("sender", []string{"any", "client", "server"})
		if err != nil {
			return nil, err
		}
		s.Sender = Sender(i)
	}
	if v := n.get("source"); v != nil {
		s.Source = v.text
	}
	entries := n.get("entries")
	if entries == nil || entries.kind != yamlMap {
		return nil, errorAt(n.pos, "a default needs entries")
	}
	for _, p := range entries.pairs {
		low, high, ok := parseRange(p.key.text)
		if !ok || high-low > 1<<16 {
			return nil, errorAt(p.key.pos, "%q is not a key of the table", p.key.text)
		}
		words, err := p.value.words("an entry")
		if err != nil {
			return nil, err
		}
		if len(words) != len(t.Columns) {
			return nil, errorAt(p.value.pos, "%s has %s, got %d", t.Name, plural(len(t.Columns), "member"), len(words))
		}
		e := Entry{Origin: Default}
		for _, w := range words {
			f, err := strconv.ParseFloat(w.text, 64)
			if err != nil {
				return nil, errorAt(w.pos, "%q is not a number", w.text)
			}
			e.Values = append(e.Values, f)
			e.Texts = append(e.Texts, w.text)
		}
		for k := low; k <= high; k++ {
			s.table.Set(int64(k), e)
		}
	}
	return s, nil
}

// StatedDefault is what a protocol assumes of a table that no packet taught.
type StatedDefault struct {
	Sender Sender
	Source string
	table  *Table
}

// DefaultTable returns the stated default of a table for one sender, or nil.
// Its entries have the origin Default. The table is the caller's own: to Set it
// changes no other, though they share their memory until then.
func (p *Protocol) DefaultTable(name string, s Sender) *Table {
	for _, d := range p.Defaults {
		if d.table.Decl.Name == name && (d.Sender == s || d.Sender == AnySender) {
			return d.table.share()
		}
	}
	return nil
}

func (d *draft) unknownTable(name string, pos Pos) error {
	var names []string
	for _, t := range d.State {
		names = append(names, t.Name)
	}
	return errorAt(pos, "unknown table %q%s", name, hint(name, names))
}

// IsSchemaError reports whether err is a fault in a schema file.
func IsSchemaError(err error) bool {
	var e *Error
	return errors.As(err, &e)
}
