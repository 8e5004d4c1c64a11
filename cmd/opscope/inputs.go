package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"opscope/dissect/capture"
)

// inputs returns the files that arguments stand for, in their order: of a directory the
// captures in it and below it, by their names; of a pattern that no shell has expanded what
// it matches. What cannot be read is among them, and says so in its turn.
func (d *decoding) inputs(arguments []string) []string {
	var files []string
	for _, name := range arguments {
		found := []string{name}
		if _, err := os.Stat(name); name != "-" && errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(name, patternSigns) {
			found = d.matches(name)
		}
		for _, name := range found {
			if about, err := os.Stat(name); name == "-" || err != nil || !about.IsDir() {
				files = append(files, name)
				continue
			}
			files = append(files, d.capturesIn(name)...)
		}
	}
	return files
}

// patternSigns make a name that is no file a pattern, as filepath.Match has it.
const patternSigns = "*?["

// matches returns the files that a pattern matches.
func (d *decoding) matches(pattern string) []string {
	found, err := filepath.Glob(pattern)
	if err == nil && len(found) == 0 {
		err = errors.New("no file has such a name")
	}
	if err != nil {
		return []string{d.unreadable(pattern, fmt.Errorf("%s: %w", pattern, err))}
	}
	return found
}

// capturesIn returns the captures in a directory and below it. As with grep -r, a link to
// another directory is not followed, so that nothing is read twice, or for ever; a link
// to a file is. What is no file, as a pipe, is passed over.
func (d *decoding) capturesIn(dir string) []string {
	var files []string
	root := dir
	if entries, err := os.Lstat(dir); err == nil && entries.Mode()&fs.ModeSymlink != 0 {
		root += string(filepath.Separator) // which follows the link
	}
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			files = append(files, d.unreadable(path, err))
			return nil
		}
		if entry.IsDir() {
			return nil
		}
		if kind := entry.Type(); kind&fs.ModeSymlink != 0 {
			about, err := os.Stat(path)
			if err == nil && !about.Mode().IsRegular() {
				return nil
			}
		} else if !kind.IsRegular() {
			return nil
		}
		// One that nobody can look into says so when it is read.
		if is, err := capture.Probe(path); is || err != nil {
			files = append(files, path)
		}
		return nil
	})
	if len(files) == 0 {
		return []string{d.unreadable(dir, fmt.Errorf("%s: no capture in this directory", dir))}
	}
	return slices.Clip(files)
}

// unreadable has a name say why it is no file that can be read, when its turn comes.
func (d *decoding) unreadable(name string, why error) string {
	if d.refused == nil {
		d.refused = map[string]error{}
	}
	d.refused[name] = why
	return name
}
