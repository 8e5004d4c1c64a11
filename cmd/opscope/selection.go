package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/pflag"

	"opscope/dissect"
	"opscope/dissect/filter"
	"opscope/dissect/sink"
	"opscope/schema"
)

// selectionOptions say which records are wanted. They mean the same in every command.
type selectionOptions struct {
	filter        string
	only, hide    []string
	before, after int
	presets       []string
	profile       string
	presetFilter  bool // a preset has a filter
}

func (o *selectionOptions) flags(f *pflag.FlagSet) {
	o.choiceFlags(f)
	f.IntVar(&o.before, "before", 0, "also show `N` records in front of each that passed the filter")
	f.IntVar(&o.after, "after", 0, "also show `N` records behind each that passed the filter")
}

// choiceFlags are those that choose single records, not what is around them.
func (o *selectionOptions) choiceFlags(f *pflag.FlagSet) {
	f.StringVarP(&o.filter, "display-filter", "Y", "", "show only records for which this `FILTER` holds: opscope help filter")
	repeatable(f, &o.only, "only", "", "show only these messages: a `LIST` of names and opcodes, as D_ACK,0x35,33; repeatable")
	repeatable(f, &o.hide, "hide", "", "do not show these messages: a `LIST` as of --only; repeatable")
	repeatable(f, &o.presets, "preset", "", "take filter, lists and numbers from the preset `NAME` of the profile; repeatable")
	f.StringVar(&o.profile, "profile", "", "read presets from this `FILE` (default: opscope/profile.yaml in the user's configuration)")
}

// loadPresets loads the presets, and checks the numbers.
func (d *decoding) loadPresets() (err error) {
	if d.loaded, err = d.selectionOptions.load(); err != nil {
		return err
	}
	switch {
	case d.before < 0 || d.before > filter.MaxContext:
		return usage("--before %d: want a number of records from 0 to %d", d.before, filter.MaxContext)
	case d.after < 0:
		return usage("--after %d: want a number of records, from 0", d.after)
	}
	return nil
}

// compile returns the filter, nil for one that wants all records. An error says which
// flag is wrong.
func (o *selectionOptions) compile(presets []preset, language func() *filter.Language) (*filter.Filter, error) {
	if o.filter == "" && len(o.only) == 0 && len(o.hide) == 0 && len(presets) == 0 {
		return nil, nil
	}
	all, err := (&preset{Filter: o.filter, Only: o.only, Hide: o.hide}).compile(language())
	for _, preset := range presets {
		var f *filter.Filter
		if err == nil {
			f, err = preset.compile(language())
			all = all.And(f)
		}
	}
	return all, err
}

// compile returns the filter for what all parts of a preset want, or of the flags.
func (p *preset) compile(l *filter.Language) (*filter.Filter, error) {
	whose := ""
	if p.name != "" {
		whose = "preset " + p.name + ": "
	}
	only, err := l.Opcodes(p.Only)
	if err != nil {
		return nil, usage("%s--only: %w", whose, err)
	}
	hide, err := l.Opcodes(p.Hide)
	if err != nil {
		return nil, usage("%s--hide: %w", whose, err)
	}
	f := only.And(hide.Not())
	if p.Filter == "" {
		return f, nil
	}
	wanted, err := l.Compile(p.Filter)
	if err != nil {
		return nil, usage("%s-Y: %w", whose, err)
	}
	return f.And(wanted), nil
}

// selection is which records a run shows, and how many it has shown.
type selection struct {
	loaded   []preset
	language *filter.Language
	wanted   *filter.Filter
	window   filter.Window
	taps     []dissect.Sink // take what is wanted, and what is no frame
	any      bool           // records of any type count, not only frames
	shown    atomic.Int64   // that passed the filter
	enough   bool           // but for what stands behind the last hit
}

// prepareSelection compiles the filter. Between groups of records, text has a line.
func (d *decoding) prepareSelection() (err error) {
	if d.wanted, err = d.compile(d.loaded, d.words); err != nil {
		return err
	}
	d.any = d.filtered()
	d.window = filter.Window{Before: d.before, After: d.after}
	d.writeTo(d.out)
	if d.format == "text" {
		d.window.Separate = d.separate
	}
	return err
}

// words returns the language of filters for the protocols of this run. It is made when it
// is first asked for.
func (d *decoding) words() *filter.Language {
	if d.language == nil {
		list := slices.SortedFunc(maps.Values(d.allSchemas()), func(a, b *schema.Protocol) int { return strings.Compare(a.Name, b.Name) })
		d.language = filter.NewLanguage(list, d.privacy())
	}
	return d.language
}

// shapes are the formats that write columns.
var shapes = map[string]sink.Shape{"fields": sink.Fields, "tsv": sink.TSV, "csv": sink.CSV, "table": sink.Aligned}

// overview are the columns where none are asked for.
var overview = []string{"time", "session", "dir", "transport", "type", "message", "opcode", "size", "envelope.seq", "ack.state", "notes.code", "error.kind"}

// columnsOut returns the sink that writes what -e asks for.
func (d *decoding) columnsOut(immediate bool) (dissect.Sink, error) {
	shape, ok := shapes[d.format]
	columns := d.columns
	switch {
	case !ok:
		return nil, usage("unknown format %q\ntry one of: text json fields tsv csv table", d.format)
	case len(columns) == 0 && shape == sink.Fields:
		return nil, usage("-T fields wants a field\ntry: -T fields -e time -e message")
	case len(columns) == 0:
		columns = overview
	}
	c, err := d.words().Columns(columns)
	if err != nil {
		return nil, usage("-e: %w", err)
	}
	return sink.NewColumns(d.streams.out, c, shape, immediate), nil
}

// writeTo has the wanted records written to a sink.
func (d *decoding) writeTo(out dissect.Sink) { d.out, d.window.Sink = out, out }

func (d *decoding) separate() error {
	if err := d.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(d.streams.out, "--")
	return err
}

// take shows a record if it is wanted, or near one that is. After so many wanted ones,
// and what stands behind them, it returns errEnough; 0 is for all. A silent run counts
// and shows nothing.
func (s *selection) take(r *dissect.Record, limit int, silent bool) error {
	hit := !s.enough && s.wanted.Match(r)
	if hit || r.Type != dissect.FrameRecord {
		for _, t := range s.taps {
			if err := t.Write(r); err != nil {
				return err
			}
		}
	}
	if !silent {
		if err := s.window.Write(r, hit); err != nil {
			return err
		}
	}
	if hit && (s.any || r.Type == dissect.FrameRecord) {
		s.enough = s.shown.Add(1) == int64(limit)
	}
	if s.enough && (silent || !s.window.Owes()) {
		return errEnough
	}
	return nil
}
