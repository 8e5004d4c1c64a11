package schema

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Pos is a place in a schema file. Lines and columns count from 1.
type Pos struct {
	File      string
	Line, Col int
}

// String returns "file:line:column".
func (p Pos) String() string {
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Col)
}

// at returns the place n columns further on.
func (p Pos) at(n int) Pos {
	p.Col += n
	return p
}

// Error is a fault in a schema file.
type Error struct {
	Pos     Pos
	Message string
}

// Error formats e as "schema wulfram.yaml:118:9: unknown type ...".
func (e *Error) Error() string { return "schema " + e.Pos.String() + ": " + e.Message }

func errorAt(p Pos, format string, args ...any) *Error {
	return &Error{Pos: p, Message: fmt.Sprintf(format, args...)}
}

type yamlKind uint8

const (
	yamlNull yamlKind = iota
	yamlScalar
	yamlList
	yamlMap
)

// yamlNode is a value of a YAML document with its place. Scalars keep the text
// as written: what it means is the notation's business, not YAML's.
type yamlNode struct {
	kind   yamlKind
	flow   bool
	packed bool // text stands for the pairs or items, as trees.go has it
	text   string
	pos    Pos // of the first character of the value, behind an opening quote
	pairs  []yamlPair
	items  []*yamlNode
}

type yamlPair struct {
	key   *yamlNode
	value *yamlNode
}

// get returns the value of a key, or nil.
func (n *yamlNode) get(key string) *yamlNode {
	for _, p := range n.pairs {
		if p.key.text == key {
			return p.value
		}
	}
	return nil
}

// maxBrackets bounds the lists and mappings in flow style within each other: the
// parser's time grows with their square.
const maxBrackets = 500

// tooDeep returns where brackets are nested too deep, as a line and a column.
func tooDeep(data []byte) (line, col int, deep bool) {
	depth, start := 0, 0
	line = 1
	for i, c := range data {
		switch c {
		case '\n':
			line, start = line+1, i+1
		case '[', '{':
			if depth++; depth > maxBrackets {
				return line, i - start + 1, true
			}
		case ']', '}':
			depth = max(0, depth-1)
		}
	}
	return 0, 0, false
}

// parseYAML reads the documents of a file.
func parseYAML(name string, data []byte) ([]*yamlNode, error) {
	if tab := strings.IndexByte("\n"+string(data), '\t'); tab > 0 {
		if line := strings.Count(string(data[:tab-1]), "\n"); strings.TrimLeft(lineOf(data, line), " ")[0] == '\t' {
			col := strings.IndexByte(lineOf(data, line), '\t')
			return nil, errorAt(Pos{name, line + 1, col + 1}, "a tab in the indentation; use spaces")
		}
	}
	if line, col, deep := tooDeep(data); deep {
		return nil, errorAt(Pos{name, line, col}, "brackets nested deeper than %d", maxBrackets)
	}
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		var syntax *yaml.SyntaxError
		if errors.As(err, &syntax) && syntax.Token != nil {
			return nil, errorAt(tokenPos(name, syntax.Token), "%s", syntax.Message)
		}
		return nil, errorAt(Pos{name, 1, 1}, "%v", err)
	}
	var docs []*yamlNode
	for _, d := range f.Docs {
		if d.Body == nil {
			continue
		}
		n, err := convert(name, d.Body)
		if err != nil {
			return nil, err
		}
		if n.kind != yamlNull {
			docs = append(docs, n)
		}
	}
	return docs, nil
}

func lineOf(data []byte, i int) string {
	return strings.Split(string(data), "\n")[i]
}

func tokenPos(name string, t *token.Token) Pos {
	return Pos{name, t.Position.Line, t.Position.Column}
}

func convert(name string, n ast.Node) (*yamlNode, error) {
	out := &yamlNode{}
	if t := n.GetToken(); t != nil {
		out.pos = tokenPos(name, t)
	}
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.MappingNode:
		out.kind, out.flow = yamlMap, n.IsFlowStyle
		if len(n.Values) > 0 && !n.IsFlowStyle {
			out.pos = tokenPos(name, n.Values[0].Key.GetToken())
		}
		return out, convertPairs(name, out, n.Values)
	case *ast.MappingValueNode:
		out.kind = yamlMap
		out.pos = tokenPos(name, n.Key.GetToken())
		return out, convertPairs(name, out, []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		out.kind, out.flow = yamlList, n.IsFlowStyle
		for _, v := range n.Values {
			item, err := convert(name, v)
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, item)
		}
	case *ast.LiteralNode:
		out.kind, out.text = yamlScalar, strings.TrimSpace(n.Value.Value)
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		t := n.GetToken()
		out.kind, out.text = yamlScalar, t.Value
		if t.Type == token.DoubleQuoteType || t.Type == token.SingleQuoteType {
			out.pos.Col++
		}
	default:
		return nil, errorAt(out.pos, "%s is not part of the notation", strings.ToLower(n.Type().String()))
	}
	return out, nil
}

func convertPairs(name string, out *yamlNode, values []*ast.MappingValueNode) error {
	for _, v := range values {
		key, err := convert(name, v.Key)
		if err != nil {
			return err
		}
		if key.kind == yamlNull {
			key.kind, key.text = yamlScalar, v.Key.GetToken().Value
		}
		value, err := convert(name, v.Value)
		if err != nil {
			return err
		}
		out.pairs = append(out.pairs, yamlPair{key, value})
	}
	return nil
}
