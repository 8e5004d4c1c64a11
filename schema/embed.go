package schema

import (
	"embed"
	"path"
	"slices"
	"sync"
)

//go:embed protocols
var builtin embed.FS

//go:embed notation.schema.json
var NotationSchema []byte // the JSON Schema of the notation, for editors

var loaded sync.Map // name -> func() (*Protocol, error)

// Builtin returns a protocol that is compiled into the binary. It is loaded when
// it is first asked for.
func Builtin(name string) (*Protocol, error) {
	load, ok := loaded.Load(name)
	if !ok {
		load, _ = loaded.LoadOrStore(name, sync.OnceValues(func() (*Protocol, error) {
			l := loader{trusted: true}
			all, err := l.load(builtin, path.Join("protocols", name))
			if err != nil {
				return nil, err
			}
			return all[0], nil
		}))
	}
	return load.(func() (*Protocol, error))()
}

// Head is what is known of a protocol without its layouts.
type Head struct {
	Name  string
	Over  string // the protocol whose messages carry this one's frames; "" for none
	Ports []Port
}

// headKeys are the keys of a document that a Head is made of, beside its name.
var headKeys = []string{"over", "ports"}

// Head returns the head of p.
func (p *Protocol) Head() Head { return Head{p.Name, p.Over, p.Ports} }

// BuiltinHead returns the head of a protocol that is compiled into the binary, without
// loading it: it stands in the first document of protocol.yaml.
func BuiltinHead(name string) (Head, error) {
	file := path.Join("protocols", name, "protocol.yaml")
	data, err := builtin.ReadFile(file)
	if err != nil {
		return Head{}, err
	}
	docs, err := (&loader{trusted: true}).documents(file, data, inHead)
	if err != nil {
		return Head{}, err
	}
	d := &draft{Protocol: &Protocol{Name: name}}
	for _, p := range docs[0].pairs {
		if slices.Contains(headKeys, p.key.text) {
			if err := d.section(p.key.text, p.value, false); err != nil {
				return Head{}, err
			}
		}
	}
	return d.Head(), nil
}

// BuiltinNames returns the names of the protocols in the binary.
func BuiltinNames() []string {
	dirs, _ := builtin.ReadDir("protocols")
	var names []string
	for _, d := range dirs {
		names = append(names, d.Name())
	}
	return names
}

// BuiltinFiles returns the built-in schema files, below "protocols".
func BuiltinFiles() embed.FS { return builtin }
