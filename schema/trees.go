package schema

import (
	_ "embed" // the trees
	encoding "encoding/binary"
	"errors"
	"hash/crc32"
	"path"
)

// To parse the YAML of a protocol takes longer than to decode a small capture. The trees of
// the built-in files are therefore kept beside them, each with the checksum of the text that
// it was made of: a tree of another text is passed over, and the text parsed. So a stale file
// costs time and never the truth, and a test says that it is stale.
//
//	trees: tree...
//	tree:  length of the name, name; checksum of the text (4 bytes); length of the rest, and
//	       in it the nodes, the pairs and the items of all lists, and the node of each document
//	node:  kind, and 4 for flow style; line; column; then
//	       of a scalar its text; of a list its length and its items; of a mapping its length
//	       and a key and a value for each pair
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
	var body []byte
	var n treeSize
	for _, d := range docs {
		body = n.append(body, d)
	}
	for _, number := range []int{n.nodes, n.pairs, n.items} {
		dst = encoding.AppendUvarint(dst, uint64(number))
	}
	return append(encoding.AppendUvarint(dst, uint64(len(docs))), body...)
}

// treeSize is what a tree takes, which is allocated at once.
type treeSize struct{ nodes, pairs, items int }

// flowStyle is added to the kind of a node in flow style.
const flowStyle = 4

func (t *treeSize) append(dst []byte, n *yamlNode) []byte {
	t.nodes++
	kind := byte(n.kind)
	if n.flow {
		kind |= flowStyle
	}
	dst = append(dst, kind)
	dst = encoding.AppendUvarint(dst, uint64(n.pos.Line))
	dst = encoding.AppendUvarint(dst, uint64(n.pos.Col))
	switch n.kind {
	case yamlScalar:
		dst = appendText(dst, n.text)
	case yamlList:
		t.items += len(n.items)
		dst = encoding.AppendUvarint(dst, uint64(len(n.items)))
		for _, i := range n.items {
			dst = t.append(dst, i)
		}
	case yamlMap:
		t.pairs += len(n.pairs)
		dst = encoding.AppendUvarint(dst, uint64(len(n.pairs)))
		for _, p := range n.pairs {
			dst = t.append(t.append(dst, p.key), p.value)
		}
	}
	return dst
}

// packedTree returns the documents of a built-in file out of the trees. It returns false
// where they have none of this text.
func packedTree(name string, data []byte) ([]*yamlNode, bool) {
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
		return (&treeReader{rest: body, file: path.Base(name)}).documents(), true
	}
	return nil, false
}

// treeReader reads trees. Texts alias them. What is wrong with them is a mistake in the
// program: a test has read them.
type treeReader struct {
	rest  string
	file  string
	nodes []yamlNode
	pairs []yamlPair
	items []*yamlNode
}

func (r *treeReader) number() int {
	n, shift := 0, 0
	for i := range len(r.rest) {
		c := r.rest[i]
		n |= int(c&0x7f) << shift
		if c < 0x80 {
			r.rest = r.rest[i+1:]
			return n
		}
		shift += 7
	}
	panic(errors.New("protocols.trees: cut"))
}

func (r *treeReader) text() string {
	n := r.number()
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

func (r *treeReader) documents() []*yamlNode {
	r.nodes, r.pairs, r.items = make([]yamlNode, r.number()), make([]yamlPair, r.number()), make([]*yamlNode, r.number())
	docs := make([]*yamlNode, r.number())
	for i := range docs {
		docs[i] = r.node()
	}
	return docs
}

func (r *treeReader) node() *yamlNode {
	n := &r.nodes[0]
	r.nodes = r.nodes[1:]
	kind := r.number()
	n.kind, n.flow = yamlKind(kind&^flowStyle), kind&flowStyle != 0
	n.pos = Pos{r.file, r.number(), r.number()}
	switch n.kind {
	case yamlScalar:
		n.text = r.text()
	case yamlList:
		n.items = take(&r.items, r.number())
		for i := range n.items {
			n.items[i] = r.node()
		}
	case yamlMap:
		n.pairs = take(&r.pairs, r.number())
		for i := range n.pairs {
			n.pairs[i] = yamlPair{r.node(), r.node()}
		}
	}
	return n
}

// take cuts n elements off, nil for none.
func take[T any](from *[]T, n int) []T {
	if n == 0 {
		return nil
	}
	s := (*from)[:n:n]
	*from = (*from)[n:]
	return s
}
