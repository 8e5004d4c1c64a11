package schema

import (
	_ "embed" // the trees
	encoding "encoding/binary"
	"hash/crc32"
	"path"
	"slices"
)

// To parse the YAML of a protocol takes longer than to decode a small capture. The trees of
// the built-in files are therefore kept beside them, each with the checksum of the text that
// it was made of: a tree of another text is passed over, and the text parsed and checked. So a
// stale file costs time and never the truth, and a test says that it is stale.
//
//	trees:     file...
//	file:      name; checksum of the text, 4 bytes; its documents in one text
//	documents: their number, and a node for each
//	node:      kind, and 4 for flow style; line; column; for all but null a text: that of a
//	           scalar, or the number of items or pairs and the nodes of all of them
//
// Numbers are varints, and a text is its length and its bytes.
//
//go:generate go run pack.go
//go:embed protocols.trees
var trees string

// PackBuiltin returns the trees of the built-in files, for go generate.
func PackBuiltin() ([]byte, error) {
	var packed []byte
	for _, dir := range BuiltinNames() {
		files, err := schemaFiles(builtin, path.Join("protocols", dir))
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			data, err := builtin.ReadFile(name)
			if err != nil {
				return nil, err
			}
			docs, err := parseYAML(path.Base(name), data)
			if err != nil {
				return nil, err
			}
			packed = appendText(packed, name)
			packed = encoding.BigEndian.AppendUint32(packed, crc32.ChecksumIEEE(data))
			packed = appendText(packed, string(appendTree(nil, docs)))
		}
	}
	return packed, nil
}

func appendText(dst []byte, s string) []byte {
	return append(encoding.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendTree(dst []byte, docs []*yamlNode) []byte {
	dst = encoding.AppendUvarint(dst, uint64(len(docs)))
	for _, d := range docs {
		dst = appendNode(dst, d)
	}
	return dst
}

// flowStyle is added to the kind of a node in flow style.
const flowStyle = 4

func appendNode(dst []byte, n *yamlNode) []byte {
	kind := byte(n.kind)
	if n.flow {
		kind |= flowStyle
	}
	dst = append(dst, kind)
	dst = encoding.AppendUvarint(dst, uint64(n.pos.Line))
	dst = encoding.AppendUvarint(dst, uint64(n.pos.Col))
	switch n.kind {
	case yamlScalar:
		return appendText(dst, n.text)
	case yamlList:
		return appendText(dst, string(appendTree(nil, n.items)))
	case yamlMap:
		body := encoding.AppendUvarint(nil, uint64(len(n.pairs)))
		for _, p := range n.pairs {
			body = appendNode(appendNode(body, p.key), p.value)
		}
		return appendText(dst, string(body))
	}
	return dst
}

// packedTree returns the documents of a built-in file out of the trees. It returns false
// where they have none of this text.
func packedTree(name string, data []byte, part treePart) ([]*yamlNode, bool) {
	for r := (treeReader{rest: trees}); len(r.rest) > 0; {
		file := r.text()
		sum := r.rest[:4]
		r.rest = r.rest[4:]
		body := r.text()
		if file != name {
			continue
		}
		if encoding.BigEndian.Uint32([]byte(sum)) != crc32.ChecksumIEEE(data) {
			return nil, false
		}
		r = treeReader{rest: body, file: path.Base(name)}
		docs := make([]*yamlNode, r.number())
		for i := range docs {
			docs[i] = r.node(part)
		}
		return docs, true
	}
	return nil, false
}

// treePart is a part of a document. What layouts are made of is left packed, and of a head
// all but what Head has.
type treePart uint8

const (
	elsewhere treePart = iota
	inDocument
	inHead
	inPackets
	inPacket
	inTypes
	leftPacked
)

// below returns the part that the value of a key is.
func (p treePart) below(key string) treePart {
	switch {
	case p == inDocument && key == "packets":
		return inPackets
	case p == inDocument && key == "types":
		return inTypes
	case p == inPackets:
		return inPacket
	case p == inTypes, p == inPacket && slices.Contains(bodyKeys, key), p == inHead && !slices.Contains(headKeys, key):
		return leftPacked
	}
	return elsewhere
}

// treeReader reads trees. Texts alias them. What is wrong with them is a mistake in the
// program: a test has read them.
type treeReader struct {
	rest  string
	file  string
	spare []yamlNode
}

func (r *treeReader) number() int {
	n, shift := 0, 0
	for i := range len(r.rest) {
		c := r.rest[i]
		if n |= int(c&0x7f) << shift; c < 0x80 {
			r.rest = r.rest[i+1:]
			return n
		}
		shift += 7
	}
	panic("protocols.trees: cut")
}

func (r *treeReader) text() string {
	n := r.number()
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

// nodesAtOnce is how many nodes are allocated together.
const nodesAtOnce = 32

func (r *treeReader) node(part treePart) *yamlNode {
	if len(r.spare) == 0 {
		r.spare = make([]yamlNode, nodesAtOnce)
	}
	n := &r.spare[0]
	r.spare = r.spare[1:]
	kind := r.number()
	n.kind, n.flow = yamlKind(kind&^flowStyle), kind&flowStyle != 0
	n.pos = Pos{r.file, r.number(), r.number()}
	if n.kind == yamlNull {
		return n
	}
	n.text = r.text()
	if n.kind != yamlScalar {
		n.packed = true
		if part != leftPacked {
			r.unpack(n, part)
		}
	}
	return n
}

// unpack reads what is below n.
func (r *treeReader) unpack(n *yamlNode, part treePart) {
	behind := r.rest
	r.rest = n.text
	n.text, n.packed = "", false
	switch count := r.number(); {
	case count == 0:
	case n.kind == yamlList:
		n.items = make([]*yamlNode, count)
		for i := range n.items {
			n.items[i] = r.node(elsewhere)
		}
	default:
		n.pairs = make([]yamlPair, count)
		for i := range n.pairs {
			key := r.node(elsewhere)
			n.pairs[i] = yamlPair{key, r.node(part.below(key.text))}
		}
	}
	r.rest = behind
}

// unpacked returns n with what is below it.
func (n *yamlNode) unpacked() *yamlNode {
	if !n.packed {
		return n
	}
	whole := *n
	(&treeReader{file: n.pos.File}).unpack(&whole, elsewhere)
	return &whole
}
