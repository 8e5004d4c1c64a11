package schema

import (
	"embed"
	"path"
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
	load, _ := loaded.LoadOrStore(name, sync.OnceValues(func() (*Protocol, error) {
		l := loader{trusted: true}
		all, err := l.load(builtin, path.Join("protocols", name))
		if err != nil {
			return nil, err
		}
		return all[0], nil
	}))
	return load.(func() (*Protocol, error))()
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
