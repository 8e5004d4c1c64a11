package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"opscope/schema"
)

// profile is a file of presets:
//
//	presets:
//	  trouble:
//	    filter: error or note("retransmission") or ack.state == unacked
//	    hide:   [D_ACK, 0x0f]
//	    before: 2
type profile struct {
	Presets map[string]preset
}

// preset says which records are wanted. It has what the flags have, and a name.
type preset struct {
	name          string
	Filter        string
	Only, Hide    []string
	Before, After int
}

// maxProfile is more than anybody writes.
const maxProfile = 1 << 20

// load returns the presets that were asked for. Numbers that no flag gave are theirs, the
// largest of several.
func (o *selectionOptions) load() ([]preset, error) {
	if len(o.presets) == 0 {
		return nil, nil
	}
	file, known, err := o.read()
	if err != nil {
		return nil, err
	}
	var list []preset
	for _, name := range o.presets {
		p, ok := known.Presets[name]
		if !ok {
			names := slices.Sorted(maps.Keys(known.Presets))
			hint := schema.Hint(name, names)
			if hint == "" && len(names) > 0 {
				hint = " (there are: " + strings.Join(names, " ") + ")"
			}
			return nil, usage("--preset: %s has no preset %q%s", file, name, hint)
		}
		p.name = name
		o.before, o.after = max(o.before, p.Before), max(o.after, p.After)
		o.presetFilter = o.presetFilter || p.Filter != ""
		list = append(list, p)
	}
	return list, nil
}

// filtered reports whether a filter says which records are wanted, and not only which
// messages.
func (o *selectionOptions) filtered() bool { return o.filter != "" || o.presetFilter }

// read reads the profile: that which a flag names, else the user's.
func (o *selectionOptions) read() (file string, p profile, err error) {
	if file = o.profile; file == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return "", p, usage("--preset: %w\ntry: --profile FILE", err)
		}
		file = filepath.Join(dir, "opscope", "profile.yaml")
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && o.profile == "":
		return "", p, usage("--preset: there is no %s\ntry: --profile FILE", file)
	case err != nil:
		return "", p, usage("--profile: %w", err)
	case info.Size() > maxProfile:
		return "", p, usage("--profile: %s: want at most %d bytes, got %d", file, maxProfile, info.Size())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", p, usage("--profile: %w", err)
	}
	if err := yaml.UnmarshalWithOptions(text, &p, yaml.Strict()); err != nil {
		return "", p, &exitError{exitUsage, fmt.Errorf("--profile: %s: %s", file, strings.TrimSpace(yaml.FormatError(err, false, true)))}
	}
	return file, p, nil
}
