package filter

import (
	"slices"
	"strings"

	"opscope/dissect"
	"opscope/schema"
)

// name is what all schemas say of the fields with one path.
type name struct {
	path     string // "entities.position"
	kinds    kind
	list     bool
	personal bool // masked as what a person wrote
	enums    []*schema.Enum
	flags    []*schema.Flags
	members  map[string]*name
}

// member returns the member called so, a new one if need be.
func (n *name) member(word string) *name {
	m := n.members[word]
	if m != nil {
		return m
	}
	if n.members == nil {
		n.members = map[string]*name{}
	}
	m = &name{path: strings.TrimPrefix(n.path+"."+word, ".")}
	n.members[word] = m
	return m
}

// add puts the lines of a layout below n. A line without a name, such as an element
// whose type a switch chooses, says something about what it stands in; so does one with
// the name of the field whose type a switch chooses, which is chosen.
func (n *name) add(items []schema.Item, chosen string, p dissect.Privacy) {
	for len(items) > 0 {
		it, end := &items[0], 1
		for end < len(items) && items[end].Depth > it.Depth {
			end++
		}
		m, within := n, ""
		switch f := it.Field; {
		case f == nil:
			within = chosen
		case f.Hidden || f.Part:
			m = &name{} // nobody sees it
		case f.Name == "", f.Name == chosen:
			n.learn(it, p)
		default:
			m = n.member(f.Name)
			m.learn(it, p)
			if it.Kind == schema.Null {
				within = f.Name
			}
		}
		m.add(items[1:end], within, p)
		items = items[end:]
	}
}

// numbered returns a field of Protocol Buffers that no schema has, whose number is its
// name: it may be anything, any number of times.
func numbered(in *name, word string) *name {
	return &name{path: in.path + `["` + word + `"]`, kinds: number | text | group, list: true}
}

// Paths returns what Columns takes: the keys of records, and the fields of the protocols,
// those with the name of a key behind "fields.". They are sorted.
func (l *Language) Paths() []string {
	var list []string
	for word, k := range keys {
		if k.kinds&readable != 0 {
			list = append(list, word)
		}
	}
	for word, m := range l.fields.members {
		before := ""
		if k := keys[word]; k != nil && !k.beside {
			before = "fields."
		}
		list = m.appendPaths(list, before)
	}
	for _, m := range l.envelope.members {
		list = m.appendPaths(list, "")
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// appendPaths appends the path of n, of its flags, and of all that is below it.
func (n *name) appendPaths(list []string, before string) []string {
	if n.kinds&(readable|masked) != 0 {
		list = append(list, before+n.path)
	}
	for _, bit := range words(nil, n.flags) {
		list = append(list, before+n.path+"."+bit)
	}
	for _, m := range n.members {
		list = m.appendPaths(list, before)
	}
	return list
}

func isNumber(word string) bool {
	for _, c := range word {
		if c < '0' || c > '9' {
			return false
		}
	}
	return word != ""
}

// learn adds what a line says of a field.
func (n *name) learn(it *schema.Item, p dissect.Privacy) {
	f := it.Field
	n.list = n.list || it.Many
	if it.Kind != schema.Struct && p.Hides(f.Redact) {
		n.kinds |= masked
		n.personal = n.personal || f.Redact == schema.Personal
	} else {
		n.kinds |= kindOf(it.Kind)
	}
	if f.Enum != nil && !slices.Contains(n.enums, f.Enum) {
		n.enums = append(n.enums, f.Enum)
	}
	if f.Flags != nil && !slices.Contains(n.flags, f.Flags) {
		n.flags = append(n.flags, f.Flags)
	}
}

func kindOf(k schema.ValueKind) kind {
	switch k {
	case schema.Uint:
		return unsigned
	case schema.Int:
		return signed
	case schema.Float:
		return float
	case schema.Text, schema.String:
		return text
	case schema.Bytes:
		return octets
	case schema.GUID:
		return guid
	case schema.IPv4:
		return ipv4
	case schema.Bool:
		return truth
	case schema.Struct, schema.Array:
		return group
	}
	return 0
}

// pick is a flag by its name, in each of the flags that have it.
type pick struct {
	of   *schema.Flags
	flag schema.Flag
}

// picks returns the flags called word.
func (n *name) picks(word string) []pick {
	var list []pick
	for _, f := range n.flags {
		for _, b := range f.Bits {
			if b.Name == word {
				list = append(list, pick{f, b})
			}
		}
	}
	return list
}

// words returns the names of the values that a field can have.
func words(enums []*schema.Enum, flags []*schema.Flags) []string {
	var list []string
	for _, e := range enums {
		for _, v := range e.Values {
			list = append(list, v.Name)
		}
	}
	for _, f := range flags {
		for _, b := range f.Bits {
			list = append(list, b.Name)
		}
	}
	return list
}

// below returns what can follow n and a point.
func (n *name) below() []string {
	list := words(nil, n.flags)
	for word := range n.members {
		list = append(list, word)
	}
	return list
}

// find returns the paths, sorted, that end in word.
func (n *name) find(word string) []string {
	var list []string
	for w, m := range n.members {
		if w == word {
			list = append(list, m.path)
		}
		list = append(list, m.find(word)...)
	}
	slices.Sort(list)
	return list
}
