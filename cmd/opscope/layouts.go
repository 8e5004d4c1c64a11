package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"opscope/dissect/mmo"
	"opscope/dissect/protocols"
	"opscope/schema"
	"opscope/schema/wire"
)

// load settles the layouts of all protocols: the built-in ones, with the user's files over
// them, the user's own games beside them, and the user's options applied. Built-in ones
// that are as they were are loaded when something needs them.
func (d *decoding) load() error {
	d.known, d.schemas = slices.Clone(protocols.All), map[string]*schema.Protocol{}
	d.changed = len(d.schema)+len(d.proto)+len(d.settings) > 0 || d.limits.schema != schema.Bounds{}
	if !d.changed {
		return nil
	}
	for _, name := range schema.BuiltinNames() { // also those that carry others
		s, err := schema.Builtin(name)
		if err != nil {
			return &exitError{exitUsage, err}
		}
		d.schemas[name] = s.Bounded(d.limits.schema)
	}
	for _, dir := range d.schema {
		if err := d.overlayDir(dir); err != nil {
			return err
		}
	}
	for _, dir := range d.proto {
		if err := d.protoDir(dir); err != nil {
			return err
		}
	}
	for _, setting := range d.settings {
		if err := d.set(setting); err != nil {
			return err
		}
	}
	return d.bind()
}

// overlayDir puts the user's schema files over the built-in schemas. A directory that has
// nothing for any of them is an error.
func (d *decoding) overlayDir(dir string) error {
	if err := directory("--schema", dir); err != nil {
		return err
	}
	used := false
	for name, s := range d.schemas {
		over, err := s.Overlay(os.DirFS(dir), ".")
		if err != nil {
			return &exitError{exitUsage, fmt.Errorf("--schema %s: %w", dir, err)}
		}
		used = used || over != s
		d.schemas[name] = over
	}
	if !used {
		return usage("--schema %s: nothing there for a known protocol\ntry: protocol: %s at the top of a file",
			dir, strings.Join(schema.BuiltinNames(), " or "))
	}
	return nil
}

// directory refuses what is no directory, as the value of a flag.
func directory(flag, name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return usage("%s: %w", flag, err)
	}
	if !info.IsDir() {
		return usage("%s %s: want a directory", flag, name)
	}
	return nil
}

// protoDir reads the .proto files of a directory with the ids of their messages: for the
// mmo, unless they say that they are another game's.
func (d *decoding) protoDir(dir string) error {
	if err := directory("--proto", dir); err != nil {
		return err
	}
	all, err := schema.Extend(os.DirFS(dir), ".", func(name string) (*schema.Protocol, error) {
		if name == "" {
			name = family
		}
		return d.schemas[name], nil
	})
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("--proto %s: %w", dir, err)}
	}
	for _, s := range all {
		if _, ok := d.schemas[s.Name]; !ok {
			if len(s.Framings) == 0 || slices.ContainsFunc(s.Framings, func(f *schema.Framing) bool { return f.Kind != schema.SizePrefixed }) {
				return usage("--proto %s: %s has no framing, or one that is not size_prefixed\ntry: see the README, --proto", dir, s.Name)
			}
			d.known = append(d.known, mmo.With(s))
		}
		d.schemas[s.Name] = s
	}
	return nil
}

// family is the protocol whose dissector reads a user's games, too.
const family = "mmo"

// set applies an option of a protocol, as mmo.order:be. It is written as in tshark.
func (d *decoding) set(setting string) error {
	name, value, ok := strings.Cut(setting, ":")
	protocol, key, dotted := strings.Cut(strings.TrimSpace(name), ".")
	orders := map[string]wire.Order{"be": wire.Big, "le": wire.Little}
	order, known := orders[strings.TrimSpace(value)]
	if !ok || !dotted || key != "order" || !known {
		return usage("-o %q is no option\ntry: -o mmo.order:be, or -o mmo.order:le", setting)
	}
	s := d.schemas[protocol]
	if s == nil {
		_, err := d.protocolNamed(protocol)
		return err
	}
	turned, err := s.WithOrder(order)
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("-o %s: %w", setting, err)}
	}
	d.schemas[protocol] = turned
	return nil
}

// bind gives the games of the family their layouts, which they are recognised by.
func (d *decoding) bind() error {
	for i, p := range d.known {
		game, ok := p.(mmo.Protocol)
		if !ok {
			continue
		}
		s, err := game.Schema()
		if err != nil {
			return &exitError{exitUsage, err}
		}
		d.known[i] = mmo.With(d.schemas[s.Name])
	}
	return nil
}

// anew loads the layouts again, as the user's files are now. It returns false, and says why,
// where they are wrong.
func (d *decoding) anew() bool {
	fresh := decoding{decodeOptions: d.decodeOptions, limits: d.limits}
	if err := fresh.load(); err != nil {
		complain(d.err, err.Error()+"\nthe schemas from before stay in use")
		return false
	}
	d.schemas = fresh.schemas
	return true
}

// overlay returns what puts the user's schemas in the place of the built-in ones; nil
// where there is nothing to change.
func (d *decoding) overlay() func(*schema.Protocol) (*schema.Protocol, error) {
	if !d.changed {
		return nil
	}
	return func(p *schema.Protocol) (*schema.Protocol, error) { return d.schemas[p.Name], nil }
}

// schemaOf returns the schema of a protocol, nil for none: for the names of what
// it has.
func (d *decoding) schemaOf(name string) *schema.Protocol {
	s, known := d.schemas[name]
	if !known && !d.changed && slices.Contains(schema.BuiltinNames(), name) {
		s, _ = schema.Builtin(name) // a test has loaded it
		d.schemas[name] = s
	}
	return s
}

// allSchemas returns the schemas of all protocols by name, for whoever looks for a name
// without knowing whose it is.
func (d *decoding) allSchemas() map[string]*schema.Protocol {
	for _, name := range schema.BuiltinNames() {
		d.schemaOf(name)
	}
	return d.schemas
}
