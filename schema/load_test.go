package schema

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestRefusesWrongFiles loads every file of testdata/broken/schema. Its first
// line says which error it must give: "# LINE:COL: message".
func TestRefusesWrongFiles(t *testing.T) {
	files, err := filepath.Glob("../testdata/broken/schema/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("got %d wrong schema files, want at least 30 (%v)", len(files), err)
	}
	head := regexp.MustCompile(`^# (\d+:\d+: .*)`)
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			m := head.FindStringSubmatch(string(data))
			if m == nil {
				t.Fatal("no expected error in the first line")
			}
			want := "schema " + filepath.Base(name) + ":" + m[1]
			_, err = LoadFile(os.DirFS(filepath.Dir(name)), filepath.Base(name))
			if err == nil {
				t.Fatalf("got no error, want %s", want)
			}
			if err.Error() != want {
				t.Errorf("got  %s\nwant %s", err, want)
			}
		})
	}
}

// shared returns the path of a file that is not part of the project, and skips
// the test where it is absent.
func shared(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join("../../shared", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not beside this checkout", name)
	}
	return path
}

func TestTheNotationByExampleLoads(t *testing.T) {
	path := shared(t, "notation.yaml")
	all, err := LoadFile(os.DirFS(filepath.Dir(path)), filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	if got, want := strings.Join(names, " "), "wulfram netrek dplay lotr2 mmo"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestBuiltinProtocolsLoad loads the built-in files with all checks, and compares what they
// say with what Builtin returns, which reads each packet when somebody asks for it.
func TestBuiltinProtocolsLoad(t *testing.T) {
	for _, name := range BuiltinNames() {
		all, err := Load(builtin, "protocols/"+name)
		if err != nil {
			t.Error(err)
			continue
		}
		p, err := Builtin(name)
		if err != nil || len(all) != 1 || len(p.Packets) != len(all[0].Packets) {
			t.Errorf("%s: got %v, %v", name, p, err)
			continue
		}
		for i, want := range all[0].Packets {
			compareLayouts(t, name, p.Packets[i], want)
		}
		for i, f := range all[0].Framings {
			if f.Kind == Typed {
				compareSizes(t, p.Framings[i].sizes, f.sizes)
			}
		}
	}
}

func compareLayouts(t *testing.T, protocol string, got, want *Packet) {
	t.Helper()
	if got.Name != want.Name || got.Opcode != want.Opcode || got.From != want.From || got.Pos != want.Pos || got.Secret() != want.Secret() {
		t.Errorf("%s %s: got %+v, want %+v", protocol, want.Name, got, want)
	}
	for _, by := range []Sender{AnySender, Client, Server} {
		g, w := got.Of(by), want.Of(by)
		if len(g) != len(w) {
			t.Errorf("%s %s: got %d layouts, want %d", protocol, want.Name, len(g), len(w))
			continue
		}
		for i := range w {
			if g[i].Source != w[i].Source || g[i].Confidence != w[i].Confidence || !reflect.DeepEqual(g[i].Items(), w[i].Items()) {
				t.Errorf("%s %s: got the layout %+v, want %+v", protocol, want.Name, g[i].Items(), w[i].Items())
			}
		}
	}
}

func compareSizes(t *testing.T, got, want *sizes) {
	t.Helper()
	if !reflect.DeepEqual(got.faults(), want.faults()) {
		t.Error("the faults differ")
	}
	for by := range want.of {
		for opcode, w := range want.of[by] {
			g := got.of[by][opcode]
			if (g == nil) != (w == nil) || w != nil && g.fixed != w.fixed {
				t.Errorf("opcode %d: got %+v, want %+v", opcode, g, w)
			} else if w != nil && w.fixed == 0 {
				if err := g.settle(); err != nil || g.size.text != w.size.text || len(g.lead) != len(w.lead) || !slices.Equal(g.clear, w.clear) {
					t.Errorf("opcode %d: got %+v, %v, want %+v", opcode, g, err, w)
				}
			}
		}
	}
}

// TestBuiltinPacketsAreReadWhenNeeded proves that a load leaves alone what no packet has
// needed yet, and bounds what is left: to parse the YAML alone takes 56,000 allocations for
// Wulfram, and 99,000 for Netrek.
func TestBuiltinPacketsAreReadWhenNeeded(t *testing.T) {
	for _, name := range BuiltinNames() {
		var p *Protocol
		allocations := testing.AllocsPerRun(2, func() {
			all, err := (&loader{trusted: true}).load(builtin, "protocols/"+name)
			if err != nil {
				t.Fatal(err)
			}
			p = all[0]
		})
		if allocations > 5000 {
			t.Errorf("%s: got %v allocations, want at most 5000", name, allocations)
		}
		read := func() (n int) {
			for _, k := range p.Packets {
				if k.compile != nil && !reflect.DeepEqual(k.layouts, [3][]*Layout{}) {
					n++
				}
			}
			return n
		}
		if n := read(); n > 0 {
			t.Errorf("%s: %d packets are read by a load", name, n)
		}
		i := slices.IndexFunc(p.Packets, func(k *Packet) bool { return k.compile != nil })
		if i < 0 {
			continue // Protocol Buffers alone
		}
		if p.Packets[i].Of(AnySender) == nil || read() != 1 {
			t.Errorf("%s: %d packets are read, want 1", name, read())
		}
	}
}

// TestBuiltinPacketsAreReadOnce has several goroutines ask for the packets of one protocol.
func TestBuiltinPacketsAreReadOnce(t *testing.T) {
	for _, name := range BuiltinNames() {
		all, err := (&loader{trusted: true}).load(builtin, "protocols/"+name)
		if err != nil {
			t.Fatal(err)
		}
		var done sync.WaitGroup
		var seen [4][]*Layout
		for i := range seen {
			done.Go(func() {
				for _, k := range all[0].Packets {
					seen[i] = append(seen[i], k.Of(Client)...)
				}
			})
		}
		done.Wait()
		for i := range seen {
			if len(seen[i]) == 0 || !slices.Equal(seen[i], seen[0]) {
				t.Errorf("%s: goroutine %d has %d layouts, the first %d, or others", name, i, len(seen[i]), len(seen[0]))
			}
		}
	}
}

// TestHeadIsWhatTheProtocolSays compares what is read of a built-in protocol before it is
// loaded with what it is.
func TestHeadIsWhatTheProtocolSays(t *testing.T) {
	for _, name := range BuiltinNames() {
		head, err := BuiltinHead(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		if want := p.Head(); head.Name != name || head.Over != want.Over || !slices.Equal(head.Ports, want.Ports) {
			t.Errorf("got %+v, want %+v", head, want)
		}
	}
}
