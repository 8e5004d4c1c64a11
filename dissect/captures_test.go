package dissect_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"opscope/dissect/capture"
	"opscope/dissect/scene"
)

// counted is a record as an independent decoder counted it.
type counted struct {
	Packets                 []int
	Dir, Transport, Message string
	Size                    int
	Seq                     *int
	Session                 int
}

func (c counted) String() string {
	seq := -1
	if c.Seq != nil {
		seq = *c.Seq
	}
	return fmt.Sprint(c.Session, c.Dir, c.Transport, c.Message, c.Size, c.Packets, seq)
}

// The foreign captures hold the records that an independent decoder found, each in
// the same packets. One joined in its middle holds those at least that need no
// table which it lacks.
func TestForeignCaptures(t *testing.T) {
	root := filepath.Join("..", "..", "shared", "captures", "wulfram")
	paths, _ := filepath.Glob(filepath.Join(root, "*.pcap*"))
	if len(paths) == 0 {
		t.Skip("no captures in " + root)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			src, err := capture.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			out := &scene.Output{}
			playInto(t, out, src, known)
			got := map[string]int{}
			for _, r := range out.Frames() {
				c := counted{r.Packets, r.Direction.String(), r.Transport.String(), r.Message, r.Size, &r.Envelope.Seq, r.Session}
				got[c.String()]++
			}
			for want, n := range countedRecords(t, path) {
				if got[want] != n {
					t.Errorf("got %d of %d: %s", got[want], n, want)
				}
				delete(got, want)
			}
			for more := range got {
				t.Errorf("nobody else found %s", more)
			}
		})
	}
}

func countedRecords(t *testing.T, path string) map[string]int {
	t.Helper()
	f, err := os.Open(strings.TrimSuffix(path, filepath.Ext(path)) + ".records.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list := map[string]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c counted
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		list[c.String()]++
	}
	return list
}
