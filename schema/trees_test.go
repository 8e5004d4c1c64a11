package schema

import (
	"bytes"
	"io/fs"
	"path"
	"reflect"
	"testing"
)

// TestTreesAreFresh proves that the trees beside the built-in files were made of them as
// they are now.
func TestTreesAreFresh(t *testing.T) {
	want, err := PackBuiltin()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal([]byte(trees), want) {
		t.Errorf("schema/protocols.trees is stale (%d bytes, want %d): go generate ./schema", len(trees), len(want))
	}
}

// unpackAll unpacks all of a tree.
func unpackAll(n *yamlNode) *yamlNode {
	n = n.unpacked()
	for i, p := range n.pairs {
		n.pairs[i] = yamlPair{unpackAll(p.key), unpackAll(p.value)}
	}
	for i, item := range n.items {
		n.items[i] = unpackAll(item)
	}
	return n
}

// TestTreesSayWhatTheTextSays compares each tree with the text, wherever one begins to read.
func TestTreesSayWhatTheTextSays(t *testing.T) {
	files, err := fs.Glob(builtin, "protocols/*/*.yaml")
	if err != nil || len(files) < 40 {
		t.Fatalf("got %d files (%v)", len(files), err)
	}
	for _, name := range files {
		data, err := builtin.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := parseYAML(path.Base(name), data)
		if err != nil {
			t.Fatal(err)
		}
		for part := elsewhere; part <= leftPacked; part++ {
			got, ok := packedTree(name, data, part)
			if !ok {
				t.Fatalf("%s has no tree: go generate ./schema", name)
			}
			for i := range got {
				got[i] = unpackAll(got[i])
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: the tree differs from the text", name)
			}
		}
	}
}

func TestATreeOfAnotherTextIsPassedOver(t *testing.T) {
	const name = "protocols/wulfram/chat.yaml"
	data, err := builtin.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := packedTree(name, append(data, '\n'), inDocument); ok {
		t.Error("a changed text has the tree of the old one")
	}
	if _, ok := packedTree("protocols/wulfram/new.yaml", data, inDocument); ok {
		t.Error("a new file has a tree")
	}
}
